//! Long results of the client's tools: an agent gets the beginning, and the path of a file with all of it.
//!
//! The files are private, and deleted with the session. What a killed process has left is deleted by the next one.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::session::{CallOutcome, LONGEST_RESULT, LateResult, long_result_note};

/// How the names of the folders begin.
const PREFIX: &str = "interlingua-results-";

/// The file in a folder that its process has locked.
const LOCK: &str = ".lock";

/// The name of that file before it is locked.
const LOCK_BEFORE: &str = ".lock.new";

/// The results of a session that are in files.
#[derive(Debug, Default)]
pub(super) struct LongResults {
    /// The folder of the files, once there is one.
    folder: Option<Folder>,
    files: Vec<PathBuf>,
}

/// A folder that is deleted with its session.
#[derive(Debug)]
struct Folder {
    path: TempDir,
    /// It is locked as long as the process lives.
    _lock: File,
}

impl Folder {
    fn create(within: &Path) -> io::Result<Self> {
        let path = tempfile::Builder::new().prefix(PREFIX).tempdir_in(within)?;
        let new = path.path().join(LOCK_BEFORE);
        let lock = File::create(&new)?;
        // It is locked before it is seen. Where there are no locks, it never is, and the folder stays there.
        if lock.try_lock().is_ok() {
            std::fs::rename(&new, path.path().join(LOCK))?;
        }
        Ok(Self { path, _lock: lock })
    }
}

/// Deletes the folders that processes of this user have left, which were killed.
fn delete_abandoned(within: &Path) {
    let Ok(entries) = std::fs::read_dir(within) else { return };
    for entry in entries.filter_map(Result::ok) {
        let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if is_named && is_abandoned(&entry.path()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(folder: &Path) -> bool {
    let Ok(found) = folder.symlink_metadata() else { return false };
    if !found.is_dir() || !is_own(&found) {
        return false;
    }
    File::open(folder.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(unix)]
fn is_own(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    found.uid() == rustix::process::getuid().as_raw()
}

#[cfg(not(unix))]
fn is_own(_: &std::fs::Metadata) -> bool {
    // The folder for temporary files is the user's own.
    true
}

impl LongResults {
    /// The files, which the agent may read.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// A result as the agent gets it.
    pub(super) fn shown<'t>(&mut self, text: Cow<'t, str>) -> Cow<'t, str> {
        if text.len() <= LONGEST_RESULT {
            return text;
        }
        let location = match self.store(&text) {
            Ok(path) => format!("all of it is in the file {}", path.display()),
            Err(problem) => format!("the rest is lost, because it could not be stored: {problem}"),
        };
        let note = long_result_note(text.len());
        let note = format!("{note} What follows is its beginning; {location}]\n\n");
        let room = LONGEST_RESULT.saturating_sub(note.len());
        let beginning = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
        // An agent that shortens the text by its own measure keeps its first line.
        (note + beginning).into()
    }

    /// Late results as the agent gets them.
    pub(super) fn shown_late(&mut self, results: &[LateResult]) -> Vec<LateResult> {
        let mut shown = |result: &LateResult| LateResult {
            outcome: self.shown_outcome(&result.outcome),
            ..result.clone()
        };
        results.iter().map(&mut shown).collect()
    }

    fn shown_outcome(&mut self, outcome: &CallOutcome) -> CallOutcome {
        let (text, _) = outcome.text();
        if text.len() <= LONGEST_RESULT {
            return outcome.clone();
        }
        let shown = self.shown(text).into_owned();
        match outcome {
            CallOutcome::Output(_) => CallOutcome::Output(Value::String(shown)),
            CallOutcome::Failed(_) => CallOutcome::Failed(shown),
            CallOutcome::Denied(_) => CallOutcome::Denied(shown),
            CallOutcome::Cancelled(_) => CallOutcome::Cancelled(shown),
        }
    }

    /// Stores a text in a file that only this user can read.
    fn store(&mut self, text: &str) -> io::Result<&Path> {
        let folder = match self.folder.take() {
            Some(folder) if folder.path.path().exists() => folder,
            _ => {
                let within = std::env::temp_dir();
                delete_abandoned(&within);
                Folder::create(&within)?
            }
        };
        let folder = self.folder.insert(folder).path.path();
        let mut named = tempfile::Builder::new();
        let mut file = named.prefix("result-").suffix(".txt").tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        let (_, path) = file.keep()?;
        self.files.push(path);
        Ok(self.files.last().map_or(folder, PathBuf::as_path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_result_is_not_changed() {
        let mut long = LongResults::default();
        let text = "ä".repeat(LONGEST_RESULT / 2);
        assert_eq!(long.shown(text.as_str().into()), text);
        assert!(long.files().is_empty());
    }

    #[test]
    fn a_long_result_is_in_a_private_file_that_is_deleted_with_the_session() {
        let mut long = LongResults::default();
        let text = "zeile ä\n".repeat(10_000);
        let shown = long.shown(text.as_str().into()).into_owned();
        assert!(shown.len() <= LONGEST_RESULT, "{}", shown.len());
        assert!(shown.starts_with(&*CallOutcome::Output(text.as_str().into()).trace()));
        let [path] = long.files() else { panic!("{:?}", long.files()) };
        let path = path.clone();
        let (first, beginning) = shown.split_once("\n\n").unwrap();
        assert!(first.contains(&path.display().to_string()), "{first}");
        assert!(first.contains(&format!("{} bytes", text.len())), "{first}");
        assert!(text.starts_with(beginning) && beginning.len() > LONGEST_RESULT / 2);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        drop(long);
        assert!(!path.parent().unwrap().exists());
    }

    #[test]
    fn what_a_killed_process_has_left_is_deleted() {
        let within = tempfile::tempdir().unwrap();
        let live = Folder::create(within.path()).unwrap();
        // A process that is killed gives up its locks, and deletes nothing.
        let Folder { path, _lock: lock } = Folder::create(within.path()).unwrap();
        let left = path.keep();
        drop(lock);
        let fresh = within.path().join("interlingua-results-fresh");
        let other = within.path().join("another");
        for folder in [&fresh, &other] {
            std::fs::create_dir(folder).unwrap();
        }
        // A process that another test starts may have inherited the lock for a moment.
        while left.exists() {
            delete_abandoned(within.path());
        }
        assert!(live.path.path().exists() && fresh.exists() && other.exists());
    }

    #[test]
    fn a_late_result_stays_what_it_is() {
        let mut long = LongResults::default();
        let late = |outcome| LateResult {
            call: "c1".to_owned(),
            native: None,
            tool: "ask".to_owned(),
            input: "{}".to_owned(),
            outcome,
            deferred: false,
        };
        let text = "x".repeat(LONGEST_RESULT + 1);
        let short = late(CallOutcome::Output(serde_json::json!({"a": 1})));
        let results = [late(CallOutcome::Failed(text.clone())), short.clone()];
        let shown = long.shown_late(&results);
        assert!(matches!(&shown[0].outcome, CallOutcome::Failed(why) if why.len() < text.len()));
        assert_eq!((&shown[1], long.files().len()), (&short, 1));
    }
}
