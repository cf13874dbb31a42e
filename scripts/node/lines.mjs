// What all the mappers here share: how the seeds' own code reads and writes lines. The buffer grows
// by each chunk and is split anew; every line becomes an object, and every answer text again.

export function run(map) {
  let buffer = "";

  function take(text) {
    buffer += text;
    const lines = buffer.split("\n");
    buffer = lines.pop() ?? "";
    for (const line of lines) {
      const trimmed = line.trim();
      if (trimmed === "") continue;
      let record;
      try {
        record = JSON.parse(trimmed);
      } catch {
        continue;
      }
      for (const answer of map(record)) {
        process.stdout.write(`${JSON.stringify(answer)}\n`);
      }
    }
  }

  process.stdin.setEncoding("utf8");
  process.stdin.on("data", take);
  process.stdin.on("end", () => take("\n"));
}
