// Feeds AG-UI events to the client's agent over a response, and to its verifier.
//
//   node ag-ui.mjs manifest.json
import { HttpAgent, transformHttpEventStream, enforceEvents, runHttpRequest, transformChunks, verifyEvents } from '@ag-ui/client';
import { answered, refuses, response, run, same, sameText } from './cases.mjs';

await run('@ag-ui/client', 'ag-ui', async (told, bytes) => {
  // The client warns of what it drops and strips: there must be nothing.
  const warnings = [];
  console.warn = (...words) => warnings.push(words.join(' '));
  const events = await verified(bytes);
  const initialState = { document: 'mine' };
  const agent = new HttpAgent({ url: 'http://agent/run', threadId: told.session, initialState, fetch: async () => response(bytes) });
  const failures = [], waiting = [];
  await agent.runAgent({}, {
    onRunFailed: ({ error }) => void failures.push(error),
    onRunFinishedEvent: ({ pendingToolCallIds }) => void waiting.push(...(pendingToolCallIds ?? [])),
  }).catch(() => {});
  same('what went wrong', failures.map(String), []);
  // After a run that failed, the client has nothing to run.
  const failed = events.findLast(event => ['RUN_FINISHED', 'RUN_ERROR'].includes(event.type))?.type === 'RUN_ERROR';
  const unanswered = Object.keys(told.calls).filter(id => !answered(told.calls[id]));
  same('the calls that wait for the client', waiting, failed ? [] : unanswered);
  same('warnings', warnings, []);
  same("the application's state", agent.state.document, 'mine');
  same('the session', agent.state.session?.id, told.session);
  check(told, agent.messages, events);
});
const start = 'data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}\n\n';
await refuses('@ag-ui/client', () => verified(Buffer.from(`${start}data: {"type":"TEXT_MESSAGE_END","messageId":"m"}\n\n`)));
await refuses('@ag-ui/client', () => verified(Buffer.from(`${start}data: {"type":"TEXT_MESSAGE_START"}\n\n`)));

/** All events of a stream, as they come out of the client's own pipeline. */
function verified(bytes) {
  const events$ = transformHttpEventStream(runHttpRequest(async () => response(bytes)));
  const pipeline = events$.pipe(enforceEvents(), transformChunks(), verifyEvents());
  const events = [];
  return new Promise((resolve, reject) => {
    pipeline.subscribe({ next: event => events.push(event), error: reject, complete: () => resolve(events) });
  });
}

function check(told, messages, events) {
  const of = type => events.filter(event => event.type === type);
  sameText(told, of('TEXT_MESSAGE_CONTENT').map(event => event.delta).join(''));
  const said = messages.filter(message => message.role === 'assistant');
  sameText(told, said.map(message => message.content ?? '').join(''));
  const ends = events.filter(event => ['RUN_FINISHED', 'RUN_ERROR'].includes(event.type) && !event.metadata?.afterword);
  same('the number of runs', ends.length, told.turns.length);
  same('the calls', of('TOOL_CALL_START').map(event => event.toolCallId).sort(), Object.keys(told.calls).sort());
  const answers = Object.keys(told.calls).filter(id => answered(told.calls[id]));
  same('the answers', of('TOOL_CALL_RESULT').map(event => event.toolCallId).sort(), answers.sort());
}
