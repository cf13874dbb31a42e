//! What is known of the session, and the `init` that tells it.
//!
//! The contract has room for these facts in one place only: the first record, which comes once. Agents
//! tell them bit by bit, so that `init` waits until something else has to be written.

use super::calls::names_json;
use super::names;
use crate::dialect::Output;
use crate::dialect::claude::{modes, tools as claude};
use crate::event::{SessionStarted, SessionUpdated, own_session};
use crate::json::Text;

/// The session at hand.
#[derive(Debug, Clone, Default)]
pub(super) struct Session {
    /// The facts that `init` will tell.
    facts: SessionStarted<'static>,
    /// The id that was told last, once `init` was written.
    id: Option<Text<'static>>,
}

impl Session {
    /// Whether `init` was written.
    #[inline]
    pub(super) fn is_told(&self) -> bool {
        self.id.is_some()
    }

    /// Whether the id is known, or `init` was written without it.
    pub(super) fn is_named(&self) -> bool {
        self.id.is_some() || self.facts.id.is_some()
    }

    /// The id that was told last.
    pub(super) fn id(&self) -> Text<'_> {
        self.id.as_ref().map(Text::borrowed).unwrap_or_default()
    }

    /// Keeps what is known at the start.
    pub(super) fn started(&mut self, started: &SessionStarted<'_>) {
        self.facts = own_session(started.clone());
    }

    /// Keeps what became known before `init` was written.
    pub(super) fn learn(&mut self, news: &SessionUpdated<'_>) {
        fn keep(known: &mut Option<Text<'static>>, news: &Option<Text<'_>>) {
            if let Some(news) = news {
                *known = Some(news.clone().into_owned());
            }
        }
        keep(&mut self.facts.id, &news.id);
        keep(&mut self.facts.model, &news.model);
        keep(&mut self.facts.cwd, &news.cwd);
        keep(&mut self.facts.permission_mode, &news.permission_mode);
        if let Some(tools) = &news.tools {
            self.facts.tools = Some(tools.clone().into_owned());
        }
    }

    /// Whether an id is another one than the one that is known.
    pub(super) fn is_renamed_by(&self, id: &Text<'_>) -> bool {
        let known = self.id.as_ref().or(self.facts.id.as_ref());
        known.is_some_and(|known| *known != names::short_id(id).0)
    }

    /// Notes that another id was told.
    pub(super) fn renamed(&mut self, id: &Text<'_>) {
        self.id = Some(names::short_id(id).0.into_owned());
    }

    /// Writes `init`, with an id of our own where the agent has told none.
    pub(super) fn write_init(&mut self, own_id: impl FnOnce() -> String, out: &mut Output) {
        let facts = std::mem::take(&mut self.facts);
        let id = match &facts.id {
            Some(id) => names::id(id, out).into_owned(),
            None => Text::from(own_id()),
        };
        let tools = facts.tools.as_ref().map(claude::translate_names).unwrap_or_default();
        let (tools, left_out) = names_json(&tools);
        for _ in 0..left_out {
            out.lost("name of a tool over the line limit");
        }
        let mode = permission_mode(facts.permission_mode.as_ref(), out);
        let mut or = |text: &Option<Text<'_>>, default: &'static str| match text {
            Some(text) => names::name(text, out).into_owned(),
            None => Text::plain(default),
        };
        let (model, cwd) = (or(&facts.model, "unknown"), or(&facts.cwd, ""));
        let mut record = out.record("system");
        record.string("subtype", "init");
        record.text("session_id", &id);
        record.text("model", &model);
        record.text("cwd", &cwd);
        record.string("permissionMode", mode);
        record.raw_bytes("tools", &tools);
        record.end();
        self.id = Some(id);
    }
}

/// The contract's word for what the agent may do without asking, or else Claude's, which Yume knows too.
fn permission_mode(told: Option<&Text<'_>>, out: &mut Output) -> &'static str {
    let Some(told) = told.map(Text::to_plain) else { return "default" };
    let own = match &*told {
        "interactive" => Some("interactive"),
        "auto" | "yolo" => Some("auto"),
        "deny" => Some("deny"),
        told => modes::permission_mode(told),
    };
    own.unwrap_or_else(|| {
        out.lost("permission mode of another agent");
        "default"
    })
}
