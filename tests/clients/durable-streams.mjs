// Lets the published client of Durable Streams read sessions: in all modes, in several dialects, while the session
// is written, across connections that the server closes, and across restarts of the server.
//
//   node durable-streams.mjs PATH_OF_ADAPTER FOLDER_OF_TRANSCRIPTS
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stream } from '@durable-streams/client';
import { startAdapter } from './adapter.mjs';

const [program, transcripts] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'interlingua-streams-'));
const headers = { Authorization: 'Bearer adapter' };
const input = readFileSync(join(transcripts, 'acp/both-directions/input.jsonl'));
const dialects = ['events', 'claude', 'ai-sdk', 'ui-message', 'ag-ui', 'acp'];

let breaks = 0;
let server = await startAdapter(program, join(folder, 'sessions.db'));

// Appends a part of what the agent printed, and returns how many entries there are.
async function append(id, from, to, close = false) {
  const address = `${server.url}/v1/agent/${id}?from=${from}&to=${to}${close ? '&close' : ''}`;
  const response = await fetch(address, { method: 'POST', body: input });
  assert.equal(response.status, 200, await response.clone().text());
  return Number(await response.text());
}

const address = (id, dialect) => `${server.url}/v1/sessions/${id}/events?dialect=${dialect}`;

async function whole(id, dialect, offset) {
  const response = await stream({ url: address(id, dialect), headers, offset, live: false });
  return await response.json();
}

// Reads until the stream is closed. The client itself reconnects when the server closes a connection, and repeats
// requests that fail. A connection that breaks in the middle of a response is an error for its caller, who continues at
// the last offset.
async function follow(id, dialect, live, { offset = '-1', mayBreak = false } = {}) {
  const backoffOptions = { initialDelay: 20, maxDelay: 200, multiplier: 1.5 };
  const records = [];
  for (;;) {
    const response = await stream({ url: address(id, dialect), headers, offset, live, json: true, backoffOptions });
    // `closed` may be resolved before the last batch is delivered; a stream may also end without one.
    let delivered;
    const last = new Promise((resolve) => (delivered = resolve));
    response.subscribeJson((batch) => {
      records.push(...batch.items);
      offset = batch.offset;
      if (batch.streamClosed) delivered();
    });
    try {
      await Promise.race([last, response.closed.then(() => new Promise((resolve) => setTimeout(resolve, 500)))]);
    } catch (error) {
      if (!mayBreak) throw error;
      breaks += 1;
      continue;
    }
    assert.equal(response.streamClosed, true, `${dialect} ${live}: closed`);
    return records;
  }
}

// Writes a session in small parts, each after a pause, and restarts the server in between.
async function write(id, count, restarts) {
  for (let from = 0; from < count; from += 4) {
    const to = Math.min(from + 4, count);
    await append(id, from, to, to === count);
    await new Promise((resolve) => setTimeout(resolve, 150));
    if (restarts && from > 0 && from % 16 === 0) {
      const { port } = server;
      await (from % 32 === 0 ? server.kill() : server.stop());
      server = await startAdapter(program, join(folder, 'sessions.db'), port);
    }
  }
}

try {
  const count = await append('count', 0, 0);
  let checks = 0;
  for (const restarts of [false, true]) {
    const id = restarts ? 'restarted' : 'live';
    await append(id, 0, 0);
    const readers = dialects.flatMap((dialect) =>
      ['long-poll', 'sse', true].map(async (live) => [dialect, live, await follow(id, dialect, live, { mayBreak: restarts })]),
    );
    await write(id, count, restarts);
    for (const [dialect, live, records] of await Promise.all(readers)) {
      const expected = await whole(id, dialect);
      assert.ok(expected.length > 0);
      assert.deepEqual(records, expected, `${id}, ${dialect}, live: ${live}`);
      checks += 1;
    }
  }
  // A reader that joins anywhere receives the rest, in every mode.
  for (const dialect of dialects) {
    const expected = await whole('live', dialect);
    for (let at = 0; at <= count; at += 7) {
      const offset = String(at).padStart(20, '0');
      const rest = await whole('live', dialect, offset);
      assert.deepEqual(rest, expected.slice(expected.length - rest.length), `${dialect} at ${at}`);
      for (const live of ['long-poll', 'sse']) {
        assert.deepEqual(await follow('live', dialect, live, { offset }), rest, `${dialect} at ${at}, ${live}`);
        checks += 1;
      }
    }
  }
  console.log(`durable-streams: the client read ${count} entries in ${checks} ways, and continued ${breaks} broken responses`);
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}
