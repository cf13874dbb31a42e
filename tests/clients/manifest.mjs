// Says what each stream has to tell, as our own events tell it: the manifest that the clients' stories
// are compared with.
//
//   node manifest.mjs FOLDER > manifest.json
//
// The folder has one file for each case and dialect: CASE.events, CASE.ui-message, CASE.ag-ui …
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.argv[2];
const files = readdirSync(folder).sort();
const cases = files.filter(file => file.endsWith('.events')).map(file => file.slice(0, -'.events'.length));
console.log(JSON.stringify(cases.map(story), null, 1));

function story(name) {
  const told = { name, files: {}, text: '', calls: {}, turns: [], usage: null, takesBack: false };
  for (const file of files.filter(file => file.startsWith(`${name}.`))) {
    told.files[file.slice(name.length + 1)] = join(folder, file);
  }
  let past = false;
  for (const event of lines(told.files.events)) {
    if (event.type === 'turn_started') past = event.replay === true;
    if (!past) tell(told, event);
  }
  return told;
}

function tell(told, event) {
  switch (event.type) {
    case 'session_started':
    case 'session_updated':
      told.session = event.id ?? told.session;
      break;
    case 'block':
    case 'block_delta':
      if (event.kind === 'text') told.text += event.text;
      break;
    case 'withdrawn':
      // What a client was told before stands: its text cannot be compared.
      told.takesBack = true;
      break;
    case 'tool_started':
      told.calls[event.call] = { name: event.name, executor: event.executor, status: 'waiting', known: event.input !== undefined };
      break;
    case 'tool_input':
      told.calls[event.call].known = event.input !== undefined;
      break;
    case 'tool_ended':
      told.calls[event.call].status = event.status;
      break;
    case 'turn_ended':
      told.turns.push({ outcome: event.outcome, cause: event.cause });
      if (event.usage) told.usage = sum(told.usage, event.usage);
      break;
  }
}

function sum(before, usage) {
  const all = { ...before };
  for (const count of ['input', 'cache_read', 'cache_write', 'output', 'reasoning']) {
    if (usage[count] !== undefined) all[count] = (all[count] ?? 0) + usage[count];
  }
  return all;
}

function lines(file) {
  return readFileSync(file, 'utf8').split('\n').filter(Boolean).map(line => JSON.parse(line));
}
