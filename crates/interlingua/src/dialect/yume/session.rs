//! The facts of the session, and the `init` that contains them.
//!
//! In the contract only the first record contains these facts, and it occurs once. Agents report
//! them one by one, so `init` is held back until another record has to be written.

use super::calls::names_json;
use super::names;
use crate::dialect::Output;
use crate::dialect::claude::{modes, tools as claude};
use crate::event::{SessionStarted, SessionUpdated, own_session};
use crate::json::Text;

/// The current session.
#[derive(Debug, Clone, Default)]
pub(super) struct Session {
    /// The facts for `init`.
    facts: SessionStarted<'static>,
    /// The id that was written last, after `init` was written.
    id: Option<Text<'static>>,
}

impl Session {
    /// Whether `init` was written.
    #[inline]
    pub(super) fn is_init_written(&self) -> bool {
        self.id.is_some()
    }

    /// Whether the id is known, or `init` was written without it.
    pub(super) fn has_id(&self) -> bool {
        self.id.is_some() || self.facts.id.is_some()
    }

    /// The id that was written last.
    pub(super) fn id(&self) -> Text<'_> {
        self.id.as_ref().map(Text::borrowed).unwrap_or_default()
    }

    /// Keeps the facts that are known at the start.
    pub(super) fn start(&mut self, started: &SessionStarted<'_>) {
        self.facts = own_session(started.clone());
    }

    /// Keeps facts that are reported before `init` is written.
    pub(super) fn update(&mut self, update: &SessionUpdated<'_>) {
        fn keep(known: &mut Option<Text<'static>>, new: &Option<Text<'_>>) {
            if let Some(new) = new {
                *known = Some(new.clone().into_owned());
            }
        }
        keep(&mut self.facts.id, &update.id);
        keep(&mut self.facts.model, &update.model);
        keep(&mut self.facts.cwd, &update.cwd);
        keep(&mut self.facts.permission_mode, &update.permission_mode);
        if let Some(tools) = &update.tools {
            self.facts.tools = Some(tools.clone().into_owned());
        }
    }

    /// Whether an id differs from the known one.
    pub(super) fn changes_id(&self, id: &Text<'_>) -> bool {
        let known = self.id.as_ref().or(self.facts.id.as_ref());
        known.is_some_and(|known| *known != names::short_id(id).0)
    }

    /// Sets the id after another one was written.
    pub(super) fn set_id(&mut self, id: &Text<'_>) {
        self.id = Some(names::short_id(id).0.into_owned());
    }

    /// Writes `init`, with a generated id if the agent has stated none.
    pub(super) fn write_init(&mut self, generate_id: impl FnOnce() -> String, out: &mut Output) {
        let facts = std::mem::take(&mut self.facts);
        let id = match &facts.id {
            Some(id) => names::id(id, out).into_owned(),
            None => Text::from(generate_id()),
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

/// The contract's name for a permission mode, or else Claude's, which Yume knows too.
fn permission_mode(mode: Option<&Text<'_>>, out: &mut Output) -> &'static str {
    let Some(mode) = mode.map(Text::to_plain) else { return "default" };
    let own = match &*mode {
        "interactive" => Some("interactive"),
        "auto" | "yolo" => Some("auto"),
        "deny" => Some("deny"),
        mode => modes::permission_mode(mode),
    };
    own.unwrap_or_else(|| {
        out.lost("permission modes of other agents");
        "default"
    })
}
