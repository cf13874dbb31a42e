// Translates Claude's stream into parts of the AI SDK, in the style of the seeds.

import { run } from "./lines.mjs";

const tools = new Map();
let blocks = 0;
let inPieces = false;

run((record) => {
  switch (record.type) {
    case "system":
      if (record.subtype !== "init") return [];
      return [
        { type: "stream-start", warnings: [] },
        { type: "response-metadata", id: record.session_id, modelId: record.model },
      ];
    case "stream_event":
      inPieces = true;
      return partsOfDelta(record.event);
    case "assistant":
      return record.message.content.flatMap(partsOfBlock);
    case "user":
      return record.message.content.flatMap(answered);
    case "result":
      return [finish(record)];
    default:
      return [];
  }
});

function partsOfDelta(event) {
  const id = `b${blocks}`;
  if (event.type === "content_block_start" && event.content_block.type === "text") {
    blocks += 1;
    return [{ type: "text-start", id: `b${blocks}` }];
  }
  if (event.type === "content_block_delta" && event.delta.type === "text_delta") {
    return [{ type: "text-delta", id, delta: event.delta.text }];
  }
  return [];
}

function partsOfBlock(block) {
  if (block.type === "text") {
    if (inPieces) return [{ type: "text-end", id: `b${blocks}` }];
    blocks += 1;
    const id = `b${blocks}`;
    return [
      { type: "text-start", id },
      { type: "text-delta", id, delta: block.text },
      { type: "text-end", id },
    ];
  }
  if (block.type === "tool_use") {
    tools.set(block.id, block.name);
    const call = { toolCallId: block.id, toolName: block.name, input: JSON.stringify(block.input) };
    return [{ type: "tool-call", ...call, providerExecuted: true, dynamic: true }];
  }
  return [];
}

function answered(block) {
  if (block.type !== "tool_result") return [];
  const call = { toolCallId: block.tool_use_id, toolName: tools.get(block.tool_use_id) };
  return [{ type: "tool-result", ...call, result: block.content, dynamic: true }];
}

function finish(record) {
  const usage = record.usage;
  return {
    type: "finish",
    finishReason: { unified: record.is_error ? "error" : "stop", raw: record.stop_reason },
    usage: {
      inputTokens: { noCache: usage.input_tokens, cacheRead: usage.cache_read_input_tokens },
      outputTokens: { total: usage.output_tokens },
    },
  };
}
