// The seed's Codex mapper: it translates five kinds of records and drops all others.

import { run } from "./lines.mjs";

run((event) => {
  switch (event.type) {
    case "session.created":
      return [{ type: "init", session_id: event.id, modelId: event.model }];
    case "message.output_text.delta":
      return [{ type: "message", role: "assistant", content: event.delta ?? "", delta: true }];
    case "message.output_text.done":
      return [{ type: "message", role: "assistant", content: event.text ?? "", delta: false }];
    case "error": {
      const text = typeof event.message === "string" ? event.message : JSON.stringify(event);
      return [{ type: "stderr", content: text }];
    }
    default:
      return [];
  }
});
