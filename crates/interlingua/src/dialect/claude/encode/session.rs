//! The session: what is known of it, and the `init` that says so when a turn opens.
//!
//! Facts may come one after another, and before there is anything to say. Every record names the
//! session, so nothing is written before the first `init`, and the name changes with an `init` only.

use super::{ClaudeEncoder, Turn};
use crate::dialect::Output;
use crate::event::{Data, Event, SessionEnded, SessionStarted, SessionUpdated, own_session};
use crate::json::Text;
use crate::json::write;

/// How much of what comes before the first turn is kept for it.
const EARLY: usize = 100;

/// What a record says where nobody knows the model.
static UNKNOWN: Text<'static> = Text::plain("unknown");

/// The name of the model.
pub(super) fn model<'f>(facts: &'f SessionStarted<'static>) -> &'f Text<'static> {
    facts.model.as_ref().unwrap_or(&UNKNOWN)
}

impl ClaudeEncoder {
    pub(super) fn learn(&mut self, started: &SessionStarted<'_>) {
        self.facts = own_session(started.clone());
    }

    pub(super) fn update(&mut self, update: &SessionUpdated<'_>, out: &mut Output) {
        let news = own_session(SessionStarted {
            id: update.id.clone(),
            agent: update.agent.clone(),
            version: update.version.clone(),
            model: update.model.clone(),
            cwd: update.cwd.clone(),
            permission_mode: update.permission_mode.clone(),
            tools: update.tools.clone(),
        });
        if self.turn.open {
            self.update_within_a_turn(&news, out);
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
        };
        if update.sandbox.is_some() || update.snapshot.is_some() || update.relay.is_some() {
            out.lost("host facts (sandbox, relay)");
        }
    }

    fn update_within_a_turn(&mut self, news: &SessionStarted<'_>, out: &mut Output) {
        if news.id.is_some() {
            out.lost("session ids that came after the start of a turn");
        }
        if let Some(mode) = &news.permission_mode {
            let mut record = out.record("system");
            record.string("subtype", "status").raw("status", "null");
            record.text("permissionMode", mode);
            self.stamp.end(record);
        }
    }

    /// Opens a turn, with its `init`.
    pub(super) fn open_turn(&mut self, out: &mut Output) {
        if let Some(id) = &self.facts.id {
            self.stamp.session_id.clear();
            write::text(&mut self.stamp.session_id, id);
        }
        self.write_init(out);
        self.introduced = true;
        for event in std::mem::take(&mut self.early) {
            self.aside(&event.data, out);
        }
        let began_ms = out.now_ms();
        self.turn = Turn { open: true, began_ms, ..Turn::default() };
    }

    fn write_init(&mut self, out: &mut Output) {
        let (nowhere, usual) = (Text::default(), Text::plain("default"));
        let mut record = out.record("system");
        record.string("subtype", "init").text("cwd", self.facts.cwd.as_ref().unwrap_or(&nowhere));
        record.raw_bytes("session_id", &self.stamp.session_id);
        match self.facts.tools.as_ref().filter(|tools| tools.is_array()) {
            Some(tools) => record.json("tools", tools),
            None => record.raw("tools", "[]"),
        };
        record.raw("mcp_servers", "[]");
        record.text("model", model(&self.facts));
        record.text("permissionMode", self.facts.permission_mode.as_ref().unwrap_or(&usual));
        record.raw("slash_commands", "[]").string("apiKeySource", "none");
        record.text_if("claude_code_version", self.facts.version.as_ref());
        record.string("output_style", "default");
        record.raw("agents", "[]").raw("skills", "[]").raw("plugins", "[]");
        self.stamp.identity.uuid().write(record.name("uuid"));
        record.end();
    }

    /// What stands beside the conversation; what comes before the session has a name waits for it.
    pub(super) fn beside(&mut self, event: &Event<'_>, out: &mut Output) {
        let waits = matches!(
            event.data,
            Data::Notice(_)
                | Data::Error(_)
                | Data::Limit(_)
                | Data::Compacted(_)
                | Data::SubagentStarted(_)
                | Data::SubagentEnded(_)
                | Data::PermissionResolved(_)
        );
        if self.introduced || !waits {
            self.aside(&event.data, out);
        } else if self.early.len() < EARLY {
            self.early.push(event.clone().into_owned());
        } else {
            out.lost("notices before the first turn");
        }
    }

    /// There is no record for the end of the program: what the last `result` did not say is lost.
    pub(in crate::dialect::claude) fn session_ended(
        &self,
        ended: &SessionEnded<'_>,
        out: &mut Output,
    ) {
        if self.turn.end_added {
            return;
        }
        if ended.signal.is_some() {
            out.lost("signals that ended the agent");
        }
        if ended.stderr.as_ref().is_some_and(|tail| !tail.to_plain().trim().is_empty()) {
            out.lost("standard error of the agent");
        }
    }
}
