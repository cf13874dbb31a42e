//! Long results of the client's tools: an agent gets the beginning, and the path of a file with all of it.
//!
//! The files are private, and deleted with the session.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::session::{CallOutcome, LONGEST_RESULT, LateResult, long_result_note};

/// The results of a session that are in files.
#[derive(Debug, Default)]
pub(super) struct LongResults {
    /// The folder of the files, once there is one.
    folder: Option<TempDir>,
    files: Vec<PathBuf>,
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
            Some(folder) => folder,
            None => tempfile::Builder::new().prefix("interlingua-results-").tempdir()?,
        };
        let folder = self.folder.insert(folder);
        let mut named = tempfile::Builder::new();
        let mut file = named.prefix("result-").suffix(".txt").tempfile_in(folder.path())?;
        file.write_all(text.as_bytes())?;
        let (_, path) = file.keep()?;
        self.files.push(path);
        Ok(self.files.last().map_or(folder.path(), PathBuf::as_path))
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
