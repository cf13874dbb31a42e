// Reads and writes lines as the seeds' own code does, for all mappers here. The buffer grows with each
// chunk and is split again; every line is parsed into an object, and every result is serialized.

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
