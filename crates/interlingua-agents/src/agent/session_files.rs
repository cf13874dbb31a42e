//! The files in which agents keep their sessions, to find out what an agent has received.
//!
//! Their formats are private and change with every release, so nothing is read from them but whether
//! they contain a prompt, as a JSON string, and the time of its record. All agents write one record
//! per line, with a field `timestamp`. Of a database, only whether it contains the id of a session.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;

use super::{Folder, HostEnvironment, KnownAgent};

/// A file larger than this is not searched.
const LARGEST: u64 = 256 << 20;

/// How much of a database is read at a time.
const PART: u64 = 1 << 20;

/// Folders are searched for a session up to this depth.
const DEPTH: usize = 6;

/// Where an agent keeps its sessions.
#[derive(Debug)]
pub(super) enum SessionStorage {
    /// Each has files of its own.
    Files(SessionFiles),
    /// They share a database. SQLite keeps a text as it is, in the database or in the log of what was written
    /// last; both are in the folder of this name.
    Database(Folder, &'static str),
}

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
    /// Whether the agent has stored a session, by the agent's own id. One that is killed at the beginning of its
    /// first turn may not have. `None` if that cannot be found out.
    pub fn remembers(&self, host: &HostEnvironment, id: &str) -> Option<bool> {
        match &self.sessions {
            SessionStorage::Files(_) => self.files_of(host, id).map(|found| !found.is_empty()),
            SessionStorage::Database(data, below) => {
                database_contains(&host.folder(*data).join(below), id)
            }
        }
    }

    /// The files of a session. `None` if it has none of its own.
    fn files_of(&self, host: &HostEnvironment, id: &str) -> Option<Vec<PathBuf>> {
        let SessionStorage::Files(files) = &self.sessions else { return None };
        let root = host.folder(files.folder).join(files.below);
        let mut found = Vec::new();
        collect(&root, DEPTH, &mut |path| {
            if (files.is_session)(path, id) {
                found.push(path.to_owned());
            }
        });
        Some(found)
    }

    /// Whether the files of a session, by the agent's own id, show that the agent received a prompt at
    /// or after a time, in milliseconds since 1970. `None` if they do not decide it, if there are no
    /// such files, or if the agent keeps its sessions in another form.
    pub fn has_received(
        &self,
        host: &HostEnvironment,
        id: &str,
        prompt: &str,
        since: u64,
    ) -> Option<bool> {
        let found = self.files_of(host, id).filter(|found| !found.is_empty())?;
        let sought = Sought::new(prompt, since)?;
        let mut traces = Vec::new();
        for path in found {
            traces.push(sought.trace(&path)?);
        }
        match traces.into_iter().max()? {
            Trace::None => Some(false),
            Trace::Possible => None,
            Trace::Certain => Some(true),
        }
    }
}

/// What a file shows of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Trace {
    /// The file does not contain it, or only from an earlier time: the same words may have been sent
    /// before.
    None,
    /// A part of a record may be the prompt, or something else with the same words.
    Possible,
    /// A record contains it as a string of its own.
    Certain,
}

/// A prompt that is looked for.
struct Sought<'a> {
    prompt: &'a str,
    /// What every form of the prompt contains: its longest line, as a part of a JSON string. An agent
    /// may put something around a prompt, remove spaces, or change the ends of lines.
    part: String,
    /// The same within a JSON text that is a string itself, as agents keep some results of tools.
    nested: String,
    since: DateTime<Utc>,
}

/// The part of a record that all agents have in common.
#[derive(Deserialize)]
struct Stamped {
    #[serde(default)]
    timestamp: Option<DateTime<Utc>>,
}

impl<'a> Sought<'a> {
    fn new(prompt: &'a str, since: u64) -> Option<Self> {
        let longest = prompt.lines().map(str::trim).max_by_key(|line| line.len())?;
        let part = inside_quotes(longest)?;
        let nested = inside_quotes(&part)?;
        let since = DateTime::from_timestamp_millis(i64::try_from(since).ok()?)?;
        Some(Self { prompt: prompt.trim(), part, nested, since })
    }

    /// The trace of the prompt in a file; `None` if the file cannot be read.
    fn trace(&self, path: &Path) -> Option<Trace> {
        if path.metadata().ok()?.len() > LARGEST {
            return None;
        }
        let bytes = fs::read(path).ok()?;
        // Records are appended, so one without a time is as old as the one before it. Before the first
        // time, and in a file without any, that is not known.
        let mut is_new = None;
        let mut traces = Trace::None;
        for line in bytes.split(|byte| *byte == b'\n') {
            let has = |part: &str| memmem::find(line, part.as_bytes()).is_some();
            let contains = has(&self.part) || has(&self.nested);
            match serde_json::from_slice(line) {
                Ok(Stamped { timestamp: Some(at) }) => is_new = Some(at >= self.since),
                Ok(Stamped { timestamp: None }) => {}
                // The end of the file may be cut off.
                Err(_) if contains => traces = traces.max(Trace::Possible),
                Err(_) => continue,
            }
            if contains {
                traces = traces.max(match is_new {
                    Some(true) => self.trace_in(line),
                    Some(false) => Trace::None,
                    None => Trace::Possible,
                });
            }
        }
        Some(traces)
    }

    fn trace_in(&self, record: &[u8]) -> Trace {
        match serde_json::from_slice(record) {
            Ok(record) if self.is_string_in(&record) => Trace::Certain,
            _ => Trace::Possible,
        }
    }

    fn is_string_in(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => text.trim().lines().eq(self.prompt.lines()),
            Value::Array(items) => items.iter().any(|item| self.is_string_in(item)),
            Value::Object(fields) => fields.values().any(|field| self.is_string_in(field)),
            _ => false,
        }
    }
}

/// A text as a part of a JSON string.
fn inside_quotes(text: &str) -> Option<String> {
    let quoted = serde_json::to_string(text).ok()?;
    Some(quoted.get(1..quoted.len() - 1)?.to_owned())
}

/// Whether a database in a folder contains a text. Without a database, it does not; `None` if one cannot be read.
fn database_contains(folder: &Path, text: &str) -> Option<bool> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Some(false),
        Err(_) => return None,
    };
    for entry in entries {
        let path = entry.ok()?.path();
        let name = path.file_name()?.to_string_lossy().into_owned();
        if (name.ends_with(".db") || name.ends_with(".db-wal")) && contains(&path, text).ok()? {
            return Some(true);
        }
    }
    Some(false)
}

/// Whether a file contains a text. A database may be large, so a part of it is read at a time.
fn contains(path: &Path, text: &str) -> io::Result<bool> {
    let sought = memmem::Finder::new(text);
    let mut file = fs::File::open(path)?;
    let mut part = Vec::new();
    loop {
        // The text may begin in one part and end in the next.
        let kept = part.len().saturating_sub(text.len());
        part.drain(..kept);
        if file.by_ref().take(PART).read_to_end(&mut part)? == 0 {
            return Ok(false);
        }
        if sought.find(&part).is_some() {
            return Ok(true);
        }
    }
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

    const ID: &str = "0123abcd-1111-2222-3333-444455556666";

    /// 2026-11-17T10:00:00Z.
    const SENT: u64 = 1_794_909_600_000;

    const BEFORE: &str = "2026-11-17T09:59:59.999Z";
    const AFTER: &str = "2026-11-17T10:00:00.000Z";

    /// A home in which an agent has a session, and the file of that session.
    fn home_of(name: &str) -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(match name {
            "claude" => format!(".claude/projects/-w/{ID}.jsonl"),
            "codex" => format!(".codex/sessions/2026/11/17/rollout-2026-11-17T10-00-00-{ID}.jsonl"),
            "gemini" => ".gemini/tmp/w/chats/session-2026-11-17T10-00-0123abcd.jsonl".to_owned(),
            "copilot" => format!(".copilot/session-state/{ID}/events.jsonl"),
            _ => format!(".qwen/projects/-w/chats/{ID}.jsonl"),
        });
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        (home, path)
    }

    fn record(timestamp: &str, text: &str) -> String {
        format!("{}\n", serde_json::json!({"m": [{"text": text}], "timestamp": timestamp}))
    }

    fn received(records: &str, prompt: &str) -> Option<bool> {
        let (home, path) = home_of("claude");
        fs::write(path, records).unwrap();
        let host = HostEnvironment::at(home.path());
        KnownAgent::find("claude").unwrap().has_received(&host, ID, prompt, SENT)
    }

    #[test]
    fn a_prompt_is_found_in_the_files_of_its_session() {
        for name in ["claude", "codex", "gemini", "copilot", "qwen"] {
            let (home, path) = home_of(name);
            let host = HostEnvironment::at(home.path());
            let agent = KnownAgent::find(name).unwrap();
            let received = |id, prompt| agent.has_received(&host, id, prompt, SENT);
            assert_eq!(received(ID, "go"), None, "{name} has no files yet");
            assert_eq!(agent.remembers(&host, ID), Some(false), "{name}");
            fs::write(&path, record(AFTER, "fix \"it\"\nnow")).unwrap();
            assert_eq!(received(ID, "fix \"it\"\r\nnow "), Some(true), "{name}");
            assert_eq!(received(ID, "something else"), Some(false), "{name}");
            assert_eq!(agent.remembers(&host, ID), Some(true), "{name}");
            let other = "ffffffff-1111-2222-3333-444455556666";
            assert_eq!(received(other, "go"), None, "{name}");
        }
    }

    /// What was written last is in a file of its own, and a text may be anywhere in either.
    #[test]
    fn a_session_is_found_in_a_database() {
        let home = tempfile::tempdir().unwrap();
        let host = HostEnvironment::at(home.path());
        let opencode = KnownAgent::find("opencode").unwrap();
        assert_eq!(opencode.has_received(&host, ID, "go", SENT), None);
        let folder = home.path().join(".local/share/opencode");
        let remembers = || opencode.remembers(&host, ID);
        assert_eq!(remembers(), Some(false), "there is no database");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("opencode.db"), "SQLite format 3").unwrap();
        fs::write(folder.join("log"), ID).unwrap();
        assert_eq!(remembers(), Some(false));
        let between_parts = "x".repeat(PART as usize - ID.len() / 2) + ID;
        for (name, bytes) in [("opencode.db", between_parts), ("opencode.db-wal", ID.to_owned())] {
            let path = folder.join(name);
            fs::write(&path, bytes).unwrap();
            assert_eq!(remembers(), Some(true), "{name}");
            fs::write(&path, "").unwrap();
        }
        // A part of the id is not enough.
        fs::write(folder.join("opencode.db"), &ID[1..]).unwrap();
        assert_eq!(remembers(), Some(false));
        fs::create_dir(folder.join("other.db")).unwrap();
        assert_eq!(remembers(), None, "it cannot be read");
    }

    #[test]
    fn the_same_words_of_an_earlier_prompt_do_not_count() {
        // Claude Code repeats the newest prompt in a record without a time.
        let earlier = record(BEFORE, "continue") + "{\"lastPrompt\":\"continue\"}\n";
        assert_eq!(received(&earlier, "continue"), Some(false));
        let both = earlier + &record(AFTER, "continue");
        assert_eq!(received(&both, "continue"), Some(true));
    }

    /// A release of an agent may keep its sessions in another form. To send the prompt again because it
    /// is in no record with a time would run it twice.
    #[test]
    fn a_file_without_times_does_not_decide() {
        assert_eq!(received("{\"text\":\"continue\"}\n", "continue"), None);
        assert_eq!(received("{\"text\":\"continue\"}\n", "something else"), Some(false));
        let first = "{\"text\":\"continue\"}\n".to_owned() + &record(BEFORE, "go");
        assert_eq!(received(&first, "continue"), None);
    }

    /// The agent's own instructions contain many words, and are written again when it is started.
    #[test]
    fn the_same_words_within_another_text_do_not_decide() {
        let within = record(AFTER, "You continue until the task is done.");
        assert_eq!(received(&within, "continue"), None);
        let truncated = record(AFTER, "continue").replace("}\n", "");
        assert_eq!(received(&truncated, "continue"), None);
    }

    /// What contains the result of a tool as JSON within a string does not decide, and is no proof of its absence.
    #[test]
    fn a_text_within_a_nested_text_does_not_decide() {
        let result = "{\n  \"colour\": \"blue\"\n}";
        let nested = serde_json::json!([{"type": "text", "text": result}]).to_string();
        assert_eq!(received(&record(AFTER, &nested), result), None);
        assert_eq!(received(&record(AFTER, result), result), Some(true));
        assert_eq!(received(&record(AFTER, "[]"), result), Some(false));
    }
}
