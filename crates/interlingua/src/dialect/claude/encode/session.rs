//! Writes the session: the `init` at the start of a turn, with the facts that are known then.
//!
//! Agents may report the facts of a session one by one, before the first message. Every record
//! states the session, so nothing is written before the first `init`, which is held back until the
//! model is known, or until an event of the conversation. Only an `init` changes the session id,
//! with one exception: if the `init` had to generate the id, and the agent reports it later, the
//! `result` has the agent's id.

use super::{ClaudeEncoder, Turn};
use crate::dialect::claude::result::write_names;
use crate::dialect::claude::{modes, tools};
use crate::dialect::{Encoder, Output};
use crate::event::{Data, Event, SessionEnded, SessionStarted, SessionUpdated, own_session};
use crate::json::write;
use crate::json::{Json, Text};

/// The number of events that are held back until the first `init`.
const MAX_HELD: usize = 100;

/// The name of an unknown model.
static UNKNOWN: Text<'static> = Text::plain("unknown");

/// The name of the model.
pub(super) fn model<'f>(facts: &'f SessionStarted<'static>) -> &'f Text<'static> {
    facts.model.as_ref().unwrap_or(&UNKNOWN)
}

fn permission_mode(mode: Option<&Text<'_>>, out: &mut Output) -> &'static str {
    let Some(mode) = mode else { return "default" };
    modes::permission_mode(&mode.to_plain()).unwrap_or_else(|| {
        out.lost("permission modes of other agents");
        "default"
    })
}

impl ClaudeEncoder {
    pub(super) fn set_session(&mut self, started: &SessionStarted<'_>) {
        self.facts = own_session(started.clone());
    }

    pub(super) fn update_session(&mut self, update: &SessionUpdated<'_>, out: &mut Output) {
        let news = own_session(SessionStarted {
            id: update.id.clone(),
            agent: update.agent.clone(),
            version: update.version.clone(),
            model: update.model.clone(),
            cwd: update.cwd.clone(),
            permission_mode: update.permission_mode.clone(),
            tools: update.tools.clone(),
            host_fields: Vec::new(),
        });
        if self.turn.open && self.init_written {
            self.write_update(&news, out);
        }
        let known = std::mem::take(&mut self.facts);
        self.facts = SessionStarted {
            id: news.id.or(known.id),
            agent: news.agent.or(known.agent),
            version: news.version.or(known.version),
            model: news.model.or(known.model),
            cwd: news.cwd.or(known.cwd),
            permission_mode: news.permission_mode.or(known.permission_mode),
            tools: news.tools.or(known.tools),
            host_fields: known.host_fields,
        };
        if update.sandbox.is_some() || update.snapshot.is_some() || update.relay.is_some() {
            out.lost("host facts (sandbox, relay)");
        }
    }

    fn write_update(&mut self, news: &SessionStarted<'_>, out: &mut Output) {
        if news.id.is_some() && !self.session_id_generated {
            out.lost("session ids reported within a turn");
        }
        if let Some(mode) = &news.permission_mode {
            let mode = permission_mode(Some(mode), out);
            let mut record = out.record("system");
            record.string("subtype", "status").raw("status", "null");
            record.string("permissionMode", mode);
            self.stamp.end(record);
        }
    }

    /// Opens a turn and writes its `init`; the first `init` is held back until the model is known.
    pub(super) fn open_turn(&mut self, out: &mut Output) {
        let began_ms = out.now_ms();
        self.turn = Turn { open: true, began_ms, ..Turn::default() };
        if self.init_written || out.is_passing() || self.facts.model.is_some() {
            self.write_init(out);
        }
    }

    /// Writes the first `init` before an event that cannot be held back. Returns whether the event
    /// is held back, which only a message of the user is. Events outside the conversation are held
    /// back by [`ClaudeEncoder::write_or_hold`].
    pub(super) fn holds_until_init(&mut self, event: &Event<'_>, out: &mut Output) -> bool {
        match event.data {
            Data::UserMessage(_) if self.facts.model.is_none() && self.held.len() < MAX_HELD => {
                self.held.push(event.clone().into_owned());
                return true;
            }
            Data::UserMessage(_)
            | Data::BlockStarted(_)
            | Data::Block(_)
            | Data::ToolStarted(_)
            | Data::PlanUpdated(_)
            | Data::Retry(_)
            | Data::Interrupted(_)
            | Data::PermissionRequested(_)
            | Data::QuestionAsked(_)
            | Data::TurnEnded(_) => self.write_init(out),
            _ => {}
        }
        false
    }

    fn write_init(&mut self, out: &mut Output) {
        if let Some(id) = &self.facts.id {
            self.stamp.session_id.clear();
            write::text(&mut self.stamp.session_id, id);
        }
        self.session_id_generated = self.facts.id.is_none();
        self.write_init_record(out);
        self.init_written = true;
        // The `result` of the turn does not contain errors from before it, so they are written now.
        let open = std::mem::take(&mut self.turn.open);
        for event in std::mem::take(&mut self.held) {
            self.encode(&event, out);
        }
        self.turn.open = open;
    }

    /// Adopts the session id that the agent reported after an `init` with a generated one.
    pub(super) fn adopt_late_session_id(&mut self) {
        if let Some(id) = self.facts.id.as_ref().filter(|_| self.session_id_generated) {
            self.stamp.session_id.clear();
            write::text(&mut self.stamp.session_id, id);
            self.session_id_generated = false;
        }
    }

    /// Whether the agent is Claude Code, whose names need no translation.
    pub(super) fn is_claude(&self) -> bool {
        self.facts.agent.as_ref().is_some_and(|agent| *agent == "claude")
    }

    fn write_init_record(&mut self, out: &mut Output) {
        let nowhere = Text::default();
        let own = self.is_claude();
        let mode = permission_mode(self.facts.permission_mode.as_ref(), out);
        let tools = self.facts.tools.as_ref().filter(|tools| tools.is_array());
        let tools = tools.and_then(|tools| match own {
            true => Some(tools.borrowed()),
            false => Json::from_serialize(&tools::translate_names(tools)),
        });
        if self.facts.version.is_some() && !own {
            out.lost("versions of other agents");
        }
        let mut record = out.record("system");
        record.string("subtype", "init").text("cwd", self.facts.cwd.as_ref().unwrap_or(&nowhere));
        record.raw_bytes("session_id", &self.stamp.session_id);
        match &tools {
            Some(tools) => record.json("tools", tools),
            None => record.raw("tools", "[]"),
        };
        record.raw("mcp_servers", "[]");
        record.text("model", model(&self.facts)).string("permissionMode", mode);
        record.raw("slash_commands", "[]").string("apiKeySource", "none");
        record.text_if("claude_code_version", self.facts.version.as_ref().filter(|_| own));
        record.string("output_style", "default");
        record.raw("agents", "[]").raw("skills", "[]").raw("plugins", "[]");
        write_names(&mut record, "unknown_fields", &[("session_id", self.session_id_generated)]);
        self.stamp.identity.uuid().write(record.name("uuid"));
        record.end();
    }

    /// Writes an event outside the conversation, or holds it back until the first `init`.
    pub(super) fn write_or_hold(&mut self, event: &Event<'_>, out: &mut Output) {
        let holds = matches!(
            event.data,
            Data::Notice(_)
                | Data::Limit(_)
                | Data::Compacted(_)
                | Data::SubagentStarted(_)
                | Data::SubagentEnded(_)
                | Data::PermissionResolved(_)
        );
        let holds = holds || (!self.turn.open && matches!(event.data, Data::Error(_)));
        if self.init_written || !holds {
            self.write_notice(event, out);
        } else if self.held.len() < MAX_HELD {
            self.held.push(event.clone().into_owned());
        } else {
            out.lost("events before the first turn");
        }
    }

    /// Counts what is known of the exit of the agent: there is no record for it, so what the last
    /// `result` does not contain is lost.
    pub(super) fn count_exit_losses(&self, ended: &SessionEnded<'_>, out: &mut Output) {
        if self.turn.end_added {
            return;
        }
        if ended.signal.is_some() {
            out.lost("signals that ended the agent");
        }
        if ended.stderr.as_ref().is_some_and(|tail| !tail.to_plain().trim().is_empty()) {
            out.lost("standard error");
        }
    }
}
