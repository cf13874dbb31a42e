// Starts the server that published clients of Durable Streams connect to.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

// Starts it with a database, and returns its address and a function that stops it.
export async function startAdapter(program, database, port = 0) {
  const child = spawn(program, [database, String(port)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = new Promise((resolve) => child.on('exit', resolve));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const { value: url } = await lines.next();
  if (!url) throw new Error('the adapter did not start');
  return {
    url,
    port: Number(new URL(url).port),
    // A server that is stopped completes its requests; one that is killed does not.
    async stop() {
      child.stdin.end();
      await exited;
    },
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
