//! The files by which a repository makes an agent run programs, or act, without a request.
//!
//! What an agent does unasked cannot be judged. If the folder has such a file, the agent is started
//! so that it ignores it, and the user learns so; a user who trusts the folder requests otherwise.
//! Which files an agent reads, and what makes it ignore them, was found out with the real programs.

use std::path::{Path, PathBuf};

use crate::request::Request;

/// A file or a folder of a repository that an agent reads.
#[derive(Debug)]
pub(super) struct Loosening {
    /// Its path below the root of the repository, or below a folder in it.
    pub(super) path: &'static str,
    /// The settings in it that matter. A folder, or a file without any, matters if it exists.
    pub(super) settings: &'static [&'static str],
}

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
    for folder in folders(folder) {
        for Loosening { path, settings } in loosenings {
            let path = folder.join(path);
            if let Some(settings) = found_settings(&path, settings) {
                found.push(format!("{}{settings}", path.display()));
            }
        }
    }
    found
}

/// The working folder, and those above it up to the root of its repository.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let above: Vec<_> = folder.ancestors().map(Path::to_owned).collect();
    let root = above.iter().position(|folder| folder.join(".git").exists()).unwrap_or(0);
    above.into_iter().take(root + 1).collect()
}

/// The settings in a file that matter, as a text behind its path; `None` if there are none.
fn found_settings(path: &Path, settings: &[&str]) -> Option<String> {
    if path.is_dir() {
        return Some(String::new());
    }
    let text = std::fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&text);
    if settings.is_empty() {
        return Some(String::new());
    }
    // The file may have comments, so it is not parsed. An escaped name could be any of them.
    let is_set = |name: &&&str| text.contains(&format!("\"{name}\"")) || text.contains("\\u");
    let found: Vec<_> = settings.iter().filter(is_set).copied().collect();
    (!found.is_empty()).then(|| format!(": {}", found.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOSENINGS: &[Loosening] = &[
        Loosening { path: "settings.json", settings: &["hooks", "mcp"] },
        Loosening { path: ".plugins", settings: &[] },
    ];

    fn only(folder: &Path) -> Option<String> {
        let mut found = found(LOOSENINGS, folder);
        assert!(found.len() < 2, "{found:?}");
        found.pop()
    }

    #[test]
    fn only_settings_that_matter_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let settings = folder.path().join("settings.json");
        assert_eq!(only(folder.path()), None);
        std::fs::write(&settings, r#"{"theme":"dark"}"#).unwrap();
        assert_eq!(only(folder.path()), None);
        for (text, found) in [
            (r#"{"hooks":{}} // a comment"#, "settings.json: hooks"),
            (r#"{"hooks":{},"mcp":{}}"#, "settings.json: hooks, mcp"),
            (r#"{"\u0068ooks":{}}"#, "settings.json: hooks, mcp"),
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
        assert_eq!(only(&inside), None);
        std::fs::create_dir_all(outside.path().join("repository/.git")).unwrap();
        assert_eq!(only(&inside), None);
        std::fs::create_dir_all(outside.path().join("repository/.plugins")).unwrap();
        assert!(only(&inside).unwrap().ends_with("repository/.plugins"));
    }

    #[test]
    fn a_trusted_folder_restricts_nothing() {
        let folder = tempfile::tempdir().unwrap();
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
