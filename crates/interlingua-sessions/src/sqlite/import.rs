//! Takes over sessions that an earlier version has stored as files.
//!
//! A file has the records of one session in the dialect `events`. Each run began its numbers anew, so
//! the runs are read as the streams of one session.

use std::fs::{self, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use interlingua::event::Data;
use interlingua::{Entry, EntryRef, Exit, ReadOptions, Reader, Source, StreamEnd, dialect};
use rusqlite::{Connection, TransactionBehavior};
use serde::Deserialize;

use super::holder::Holder;
use super::{failed, open, operations};
use crate::log;
use crate::store::system_clock;
use crate::{Commit, Error, Patch, SessionId, SessionRecord, State};

/// Takes over the session files of a folder into the store at `path`, and removes them. A file that is
/// in use, or that is no session, stays where it is; its name and the reason are returned.
pub fn import_session_files(path: &Path, folder: &Path) -> Result<Vec<(PathBuf, String)>, Error> {
    let files = session_files(folder);
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let (mut connection, holder) = open(path)?;
    // A file is removed only when the disk has its session.
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    let mut left = Vec::new();
    for file in files {
        if let Err(problem) = import(&mut connection, &holder, &file) {
            left.push((file, problem.to_string()));
        }
    }
    Ok(left)
}

fn session_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl")).collect()
}

/// Takes over one file. It is removed once the store has the session.
fn import(connection: &mut Connection, holder: &Holder, path: &Path) -> Result<(), Error> {
    let problem = |problem: io::Error| Error::Failed(problem.to_string());
    let file = fs::File::open(path).map_err(problem)?;
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        return Err(Error::Failed("it is in use by another process".to_owned()));
    }
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let id = SessionId::new(name)?;
    let bytes = fs::read(path).map_err(problem)?;
    let changed = file.metadata().and_then(|found| found.modified()).ok();
    let since_1970 = changed.and_then(|changed| changed.duration_since(UNIX_EPOCH).ok());
    let changed = since_1970.and_then(|age| u64::try_from(age.as_millis()).ok()).unwrap_or(0);
    let mut record = SessionRecord::new(id.clone(), "", changed);
    record.id_seed = crate::host::random_seed()?;
    let entries = read_runs(&bytes, &mut record)?;
    if record.agent.is_empty() {
        return Err(Error::Failed("it contains no session".to_owned()));
    }
    let now = system_clock()();
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    // One that is stored already was taken over before, and the file could not be removed then.
    if operations::find(&transaction, &id, now)?.is_none() {
        operations::create(&transaction, &record, now)?;
        let fence = operations::claim(&transaction, &id, holder, now)?;
        let patch = Patch { state: Some(State::Idle), ..Patch::default() };
        let commit = Commit { entries: entries.into(), patch, ..Commit::default() };
        operations::commit(&transaction, &id, fence, &commit, changed)?;
        operations::release(&transaction, &id, fence)?;
    }
    transaction.commit().map_err(failed)?;
    fs::remove_file(path).map_err(problem)
}

/// Reads the runs of a session, and completes its record from them.
fn read_runs(bytes: &[u8], record: &mut SessionRecord) -> Result<Vec<Entry>, Error> {
    let events = || Source::Dialect(&dialect::events::DIALECT);
    let wrong = |problem: interlingua::Error| Error::Failed(problem.to_string());
    let options = ReadOptions { id_seed: Some(record.id_seed), ..ReadOptions::default() };
    let mut reader = Reader::new(events(), options).map_err(wrong)?;
    let mut entries = Vec::new();
    for (number, run) in runs(bytes).into_iter().enumerate() {
        let mut keep = |entry: EntryRef<'_>| {
            complete(record, &entry.event.data);
            // The end of a run is not that of its session.
            if !matches!(entry.event.data, Data::SessionEnded(_)) {
                entries.push(entry.to_owned());
            }
        };
        if number > 0 {
            reader.next_stream(events()).map_err(wrong)?;
        }
        let Ok(_) = reader.push(run, None, &mut keep);
        let exit = Exit { stopped: Some(log::lost()), ..Exit::default() };
        let Ok(_) = reader.end_stream(StreamEnd::Exit(&exit), None, &mut keep);
    }
    for (number, entry) in (0..).zip(&mut entries) {
        entry.sequence = number;
    }
    Ok(entries)
}

/// The runs of a file: each begins with the first number.
fn runs(bytes: &[u8]) -> Vec<&[u8]> {
    #[derive(Deserialize)]
    struct Numbered {
        sequence: u64,
    }
    let (mut runs, mut start, mut at) = (Vec::new(), 0, 0);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let is_first =
            serde_json::from_slice(line).is_ok_and(|Numbered { sequence }| sequence == 0);
        if is_first && at > start {
            runs.extend(bytes.get(start..at));
            start = at;
        }
        at += line.len();
    }
    runs.extend(bytes.get(start..).filter(|run| !run.is_empty()));
    runs
}

fn complete(record: &mut SessionRecord, data: &Data<'_>) {
    match data {
        Data::SessionStarted(started) => {
            let text =
                |text: &Option<interlingua::json::Text<'_>>| text.as_ref().map(ToString::to_string);
            record.agent =
                text(&started.agent).unwrap_or_else(|| std::mem::take(&mut record.agent));
            record.model = text(&started.model).or(record.model.take());
            record.folder = text(&started.cwd).or(record.folder.take());
            record.native_ids = vec![record.id.to_string()];
        }
        Data::UserMessage(message) if record.title.is_none() => {
            record.title = Some(crate::record::title(&message.text.to_plain()));
        }
        _ => {}
    }
}
