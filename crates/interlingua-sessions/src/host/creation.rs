//! How a session is created: once for each request, however often that is sent.

use std::time::Duration;

use interlingua_agents::ClientTool;
use serde_json::{Map, Value};

use super::{Command, Host, detached, random_seed};
use crate::store::system_clock;
use crate::{Error, Filter, IdempotencyKey, Patch, SessionId, SessionRecord, State};

/// The key of the prompt with which a session is created.
const FIRST_PROMPT: &str = "first-prompt";

/// The fact that names the sandbox of an agent that runs elsewhere.
pub(super) const SANDBOX: &str = "sandboxId";

/// The fact of the host that identifies the request which created a session.
const REQUEST: &str = "request";

/// A session that is to be created.
#[derive(Debug, Clone, Default)]
pub struct NewSession {
    /// The agent's name.
    pub agent: String,
    /// The first prompt.
    pub prompt: Option<String>,
    /// Identifies the request: with the same key, the same owner gets the same session.
    pub key: Option<IdempotencyKey>,
    /// The folder in which the agent works.
    pub folder: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The permission mode.
    pub mode: Option<String>,
    /// What the caller attaches.
    pub metadata: Map<String, Value>,
    /// The tools that the client runs. Without any, a session has those of the one that it continues.
    pub tools: Vec<ClientTool>,
    /// The closed session that this one continues.
    pub continues: Option<SessionId>,
    /// Whose session it is.
    pub owner: Option<String>,
    /// How long it is kept after its last use, if that differs from the host's limit.
    pub ttl: Option<Duration>,
    /// The request as its sender wrote it, if something here is added by settings, which may be others when
    /// it is sent again. With the same key, it has to be the same.
    pub request: Option<Value>,
}

impl NewSession {
    /// Identifies the request, so that the same key with another request is noticed.
    fn fingerprint(&self) -> String {
        if let Some(request) = &self.request {
            return SessionId::derived(&["request", &request.to_string()]).to_string();
        }
        let Self { agent, prompt, key: _, folder, model, mode, metadata, .. } = self;
        let Self { tools, continues, owner, ttl, request: _, .. } = self;
        let tools = serde_json::to_string(tools).ok().filter(|_| !tools.is_empty());
        let ttl = ttl.map(|ttl| ttl.as_millis().to_string());
        let metadata = Value::Object(metadata.clone()).to_string();
        let optional = [
            prompt.as_deref(),
            folder.as_deref(),
            model.as_deref(),
            mode.as_deref(),
            continues.as_ref().map(SessionId::as_str),
            owner.as_deref(),
            ttl.as_deref(),
            tools.as_deref(),
        ];
        let marks = optional.map(|value| if value.is_some() { "given" } else { "absent" });
        let values = optional.map(Option::unwrap_or_default);
        let words: Vec<_> = [&**agent, &*metadata].into_iter().chain(marks).chain(values).collect();
        SessionId::derived(&words).to_string()
    }
}

impl Host {
    /// Creates a session, and sends it its first prompt, if it has one.
    pub async fn create(&self, new: NewSession) -> Result<SessionRecord, Error> {
        let host = self.clone();
        detached(async move { host.create_now(new).await }).await
    }

    async fn create_now(&self, new: NewSession) -> Result<SessionRecord, Error> {
        let request = new.fingerprint();
        let now = system_clock()();
        let id = match &new.key {
            Some(key) => id_of(new.owner.as_deref(), key),
            None => SessionId::random()?,
        };
        // What has changed since then does not matter to a request that is sent again.
        if let Some(key) = &new.key
            && let Some(known) = self.shared.store.load(&id).await?
        {
            let known = of_request(known, &request, key)?;
            // Another one may continue the earlier session since this one was closed.
            let continues = new.continues.filter(|_| known.state != State::Ended);
            self.begin(&id, continues, new.prompt, new.key).await?;
            return Ok(known);
        }
        let mut record = SessionRecord::new(id, new.agent, now);
        let ttl = new.ttl.or(self.shared.limits.ttl);
        record.ttl_ms = ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        (record.folder, record.model, record.mode) = (new.folder, new.model, new.mode);
        (record.metadata, record.owner, record.tools) = (new.metadata, new.owner, new.tools);
        record.id_seed = random_seed()?;
        record.title = new.prompt.as_deref().map(crate::record::title);
        record.state = if new.prompt.is_some() { State::Starting } else { State::Idle };
        record.host.insert(REQUEST.to_owned(), request.clone().into());
        if let Some(earlier) = &new.continues {
            self.continue_from(&mut record, earlier).await?;
        }
        self.shared.launcher.check(&record).map_err(Error::NotLaunched)?;
        let is_new = match self.shared.store.create(record.clone()).await {
            Err(Error::Exists(id)) => {
                let known = self.shared.store.load(&id).await?;
                let known = known.ok_or_else(|| Error::NotFound(id.clone()))?;
                record = match &new.key {
                    Some(key) => of_request(known, &request, key)?,
                    None => known,
                };
                false
            }
            created => created.map(|()| true)?,
        };
        let begun = self.begin(&record.id, new.continues, new.prompt, new.key).await;
        if let Err(error) = begun {
            if is_new {
                // The caller does not learn its id. If it cannot be deleted either, the same request finds it.
                let _ = self.delete(&record.id).await;
            }
            return Err(error);
        }
        Ok(record)
    }

    /// Completes a session that was created: notes which one it continues, and sends it its first prompt.
    async fn begin(
        &self,
        id: &SessionId,
        continues: Option<SessionId>,
        prompt: Option<String>,
        key: Option<IdempotencyKey>,
    ) -> Result<(), Error> {
        if let Some(earlier) = continues {
            let patch = Patch { continued_by: Some(id.clone()), ..Patch::default() };
            match self.shared.store.update(&earlier, patch).await {
                // It may have been deleted since the request was sent for the first time.
                Err(Error::NotFound(_)) => {}
                updated => drop(updated?),
            }
        }
        if let Some(text) = prompt {
            let key = key.map_or_else(|| IdempotencyKey::new(FIRST_PROMPT), Ok)?;
            self.command(id, key, Command::prompt(text)).await?;
        }
        Ok(())
    }

    /// The session that a request with this key has created.
    pub async fn created(
        &self,
        owner: Option<&str>,
        key: &IdempotencyKey,
    ) -> Result<Option<SessionRecord>, Error> {
        self.shared.store.load(&id_of(owner, key)).await
    }

    /// Takes over what a closed session knows.
    async fn continue_from(
        &self,
        record: &mut SessionRecord,
        earlier: &SessionId,
    ) -> Result<(), Error> {
        let found = self.shared.store.load(earlier).await?;
        let found = found.filter(|found| record.owner.is_none() || found.owner == record.owner);
        let before = found.ok_or_else(|| Error::NotFound(earlier.clone()))?;
        if before.state != State::Ended {
            return Err(Error::NotClosed(earlier.clone()));
        }
        if record.agent.is_empty() {
            record.agent = before.agent.clone();
        }
        record.folder = record.folder.take().or(before.folder);
        record.model = record.model.take().or(before.model);
        record.mode = record.mode.take().or(before.mode);
        if record.tools.is_empty() {
            record.tools = before.tools;
        }
        if record.agent == before.agent {
            record.native_ids = before.native_ids;
            // The agent's session is continued where it was.
            let sandbox = before.host.get_key_value(SANDBOX);
            record.host.extend(sandbox.map(|(name, id)| (name.clone(), id.clone())));
        }
        record.continues = Some(earlier.clone());
        self.check_native_session(record, earlier).await
    }

    /// Refuses a session of the agent that is open in another session, by whichever way that one came to it.
    async fn check_native_session(
        &self,
        record: &SessionRecord,
        earlier: &SessionId,
    ) -> Result<(), Error> {
        let Some(native) = record.native_ids.last() else { return Ok(()) };
        let known = self.shared.store.list(&Filter::default()).await?;
        let is_open_in = |other: &SessionRecord| {
            other.state != State::Ended
                && other.id != record.id
                && other.agent == record.agent
                && other.native_ids.contains(native)
        };
        match known.into_iter().find(is_open_in) {
            Some(other) => Err(Error::Continued { id: earlier.clone(), by: other.id }),
            None => Ok(()),
        }
    }
}

/// The id of the session that a request with this key creates.
fn id_of(owner: Option<&str>, key: &IdempotencyKey) -> SessionId {
    SessionId::derived(&[owner.unwrap_or(""), key.as_str()])
}

/// The session that was created with a key, if it was by the same request.
fn of_request(
    known: SessionRecord,
    request: &str,
    key: &IdempotencyKey,
) -> Result<SessionRecord, Error> {
    match known.host.get(REQUEST).and_then(Value::as_str) == Some(request) {
        true => Ok(known),
        false => Err(Error::KeyReused(key.as_str().to_owned())),
    }
}
