//! Inputs found by fuzzing, as ordinary tests, so that no failure returns.

#[path = "../../../../fuzz/checks.rs"]
mod checks;

use std::path::{Path, PathBuf};

/// The corpora: `framing`, and one for each dialect that has been fuzzed, named after it.
fn corpora() -> Vec<PathBuf> {
    let mut folders = entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus"));
    folders.sort();
    folders
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn every_corpus_passes() {
    let corpora = corpora();
    assert!(corpora.iter().any(|corpus| corpus.ends_with("framing")), "{corpora:?}");
    for corpus in corpora {
        let name = corpus.file_name().unwrap().to_str().unwrap().to_owned();
        for file in entries(&corpus) {
            let data = std::fs::read(file).unwrap();
            if name == "framing" {
                checks::framing(&data);
            } else {
                checks::decoder(&name, &data);
            }
        }
    }
}
