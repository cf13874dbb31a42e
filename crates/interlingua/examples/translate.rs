//! Translates standard input to standard output. The dialect of the input is recognised.
//!
//! ```sh
//! cargo run --example translate -- ai-sdk < transcripts/codex/tool-parallel/input.jsonl
//! ```

use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};

use interlingua::{Exit, Options, Source, Translator, dialect};

fn main() -> Result<(), Box<dyn Error>> {
    let target = std::env::args().nth(1).unwrap_or_else(|| "text".to_owned());
    let mut translator =
        Translator::new(Source::Recognise, dialect::named(&target)?, Options::default())?;
    let (mut stdin, mut stdout) = (io::stdin().lock(), io::stdout().lock());
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = match stdin.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        let chunk = buffer.get(..length).unwrap_or_default();
        // Chunks may be cut anywhere. Each record is written as soon as it is complete.
        stdout.write_all(translator.push(chunk, None))?;
        stdout.flush()?;
    }
    // A pipe does not report how the agent ended, so the exit is unknown.
    let finished = translator.finish(&Exit::default(), None);
    stdout.write_all(&finished.bytes)?;
    for (what, count) in finished.losses.iter() {
        writeln!(io::stderr(), "not expressible in {target}: {what} ({count})")?;
    }
    Ok(())
}
