// Translates Gemini's stream into records of the Giselle API, in the style of the seeds.

import { run } from "./lines.mjs";

run((event) => {
  const { type, timestamp } = event;
  switch (type) {
    case "init":
      return [{ type, timestamp, session_id: event.session_id, modelId: event.model }];
    case "message": {
      const { role, content, delta } = event;
      return [{ type, timestamp, role, content, delta }];
    }
    case "tool_use": {
      const { tool_name, tool_id, parameters } = event;
      return [{ type, timestamp, tool_name, tool_id, parameters }];
    }
    case "tool_result": {
      const { tool_id, status, output, error } = event;
      return [{ type, timestamp, tool_id, status, output, error }];
    }
    case "result":
      return [{ type, timestamp, status: event.status, stats: event.stats }];
    case "error":
      return [{ type: "stderr", content: event.message }];
    default:
      return [];
  }
});
