//! What people read of the dialects is there, and true.

use std::path::Path;

use interlingua::dialect;

#[test]
fn every_dialect_has_a_guide_that_starts_with_its_name() {
    for dialect in dialect::ALL {
        let (heading, guide) = dialect.guide.split_once("\n\n").unwrap_or_default();
        assert_eq!(heading, format!("# {}", dialect.name));
        assert!(guide.len() > 200, "the guide of {} says something", dialect.name);
    }
}

#[test]
fn the_table_names_every_dialect_and_what_can_be_done_with_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dialects.md");
    let table = std::fs::read_to_string(path).unwrap();
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
