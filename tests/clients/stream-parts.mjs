// Replays stream parts as a language model, through `streamText` of `ai`.
//
//   node stream-parts.mjs manifest.json
import { answered, manifest, run, same, sameText, unusable } from './cases.mjs';

await replay('ai-6', 'ai-sdk', 'v3');
await replay('ai-7', 'ai-sdk', 'v3');
if (manifest.some(told => told.files['ai-sdk-v4'])) await replay('ai-7', 'ai-sdk-v4', 'v4');

async function replay(client, dialect, specificationVersion) {
  const { jsonSchema, streamText } = await import(client);

  await run(client, dialect, async (told, bytes) => {
    const parts = bytes.toString().split('\n').filter(Boolean).map(line => JSON.parse(line));
    const model = {
      specificationVersion,
      provider: 'interlingua',
      modelId: 'replay',
      supportedUrls: {},
      doStream: async () => ({ stream: ReadableStream.from(parts) }),
    };
    const errors = [];
    const result = streamText({ model, prompt: 'hi', tools: clientTools(told), onError: () => {} });
    for await (const part of result.fullStream) if (part.type === 'error') errors.push(part.error);
    same('the number of errors', errors.length, parts.filter(part => part.type === 'error').length);
    await check(told, result, parts.at(-1));
  });

  function clientTools(told) {
    const calls = Object.values(told.calls).filter(call => call.executor === 'client');
    return Object.fromEntries(calls.map(call => [call.name, { inputSchema: jsonSchema({ type: 'object' }) }]));
  }
}

async function check(told, result, finish) {
  sameText(told, await result.text);
  same('the reason', await result.finishReason, finish.finishReason.unified);
  const usage = await result.usage;
  same('the output tokens', usage.outputTokens, told.usage?.output);
  const calls = (await result.toolCalls).filter(call => call.toolCallId in told.calls);
  same('the calls', calls.map(call => call.toolCallId).sort(), Object.keys(told.calls).sort());
  // No client may run a call whose input it does not know.
  const unknown = Object.keys(told.calls).filter(id => unusable(told.calls[id])).sort();
  same('invalid calls', calls.filter(call => call.invalid).map(call => call.toolCallId).sort(), unknown);
  const results = (await result.content).filter(part => part.type === 'tool-result' || part.type === 'tool-error');
  for (const { toolCallId, type } of results.filter(part => part.toolCallId in told.calls)) {
    const { status } = told.calls[toolCallId];
    same(`the answer to ${toolCallId}`, type, status === 'completed' ? 'tool-result' : 'tool-error');
  }
  const expected = Object.values(told.calls).filter(call => answered(call) || unusable(call)).length;
  same('the number of answers', results.filter(part => part.toolCallId in told.calls).length, expected);
}
