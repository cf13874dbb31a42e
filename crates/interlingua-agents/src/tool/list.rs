//! `LS`: the entries of a folder.

use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::Deserialize;

use super::place::failure;
use super::{Failure, Outcome, Output, Scope};

/// How many entries of a folder are looked at.
const MAX_ENTRIES: usize = 20_000;

/// How many entries are returned.
const MAX_SHOWN: usize = 1000;

#[derive(Debug, Deserialize)]
pub(super) struct Input {
    path: String,
    ignore: Option<Vec<String>>,
}

pub(super) fn run(scope: &Scope<'_>, input: Input) -> Outcome {
    let place = scope.place(&input.path)?;
    let ignored = patterns(&input.ignore.unwrap_or_default())?;
    let shown = scope.shown(&place.path);
    let (mut entries, more) =
        place.entries(MAX_ENTRIES).map_err(|problem| match problem.kind() {
            std::io::ErrorKind::NotADirectory => Failure(format!("{shown} is not a folder")),
            _ => failure(&shown, &problem),
        })?;
    entries.retain(|entry| !ignored.is_match(&entry.name));
    entries.sort();
    let name = |entry: &super::place::Entry| match entry.is_folder {
        true => format!("{}{}", entry.name, std::path::MAIN_SEPARATOR),
        false => entry.name.clone(),
    };
    let mut lines: Vec<_> = entries.iter().take(MAX_SHOWN).map(name).collect();
    if lines.is_empty() {
        lines.push(format!("({shown} has no entries)"));
    }
    if more {
        lines.push(format!(
            "(the folder has more than {MAX_ENTRIES} entries; these are {} of them: use Glob with \
             a pattern)",
            lines.len()
        ));
    } else if entries.len() > MAX_SHOWN {
        let left = entries.len() - MAX_SHOWN;
        lines.push(format!("({left} more entries: use Glob with a pattern)"));
    }
    Ok(Output::completed(lines.join("\n")))
}

fn patterns(patterns: &[String]) -> Result<GlobSet, Failure> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = Glob::new(pattern);
        set.add(glob.map_err(|problem| Failure(format!("`ignore`: {problem}")))?);
    }
    set.build().map_err(|problem| Failure(format!("`ignore`: {problem}")))
}
