//! What is known of a session besides its log.

use interlingua_agents::ClientTool;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::SessionId;

/// The longest title, in characters.
const LONGEST_TITLE: usize = 80;

/// The record of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRecord {
    /// Our id, which stays the same for all runs of the agent.
    pub id: SessionId,
    /// The agent's name.
    pub agent: String,
    /// The beginning of the first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The model, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The folder in which the agent works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The permission mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The agent's own ids for the session, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub native_ids: Vec<String>,
    /// What the host knows: the sandbox, the relay, a snapshot.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub host: Map<String, Value>,
    /// What the caller attached.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The tools that the client of the session runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ClientTool>,
    /// What the session is doing.
    #[serde(default)]
    pub state: State,
    /// Whose session it is; others do not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The seed of the ids that writers generate.
    #[serde(default)]
    pub id_seed: u64,
    /// The session that this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<SessionId>,
    /// The session that continues this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued_by: Option<SessionId>,
    /// How long it is kept after its last use, in milliseconds; without it, for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// When it was created, in milliseconds since 1970.
    pub created_at: u64,
    /// When its record or its log changed last.
    pub updated_at: u64,
    /// When it was used last: by a command, an append or a reader.
    pub used_at: u64,
}

/// The title of a session that begins with a prompt: its first line, or the beginning of that.
pub(crate) fn title(prompt: &str) -> String {
    let line = prompt.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut title: String = line.chars().take(LONGEST_TITLE).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    title
}

/// What a session is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "state")]
#[non_exhaustive]
pub enum State {
    /// The agent is being started.
    #[default]
    Starting,
    /// A turn is running.
    Working,
    /// A turn is running, and waits for answers.
    Waiting {
        /// What it waits for.
        waiting: Vec<Waiting>,
    },
    /// The session waits for a prompt.
    Idle,
    /// The session was closed, and takes no more commands.
    Ended,
}

impl State {
    /// The names of all states, in the order in which a session has them.
    pub const NAMES: [&str; 5] = ["starting", "working", "waiting", "idle", "ended"];

    /// Its name, as it is stored.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Working => "working",
            Self::Waiting { .. } => "waiting",
            Self::Idle => "idle",
            Self::Ended => "ended",
        }
    }

    /// Whether the session may expire.
    pub fn may_expire(&self) -> bool {
        matches!(self, Self::Idle | Self::Ended)
    }
}

/// What a session waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "for")]
#[non_exhaustive]
pub enum Waiting {
    /// A decision about a permission request.
    Decision {
        /// The id of the request.
        request: String,
    },
    /// An answer to a question.
    Answer {
        /// The id of the request.
        request: String,
    },
    /// The result of a tool of the client.
    ClientTool {
        /// The id of the call.
        request: String,
        /// The tool.
        tool: String,
    },
}

impl Waiting {
    /// The id by which it is answered.
    pub fn request(&self) -> &str {
        match self {
            Self::Decision { request }
            | Self::Answer { request }
            | Self::ClientTool { request, .. } => request,
        }
    }
}

/// A partial change of a record. What is absent stays as it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Patch {
    /// The title, if there is none yet.
    pub title: Option<String>,
    /// Another model.
    pub model: Option<String>,
    /// Another permission mode.
    pub mode: Option<String>,
    /// A further id of the agent's own.
    pub native_id: Option<String>,
    /// Facts of the host; a fact that is null is removed.
    pub host: Map<String, Value>,
    /// Another state.
    pub state: Option<State>,
    /// The session that continues this one.
    pub continued_by: Option<SessionId>,
}

impl Patch {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl SessionRecord {
    /// A record for a new session.
    pub fn new(id: SessionId, agent: impl Into<String>, now_ms: u64) -> Self {
        Self {
            id,
            agent: agent.into(),
            title: None,
            model: None,
            folder: None,
            mode: None,
            native_ids: Vec::new(),
            host: Map::new(),
            metadata: Map::new(),
            tools: Vec::new(),
            state: State::Starting,
            owner: None,
            id_seed: 0,
            continues: None,
            continued_by: None,
            ttl_ms: None,
            created_at: now_ms,
            updated_at: now_ms,
            used_at: now_ms,
        }
    }

    /// Whether it has expired at a time.
    pub fn is_expired(&self, now_ms: u64) -> bool {
        let ttl = self.ttl_ms.filter(|_| self.state.may_expire());
        ttl.is_some_and(|ttl| self.used_at.saturating_add(ttl) <= now_ms)
    }

    /// Applies a change.
    pub fn apply(&mut self, patch: &Patch) {
        let Patch { title, model, mode, native_id, host, state, continued_by } = patch;
        self.title = self.title.take().or_else(|| title.clone());
        self.model = model.clone().or(self.model.take());
        self.mode = mode.clone().or(self.mode.take());
        if let Some(native) = native_id
            && self.native_ids.last() != Some(native)
        {
            self.native_ids.retain(|known| known != native);
            self.native_ids.push(native.clone());
        }
        for (name, fact) in host {
            match fact {
                Value::Null => drop(self.host.remove(name)),
                fact => drop(self.host.insert(name.clone(), fact.clone())),
            }
        }
        if let Some(state) = state {
            self.state = state.clone();
        }
        self.continued_by = continued_by.clone().or(self.continued_by.take());
    }
}

/// Which sessions are listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only those of this owner.
    pub owner: Option<String>,
    /// At most this many, the ones that were used last.
    pub limit: Option<usize>,
    /// Only those that follow this one in the list.
    pub after: Option<Place>,
}

/// The place of a session in a list: when it was used last, and its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// When it was used last, in milliseconds since 1970.
    pub used_at: u64,
    /// The session.
    pub id: SessionId,
}

impl Filter {
    /// Whether a session is one of those that are listed, if there is no limit.
    pub(crate) fn contains(&self, record: &SessionRecord) -> bool {
        let follows = |place: &Place| {
            record.used_at < place.used_at
                || (record.used_at == place.used_at && record.id > place.id)
        };
        let is_own = self.owner.is_none() || self.owner == record.owner;
        is_own && self.after.as_ref().is_none_or(follows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> SessionRecord {
        SessionRecord::new(SessionId::new("s").unwrap(), "codex", 1000)
    }

    #[test]
    fn only_a_session_that_rests_expires() {
        let mut record = SessionRecord { ttl_ms: Some(600), ..record() };
        let waiting = State::Waiting { waiting: Vec::new() };
        for (state, expires) in [
            (State::Starting, false),
            (State::Working, false),
            (waiting, false),
            (State::Idle, true),
            (State::Ended, true),
        ] {
            record.state = state;
            assert!(!record.is_expired(1599));
            assert_eq!(record.is_expired(1600), expires, "{:?}", record.state);
        }
        record.ttl_ms = None;
        assert!(!record.is_expired(u64::MAX));
    }

    #[test]
    fn a_patch_changes_what_it_names() {
        let mut record = record();
        let host = |value: Value| Map::from_iter([("sandboxId".to_owned(), value)]);
        record.apply(&Patch {
            model: Some("m".to_owned()),
            native_id: Some("one".to_owned()),
            host: host("box".into()),
            ..Patch::default()
        });
        record.apply(&Patch {
            native_id: Some("two".to_owned()),
            state: Some(State::Idle),
            ..Patch::default()
        });
        record.apply(&Patch { native_id: Some("one".to_owned()), ..Patch::default() });
        assert_eq!(record.model.as_deref(), Some("m"));
        assert_eq!(record.native_ids, ["two", "one"]);
        assert_eq!(record.state, State::Idle);
        assert_eq!(record.host, host("box".into()));
        record.apply(&Patch { host: host(Value::Null), ..Patch::default() });
        assert!(record.host.is_empty());
    }

    #[test]
    fn the_title_is_the_beginning_of_the_first_prompt() {
        assert_eq!(title("\n  fix it \nplease"), "fix it");
        assert_eq!(title(&"ä".repeat(100)), format!("{}…", "ä".repeat(80)));
        let mut record = record();
        record.apply(&Patch { title: Some("one".to_owned()), ..Patch::default() });
        record.apply(&Patch { title: Some("two".to_owned()), ..Patch::default() });
        assert_eq!(record.title.as_deref(), Some("one"));
    }

    #[test]
    fn a_record_survives_its_json_form() {
        let waiting = vec![Waiting::Decision { request: "r".to_owned() }];
        let record = SessionRecord { state: State::Waiting { waiting }, ..record() };
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<SessionRecord>(&json).unwrap(), record);
    }
}
