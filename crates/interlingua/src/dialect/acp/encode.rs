//! The encoder of ACP. It writes the agent's direction: updates of the session, permission
//! requests, questions, and the response to each prompt.
//!
//! This module writes the session and the parts that all records share. Its submodules write
//! messages, tool calls and requests.

mod calls;
mod diffs;
mod messages;
mod paths;
mod requests;
mod subject;

use self::calls::OpenCall;
use self::messages::LastBlock;
use self::paths::WorkingFolder;
use super::ending::write_prompt_response;
use crate::dialect::encode::Identity;
use crate::dialect::{EncodeOptions, Encoder, Output};
use crate::event::{Data, Event, SessionEnded, SessionStarted, SessionUpdated, own_session};
use crate::json::write::{self, Bytes, Object};
use crate::json::{Json, Text};

/// The encoder of `acp`.
#[derive(Debug, Clone)]
pub struct AcpEncoder {
    /// The start of the record of an update, up to the update itself.
    head: Bytes,
    session_id: Bytes,
    /// Part of all ids made of numbers, so that they differ from those of other runs.
    id_tag: String,
    facts: SessionStarted<'static>,
    /// The session has started without an id. Its information is written when the id is known or a
    /// turn begins.
    session_info_due: bool,
    /// The session information was written. Its id no longer changes, since clients know the
    /// session by it.
    session_info_written: bool,
    /// The working folder of the session.
    folder: WorkingFolder,
    /// The number of prompts that were answered, from which the ids of the responses are made.
    prompts: u64,
    /// The number of requests that were sent to the client.
    requests: u64,
    /// The current turn is replayed history.
    replay: bool,
    /// The open blocks.
    open: Vec<OpenBlock>,
    /// The block to which a client would append the next chunk if it had the same id or none.
    last_block: Option<LastBlock>,
    /// The open calls.
    calls: Vec<OpenCall>,
}

#[derive(Debug, Clone)]
struct OpenBlock {
    number: u64,
    /// The start of the record of a chunk, up to its text; empty for a block that cannot be
    /// expressed.
    start: Bytes,
    /// The end of the record, after the text.
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
    /// An encoder at the beginning of a session.
    pub fn new(_options: &EncodeOptions) -> Self {
        Self {
            head: Bytes::new(),
            session_id: Bytes::new(),
            id_tag: String::new(),
            facts: SessionStarted::default(),
            session_info_due: false,
            session_info_written: false,
            folder: WorkingFolder::default(),
            prompts: 0,
            requests: 0,
            replay: false,
            open: Vec::new(),
            last_block: None,
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
            Data::BlockStarted(started) => self.start_block(started, parent, out),
            Data::BlockEnded(ended) => {
                if ended.signature.is_some() {
                    out.lost("signatures");
                }
                self.open.retain(|open| open.number != ended.block);
            }
            Data::Block(block) => self.write_block(block, parent, out),
            Data::ToolStarted(started) => self.write_tool_started(started, parent, out),
            Data::ToolInput(input) => self.write_tool_input(input, parent, out),
            Data::ToolProgress(progress) => self.write_tool_progress(progress, parent, out),
            Data::ToolEnded(ended) => self.write_tool_ended(ended, parent, out),
            Data::FilesChanged(files) => self.keep_file_changes(files, out),
            Data::PlanUpdated(plan) => self.write_plan(plan, parent, out),
            Data::UserMessage(message) => self.write_user_message(message, parent, out),
            Data::Artifact(artifact) => self.write_artifact(artifact, parent, out),
            Data::PermissionRequested(request) => self.write_permission_request(request, out),
            Data::QuestionAsked(asked) => self.write_question(asked, out),
            Data::SessionStarted(started) => {
                self.facts = own_session((**started).clone());
                self.folder.set(started.cwd.as_ref());
                self.session_info_due = started.id.is_none();
                if !self.session_info_due {
                    self.write_session_info(out);
                }
            }
            Data::SessionUpdated(update) => self.update_session(update, out),
            Data::SessionEnded(ended) => count_exit_losses(ended, out),
            Data::TurnStarted(started) => {
                if std::mem::replace(&mut self.session_info_due, false) {
                    self.write_session_info(out);
                }
                self.replay = started.replay;
                self.last_block = None;
            }
            Data::TurnEnded(ended) => {
                self.open.clear();
                self.calls.clear();
                if !std::mem::replace(&mut self.replay, false) {
                    self.prompts += 1;
                    // If the agent's own records are passed through, the ids of its client's
                    // requests are unknown.
                    let id = (!out.is_passing()).then_some(self.prompts);
                    write_prompt_response(id, ended, out);
                }
            }
            other => count_losses(other, out),
        }
    }

    /// Writes an update: its kind, its fields, and in `_meta` the facts that the protocol has no
    /// field for.
    fn write_update(
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
        self.write_meta(&mut update, parent, more, has_more);
        update.close();
        out.bytes().extend_from_slice(b"}}\n");
    }

    fn write_meta(
        &self,
        object: &mut Object<'_>,
        parent: Option<&Text<'_>>,
        more: impl FnOnce(&mut Object<'_>),
        has_more: bool,
    ) {
        if parent.is_none() && !self.replay && !has_more {
            return;
        }
        object.object("_meta", |meta| {
            meta.object("interlingua", |facts| {
                facts.text_if("parentToolCallId", parent);
                if self.replay {
                    facts.flag("replay", true);
                }
                more(facts);
            });
        });
    }
}

impl AcpEncoder {
    /// Writes what is known of the session, and forgets it. An id that becomes known after the
    /// first such record is written as a fact like the others, since clients know the session by
    /// its first id.
    fn write_session_info(&mut self, out: &mut Output) {
        let mut facts = std::mem::take(&mut self.facts);
        let first = !std::mem::replace(&mut self.session_info_written, true);
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
        // The session is live, even if the current turn is replayed.
        let replay = std::mem::replace(&mut self.replay, false);
        self.write_update("session_info_update", None, out, |_| {}, more, true);
        self.replay = replay;
    }

    fn update_session(&mut self, update: &SessionUpdated<'_>, out: &mut Output) {
        if update.sandbox.is_some() || update.snapshot.is_some() || update.relay.is_some() {
            out.lost("host facts (sandbox, relay)");
        }
        self.folder.set(update.cwd.as_ref());
        let own = |new: &Option<Text<'_>>, known: Option<Text<'static>>| {
            new.clone().map(Text::into_owned).or(known)
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
            host_fields: Vec::new(),
        };
        self.session_info_due &= self.facts.id.is_none();
        if !self.session_info_due && self.facts != SessionStarted::default() {
            self.write_session_info(out);
        }
    }
}

fn count_exit_losses(ended: &SessionEnded<'_>, out: &mut Output) {
    let failed = ended.exit_code.is_some_and(|code| code != 0);
    if failed || ended.signal.is_some() || ended.stderr.is_some() {
        out.lost("how the process ended");
    }
}

/// Counts the events that the protocol cannot express. Events that only frame others lose nothing.
fn count_losses(data: &Data<'_>, out: &mut Output) {
    let what = match data {
        Data::MessageStarted(_) | Data::MessageEnded(_) | Data::ToolInputDelta(_) => return,
        // The response to the prompt contains the error.
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
