//! The files in which agents keep their sessions, to find out what an agent has received.
//!
//! Their formats are private and change with every release, so nothing is read from them but whether
//! they contain a prompt, as a JSON string.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Folder, HostEnvironment, KnownAgent};

/// A file larger than this is not searched.
const LARGEST: u64 = 256 << 20;

/// Folders are searched for a session up to this depth.
const DEPTH: usize = 6;

/// Where an agent keeps the files of its sessions, and how one of them is recognised by its path.
#[derive(Debug)]
pub(super) struct SessionFiles {
    pub(super) folder: Folder,
    /// The folder below it.
    pub(super) below: &'static str,
    /// Whether a path is that of a session with this id.
    pub(super) is_session: fn(path: &Path, id: &str) -> bool,
}

impl KnownAgent {
    /// Whether the files of a session, by the agent's own id, contain a prompt; `None` if there are no
    /// such files, or if the agent keeps its sessions in another form.
    pub fn has_received(&self, host: &HostEnvironment, id: &str, prompt: &str) -> Option<bool> {
        let files = self.session_files.as_ref()?;
        let root = host.folder(files.folder).join(files.below);
        let mut found = Vec::new();
        collect(&root, DEPTH, &mut |path| {
            if (files.is_session)(path, id) {
                found.push(path.to_owned());
            }
        });
        if found.is_empty() {
            return None;
        }
        // An agent may put something around the prompt, remove spaces, or change the ends of lines. To
        // find too much is safe: then the prompt is not sent again.
        let longest = prompt.lines().map(str::trim).max_by_key(|line| line.len())?;
        let quoted = serde_json::to_string(longest).ok()?;
        let text = quoted.get(1..quoted.len() - 1)?;
        let mut received = false;
        for path in found {
            received |= contains(&path, text)?;
        }
        Some(received)
    }
}

fn contains(path: &Path, text: &str) -> Option<bool> {
    if path.metadata().ok()?.len() > LARGEST {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    Some(memchr::memmem::find(&bytes, text.as_bytes()).is_some())
}

/// Calls a function for every file below a folder. Links are not followed.
fn collect(folder: &Path, depth: usize, file: &mut dyn FnMut(&Path)) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path: PathBuf = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => collect(&path, depth - 1, file),
            Ok(kind) if kind.is_file() => file(&path),
            _ => {}
        }
    }
}

/// A file that is named after the id.
pub(super) fn named(path: &Path, id: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy() == format!("{id}.jsonl"))
}

/// A file whose name ends with the id.
pub(super) fn ends_with(path: &Path, id: &str) -> bool {
    let is_own = |name: &str| name.ends_with(&format!("-{id}.jsonl"));
    path.file_name().is_some_and(|name| is_own(&name.to_string_lossy()))
}

/// A file whose name ends with the first eight characters of the id.
pub(super) fn ends_with_start(path: &Path, id: &str) -> bool {
    id.get(..8).is_some_and(|start| ends_with(path, start))
}

/// A file in a folder that is named after the id.
pub(super) fn within(path: &Path, id: &str) -> bool {
    let folder = path.parent().and_then(Path::file_name);
    folder.is_some_and(|name| name.to_string_lossy() == id)
        && path.extension().is_some_and(|ending| ending == "jsonl")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_found_in_the_files_of_its_session() {
        let home = tempfile::tempdir().unwrap();
        let host = HostEnvironment::at(home.path());
        let id = "0123abcd-1111-2222-3333-444455556666";
        let files = [
            ("claude", format!(".claude/projects/-w/{id}.jsonl")),
            ("codex", format!(".codex/sessions/2026/11/17/rollout-2026-11-17T10-00-00-{id}.jsonl")),
            ("gemini", ".gemini/tmp/w/chats/session-2026-11-17T10-00-0123abcd.jsonl".to_owned()),
            ("copilot", format!(".copilot/session-state/{id}/events.jsonl")),
            ("qwen", format!(".qwen/projects/-w/chats/{id}.jsonl")),
        ];
        for (name, path) in files {
            let agent = KnownAgent::find(name).unwrap();
            assert_eq!(agent.has_received(&host, id, "go"), None, "{name} has no files yet");
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "{\"text\":\"fix \\\"it\\\"\\nnow\"}\n").unwrap();
            assert_eq!(agent.has_received(&host, id, "fix \"it\"\r\nnow "), Some(true), "{name}");
            assert_eq!(agent.has_received(&host, id, "something else"), Some(false), "{name}");
            let other = "ffffffff-1111-2222-3333-444455556666";
            assert_eq!(agent.has_received(&host, other, "go"), None, "{name}");
        }
        let opencode = KnownAgent::find("opencode").unwrap();
        assert_eq!(opencode.has_received(&host, id, "go"), None);
    }
}
