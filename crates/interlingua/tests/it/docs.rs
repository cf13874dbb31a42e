//! The documentation is complete and true.

use std::path::Path;

use interlingua::dialect;

/// A file of the repository.
fn file(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap()
}

/// The code blocks in a language of a Markdown file.
fn blocks(markdown: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let after = markdown.split(&fence).skip(1);
    after.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_capture_in_the_readme_is_the_output_of_the_command() {
    let capture = &blocks(&file("README.md"), "console")[0];
    let (command, printed) = capture.split_once('\n').unwrap();
    let input = command.strip_prefix("$ interlingua translate --to text ").unwrap();
    assert_eq!(printed, file(&input.replace("input.jsonl", "to-text")));
}

/// The examples of the crate are compiled and run as its doc tests.
#[test]
fn the_examples_in_the_readme_are_those_of_the_crate() {
    let examples = blocks(&file("README.md"), "rust");
    assert_eq!(examples, blocks(&file("crates/interlingua/README.md"), "rust"));
    assert!(!examples.is_empty());
}

#[test]
fn every_dialect_has_a_guide_that_starts_with_its_name() {
    for dialect in dialect::ALL {
        let (heading, guide) = dialect.guide.split_once("\n\n").unwrap_or_default();
        assert_eq!(heading, format!("# {}", dialect.name));
        assert!(guide.len() > 200, "the guide of {} is not empty", dialect.name);
    }
}

#[test]
fn the_table_lists_every_dialect_and_its_capabilities() {
    let table = file("docs/dialects.md");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| [`"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let tick = |can: bool| if can { "✓" } else { "" };
    let named = |row: &Vec<&str>| row[0].split('`').nth(1).unwrap().to_owned();
    let names: Vec<String> = rows.iter().map(named).collect();
    let all: Vec<&str> = dialect::ALL.iter().map(|dialect| dialect.name).collect();
    assert_eq!(names, all);
    for (row, dialect) in rows.iter().zip(dialect::ALL) {
        assert_eq!(row[1], tick(dialect.decoder.is_some()), "{} is read", dialect.name);
        assert_eq!(row[2], tick(dialect.encoder.is_some()), "{} is written", dialect.name);
    }
}
