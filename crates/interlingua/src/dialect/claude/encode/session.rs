//! The session: what is known of it, and the `init` that says so when a turn opens.
//!
//! Facts may come one after another, and before there is anything to say. Every record names the
//! session, so nothing is written before the first `init`. That waits for the model to be named, at
//! most until something is said. The name of the session changes with an `init` only; but one that
//! the agent tells late, when an `init` had to make one up, is that of the `result`.

use super::{ClaudeEncoder, Turn};
use crate::dialect::claude::result::write_names;
use crate::dialect::claude::{modes, tools};
use crate::dialect::{Encoder, Output};
use crate::event::{Data, Event, SessionEnded, SessionStarted, SessionUpdated, own_session};
use crate::json::write;
use crate::json::{Json, Text};

/// How much of what comes before the first turn is kept for it.
const EARLY: usize = 100;

/// What a record says where nobody knows the model.
static UNKNOWN: Text<'static> = Text::plain("unknown");

/// The name of the model.
pub(super) fn model<'f>(facts: &'f SessionStarted<'static>) -> &'f Text<'static> {
    facts.model.as_ref().unwrap_or(&UNKNOWN)
}

fn permission_mode(told: Option<&Text<'_>>, out: &mut Output) -> &'static str {
    let Some(told) = told else { return "default" };
    modes::permission_mode(&told.to_plain()).unwrap_or_else(|| {
        out.lost("permission modes of other agents");
        "default"
    })
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
        if self.turn.open && self.introduced {
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
        if news.id.is_some() && !self.nameless {
            out.lost("session ids that came after the start of a turn");
        }
        if let Some(mode) = &news.permission_mode {
            let mode = permission_mode(Some(mode), out);
            let mut record = out.record("system");
            record.string("subtype", "status").raw("status", "null");
            record.string("permissionMode", mode);
            self.stamp.end(record);
        }
    }

    /// Opens a turn, with its `init`; the first one may wait for the name of the model.
    pub(super) fn open_turn(&mut self, out: &mut Output) {
        let began_ms = out.now_ms();
        self.turn = Turn { open: true, began_ms, ..Turn::default() };
        if self.introduced || out.is_passing() || self.facts.model.is_some() {
            self.introduce(out);
        }
    }

    /// Writes the first `init` if something is said that cannot wait for more facts. What the user said
    /// can, and says so; what stands beside the conversation sees to itself.
    pub(super) fn init_waits(&mut self, event: &Event<'_>, out: &mut Output) -> bool {
        match event.data {
            Data::UserMessage(_) if self.facts.model.is_none() && self.early.len() < EARLY => {
                self.early.push(event.clone().into_owned());
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
            | Data::TurnEnded(_) => self.introduce(out),
            _ => {}
        }
        false
    }

    fn introduce(&mut self, out: &mut Output) {
        if let Some(id) = &self.facts.id {
            self.stamp.session_id.clear();
            write::text(&mut self.stamp.session_id, id);
        }
        self.nameless = self.facts.id.is_none();
        self.write_init(out);
        self.introduced = true;
        // Errors from before the turn are not told by its end.
        let open = std::mem::take(&mut self.turn.open);
        for event in std::mem::take(&mut self.early) {
            self.encode(&event, out);
        }
        self.turn.open = open;
    }

    /// Gives the session the name that the agent told after the `init`.
    pub(super) fn take_late_name(&mut self) {
        if let Some(id) = self.facts.id.as_ref().filter(|_| self.nameless) {
            self.stamp.session_id.clear();
            write::text(&mut self.stamp.session_id, id);
            self.nameless = false;
        }
    }

    /// Whether the agent is Claude Code, whose words are its own already.
    pub(super) fn is_claudes(&self) -> bool {
        self.facts.agent.as_ref().is_some_and(|agent| *agent == "claude")
    }

    fn write_init(&mut self, out: &mut Output) {
        let nowhere = Text::default();
        let own = self.is_claudes();
        let mode = permission_mode(self.facts.permission_mode.as_ref(), out);
        let tools = self.facts.tools.as_ref().filter(|tools| tools.is_array());
        let tools = tools.and_then(|tools| match own {
            true => Some(tools.borrowed()),
            false => Json::from_serialize(&tools::names(tools)),
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
        write_names(&mut record, "unknown_fields", &[("session_id", self.nameless)]);
        self.stamp.identity.uuid().write(record.name("uuid"));
        record.end();
    }

    /// What stands beside the conversation; what comes before the session has a name waits for it.
    pub(super) fn beside(&mut self, event: &Event<'_>, out: &mut Output) {
        let waits = matches!(
            event.data,
            Data::Notice(_)
                | Data::Limit(_)
                | Data::Compacted(_)
                | Data::SubagentStarted(_)
                | Data::SubagentEnded(_)
                | Data::PermissionResolved(_)
        );
        let waits = waits || (!self.turn.open && matches!(event.data, Data::Error(_)));
        if self.introduced || !waits {
            self.aside(event, out);
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
