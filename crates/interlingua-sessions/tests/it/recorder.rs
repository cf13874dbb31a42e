//! Sessions that are run without a host, and files that an earlier version has stored.

use std::path::{Path, PathBuf};

use interlingua::event::Data;
use interlingua::framing::Limits;
use interlingua::{Entry, Exit, check, dialect};
use interlingua_sessions::{
    Durability, Error, SessionRecord, SessionRecorder, SqliteStore, State, Store,
    import_session_files,
};
use serde_json::{Value, json};

use crate::support::{id, parsed};

/// The records of a run, which begins its numbers and ids anew.
fn run(session: &str, prompt: &str, answer: &str) -> Vec<Value> {
    let events = [
        json!({"type": "session_started", "id": session, "agent": "anthropic-api", "model": "m", "cwd": "/w"}),
        json!({"type": "turn_started"}),
        json!({"type": "user_message", "text": prompt}),
        json!({"type": "message_started", "message": "m1"}),
        json!({"type": "block_started", "block": 1, "message": "m1", "kind": "text"}),
        json!({"type": "block_delta", "block": 1, "message": "m1", "kind": "text", "text": answer}),
        json!({"type": "block_ended", "block": 1, "message": "m1", "kind": "text", "text": answer}),
        json!({"type": "message_ended", "message": "m1"}),
        json!({"type": "turn_ended", "outcome": "completed"}),
    ];
    (0..).zip(events).map(|(number, event)| numbered(number, event)).collect()
}

fn numbered(number: u64, mut event: Value) -> Value {
    event["sequence"] = number.into();
    event["epoch"] = 0.into();
    event
}

fn bytes(records: &[Value]) -> Vec<u8> {
    records.iter().map(|record| format!("{record}\n")).collect::<String>().into_bytes()
}

struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("sessions.db")
    }

    fn record(&self, name: &str) -> Result<SessionRecorder, Error> {
        let record =
            SessionRecord { id_seed: 7, ..SessionRecord::new(id(name), "anthropic-api", 1) };
        SessionRecorder::open(&self.store(), record)
    }

    async fn log(&self, name: &str) -> (SessionRecord, Vec<Entry>) {
        let store = SqliteStore::open(&self.store(), Durability::default()).unwrap();
        let record = store.load(&id(name)).await.unwrap().unwrap();
        let page = store.read(&id(name), 0, 1_000_000).await.unwrap();
        if record.state == State::Idle {
            assert_well_formed(&page.lines);
        }
        (record, parsed(&page.lines))
    }
}

fn assert_well_formed(lines: &[u8]) {
    let events = dialect::named("events").unwrap();
    let mut checker = check::Checker::new(events, Limits::default());
    checker.push(lines);
    let mut findings = checker.finish(&Exit::default());
    // A session that rests has not ended.
    findings.retain(|finding| finding.rule != "session-ends");
    assert!(findings.is_empty(), "{findings:?}");
}

fn kinds(log: &[Entry]) -> Vec<&'static str> {
    log.iter().map(|entry| entry.event.data.kind()).collect()
}

fn texts(log: &[Entry]) -> Vec<String> {
    let text = |entry: &Entry| match &entry.event.data {
        Data::BlockDelta(delta) => Some(delta.text.to_string()),
        _ => None,
    };
    log.iter().filter_map(text).collect()
}

fn is_gapless(log: &[Entry]) -> bool {
    log.iter().map(|entry| entry.sequence).eq(0..log.len() as u64)
}

#[tokio::test]
async fn a_resumed_session_has_one_log() {
    let desk = Desk::new();
    for (prompt, answer) in [("first", "one"), ("second", "two")] {
        let mut recorder = desk.record("s").unwrap();
        recorder.write(bytes(&run("s", prompt, answer))).unwrap();
        recorder.finish().unwrap();
    }
    let (record, log) = desk.log("s").await;
    assert_eq!(record.state, State::Idle);
    assert_eq!(record.title.as_deref(), Some("first"));
    assert!(is_gapless(&log), "{log:?}");
    assert_eq!(texts(&log), ["one", "two"]);
    let block = |entry: &Entry| match &entry.event.data {
        Data::BlockDelta(delta) => Some(delta.block),
        _ => None,
    };
    let mut blocks: Vec<_> = log.iter().filter_map(block).collect();
    blocks.dedup();
    assert_eq!(blocks.len(), 2, "the runs have blocks of their own");
    assert_eq!(kinds(&log).iter().filter(|kind| **kind == "turn_ended").count(), 2);
}

#[tokio::test]
async fn a_run_that_was_killed_is_closed_by_the_next_one() {
    let desk = Desk::new();
    let mut recorder = desk.record("s").unwrap();
    recorder.write(bytes(&run("s", "first", "one")[..6])).unwrap();
    // A killed process releases its lock and does nothing else.
    drop(recorder);
    let (record, _) = desk.log("s").await;
    assert_eq!(record.state, State::Working);
    let mut recorder = desk.record("s").unwrap();
    recorder.write(bytes(&run("s", "second", "two"))).unwrap();
    recorder.finish().unwrap();
    let (_, log) = desk.log("s").await;
    assert!(is_gapless(&log));
    let ended = |entry: &Entry| match &entry.event.data {
        Data::TurnEnded(ended) => Some(format!("{:?}", ended.outcome)),
        _ => None,
    };
    assert_eq!(log.iter().filter_map(ended).collect::<Vec<_>>(), ["Failed", "Completed"]);
}

#[tokio::test]
async fn what_has_settled_is_there_for_others() {
    let desk = Desk::new();
    let mut recorder = desk.record("s").unwrap();
    for record in &run("s", "first", "one")[..6] {
        recorder.write(bytes(std::slice::from_ref(record))).unwrap();
    }
    recorder.settle().unwrap();
    assert_eq!(texts(&desk.log("s").await.1), ["one"]);
}

#[tokio::test]
async fn what_could_not_be_stored_is_reported_and_leaves_no_gap() {
    let desk = Desk::new();
    let mut recorder = desk.record("s").unwrap();
    let records = run("s", "first", "one");
    recorder.write(bytes(&records[..5])).unwrap();
    recorder.settle().unwrap();
    // Another owner has taken the session.
    let connection = rusqlite::Connection::open(desk.store()).unwrap();
    let set_fence = |change| {
        let update = format!("UPDATE sessions SET fence = fence {change}");
        connection.execute(&update, []).unwrap();
    };
    set_fence("+ 1");
    recorder.write(bytes(&records[5..6])).unwrap();
    assert_eq!(recorder.settle().unwrap_err(), Error::StaleOwner(id("s")));
    set_fence("- 1");
    recorder.write(bytes(&records[6..])).unwrap();
    assert_eq!(recorder.finish().unwrap_err(), Error::StaleOwner(id("s")));
    let (_, log) = desk.log("s").await;
    assert!(is_gapless(&log));
    assert_eq!(texts(&log), [""; 0]);
}

/// The next run reads the whole write-ahead log before it starts.
#[test]
fn runs_leave_a_small_write_ahead_log() {
    let desk = Desk::new();
    let answer = "many words ".repeat(100_000);
    for prompt in 0..24 {
        let name = format!("s{prompt}");
        let mut recorder = desk.record(&name).unwrap();
        recorder.write(bytes(&run(&name, "go", &answer))).unwrap();
        recorder.finish().unwrap();
    }
    let log = desk.folder.path().join("sessions.db-wal");
    let size = std::fs::metadata(&log).map_or(0, |log| log.len());
    assert!(size < 12 << 20, "{size} bytes");
}

#[tokio::test]
async fn two_processes_cannot_store_one_session() {
    let desk = Desk::new();
    let recorder = desk.record("s").unwrap();
    assert_eq!(desk.record("s").map(drop).unwrap_err(), Error::Held(id("s")));
    let mut other = desk.record("other").unwrap();
    other.write(bytes(&run("other", "go", "done"))).unwrap();
    other.finish().unwrap();
    drop(recorder);
    desk.record("s").unwrap();
}

#[tokio::test]
async fn session_files_are_taken_over() {
    let desk = Desk::new();
    let folder = desk.folder.path().join("sessions");
    std::fs::create_dir(&folder).unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    let mut ended = run("kept", "first", "one");
    ended.push(numbered(9, json!({"type": "session_ended"})));
    // Two runs, the second of which was killed while it wrote a line.
    let cut = bytes(&run("kept", "second", "two")[..7]);
    write("kept.jsonl", &[bytes(&ended), cut[..cut.len() - 20].to_vec()].concat());
    write("no-session.jsonl", b"{}\n");
    write("notes.txt", b"not a session");
    let left = import_session_files(&desk.store(), &folder).unwrap();
    let names: Vec<_> = left.iter().map(|(path, _)| path.file_name().unwrap()).collect();
    assert_eq!(names, ["no-session.jsonl"]);
    assert!(!folder.join("kept.jsonl").exists() && folder.join("notes.txt").exists());
    let (record, log) = desk.log("kept").await;
    assert_eq!((&*record.agent, record.model.as_deref()), ("anthropic-api", Some("m")));
    assert_eq!((record.folder.as_deref(), record.title.as_deref()), (Some("/w"), Some("first")));
    assert_eq!((record.native_ids, record.state), (vec!["kept".to_owned()], State::Idle));
    assert!(is_gapless(&log), "{log:?}");
    assert_eq!(texts(&log), ["one", "two"]);
    assert!(!kinds(&log).contains(&"session_ended"));
    // It goes on like any other.
    let mut recorder = desk.record("kept").unwrap();
    recorder.write(bytes(&run("kept", "third", "three"))).unwrap();
    recorder.finish().unwrap();
    assert_eq!(texts(&desk.log("kept").await.1), ["one", "two", "three"]);
    nothing_is_imported_twice(&desk, &folder, &ended).await;
}

/// The file could not be removed the first time.
async fn nothing_is_imported_twice(desk: &Desk, folder: &Path, run: &[Value]) {
    std::fs::write(folder.join("kept.jsonl"), bytes(run)).unwrap();
    import_session_files(&desk.store(), folder).unwrap();
    assert_eq!(texts(&desk.log("kept").await.1), ["one", "two", "three"]);
    assert!(!folder.join("kept.jsonl").exists());
}

#[test]
fn a_session_file_in_use_stays() {
    let desk = Desk::new();
    let folder = desk.folder.path().join("sessions");
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("used.jsonl");
    std::fs::write(&path, bytes(&run("used", "go", "done"))).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    file.lock().unwrap();
    let left = import_session_files(&desk.store(), &folder).unwrap();
    assert!(left[0].1.contains("in use"), "{left:?}");
    drop(file);
    assert_eq!(import_session_files(&desk.store(), &folder).unwrap(), []);
}
