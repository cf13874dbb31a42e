//! Every transcript, through every writer: as reviewed, with nothing for `check` to find.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::path::Path;

use interlingua::check::Checker;
use interlingua::framing::Limits;
use support::{Case, translate, written};

datatest_stable::harness! {
    { test = as_reviewed, root = "../../transcripts", pattern = r"input\.jsonl$" },
    { test = check_finds_nothing, root = "../../transcripts", pattern = r"input\.jsonl$" },
}

/// How long a line of a snapshot may be.
const LONGEST: usize = 2000;

fn as_reviewed(input: &Path) -> datatest_stable::Result<()> {
    let case = Case::read(input.parent().unwrap());
    let update = std::env::var_os("UPDATE_TRANSCRIPTS").is_some();
    for to in written() {
        let path = case.folder.join(format!("to-{}", to.name));
        let now = abridged(&translate(to.name, &case.input, &case.exit).bytes);
        if update {
            std::fs::write(&path, &now)?;
            continue;
        }
        let reviewed = std::fs::read_to_string(&path)?;
        for (at, (one, two)) in reviewed.lines().zip(now.lines()).enumerate() {
            assert_eq!(one, two, "{} line {}", path.display(), at + 1);
        }
        assert_eq!(reviewed, now, "{}", path.display());
    }
    Ok(())
}

fn check_finds_nothing(input: &Path) -> datatest_stable::Result<()> {
    let case = Case::read(input.parent().unwrap());
    for to in written() {
        let mut checker = Checker::new(to, Limits::default());
        if to.rules.is_none() {
            continue;
        }
        checker.push(&translate(to.name, &case.input, &case.exit).bytes);
        let findings = checker.finish(&case.exit);
        assert!(findings.is_empty(), "{} -> {}: {findings:#?}", case.name, to.name);
    }
    Ok(())
}

/// The output with its longest lines cut.
fn abridged(output: &[u8]) -> String {
    let text = String::from_utf8(output.to_vec()).unwrap();
    let mut short = String::new();
    for line in text.lines() {
        if line.len() <= LONGEST {
            short += line;
        } else {
            let start: String = line.chars().take(300).collect();
            let bits = line.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |bits, byte| {
                (bits ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
            short += &format!("{start}… ({} bytes, fingerprint {bits:016x})", line.len());
        }
        short.push('\n');
    }
    short
}
