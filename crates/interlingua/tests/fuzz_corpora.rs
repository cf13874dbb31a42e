//! The corpora of the fuzz targets, as ordinary tests: what was found once is never found again.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../../../fuzz/checks.rs"]
mod checks;

use std::path::Path;

/// The files of a target's corpus.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.map(|path| std::fs::read(path).unwrap()).collect();
    assert!(!files.is_empty(), "the corpus of {target} is there");
    files
}

macro_rules! decoders {
    ($($target:ident = $dialect:literal),+ $(,)?) => {
        $(#[test]
        fn $target() {
            for data in corpus(stringify!($target)) {
                checks::decoder($dialect, &data);
            }
        })+
    };
}

decoders! {
    claude = "claude",
    codex = "codex",
    gemini = "gemini",
    giselle = "giselle",
    yume = "yume",
    agent_event = "agent-event",
    events = "events",
}

#[test]
fn framing() {
    for data in corpus("framing") {
        checks::framing(&data);
    }
}
