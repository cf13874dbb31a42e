// An MCP server on standard input and output whose tool `ask` asks the user for a name, with a form.
// It appends every call to the file that its argument names.

import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const schema = {
  type: "object",
  properties: { name: { type: "string", title: "Name" } },
  required: ["name"],
};
const tool = {
  name: "ask",
  description: "Asks the user for a name.",
  inputSchema: { type: "object", properties: {} },
};

let call;
const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, result } = JSON.parse(line);
  if (method === "initialize") {
    const protocolVersion = params.protocolVersion;
    const serverInfo = { name: "form", version: "1.0.0" };
    send({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo } });
  } else if (method === "tools/list") {
    send({ id, result: { tools: [tool] } });
  } else if (method === "tools/call") {
    appendFileSync(process.argv[2], "called\n");
    call = id;
    const requestedSchema = schema;
    send({ id: "form", method: "elicitation/create", params: { message: "Who?", requestedSchema } });
  } else if (id === "form") {
    const text = `${result?.action}: ${JSON.stringify(result?.content ?? null)}`;
    send({ id: call, result: { content: [{ type: "text", text }] } });
  } else if (method !== undefined && id !== undefined) {
    send({ id, error: { code: -32601, message: "not supported" } });
  }
});
