// Runs the published conformance tests of Durable Streams against a session. A test may fail only if
// conformance-exceptions.json states why it does not apply, and what is stated there must be true.
//
//   node conformance.mjs PATH_OF_ADAPTER
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { startAdapter } from './adapter.mjs';

const [program] = process.argv.slice(2);
const exceptions = JSON.parse(readFileSync('conformance-exceptions.json', 'utf8'));
const folder = mkdtempSync(join(tmpdir(), 'interlingua-conformance-'));
const report = join(folder, 'report.json');
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

// Groups that do not apply as a whole are not run.
const excluded = Object.keys(exceptions.groups).map(escaped).join('|');
const server = await startAdapter(program, '-');
try {
  const require = createRequire(import.meta.url);
  const vitest = join(dirname(require.resolve('vitest/package.json')), 'vitest.mjs');
  writeFileSync('conformance.test.mjs', `
    import { runConformanceTests } from '@durable-streams/server-conformance-tests';
    runConformanceTests({ baseUrl: ${JSON.stringify(server.url)}, longPollTimeoutMs: 4000 });
  `);
  const names = `^(?!${excluded})`;
  const options = ['run', 'conformance.test.mjs', '-t', names, '--reporter=json', `--outputFile=${report}`];
  await new Promise((resolve) => {
    const child = spawn(process.execPath, [vitest, ...options], { stdio: ['ignore', 'ignore', 'inherit'] });
    child.on('exit', resolve);
  });
  const results = JSON.parse(readFileSync(report, 'utf8')).testResults.flatMap((file) => file.assertionResults);
  const run = results.filter((test) => test.status === 'passed' || test.status === 'failed');
  let failed = 0;
  const complain = (text) => {
    console.log(`conformance: ${text}`);
    failed += 1;
  };
  for (const test of run) {
    const isException = test.fullName in exceptions.tests;
    if (test.status === 'failed' && !isException) {
      complain(`${test.fullName}\n  ${(test.failureMessages[0] ?? '').split('\n')[0]}`);
    } else if (test.status === 'passed' && isException) {
      complain(`${test.fullName} passes: remove it from conformance-exceptions.json`);
    }
  }
  const known = new Set(run.map((test) => test.fullName));
  for (const name of Object.keys(exceptions.tests)) {
    if (!known.has(name)) complain(`${name} is an exception, and there is no such test`);
  }
  const passed = run.filter((test) => test.status === 'passed').length;
  if (passed < 100) complain(`only ${passed} tests passed`);
  const left = results.length - run.length;
  console.log(`conformance: ${passed} tests passed, ${run.length - passed} do not apply, ${left} in groups that do not apply`);
  process.exitCode = failed ? 1 : 0;
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}
