//! The table of scenarios in `docs/giselle.md` is complete, and names tests that exist.

use std::path::{Path, PathBuf};

/// The last regression that the table has to have.
const REGRESSIONS: u32 = 20;

/// The scenarios of the original.
const SCENARIOS: u32 = 46;

/// The rows of the table: what is numbered, and what tests it.
fn rows(markdown: &str) -> Vec<(Vec<String>, String)> {
    let (_, section) = markdown.split_once("## The scenarios of the original").unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    let cells = |row: &str| {
        let (numbers, tests) = row.trim_matches('|').split_once('|').unwrap();
        let numbers = numbers.split(',').map(|number| number.trim().to_owned());
        (numbers.collect(), tests.to_owned())
    };
    rows.map(cells).collect()
}

/// The tests that a row names: in backquotes, paths of modules or names with an underscore.
fn named(row: &str) -> Vec<String> {
    let words = row.split('`').skip(1).step_by(2);
    let is_name = |word: &&str| {
        let is_plain =
            |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || matches!(it, '_' | ':');
        word.chars().all(is_plain) && word.contains('_')
    };
    words.filter(is_name).map(str::to_owned).collect()
}

/// The sources and tests of all crates.
fn sources() -> Vec<(PathBuf, String)> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                sources.push((path, text));
            }
        }
    }
    sources
}

/// Whether a file has a test, in the module that its path names.
fn has(path: &Path, text: &str, test: &str) -> bool {
    let mut modules: Vec<_> = test.split("::").collect();
    let name = modules.pop().unwrap();
    let is_there = text.contains(&format!("fn {name}(")) || text.contains(&format!("!({name}("));
    let folders = path.with_extension("");
    let folders: Vec<_> = folders.iter().map(|it| it.to_string_lossy().into_owned()).collect();
    // The module of unit tests is in the file of what they test.
    let mut outer = modules.into_iter().filter(|module| *module != "tests");
    is_there && outer.all(|module| folders.iter().any(|folder| folder == module))
}

#[test]
fn every_scenario_has_a_test_that_exists() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/giselle.md");
    let (rows, sources) = (rows(&std::fs::read_to_string(path).unwrap()), sources());
    let scenarios = (1..=SCENARIOS).map(|number| number.to_string());
    for number in scenarios.chain((1..=REGRESSIONS).map(|number| format!("B{number}"))) {
        assert!(rows.iter().any(|(numbers, _)| numbers.contains(&number)), "{number} is missing");
    }
    for (numbers, row) in &rows {
        let named = named(row);
        assert!(!named.is_empty(), "{numbers:?} names no test");
        for test in named {
            let exists = sources.iter().any(|(path, text)| has(path, text, &test));
            assert!(exists, "{numbers:?}: there is no test `{test}`");
        }
    }
}
