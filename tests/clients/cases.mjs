// Runs every case of a manifest, says which failed, and prints one line for the client.
import { readFileSync } from 'node:fs';
import { same } from './same.mjs';

export { same };

export const manifest = JSON.parse(readFileSync(process.argv[2], 'utf8'));

/** Tries all cases that were written in a dialect; `attempt` throws where the client does not agree. */
export async function run(client, dialect, attempt) {
  const cases = manifest.filter(told => told.files[dialect]);
  const failures = [];
  for (const told of cases) {
    try {
      await attempt(told, readFileSync(told.files[dialect]));
    } catch (error) {
      failures.push(`${client}: ${told.name}: ${error?.stack ?? error}`);
    }
  }
  failures.forEach(failure => console.log(failure));
  console.log(`${client}: ${cases.length - failures.length} of ${cases.length} streams of ${dialect} accepted`);
  if (failures.length > 0 || cases.length === 0) process.exitCode = 1;
}

/** Makes sure that a client is no judge that lets everything pass. */
export async function refuses(client, attempt) {
  const accepted = await attempt().then(() => true, () => false);
  if (!accepted) return;
  console.log(`${client}: it accepts what is wrong: this test would prove nothing`);
  process.exitCode = 1;
}

/** A response as a server sends it, cut into pieces that fit nothing. */
export function response(bytes) {
  let at = 0;
  const body = new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(new Uint8Array(bytes.subarray(at, at + 997)));
      at += 997;
    },
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

/** The text of a stream, unless the agent took some of it back. */
export function sameText(told, text) {
  if (!told.takesBack) same('the text', text, told.text);
}

export const answered = call => call.status !== 'waiting' && !(call.executor === 'client' && call.status === 'abandoned');

// Whether no client can run a call, because its input never became known.
export const unusable = call => call.executor === 'client' && !call.known;
