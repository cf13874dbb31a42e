//! Stores a session as a log of JSON lines, and lets a second consumer join it in the middle.
//!
//! ```sh
//! cargo run --example tail_a_log -- ui-message < transcripts/codex/tool-parallel/input.jsonl
//! ```
//!
//! It prints what the second consumer receives.

use std::error::Error;
use std::io::{self, Read, Write};

use interlingua::dialect::{self, EncodeOptions};
use interlingua::{Entry, EntryRef, Exit, RawRecords, ReadOptions, Reader, Source, Writer};

/// All readers and writers of a session share one seed, so that they generate the same ids.
const ID_SEED: u64 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let target = dialect::named(&std::env::args().nth(1).unwrap_or_else(|| "text".to_owned()))?;
    let mut input = Vec::new();
    io::stdin().lock().read_to_end(&mut input)?;

    // The agent's stream becomes a log. A server would append each line to a file or a database.
    let log = store(&input)?;

    // Anything that can read JSON lines can read the log back.
    let entries =
        log.iter().map(|line| serde_json::from_str(line)).collect::<Result<Vec<Entry>, _>>()?;
    let options = EncodeOptions { id_seed: Some(ID_SEED), ..EncodeOptions::default() };
    let (seen, rest) = entries.split_at(entries.len() / 2);

    // The first consumer has been there from the beginning.
    let (mut first, mut before, mut after) = (Writer::new(target, &options)?, vec![], vec![]);
    seen.iter().for_each(|entry| first.write(entry.borrowed(), &mut before));
    rest.iter().for_each(|entry| first.write(entry.borrowed(), &mut after));
    first.finish(&mut after);

    // The second one joins in the middle: its writer takes note of the entries that were written
    // before, and then writes exactly what the first one writes from here on.
    let (mut second, mut joined) = (Writer::new(target, &options)?, Vec::new());
    seen.iter().for_each(|entry| second.advance(entry.borrowed()));
    rest.iter().for_each(|entry| second.write(entry.borrowed(), &mut joined));
    second.finish(&mut joined);
    assert_eq!(joined, after);

    io::stdout().lock().write_all(&joined)?;
    Ok(())
}

/// Reads the stream of an agent, and gives its entries as JSON lines.
fn store(input: &[u8]) -> Result<Vec<String>, Box<dyn Error>> {
    // The agent's own records are stored too, so that a writer of the same dialect can pass them on
    // unchanged. A log that may not hold secrets leaves them out.
    let options = ReadOptions {
        id_seed: Some(ID_SEED),
        raw_records: RawRecords::Keep,
        ..ReadOptions::default()
    };
    let mut reader = Reader::new(Source::Recognise, options)?;
    let mut log = Vec::new();
    let mut append = |entry: EntryRef<'_>| log.push(serde_json::to_string(&entry));
    for chunk in input.chunks(4096) {
        reader.push(chunk, None, &mut append)?;
    }
    reader.finish(&Exit::default(), None, &mut append)?;
    Ok(log.into_iter().collect::<Result<_, _>>()?)
}
