// Feeds UI message streams to the chat transport of `ai`, as `useChat` does.
//
//   node ui-message.mjs manifest.json
import { answered, refuses, response, run, same, sameText, unusable } from './cases.mjs';

for (const client of ['ai-6', 'ai-7', 'ai-6.0.229']) {
  const { DefaultChatTransport, readUIMessageStream, validateUIMessages } = await import(client);

  const read = async (bytes, terminateOnError) => {
    const transport = new DefaultChatTransport({ api: 'http://agent/chat', fetch: async () => response(bytes) });
    const user = { id: 'u', role: 'user', parts: [{ type: 'text', text: 'hi' }] };
    const stream = await transport.sendMessages({ chatId: 'c', messages: [user], trigger: 'submit-message' });
    const errors = [];
    let message;
    const onError = error => errors.push(error.message);
    for await (message of readUIMessageStream({ stream, terminateOnError, onError }));
    return { message, errors };
  };

  await run(client, 'ui-message', async (told, bytes) => {
    // An `error` chunk is an error too: where there is none, the first one ends it all.
    const expected = errorTexts(bytes);
    const { message, errors } = await read(bytes, expected.length === 0);
    same('the list of errors', errors, expected);
    check(told, message);
    // A server does so with what comes back with the next prompt.
    if (message.parts.length > 0) await validateUIMessages({ messages: [message] });
  });
  const wrong = chunk => () => read(Buffer.from(`data: {"type":"start"}\n\ndata: ${chunk}\n\n`), true);
  await refuses(client, wrong('{"type":"text-delta","id":"b","delta":"x"}'));
  await refuses(client, wrong('{"type":"brand-new"}'));
  await refuses(client, () => validateUIMessages({ messages: [{ id: 'a', role: 'assistant', parts: [{ type: 'text' }] }] }));
}

function errorTexts(bytes) {
  const chunks = bytes.toString().split('\n\n').filter(event => event.startsWith('data: {'));
  return chunks.map(event => JSON.parse(event.slice(6))).filter(chunk => chunk.type === 'error').map(chunk => chunk.errorText);
}

function check(told, message) {
  const { parts, metadata } = message;
  sameText(told, parts.filter(part => part.type === 'text').map(part => part.text).join(''));
  same('what is still being said', parts.filter(part => part.state === 'streaming').length, 0);
  same('the session', metadata?.sessionId, told.session);
  const tools = parts.filter(part => part.toolCallId !== undefined);
  same('the calls', tools.map(part => part.toolCallId).sort(), Object.keys(told.calls).sort());
  for (const part of tools) {
    const call = told.calls[part.toolCallId];
    same(`the state of ${part.toolCallId}`, part.state, state(call));
    same(`the tool of ${part.toolCallId}`, part.toolName ?? part.type.slice('tool-'.length), call.name);
  }
  same('the output tokens', metadata?.usage?.outputTokens, told.usage?.output);
}

function state(call) {
  // No client may run a call whose input it does not know.
  if (unusable(call)) return 'output-error';
  if (!answered(call)) return 'input-available';
  return call.status === 'completed' ? 'output-available' : 'output-error';
}
