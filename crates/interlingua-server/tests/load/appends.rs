//! Appends to the logs of many sessions in a SQLite file, and prints how fast that is.
//!
//! Usage: load-appends FILE SESSIONS ENTRIES_PER_COMMIT SECONDS
//!
//! Each session has an owner that commits, waits for the answer and commits again, as the owner of a
//! live session does. Prints the number of stored entries, of commits, and the seconds that they took.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use interlingua::event::{BlockDelta, Event};
use interlingua::json::Text;
use interlingua::{Entry, Origin};
use interlingua_sessions::{
    Commit, Durability, SessionId, SessionRecord, SqliteStore, State, Store,
};

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
#[allow(clippy::print_stdout, reason = "the result is printed")]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("FILE SESSIONS ENTRIES_PER_COMMIT SECONDS");
    let path = PathBuf::from(next()?);
    let (sessions, per_commit): (usize, u64) = (next()?.parse()?, next()?.parse()?);
    let period = Duration::from_secs(next()?.parse()?);
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path, Durability::default())?);
    let mut owned = Vec::new();
    for number in 0..sessions {
        let id = SessionId::new(format!("session-{number}"))?;
        let record = SessionRecord::new(id.clone(), "agent", 0);
        owned.push((id, SessionRecord { state: State::Working, ..record }));
    }
    let claimed = owned.into_iter().map(|(id, record)| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            store.create(record).await?;
            let fence = store.claim(&id).await?;
            Ok::<_, interlingua_sessions::Error>((id, fence))
        })
    });
    let mut fences = Vec::new();
    for claimed in claimed.collect::<Vec<_>>() {
        fences.push(claimed.await??);
    }
    let begun = Instant::now();
    let owners = fences.into_iter().map(|(id, fence)| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let mut stored = 0;
            while begun.elapsed() < period {
                let entries = (stored..stored + per_commit).map(entry).collect();
                let commit = Commit { entries, ..Commit::default() };
                stored = store.commit(&id, fence, commit).await?.next;
            }
            Ok::<_, interlingua_sessions::Error>(stored)
        })
    });
    let mut stored = 0;
    for owner in owners.collect::<Vec<_>>() {
        stored += owner.await??;
    }
    println!("{stored} {} {}", stored / per_commit, begun.elapsed().as_secs_f64());
    Ok(())
}

/// A delta, as a model writes it.
fn entry(sequence: u64) -> Entry {
    let text = Text::from(format!("word {sequence} "));
    let delta =
        BlockDelta { message: Some(Text::from("msg_1".to_owned())), text, ..Default::default() };
    Entry {
        sequence,
        received_at: Some(1_790_000_000_000),
        epoch: 0,
        origin: Origin {
            line: sequence,
            bytes: sequence * 300..sequence * 300 + 299,
            added: false,
        },
        event: Event::new(delta),
        raw: None,
    }
}
