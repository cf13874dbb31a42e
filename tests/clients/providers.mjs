// Lets the official SDKs of the providers read what fake-model streams, and send it back to it.
//
//   node providers.mjs PATH_OF_FAKE_MODEL
//
// The script is the expectation: each SDK must arrive at the text, the calls and the counts that it states. What
// the SDK then returns as history must be what fake-model sent, so a strict script must find nothing.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { same } from './same.mjs';

const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };
const call = (city, sending = {}) => ({ call: { name: 'weather', input: { city }, sending } });
const long = Array.from({ length: 2000 }, (_, line) => ({ text: `Line ${line}: naïve “quotes”, \u2028 and 🦀.\n` }));

/** A reply for each thing that a stream can contain. */
const replies = {
  'plain text': { parts: [{ text: 'Hel' }, { text: 'lo, ' }, { text: 'wörld 🦀' }] },
  'reasoning and text': { parts: [{ reasoning: 'Let me ' }, { reasoning: 'think.' }, { text: 'Done.' }] },
  'hidden reasoning and a call': { parts: [{ reasoning: 'Hm.' }, 'redacted_reasoning', { text: 'I look.' }, call('Rome')] },
  'one call': { parts: [call('Zürich')] },
  'parallel calls': { parts: [{ reasoning: 'Both.' }, call('Rome'), call('Oslo'), call('Lima')] },
  'split arguments': { parts: [call('São “Paulo”', { split_arguments: [0, 1, 9, 10, 11, 13, 17] }), call('Oslo', { split_arguments: [] })] },
  'cached input': { parts: [{ text: 'Hi' }], usage: { input: 1000, output: 50, cached: 600, cache_write: 300, reasoning: 20 } },
  refusal: { parts: [{ refusal: 'I cannot ' }, { refusal: 'do that.' }] },
  'long text': { parts: long },
  continuation: { parts: [{ text: 'One, ' }, 'checkpoint', { text: 'two, ' }, 'checkpoint', { text: 'three.' }], ending: 'continuation' },
};

/** What a reply states, in the order of the protocols' common denominator. */
function expected(reply) {
  const all = kind => reply.parts.flatMap(part => part[kind] ?? []);
  return {
    text: all('text').join(''),
    reasoning: all('reasoning').join(''),
    refusal: all('refusal').join(''),
    calls: all('call').map(({ name, input }) => ({ name, input })),
    usage: { input: 100, output: 20, cached: 0, cache_write: 0, reasoning: 0, ...reply.usage },
  };
}

const question = 'What is the weather?';
const result = 'sunny';

/** One API of one SDK: `ask` sends a history and returns what was understood, and the history that goes on from it. */
const apis = {
  'anthropic messages': address => {
    const client = new Anthropic({ baseURL: address, apiKey: 'dummy', maxRetries: 0 });
    return async (history = [{ role: 'user', content: question }]) => {
      const stream = client.messages.stream({
        model: 'm', max_tokens: 1000, messages: history, tools: [{ name: 'weather', input_schema: schema }],
      });
      const message = await stream.finalMessage();
      const { content, usage } = message;
      const of = type => content.filter(block => block.type === type);
      const calls = of('tool_use');
      const results = calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: result }));
      const user = results.length > 0 ? results : 'Thanks.';
      const { cache_read_input_tokens: cached, cache_creation_input_tokens: cache_write } = usage;
      return {
        text: of('text').map(block => block.text).join(''),
        reasoning: of('thinking').map(block => block.thinking).join(''),
        refusal: message.stop_reason === 'refusal' ? message.stop_details.explanation : '',
        calls: calls.map(({ name, input }) => ({ name, input })),
        usage: {
          input: usage.input_tokens + cached + cache_write, output: usage.output_tokens, cached, cache_write,
          reasoning: usage.output_tokens_details?.thinking_tokens ?? 0,
        },
        // A refusal leaves nothing to return.
        history: [...history, ...(content.length > 0 ? [{ role: 'assistant', content }] : []), { role: 'user', content: user }],
      };
    };
  },
  'openai responses': address => {
    const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: 'dummy', maxRetries: 0 });
    return async (history = [{ role: 'user', content: question }]) => {
      const stream = client.responses.stream({
        model: 'm', input: history, store: false, include: ['reasoning.encrypted_content'],
        tools: [{ type: 'function', name: 'weather', parameters: schema, strict: true }],
      });
      let text = '';
      stream.on('response.output_text.delta', event => (text += event.delta));
      const { output, usage } = await stream.finalResponse();
      const parts = output.filter(item => item.type === 'message').flatMap(item => item.content);
      same('the text of the final response', parts.map(part => part.text ?? '').join(''), text);
      const calls = output.filter(item => item.type === 'function_call');
      const results = calls.map(({ call_id }) => ({ type: 'function_call_output', call_id, output: result }));
      const user = results.length > 0 ? results : [{ role: 'user', content: 'Thanks.' }];
      // The helper adds fields of its own.
      const returned = output.map(({ parsed_arguments, ...item }) => ({
        ...item, ...(item.content && { content: item.content.map(({ parsed, ...part }) => part) }),
      }));
      return {
        text,
        reasoning: output.filter(item => item.type === 'reasoning').flatMap(item => item.summary).map(part => part.text).join(''),
        refusal: parts.map(part => part.refusal ?? '').join(''),
        calls: calls.map(call => ({ name: call.name, input: JSON.parse(call.arguments) })),
        usage: {
          input: usage.input_tokens, output: usage.output_tokens, cached: usage.input_tokens_details.cached_tokens,
          cache_write: usage.input_tokens_details.cache_write_tokens ?? 0, reasoning: usage.output_tokens_details.reasoning_tokens,
        },
        history: [...history, ...returned, ...user],
      };
    };
  },
  'openai chat': address => {
    const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: 'dummy', maxRetries: 0 });
    return async (history = [{ role: 'user', content: question }]) => {
      const stream = client.chat.completions.stream({
        model: 'm', messages: history, stream_options: { include_usage: true },
        tools: [{ type: 'function', function: { name: 'weather', parameters: schema } }],
      });
      // The official API has no reasoning, so the helper does not join it.
      let reasoning;
      stream.on('chunk', chunk => {
        const delta = chunk.choices[0]?.delta?.reasoning_content;
        if (delta !== undefined) reasoning = (reasoning ?? '') + delta;
      });
      const { choices, usage } = await stream.finalChatCompletion();
      const { content, refusal, tool_calls: calls = [] } = choices[0].message;
      const results = calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: result }));
      const user = results.length > 0 ? results : [{ role: 'user', content: 'Thanks.' }];
      const tool_calls = calls.map(({ id, type, function: { name, arguments: text } }) => ({ id, type, function: { name, arguments: text } }));
      const assistant = {
        role: 'assistant', content, ...(tool_calls.length > 0 && { tool_calls }),
        ...(reasoning !== undefined && { reasoning_content: reasoning }),
      };
      return {
        text: content ?? '',
        reasoning: reasoning ?? '',
        refusal: refusal ?? '',
        calls: calls.map(call => ({ name: call.function.name, input: JSON.parse(call.function.arguments) })),
        usage: {
          input: usage.prompt_tokens, output: usage.completion_tokens, cached: usage.prompt_tokens_details.cached_tokens,
          cache_write: usage.prompt_tokens_details.cache_write_tokens ?? 0,
          reasoning: usage.completion_tokens_details.reasoning_tokens,
        },
        history: [...history, assistant, ...user],
      };
    };
  },
  gemini: address => {
    const client = new GoogleGenAI({ apiKey: 'dummy', httpOptions: { baseUrl: address } });
    return async (history = [{ role: 'user', parts: [{ text: question }] }]) => {
      const config = { tools: [{ functionDeclarations: [{ name: 'weather', parametersJsonSchema: schema }] }] };
      const parts = [];
      let last, usage;
      for await (const chunk of await client.models.generateContentStream({ model: 'm', contents: history, config })) {
        parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []));
        last = chunk.candidates?.[0] ?? last;
        usage = chunk.usageMetadata ?? usage;
      }
      const calls = parts.flatMap(part => part.functionCall ?? []);
      const responses = calls.map(({ id, name }) => ({ functionResponse: { id, name, response: { output: result } } }));
      const user = { role: 'user', parts: responses.length > 0 ? responses : [{ text: 'Thanks.' }] };
      const kept = parts.filter(part => !part.thought && (part.text !== '' || part.thoughtSignature));
      const model = kept.length > 0 ? [{ role: 'model', parts: kept }] : [];
      const { thoughtsTokenCount: reasoning = 0, cachedContentTokenCount: cached = 0 } = usage;
      return {
        text: parts.filter(part => !part.thought).map(part => part.text ?? '').join(''),
        reasoning: parts.filter(part => part.thought).map(part => part.text).join(''),
        stop: last.finishReason,
        calls: calls.map(({ name, args }) => ({ name, input: args })),
        usage: { input: usage.promptTokenCount, output: usage.candidatesTokenCount + reasoning, cached, reasoning },
        history: [...history, ...model, user],
      };
    };
  },
};

/** Starts fake-model, and ends it after `use`; returns the lines that it printed. */
async function withModel(program, folder, script, use) {
  const path = join(folder, 'script.json');
  writeFileSync(path, JSON.stringify(script));
  const child = spawn(program, [path, '--port', '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = [];
  try {
    const output = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const { value: address } = await output.next();
    if (!address?.startsWith('http://')) throw new Error(`${program} printed no address but ${address}`);
    await use(address);
    // Lines are printed in the order of the requests: after this one, all are there.
    await fetch(`${address}/v1/models`, { headers: { authorization: 'Bearer dummy' } });
    for (;;) {
      const { value: line, done } = await output.next();
      if (done || line.startsWith('GET /v1/models')) return lines;
      lines.push(line);
    }
  } finally {
    child.kill();
  }
}

async function check(program, folder, api, reply) {
  const script = { strict: true, side_requests: false, replies: [reply, { parts: [{ text: 'Bye.' }] }] };
  const lines = await withModel(program, folder, script, async address => {
    const ask = apis[api](address);
    const { history, ...understood } = await ask();
    const wanted = expected(reply);
    if (api === 'gemini') {
      // Gemini reports no cache writes. Each continuation is a request of its own, whose counts the SDK adds.
      delete wanted.usage.cache_write;
      // This SDK drops the text of a refusal (`finishMessage`), but not the reason.
      wanted.stop = wanted.refusal === '' ? 'STOP' : 'SAFETY';
      delete wanted.refusal;
      const continued = reply.ending === 'continuation' ? 2 : 1;
      wanted.usage = Object.fromEntries(Object.entries(wanted.usage).map(([name, count]) => [name, count * continued]));
    }
    for (const [name, value] of Object.entries(wanted)) same(`the ${name}`, understood[name], value);
    same('the answer to the history', (await ask(history)).text, 'Bye.');
  });
  same('the list of findings', lines.filter(line => line.startsWith('! ')), []);
}

/** The status of each class of failure: OpenAI, Anthropic, Gemini. */
const failures = {
  rate_limit: [429, 429, 429], quota: [429, 429, 429], invalid_key: [401, 401, 400], permission: [403, 403, 403],
  not_found: [404, 404, 404], context_overflow: [400, 400, 400], overloaded: [503, 529, 503], internal: [500, 500, 500],
};

/** An SDK must recognise an error, and the id of its request, whether it comes instead of a stream or inside it. */
async function checkFailure(program, folder, api, name, statuses) {
  const failure = { class: name };
  const replies = [{ failure }, { parts: [{ text: 'So far' }], ending: { failure } }];
  await withModel(program, folder, { side_requests: false, replies }, async address => {
    const ask = apis[api](address);
    const error = await ask().then(() => undefined, error => error);
    const provider = ['openai', 'anthropic', 'gemini'].findIndex(provider => api.startsWith(provider));
    same(`the status of ${name}`, error?.status, statuses[provider]);
    if (api !== 'gemini') same(`the id of the request of ${name}`, error.requestID, 'req_0000');
    const inside = await ask().then(() => undefined, error => error);
    if (!(inside instanceof Error)) throw new Error(`${name} inside a stream is no error`);
  });
}

const [program] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'providers-'));
try {
  for (const api of Object.keys(apis)) {
    let failed = 0;
    for (const [name, reply] of Object.entries(replies)) {
      await check(program, folder, api, reply).catch(error => {
        failed += 1;
        console.log(`${api}: ${name}: ${error?.stack ?? error}`);
      });
    }
    const count = Object.keys(replies).length;
    console.log(`${api}: ${count - failed} of ${count} replies understood and sent back`);
    for (const [name, statuses] of Object.entries(failures)) {
      await checkFailure(program, folder, api, name, statuses).catch(error => {
        failed += 1;
        console.log(`${api}: ${name}: ${error?.stack ?? error}`);
      });
    }
    if (failed > 0) process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true });
}
