//! The files by which a repository makes an agent run programs, or act, without a request.
//!
//! What an agent does unasked cannot be judged. If the folder has such a file, the agent is started
//! so that it ignores it, and the user learns so; a user who trusts the folder requests otherwise.
//! Which files an agent reads, and what makes it ignore them, was found out with the real programs.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::request::Request;

/// A file or a folder of a repository that an agent reads.
#[derive(Debug)]
pub(super) struct Loosening {
    /// Its path below the root of the repository, or below a folder in it.
    pub(super) path: &'static str,
    /// The settings in it that neither run programs nor allow anything. A file with any other one
    /// matters, because an agent may learn new settings; so does a folder that exists. `a.b` is the
    /// setting `b` in the object `a`, of which any other one matters.
    pub(super) harmless: &'static [&'static str],
}

/// The number of settings that a warning names for one file.
const MOST_SHOWN: usize = 8;

/// Whether the agent has to ignore files of the repository.
pub(super) fn restricts(loosenings: &[Loosening], request: &Request) -> bool {
    !request.trusts_folder && !found(loosenings, &request.folder).is_empty()
}

/// The warning about the files, if there are any, and what the agent ignores because of them.
pub(super) fn warning(
    title: &str,
    ignored: Option<&str>,
    loosenings: &[Loosening],
    request: &Request,
) -> Option<String> {
    let found = found(loosenings, &request.folder);
    if request.trusts_folder || found.is_empty() {
        return None;
    }
    let found = found.join(", ");
    Some(match ignored {
        Some(ignored) => format!(
            "this folder could make {title} run programs or act without asking, so it ignores {ignored} ({found}); --trust-folder lets it use them"
        ),
        None => format!("this folder can make {title} run programs or act without asking: {found}"),
    })
}

/// The files of the repository, with the settings that matter.
fn found(loosenings: &[Loosening], folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for folder in folders(folder, |folder| folder.join(".git").exists()) {
        for Loosening { path, harmless } in loosenings {
            let path = folder.join(path);
            if let Some(settings) = found_settings(&path, harmless) {
                found.push(format!("{}{settings}", path.display()));
            }
        }
    }
    found
}

/// The working folder, and those above it up to the root of its repository.
fn folders(folder: &Path, is_root: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let above: Vec<_> = folder.ancestors().map(Path::to_owned).collect();
    let root = above.iter().position(|folder| is_root(folder)).unwrap_or(0);
    above.into_iter().take(root + 1).collect()
}

/// The settings in a file that matter, as a text behind its path; `None` if there are none.
fn found_settings(path: &Path, harmless: &[&str]) -> Option<String> {
    if path.is_dir() {
        return Some(String::new());
    }
    let text = std::fs::read(path).ok()?;
    let Ok(settings) = serde_json::from_slice::<Map<String, Value>>(&text) else {
        // A file that is not plain JSON, for example because of its comments, may set anything.
        return Some(String::new());
    };
    let mut found: Vec<_> = settings
        .iter()
        .filter(|(name, value)| !is_harmless(name, value, harmless))
        .map(|(name, _)| name)
        .collect();
    found.sort();
    // The repository chooses the names, and the user reads them.
    let is_plain = |name: &str| name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
    let shown = found.iter().map(|name| if is_plain(name) { name.as_str() } else { "…" });
    let shown: Vec<_> = shown.take(MOST_SHOWN).collect();
    let rest = if found.len() > MOST_SHOWN { ", …" } else { "" };
    (!found.is_empty()).then(|| format!(": {}{rest}", shown.join(", ")))
}

/// Whether a setting is harmless, or everything in it.
fn is_harmless(name: &str, value: &Value, harmless: &[&str]) -> bool {
    let has_parts = harmless.iter().any(|it| it.split_once('.').is_some_and(|it| it.0 == name));
    match value {
        Value::Object(parts) if has_parts => {
            parts.keys().all(|part| harmless.contains(&format!("{name}.{part}").as_str()))
        }
        _ => harmless.contains(&name) && !name.contains('.'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOSENINGS: &[Loosening] = &[
        Loosening { path: "settings.json", harmless: &["theme"] },
        Loosening { path: ".plugins", harmless: &[] },
    ];

    /// A repository of its own, so that nothing above it counts.
    fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        folder
    }

    fn only(folder: &Path) -> Option<String> {
        let mut found = found(LOOSENINGS, folder);
        assert!(found.len() < 2, "{found:?}");
        found.pop()
    }

    #[test]
    fn all_settings_matter_but_those_that_are_known_to_be_harmless() {
        let folder = repository();
        let settings = folder.path().join("settings.json");
        assert_eq!(only(folder.path()), None);
        std::fs::write(&settings, r#"{"theme":"dark"}"#).unwrap();
        assert_eq!(only(folder.path()), None);
        for (text, found) in [
            (r#"{"theme":"dark"} // a comment"#, "settings.json"),
            (r#"{"hooks":{},"mcp":{},"theme":"dark"}"#, "settings.json: hooks, mcp"),
            (r#"{"\u0068ooks":{}}"#, "settings.json: hooks"),
            (r#"{"new":1,"\u001b[2J":1}"#, "settings.json: …, new"),
        ] {
            std::fs::write(&settings, text).unwrap();
            assert!(only(folder.path()).unwrap().ends_with(found), "{text}");
        }
    }

    /// OpenCode reads the files of all folders up to the root of the repository.
    #[test]
    fn the_whole_repository_counts_and_nothing_above_it() {
        let outside = tempfile::tempdir().unwrap();
        let inside = outside.path().join("repository/inside");
        std::fs::create_dir_all(&inside).unwrap();
        std::fs::create_dir_all(outside.path().join(".plugins")).unwrap();
        std::fs::create_dir_all(outside.path().join("repository/.git")).unwrap();
        assert_eq!(only(&inside), None);
        std::fs::create_dir_all(outside.path().join("repository/.plugins")).unwrap();
        assert!(only(&inside).unwrap().ends_with("repository/.plugins"));
    }

    /// Not tested with files: the temporary folder may itself be in a repository.
    #[test]
    fn outside_a_repository_only_the_working_folder_counts() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().canonicalize().unwrap().join("inside");
        std::fs::create_dir(&inside).unwrap();
        assert_eq!(folders(&inside, |_| false), [inside.as_path()]);
        let above = inside.parent().unwrap();
        assert_eq!(folders(&inside, |folder| folder == above), [inside.as_path(), above]);
    }

    #[test]
    fn a_trusted_folder_restricts_nothing() {
        let folder = repository();
        std::fs::create_dir(folder.path().join(".plugins")).unwrap();
        let mut request = Request { folder: folder.path().to_owned(), ..Request::default() };
        assert!(restricts(LOOSENINGS, &request));
        let warned = warning("It", Some("its plugins"), LOOSENINGS, &request).unwrap();
        assert!(
            warned.contains("ignores its plugins (") && warned.contains(".plugins"),
            "{warned}"
        );
        request.trusts_folder = true;
        assert!(!restricts(LOOSENINGS, &request));
        assert_eq!(warning("It", Some("its plugins"), LOOSENINGS, &request), None);
    }
}
