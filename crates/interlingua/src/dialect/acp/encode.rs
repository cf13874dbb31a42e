//! Writes the agent's direction of ACP: updates of the session, requests for permission, questions, and
//! the answer to each prompt.
//!
//! Here is what every line needs, and the session itself; what is said, what tools do and what is asked
//! have files of their own.

mod asked;
mod calls;
mod diffs;
mod form;
mod place;
mod said;
mod subject;

use self::calls::OpenCall;
use self::place::Folder;
use self::said::Said;
use super::ending::write_answer;
use crate::dialect::encode::Identity;
use crate::dialect::{EncodeOptions, Encoder, Output};
use crate::event::{Data, Event, SessionEnded, SessionStarted, SessionUpdated, own_session};
use crate::json::write::{self, Bytes, Object};
use crate::json::{Json, Text};

/// The writer of `acp`.
#[derive(Debug, Clone)]
pub struct AcpEncoder {
    /// How every update begins: all that stands before it.
    head: Bytes,
    session_id: Bytes,
    /// What ids that are made of numbers contain, so that they are those of no other run.
    id_tag: String,
    facts: SessionStarted<'static>,
    /// The session has started without a name, and is told when it has one or a turn begins.
    session_due: bool,
    /// The session was told: its name stands, since clients know it by that.
    session_told: bool,
    /// The folder that the session works in.
    folder: Folder,
    /// How many prompts were answered; the client's requests are counted with them.
    prompts: u64,
    /// How many requests the client was sent.
    requests: u64,
    /// A turn of the past is being told.
    past: bool,
    /// The blocks that are open, and how their pieces end.
    open: Vec<OpenBlock>,
    /// What a client would add the next piece to, if it had the same id or none.
    last_said: Option<Said>,
    /// The calls that are open.
    calls: Vec<OpenCall>,
}

#[derive(Debug, Clone)]
struct OpenBlock {
    number: u64,
    /// How a piece begins, up to its text; empty for what cannot be said.
    start: Bytes,
    end: Bytes,
}

impl Encoder for AcpEncoder {
    #[inline]
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        if let Data::BlockDelta(delta) = &event.data {
            let open = self.open.iter().rev().find(|open| open.number == delta.block);
            if let Some(open) = open.filter(|open| !open.start.is_empty())
                && !delta.text.is_empty()
            {
                let bytes = out.bytes();
                bytes.extend_from_slice(&open.start);
                write::text(bytes, &delta.text);
                bytes.extend_from_slice(&open.end);
            }
            return;
        }
        if self.session_id.is_empty() {
            let (mut identity, mut session_id) = (Identity::default(), Bytes::new());
            identity.follow(out);
            identity.uuid().write(&mut session_id);
            self.id_tag = identity.named("");
            self.name_session(session_id);
        }
        self.encode_other(event, out);
    }

    fn writes_replays(&self) -> bool {
        true
    }
}

impl AcpEncoder {
    /// A writer as the caller wants it.
    pub fn new(_options: &EncodeOptions) -> Self {
        Self {
            head: Bytes::new(),
            session_id: Bytes::new(),
            id_tag: String::new(),
            facts: SessionStarted::default(),
            session_due: false,
            session_told: false,
            folder: Folder::default(),
            prompts: 0,
            requests: 0,
            past: false,
            open: Vec::new(),
            last_said: None,
            calls: Vec::new(),
        }
    }

    fn name_session(&mut self, literal: Bytes) {
        self.session_id = literal;
        self.head.clear();
        self.head.extend_from_slice(
            br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#,
        );
        self.head.extend_from_slice(&self.session_id);
        self.head.extend_from_slice(br#","update":"#);
    }

    fn encode_other(&mut self, event: &Event<'_>, out: &mut Output) {
        let parent = event.parent.as_ref();
        match &event.data {
            Data::BlockStarted(started) => self.block_started(started, parent, out),
            Data::BlockEnded(ended) => {
                if ended.signature.is_some() {
                    out.lost("signature");
                }
                self.open.retain(|open| open.number != ended.block);
            }
            Data::Block(block) => self.block(block, parent, out),
            Data::ToolStarted(started) => self.tool_started(started, parent, out),
            Data::ToolInput(input) => self.tool_input(input, parent, out),
            Data::ToolProgress(progress) => self.tool_progress(progress, parent, out),
            Data::ToolEnded(ended) => self.tool_ended(ended, parent, out),
            Data::FilesChanged(files) => self.files_changed(files, out),
            Data::PlanUpdated(plan) => self.plan(plan, parent, out),
            Data::UserMessage(message) => self.user_message(message, parent, out),
            Data::Artifact(artifact) => self.artifact(artifact, parent, out),
            Data::PermissionRequested(asked) => self.permission(asked, out),
            Data::QuestionAsked(asked) => self.question(asked, out),
            Data::SessionStarted(started) => {
                self.facts = own_session((**started).clone());
                self.folder.learn(started.cwd.as_ref());
                self.session_due = started.id.is_none();
                if !self.session_due {
                    self.session(out);
                }
            }
            Data::SessionUpdated(update) => self.session_updated(update, out),
            Data::SessionEnded(ended) => session_ended(ended, out),
            Data::TurnStarted(started) => {
                if std::mem::replace(&mut self.session_due, false) {
                    self.session(out);
                }
                self.past = started.replay;
                self.last_said = None;
            }
            Data::TurnEnded(ended) => {
                self.open.clear();
                self.calls.clear();
                if !std::mem::replace(&mut self.past, false) {
                    self.prompts += 1;
                    // Where the agent's own records are passed through, the ids of its client's requests
                    // are not known.
                    let id = (!out.is_passing()).then_some(self.prompts);
                    write_answer(id, ended, out);
                }
            }
            other => unsayable(other, out),
        }
    }

    /// Writes an update: its kind, its own fields, and what the protocol has no field for.
    fn update(
        &self,
        kind: &str,
        parent: Option<&Text<'_>>,
        out: &mut Output,
        fields: impl FnOnce(&mut Object<'_>),
        more: impl FnOnce(&mut Object<'_>),
        has_more: bool,
    ) {
        let bytes = out.bytes();
        bytes.extend_from_slice(&self.head);
        let mut update = Object::open(bytes);
        update.string("sessionUpdate", kind);
        fields(&mut update);
        self.meta(&mut update, parent, more, has_more);
        update.close();
        out.bytes().extend_from_slice(b"}}\n");
    }

    fn meta(
        &self,
        object: &mut Object<'_>,
        parent: Option<&Text<'_>>,
        more: impl FnOnce(&mut Object<'_>),
        has_more: bool,
    ) {
        if parent.is_none() && !self.past && !has_more {
            return;
        }
        object.object("_meta", |meta| {
            meta.object("interlingua", |facts| {
                facts.text_if("parentToolCallId", parent);
                if self.past {
                    facts.flag("replay", true);
                }
                more(facts);
            });
        });
    }
}

/// The session itself.
impl AcpEncoder {
    /// Tells what is known of the session, and forgets what was told. A name that becomes known when
    /// the session was told already is a fact like others: clients know the session by the first one.
    fn session(&mut self, out: &mut Output) {
        let mut facts = std::mem::take(&mut self.facts);
        let first = !std::mem::replace(&mut self.session_told, true);
        if first && let Some(id) = facts.id.take() {
            let mut literal = Bytes::new();
            write::text(&mut literal, &id);
            self.name_session(literal);
        }
        let more = |fields: &mut Object<'_>| {
            fields.text_if("sessionId", facts.id.as_ref());
            fields.text_if("agent", facts.agent.as_ref());
            fields.text_if("version", facts.version.as_ref());
            fields.text_if("model", facts.model.as_ref());
            fields.text_if("cwd", facts.cwd.as_ref());
            fields.text_if("permissionMode", facts.permission_mode.as_ref());
            fields.json_if("tools", facts.tools.as_ref());
        };
        let past = std::mem::replace(&mut self.past, false);
        self.update("session_info_update", None, out, |_| {}, more, true);
        self.past = past;
    }

    fn session_updated(&mut self, update: &SessionUpdated<'_>, out: &mut Output) {
        if update.sandbox.is_some() || update.snapshot.is_some() || update.relay.is_some() {
            out.lost("host facts (sandbox, relay)");
        }
        self.folder.learn(update.cwd.as_ref());
        let own = |news: &Option<Text<'_>>, known: Option<Text<'static>>| {
            news.clone().map(Text::into_owned).or(known)
        };
        let known = std::mem::take(&mut self.facts);
        self.facts = SessionStarted {
            id: own(&update.id, known.id),
            agent: own(&update.agent, known.agent),
            version: own(&update.version, known.version),
            model: own(&update.model, known.model),
            cwd: own(&update.cwd, known.cwd),
            permission_mode: own(&update.permission_mode, known.permission_mode),
            tools: update.tools.clone().map(Json::into_owned).or(known.tools),
        };
        self.session_due &= self.facts.id.is_none();
        if !self.session_due && self.facts != SessionStarted::default() {
            self.session(out);
        }
    }
}

fn session_ended(ended: &SessionEnded<'_>, out: &mut Output) {
    let failed = ended.exit_code.is_some_and(|code| code != 0);
    if failed || ended.signal.is_some() || ended.stderr.is_some() {
        out.lost("how the process ended");
    }
}

/// Counts what has no place; what only frames other events has nothing to lose.
fn unsayable(data: &Data<'_>, out: &mut Output) {
    let what = match data {
        Data::MessageStarted(_) | Data::MessageEnded(_) | Data::ToolInputDelta(_) => return,
        // The answer to the prompt tells what went wrong.
        Data::Error(_) => return,
        Data::PermissionResolved(_) => "permission decision",
        Data::QuestionAnswered(_) => "answer to a question",
        Data::Usage(_) => "usage within a turn",
        Data::Limit(_) => "limit",
        Data::Retry(_) => "retry",
        Data::Notice(_) => "notice",
        Data::Interrupted(_) => "interruption",
        Data::Compacted(_) => "compaction",
        Data::SubagentStarted(_) => "sub-agent start",
        Data::SubagentEnded(_) => "sub-agent end",
        Data::Native(_) => "record of the agent's own",
        Data::Unknown(_) => "unknown record",
        Data::Unparsed(_) => "unreadable line",
        Data::Log(_) => "log line",
        other => other.kind(),
    };
    out.lost(what);
}
