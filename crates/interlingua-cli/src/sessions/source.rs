//! Where sessions are: in a store on this machine, or on a server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use interlingua::Entry;
use interlingua_agents::{ClientToolServer, Config};
use interlingua_server::Session;
use interlingua_sessions::host::{Command, HostLimits};
use interlingua_sessions::{
    Acknowledgement, Durability, Filter, Host, IdempotencyKey, SessionId, SqliteStore, Store,
};
use serde_json::Value;

use super::local;
use super::remote::Remote;
use crate::serve::Agents;

/// How many bytes of a log are read at once.
const PAGE: usize = 256 << 10;

/// How often the store is read while another process may write it.
const POLL: Duration = Duration::from_millis(50);

/// A part of a log.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) entries: Vec<Entry>,
    /// The number of the entry after the last one.
    pub(super) next: u64,
    /// It reaches the end of the log, and nothing more follows.
    pub(super) closed: bool,
    /// It reaches the end of the log.
    pub(super) up_to_date: bool,
}

/// Where sessions are.
pub(super) enum Source {
    Local {
        store: Arc<dyn Store>,
        /// Runs the agent of a session that is sent something.
        host: Option<Host>,
    },
    Server(Remote),
}

impl Source {
    pub(super) fn open(server: Option<&str>, store: Option<&PathBuf>) -> Result<Self> {
        Ok(match server {
            Some(url) => Self::Server(Remote::new(url)?),
            None => {
                let store: SqliteStore = local::open(store, Durability::default())?;
                Self::Local { store: Arc::new(store), host: None }
            }
        })
    }

    /// The sessions, the ones that were used last first, as a server describes them.
    pub(super) async fn list(&self) -> Result<Vec<Value>> {
        match self {
            Self::Local { store, .. } => {
                let records = store.list(&Filter::default()).await?;
                records.into_iter().map(|record| described(record.into())).collect()
            }
            Self::Server(remote) => remote.list().await,
        }
    }

    /// A session, by its id or the beginning of it.
    pub(super) async fn find(&self, id: &str) -> Result<Value> {
        match self {
            Self::Local { store, .. } => described(local::find(&**store, id).await?.into()),
            Self::Server(remote) => match id.len() {
                // A short name cannot be a generated id, and is more likely the beginning of one.
                0..32 => remote.session(&complete(&remote.list().await?, id)?).await,
                _ => remote.session(id).await,
            },
        }
    }

    /// Reads on; with `waits`, until there may be something new.
    pub(super) async fn read(&self, id: &str, from: u64, waits: bool) -> Result<Page> {
        match self {
            Self::Local { store, .. } => read(&**store, id, from, waits).await,
            Self::Server(remote) => remote.read(id, from, waits).await,
        }
    }

    /// Sends a command. A session on this machine is run by this process from now on.
    pub(super) async fn command(
        &mut self,
        id: &str,
        key: &IdempotencyKey,
        command: &Command,
    ) -> Result<Acknowledgement> {
        match self {
            Self::Local { store, host } => {
                let id = SessionId::new(id)?;
                let record = local::find(&**store, id.as_str()).await?;
                let host = match host {
                    Some(host) => host,
                    None => {
                        // No one looks at the requests of the agent.
                        let limits = HostLimits { attended: false, ..HostLimits::default() };
                        let programs = vec![record.agent.into()];
                        let tools = ClientToolServer::start()?;
                        let agents = Agents::new(Config::default(), programs, None, tools);
                        host.insert(Host::new(Arc::clone(store), Arc::new(agents), limits))
                    }
                };
                Ok(host.command(&id, key.clone(), command.clone()).await?)
            }
            Self::Server(remote) => remote.command(id, key, command).await,
        }
    }

    pub(super) async fn delete(&self, id: &str) -> Result<()> {
        match self {
            Self::Local { store, .. } => Ok(store.delete(&SessionId::new(id)?).await.map(drop)?),
            Self::Server(remote) => remote.delete(id).await,
        }
    }

    /// Ends what this process runs.
    pub(super) async fn end(self) {
        if let Self::Local { host: Some(host), .. } = self {
            host.shutdown().await;
        }
    }
}

async fn read(store: &dyn Store, id: &str, from: u64, waits: bool) -> Result<Page> {
    let id = SessionId::new(id)?;
    loop {
        let page = store.read(&id, from, PAGE).await?;
        if page.next > from || page.tail.closed || !waits {
            let lines = page.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            let entries = lines.map(serde_json::from_slice).collect::<Result<_, _>>();
            let entries = entries.with_context(|| format!("the log of the session {id}"))?;
            let up_to_date = page.next >= page.tail.next;
            let closed = up_to_date && page.tail.closed;
            return Ok(Page { entries, next: page.next, closed, up_to_date });
        }
        tokio::time::sleep(POLL).await;
    }
}

fn described(session: Session) -> Result<Value> {
    Ok(serde_json::to_value(session)?)
}

/// The id that begins in this way.
fn complete(sessions: &[Value], beginning: &str) -> Result<String> {
    let ids = sessions.iter().filter_map(|session| session.get("id")?.as_str());
    let found: Vec<_> = ids.filter(|id| id.starts_with(beginning)).collect();
    match found[..] {
        [one] => Ok(one.to_owned()),
        [] => bail!("the server has no session {beginning:?}"),
        _ if found.contains(&beginning) => Ok(beginning.to_owned()),
        _ => bail!("several sessions begin with {beginning:?}: give more of the id"),
    }
}
