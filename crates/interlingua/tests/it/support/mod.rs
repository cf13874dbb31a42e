//! What the tests share: transcripts, translation in one call, and summaries of streams.

pub mod ai_sdk;
pub mod kinds;
pub mod processor;
pub mod records;
pub mod rules;
pub mod summary;

use std::path::{Path, PathBuf};

use interlingua::dialect::{self, Dialect, Encoder, Losses};
use interlingua::{Exit, Finished, Options, ReadOptions, Repairs, Source, Translator};
use processor::time;

/// A transcript of the repository.
pub struct Case {
    pub name: String,
    pub folder: PathBuf,
    pub input: Vec<u8>,
    pub exit: Exit,
    /// The output of every writer is reviewed, not only the events.
    pub reviewed: bool,
}

impl Case {
    fn read(folder: &Path) -> Self {
        let mut parts: Vec<_> = folder
            .components()
            .rev()
            .take(2)
            .map(|part| part.as_os_str().to_string_lossy())
            .collect();
        parts.reverse();
        let input = std::fs::read(folder.join("input.jsonl")).unwrap();
        let status = std::fs::read_to_string(folder.join("exit")).unwrap();
        let name = parts.join("/");
        let reviewed = Self::reviewed().contains(&name);
        Self { name, folder: folder.to_owned(), input, exit: exit(status.trim()), reviewed }
    }

    /// All cases, in the order of their names.
    pub fn all() -> Vec<Self> {
        let cases: Vec<Self> = Self::agents().iter().flat_map(|agent| Self::of(agent)).collect();
        assert!(cases.len() > 100, "the transcripts are there");
        cases
    }

    /// The cases of one agent, by the name of its folder.
    pub fn of(agent: &str) -> Vec<Self> {
        folders(&transcripts().join(agent)).iter().map(|folder| Self::read(folder)).collect()
    }

    /// The names of the cases that have a snapshot for every writer.
    pub fn reviewed() -> Vec<String> {
        let list = std::fs::read_to_string(transcripts().join("reviewed")).unwrap();
        let lines = list.lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
    }

    /// The folders of all agents.
    pub fn agents() -> Vec<String> {
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        folders(&transcripts()).iter().map(name).collect()
    }

    /// The cases that are small enough to be run many times.
    pub fn small() -> Vec<Self> {
        Self::all().into_iter().filter(|case| case.input.len() < 20_000).collect()
    }
}

/// The folder of the transcripts.
pub fn transcripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../transcripts")
}

/// The folders in a folder, in the order of their names.
fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// An exit code, or a signal as a negative number.
pub fn exit(status: &str) -> Exit {
    match status.parse::<i64>() {
        Ok(signal) if signal < 0 => Exit { signal: Some(-signal), ..Exit::default() },
        Ok(code) => Exit { code: Some(code), ..Exit::default() },
        Err(_) => Exit::default(),
    }
}

pub fn dialect(name: &str) -> &'static Dialect {
    dialect::find(name).unwrap()
}

/// The dialects that can be written.
pub fn written() -> impl Iterator<Item = &'static Dialect> {
    dialect::ALL.iter().copied().filter(|dialect| dialect.encoder.is_some())
}

/// The output of a translator, and its report.
pub struct Written {
    pub bytes: Vec<u8>,
    pub finished: Finished,
}

impl Written {
    pub fn from(&self) -> Option<&'static Dialect> {
        self.finished.from
    }

    pub fn losses(&self) -> &Losses {
        &self.finished.losses
    }

    pub fn repairs(&self) -> &Repairs {
        &self.finished.repairs
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.bytes.clone()).unwrap()
    }

    /// The records, one on each line or as server-sent events.
    pub fn records(&self) -> Vec<serde_json::Value> {
        let text = self.text();
        let lines = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let records = lines.filter(|line| !line.is_empty() && *line != "[DONE]");
        records.map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Translates an input that arrives in chunks.
pub fn translate_chunks<'c>(
    from: Option<&'static Dialect>,
    to: &'static Dialect,
    chunks: impl IntoIterator<Item = &'c [u8]>,
    exit: &Exit,
) -> Written {
    translate_with(Options::default(), from, to, chunks, exit)
}

/// The text with generated ids replaced: UUIDs of version 8, and words of sixteen hexadecimal
/// digits.
pub fn without_generated_ids(text: &str) -> String {
    without_words_of_digits(&without_uuids(text))
}

fn without_words_of_digits(text: &str) -> String {
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let mut short = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_digit) {
        let (before, from) = rest.split_at(start);
        let length = from.find(|c| !is_digit(c)).unwrap_or(from.len());
        let (word, after) = from.split_at(length);
        short += before;
        short += if length == 16 { "made" } else { word };
        rest = after;
    }
    short + rest
}

fn without_uuids(text: &str) -> String {
    let mut parts = text.split('-').collect::<Vec<_>>();
    let mut at = 0;
    while at + 4 < parts.len() {
        let is_generated = parts[at + 1].len() == 4
            && parts[at + 2].len() == 4
            && parts[at + 2].starts_with('8')
            && parts[at + 3].len() == 4;
        if is_generated {
            let first = parts[at];
            let last = parts[at + 4];
            if let (Some(head), Some(tail)) =
                (first.get(..first.len().saturating_sub(8)), last.get(12..))
            {
                parts.splice(at..at + 5, [head, "made", tail]);
            }
        }
        at += 1;
    }
    parts.join("-")
}

/// Translates an input that arrives in chunks, with generated ids that do not depend on it.
pub fn translate_seeded<'c>(
    from: Option<&'static Dialect>,
    to: &'static Dialect,
    chunks: impl IntoIterator<Item = &'c [u8]>,
    exit: &Exit,
) -> Written {
    let read = ReadOptions { id_seed: Some(7), ..ReadOptions::default() };
    translate_with(Options { read, ..Options::default() }, from, to, chunks, exit)
}

/// Translates an input that arrives in chunks, with options.
pub fn translate_with<'c>(
    options: Options,
    from: Option<&'static Dialect>,
    to: &'static Dialect,
    chunks: impl IntoIterator<Item = &'c [u8]>,
    exit: &Exit,
) -> Written {
    let from = from.map_or(Source::Recognise, Source::from);
    run(Translator::new(from, to, options).unwrap(), chunks, exit)
}

/// Translates an input that arrives in chunks, with a translator of the caller.
pub fn run<'c, E: Encoder>(
    mut translator: Translator<E>,
    chunks: impl IntoIterator<Item = &'c [u8]>,
    exit: &Exit,
) -> Written {
    let mut bytes = Vec::new();
    for chunk in chunks {
        bytes.extend_from_slice(translator.push(chunk, None));
    }
    let finished = translator.finish(exit, None);
    bytes.extend_from_slice(&finished.bytes);
    Written { bytes, finished }
}

/// Translates an input whose dialect is recognised.
pub fn translate(to: &str, input: &[u8], exit: &Exit) -> Written {
    translate_chunks(None, dialect(to), [input], exit)
}

/// Translates lines of a known dialect.
pub fn translate_lines(from: &str, to: &str, lines: &[impl AsRef<str>]) -> Written {
    let input = lines.iter().flat_map(|line| [line.as_ref(), "\n"]).collect::<String>();
    translate_chunks(Some(dialect(from)), dialect(to), [input.as_bytes()], &Exit::default())
}

/// The configuration of property tests: the same cases in every run. With `MORE_CASES=N` there are
/// N times as many, and different ones in every run.
pub fn cases(count: u32) -> proptest::test_runner::Config {
    use proptest::test_runner::{Config, RngSeed};
    let more: Option<u32> = std::env::var("MORE_CASES").ok().and_then(|times| times.parse().ok());
    Config {
        cases: count.saturating_mul(more.unwrap_or(1)),
        rng_seed: if more.is_some() { RngSeed::Random } else { RngSeed::Fixed(7) },
        failure_persistence: None,
        ..Config::default()
    }
}

/// Whether work on an input that is eight times as long takes about eight times as long: at most
/// two and a half times as long for each of the three doublings, where a quadratic cost would take
/// four.
///
/// Load on the machine only makes a run slower, so the best of several rounds is compared. There
/// are more rounds only while the result is bad.
pub fn is_linear(mut short: impl FnMut(), mut long: impl FnMut()) -> bool {
    let (mut best_short, mut best_long) = (time(&mut short), time(&mut long));
    for _ in 0..12 {
        if best_long.as_secs_f64() < best_short.as_secs_f64() * 2.5_f64.powi(3) {
            return true;
        }
        best_long = best_long.min(time(&mut long));
        best_short = best_short.min(time(&mut short));
    }
    false
}
