//! When the entries of a session are stored.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use fake_model::Reply;
use interlingua_agents::api::{SessionLog, SessionStore, StoredRun};
use serde_json::json;

use super::{APIS, Bench};

/// What was known when a log had to settle.
#[derive(Debug, Clone, Copy)]
struct Settled {
    /// The call, and the history with it, was taken.
    has_call: bool,
    /// The call had run.
    has_run: bool,
}

/// A store that stores nothing, and notes when it would have to.
#[derive(Debug, Clone)]
struct Notes {
    /// The file that the call makes.
    made: PathBuf,
    settled: Arc<Mutex<Vec<Settled>>>,
}

struct NotedLog {
    notes: Notes,
    taken: String,
}

impl SessionStore for Notes {
    fn open(&self, _: &StoredRun<'_>) -> io::Result<Box<dyn SessionLog>> {
        Ok(Box::new(NotedLog { notes: self.clone(), taken: String::new() }))
    }
}

impl SessionLog for NotedLog {
    fn write(&mut self, records: Vec<u8>) -> io::Result<()> {
        self.taken.push_str(&String::from_utf8(records).map_err(io::Error::other)?);
        Ok(())
    }

    fn settle(&mut self) -> io::Result<()> {
        let has = |words: &str| {
            self.taken.lines().any(|line| line.contains(words) && line.contains("made.txt"))
        };
        let has_call = has("\"type\":\"tool_input\"") && has("\"history\"");
        let has_run = self.notes.made.exists();
        self.notes.settled.lock().unwrap().push(Settled { has_call, has_run });
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}

/// A run that is killed has not executed a call that a resumed session does not know of.
#[tokio::test]
async fn a_call_is_stored_before_it_runs() {
    for api in APIS {
        let call = Reply::call("Write", json!({"file_path": "made.txt", "content": "x"}));
        let mut bench = Bench::new(api, [call, Reply::text("Done.")]);
        let settled = Arc::default();
        let notes = Notes { made: bench.path("made.txt"), settled: Arc::clone(&settled) };
        bench.settings.sessions = Some(Arc::new(notes));
        let (ended, _) = bench.run("write").await;
        assert_eq!(ended.code(), 0, "{api:?}");
        let settled = settled.lock().unwrap();
        let before = settled.iter().any(|it| it.has_call && !it.has_run);
        assert!(before, "{api:?}: {settled:?}");
        // Only a run that acts waits for its store.
        assert!(settled.iter().all(|it| it.has_call), "{api:?}: {settled:?}");
    }
}
