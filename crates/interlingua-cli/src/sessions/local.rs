//! The store of this user's sessions.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use interlingua_agents::api::{SessionLog, SessionStore, StoredRun};
use interlingua_sessions::{
    Durability, Filter, SessionId, SessionRecord, SessionRecorder, SqliteStore, Store,
    import_session_files,
};

use crate::report;

/// How many bytes of a log are read at once.
const PAGE: usize = 1 << 20;

/// The file of the store, if this user has a home folder.
pub(crate) fn path() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let data = set("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || set("HOME").or_else(|| set("USERPROFILE")).map(PathBuf::from);
    let data = data.or_else(|| home().map(|home| home.join(".local/share")))?;
    Some(data.join("interlingua").join("sessions.db"))
}

/// Opens a store: the given one, or that of this user. Sessions that an earlier version has stored as
/// files are taken over into the latter.
pub(crate) fn open(given: Option<&PathBuf>, durability: Durability) -> Result<SqliteStore> {
    let path = match given {
        Some(path) => path.clone(),
        None => {
            let path = path().context("no home folder is set: name a file with --store")?;
            import(&path)?;
            path
        }
    };
    Ok(SqliteStore::open(&path, durability)?)
}

/// Takes over the session files of an earlier version.
fn import(path: &Path) -> Result<()> {
    for (file, why) in import_session_files(path, &path.with_extension(""))? {
        report::warning(&format!("{} is left as it is: {why}", file.display()));
    }
    Ok(())
}

/// A stored session, by its id or the beginning of it, or by the agent's own id for it.
pub(crate) async fn find(store: &dyn Store, id: &str) -> Result<SessionRecord> {
    if let Ok(exact) = SessionId::new(id)
        && let Some(record) = store.load(&exact).await?
    {
        return Ok(record);
    }
    let all = store.list(&Filter::default()).await?;
    let named = |record: &SessionRecord| {
        let is_own = record.native_ids.iter().any(|own| own == id);
        !id.is_empty() && (record.id.as_str().starts_with(id) || is_own)
    };
    let mut found = all.into_iter().filter(named);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => bail!("there is no stored session {id:?}: `interlingua sessions` lists them"),
        (Some(_), Some(_)) => {
            bail!("several stored sessions begin with {id:?}: give more of the id")
        }
    }
}

/// The id and the log of a stored session.
pub(crate) fn log(id: &str) -> Result<(SessionId, Vec<u8>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let store = open(None, Durability::default())?;
        let record = find(&store, id).await?;
        let (mut log, mut next) = (Vec::new(), 0);
        loop {
            let page = store.read(&record.id, next, PAGE).await?;
            log.extend_from_slice(&page.lines);
            if page.next >= page.tail.next || page.next == next {
                return Ok((record.id, log));
            }
            next = page.next;
        }
    })
}

/// Stores the sessions of runs in the store of this user. `resumed` is the session that a run goes on
/// with.
pub(crate) fn runs(resumed: Option<SessionId>) -> Result<Option<Arc<dyn SessionStore>>> {
    let Some(path) = path() else { return Ok(None) };
    import(&path)?;
    Ok(Some(Arc::new(Runs { path, resumed })))
}

#[derive(Debug)]
struct Runs {
    path: PathBuf,
    resumed: Option<SessionId>,
}

impl SessionStore for Runs {
    fn open(&self, run: &StoredRun<'_>) -> io::Result<Box<dyn SessionLog>> {
        let id = match &self.resumed {
            Some(id) => id.clone(),
            None => SessionId::new(run.session).map_err(io::Error::other)?,
        };
        let mut record = SessionRecord::new(id, run.agent, now_ms());
        record.model = Some(run.model.to_owned());
        record.folder = Some(run.folder.display().to_string());
        record.native_ids = vec![run.session.to_owned()];
        // JSON numbers are exact up to here.
        record.id_seed = run.id_seed >> 11;
        let recorder = SessionRecorder::open(&self.path, record).map_err(io::Error::other)?;
        Ok(Box::new(Recorded(recorder)))
    }
}

struct Recorded(SessionRecorder);

impl SessionLog for Recorded {
    fn write(&mut self, records: Vec<u8>) -> io::Result<()> {
        self.0.write(records).map_err(io::Error::other)
    }

    fn settle(&mut self) -> io::Result<()> {
        self.0.settle().map_err(io::Error::other)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.0.finish().map_err(io::Error::other)
    }
}

fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.ok().and_then(|now| u64::try_from(now.as_millis()).ok()).unwrap_or_default()
}
