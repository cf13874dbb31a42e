//! Writes the agent's direction of ACP: updates of the session, requests for permission, and the
//! answer to each prompt.

use super::ending::write_answer;
use super::tools;
use crate::dialect::content::output_text;
use crate::dialect::encode::Identity;
use crate::dialect::{Dialect, EncodeOptions, Encoder, Output};
use crate::event::{
    Artifact, Block, BlockKind, BlockStarted, Data, Event, Executor, FileChange, FilesChanged,
    PermissionRequested, PlanStatus, PlanUpdated, SessionEnded, SessionStarted, SessionUpdated,
    ToolEnded, ToolInput, ToolKind, ToolProgress, ToolStarted, ToolStatus, UserMessage,
    own_session,
};
use crate::json::read;
use crate::json::write::{self, Bytes, Object};
use crate::json::{Json, Text, record};

/// The writer of `acp`.
#[derive(Debug)]
pub struct AcpEncoder {
    /// How every update begins: all that stands before it.
    head: Bytes,
    session_id: Bytes,
    facts: SessionStarted<'static>,
    /// The session has started without a name, and is told when it has one or a turn begins.
    session_due: bool,
    /// How many prompts were answered; the client's requests are counted with them.
    prompts: u64,
    permissions: u64,
    /// A turn of the past is being told.
    past: bool,
    /// The blocks that are open, and how their pieces end.
    open: Vec<OpenBlock>,
    /// What a client would add the next piece to, if it had no id.
    last_said: Option<BlockKind>,
    /// The files that calls have changed, until they are answered.
    changes: Vec<(Text<'static>, Bytes, Bytes)>,
    /// The agent's own records are passed on: the ids of its client's requests are not known.
    passing: bool,
}

#[derive(Debug)]
struct OpenBlock {
    number: u64,
    /// How a piece begins, up to its text; empty for what cannot be said.
    start: Bytes,
    end: Bytes,
}

record! {
    /// What of an input says to a person what a call is about.
    struct Telling<'a> {
        command: text "command" | "cmd",
        path: text "file_path" | "path" | "absolute_path" | "filePath" | "notebook_path",
        pattern: text "pattern" | "query" | "url",
        title: text "title" | "description",
    }
}

record! {
    /// A picture, as the protocol or as a provider writes it.
    struct Picture<'a> {
        data: text "data",
        mime: text "mimeType" | "media_type",
        source: record<PictureSource> "source",
    }
}

record! {
    struct PictureSource<'a> {
        data: text "data",
        mime: text "media_type",
    }
}

record! {
    struct Difference<'a> {
        old_text: text "oldText",
        new_text: text "newText",
    }
}

record! {
    /// An option, as far as one can see whether it is one of the protocol.
    struct OfferedOption<'a> {
        id: text "optionId",
        name: text "name",
        kind: text "kind",
    }
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
        self.encode_other(event, out);
    }

    fn reading(&mut self, dialect: &'static Dialect) {
        self.passing = dialect.name == "acp";
    }

    fn tells_the_past(&self) -> bool {
        true
    }
}

impl AcpEncoder {
    /// A writer as the caller wants it.
    pub fn new(options: &EncodeOptions) -> Self {
        let mut session_id = Bytes::new();
        Identity::new(options.id_seed).uuid().write(&mut session_id);
        let mut encoder = Self {
            head: Bytes::new(),
            session_id: Bytes::new(),
            facts: SessionStarted::default(),
            session_due: false,
            prompts: 0,
            permissions: 0,
            past: false,
            open: Vec::new(),
            last_said: None,
            changes: Vec::new(),
            passing: false,
        };
        encoder.name_session(session_id);
        encoder
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
            Data::SessionStarted(started) => {
                self.facts = own_session((**started).clone());
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
                self.changes.clear();
                if !std::mem::replace(&mut self.past, false) {
                    self.prompts += 1;
                    let id = (!self.passing).then_some(self.prompts);
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

/// What is said.
impl AcpEncoder {
    fn block_started(
        &mut self,
        started: &BlockStarted<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let Some(kind) = chunk_of(&started.kind, out) else {
            let (start, end) = (Bytes::new(), Bytes::new());
            self.open.push(OpenBlock { number: started.block, start, end });
            return;
        };
        let mut start = self.head.clone();
        start.extend_from_slice(br#"{"sessionUpdate":""#);
        start.extend_from_slice(kind.as_bytes());
        start.extend_from_slice(br#"","content":{"type":"text","text":"#);
        let mut more = Bytes::new();
        let mut fields = Object::open(&mut more);
        self.message_id(&mut fields, started.message.as_ref(), started.block, &started.kind);
        self.meta(&mut fields, parent, |_| {}, false);
        fields.close();
        // After the content come these fields, in the same object.
        let mut end = Bytes::from(*b"}");
        if let Some(fields) = more.strip_prefix(b"{").filter(|fields| fields.len() > 1) {
            end.push(b',');
            end.extend_from_slice(fields);
        } else {
            end.push(b'}');
        }
        end.extend_from_slice(b"}}\n");
        self.last_said = Some(started.kind.clone());
        self.open.push(OpenBlock { number: started.block, start, end });
    }

    /// The id of a piece's message. Without one, a client adds a piece to the piece before it.
    fn message_id(
        &self,
        object: &mut Object<'_>,
        told: Option<&Text<'_>>,
        block: u64,
        kind: &BlockKind,
    ) {
        match told {
            Some(id) => {
                object.text("messageId", id);
            }
            None if self.last_said.as_ref() == Some(kind) => {
                object.string("messageId", &format!("block-{block}"));
            }
            None => {}
        }
    }

    fn block(&mut self, block: &Block<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        if block.signature.is_some() {
            out.lost("signature");
        }
        if block.kind == BlockKind::Image {
            self.picture(block.content.as_ref(), parent, out);
            return;
        }
        let Some(kind) = chunk_of(&block.kind, out) else { return };
        if block.text.is_empty() {
            return;
        }
        let fields = |update: &mut Object<'_>| {
            update.object("content", |content| {
                content.fixed(r#""type":"text""#).text("text", &block.text);
            });
            self.message_id(update, block.message.as_ref(), block.block, &block.kind);
        };
        self.update(kind, parent, out, fields, |_| {}, false);
        self.last_said = Some(block.kind.clone());
    }

    fn picture(&mut self, content: Option<&Json<'_>>, parent: Option<&Text<'_>>, out: &mut Output) {
        let picture = content.and_then(read::record_of::<Picture<'_>>).unwrap_or_default();
        let source = picture.source.unwrap_or_default();
        let (data, mime) = (picture.data.or(source.data), picture.mime.or(source.mime));
        let (Some(data), Some(mime)) = (data, mime) else {
            out.lost("picture");
            return;
        };
        let fields = |update: &mut Object<'_>| {
            update.object("content", |content| {
                content.fixed(r#""type":"image""#).text("data", &data).text("mimeType", &mime);
            });
        };
        self.update("agent_message_chunk", parent, out, fields, |_| {}, false);
        self.last_said = None;
    }

    fn user_message(
        &mut self,
        message: &UserMessage<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        if message.text.is_empty() {
            return;
        }
        // A client would show it as something that its user said.
        if parent.is_some() {
            out.lost("prompt of a sub-agent");
            return;
        }
        let fields = |update: &mut Object<'_>| {
            update.object("content", |content| {
                content.fixed(r#""type":"text""#).text("text", &message.text);
            });
        };
        let more = |facts: &mut Object<'_>| {
            if message.injected {
                facts.flag("injected", true);
            }
        };
        self.update("user_message_chunk", None, out, fields, more, message.injected);
        self.last_said = None;
    }

    fn artifact(&mut self, artifact: &Artifact<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        let path = artifact.path.to_plain();
        let name = path.rsplit('/').next().unwrap_or_default();
        let uri = if path.contains("://") { path.to_string() } else { format!("file://{path}") };
        let fields = |update: &mut Object<'_>| {
            update.object("content", |content| {
                content.fixed(r#""type":"resource_link""#).string("uri", &uri);
                match &artifact.label {
                    Some(label) => content.text("name", label),
                    None => content.string("name", name),
                };
                content.text_if("mimeType", artifact.media_type.as_ref());
                content.number_if("size", artifact.size);
            });
        };
        self.update("agent_message_chunk", parent, out, fields, |_| {}, false);
        self.last_said = None;
    }

    fn plan(&mut self, plan: &PlanUpdated<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        // A session has one plan: that of another agent would replace it.
        if parent.is_some() {
            out.lost("plan of a sub-agent");
            return;
        }
        let fields = |update: &mut Object<'_>| {
            update.objects("entries", &plan.items, |entry, item| {
                let (word, exact) = plan_word(&item.status);
                entry.text("content", &item.text).fixed(r#""priority":"medium""#);
                entry.string("status", word);
                if exact && item.id.is_none() && item.active_form.is_none() {
                    return;
                }
                entry.object("_meta", |meta| {
                    meta.object("interlingua", |facts| {
                        if !exact {
                            facts.string("status", item.status.as_str());
                        }
                        facts.text_if("id", item.id.as_ref());
                        facts.text_if("activeForm", item.active_form.as_ref());
                    });
                });
            });
        };
        let more = |facts: &mut Object<'_>| {
            facts.text_if("planId", plan.plan.as_ref());
            facts.text_if("toolCallId", plan.call.as_ref());
        };
        let has_more = plan.plan.is_some() || plan.call.is_some();
        self.update("plan", None, out, fields, more, has_more);
    }
}

/// Tool calls.
impl AcpEncoder {
    fn tool_started(
        &mut self,
        started: &ToolStarted<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        self.last_said = None;
        let ToolStarted { call, name, kind, executor, input, .. } = started;
        let word = tools::word_of(kind);
        let fields = |update: &mut Object<'_>| {
            update.text("toolCallId", call);
            told_input(update, name, kind, input.as_ref());
            update.text("name", name).string("kind", word);
            let status = if input.is_some() { "in_progress" } else { "pending" };
            update.string("status", status);
        };
        // What the reader would make of the name and the word.
        let told = tools::kind_of(name, Some(&Text::plain(word))) == *kind;
        let more = |facts: &mut Object<'_>| {
            if !told {
                facts.string("kind", kind.as_str());
            }
            if *executor != Executor::Agent {
                facts.string("executor", executor.as_str());
            }
        };
        let has_more = !told || *executor != Executor::Agent;
        self.update("tool_call", parent, out, fields, more, has_more);
    }

    fn tool_input(&mut self, input: &ToolInput<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        let fields = |update: &mut Object<'_>| {
            update.text("toolCallId", &input.call);
            told_input(update, &input.name, &input.kind, input.input.as_ref());
            update.fixed(r#""status":"in_progress""#);
        };
        self.update("tool_call_update", parent, out, fields, |_| {}, false);
    }

    /// A sign of life. What a call shows replaces what it showed before: a piece of it is no content.
    fn tool_progress(
        &mut self,
        progress: &ToolProgress<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let fields = |update: &mut Object<'_>| {
            update.text("toolCallId", &progress.call);
        };
        let more = |facts: &mut Object<'_>| {
            facts.text_if("output", progress.output.as_ref());
            facts.number_if("elapsedMs", progress.elapsed_ms);
        };
        self.update("tool_call_update", parent, out, fields, more, true);
    }

    fn files_changed(&mut self, files: &FilesChanged<'_>, out: &mut Output) {
        let Some(call) = &files.call else {
            out.lost("file changes outside a tool");
            return;
        };
        let at = self.changes.iter().position(|(other, ..)| other == call);
        let at = at.unwrap_or_else(|| {
            self.changes.push((call.clone().into_owned(), Bytes::new(), Bytes::new()));
            self.changes.len() - 1
        });
        let Some((_, shown, told)) = self.changes.get_mut(at) else { return };
        for change in &files.changes {
            show_change(shown, change);
            tell_change(told, change);
        }
    }

    fn tool_ended(&mut self, ended: &ToolEnded<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        self.last_said = None;
        let at = self.changes.iter().position(|(call, ..)| *call == ended.call);
        let (_, shown, told) = at.map(|at| self.changes.swap_remove(at)).unwrap_or_default();
        let completed = ended.status == ToolStatus::Completed;
        let exact = completed || ended.status == ToolStatus::Failed;
        let fields = |update: &mut Object<'_>| {
            update.text("toolCallId", &ended.call);
            update.string("status", if completed { "completed" } else { "failed" });
            write_output(update, ended, &shown);
        };
        // An error that is all there is to show is shown.
        let aside = ended.error.as_ref().filter(|_| !says_nothing(ended.output.as_ref()));
        let more = |facts: &mut Object<'_>| {
            if !exact {
                facts.string("status", ended.status.as_str());
            }
            if let Some(code) = ended.exit_code {
                facts.raw("exitCode", &code.to_string());
            }
            facts.text_if("error", aside);
            if !told.is_empty() {
                let list = facts.name("filesChanged");
                list.push(b'[');
                list.extend_from_slice(&told);
                list.push(b']');
            }
        };
        let has_more = !exact || ended.exit_code.is_some() || aside.is_some() || !told.is_empty();
        self.update("tool_call_update", parent, out, fields, more, has_more);
    }

    fn permission(&mut self, asked: &PermissionRequested<'_>, out: &mut Output) {
        let id = self.permissions;
        self.permissions += 1;
        let own_options = asked.options.as_ref().filter(|options| are_options(options));
        let mut request = Object::open(out.bytes());
        request.fixed(r#""jsonrpc":"2.0""#).number("id", id);
        request.fixed(r#""method":"session/request_permission""#);
        request.object("params", |params| {
            params.raw_bytes("sessionId", &self.session_id);
            params.object("toolCall", |call| {
                match &asked.call {
                    Some(id) => call.text("toolCallId", id),
                    None => call.string("toolCallId", &format!("permission-{id}")),
                };
                let title = asked.description.as_ref().or(asked.tool.as_ref());
                call.text("title", title.unwrap_or(&Text::plain("Permission")));
                call.text_if("name", asked.tool.as_ref());
                call.json_if("rawInput", asked.input.as_ref());
            });
            match own_options {
                Some(options) => params.json("options", options),
                None => params.raw("options", USUAL_OPTIONS),
            };
            params.object("_meta", |meta| {
                meta.object("interlingua", |facts| {
                    facts.text("requestId", &asked.request);
                    if own_options.is_none() {
                        facts.json_if("options", asked.options.as_ref());
                    }
                });
            });
        });
        request.end();
    }
}

/// The session itself.
impl AcpEncoder {
    /// Tells what is known of the session, and forgets what was told.
    fn session(&mut self, out: &mut Output) {
        let facts = std::mem::take(&mut self.facts);
        if let Some(id) = &facts.id {
            let mut literal = Bytes::new();
            write::text(&mut literal, id);
            self.name_session(literal);
        }
        let more = |fields: &mut Object<'_>| {
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

/// What a user may answer where the agent offers nothing that the protocol knows.
const USUAL_OPTIONS: &str = r#"[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]"#;

fn chunk_of(kind: &BlockKind, out: &mut Output) -> Option<&'static str> {
    match kind {
        BlockKind::Text => Some("agent_message_chunk"),
        BlockKind::Reasoning => Some("agent_thought_chunk"),
        BlockKind::HiddenReasoning => {
            out.lost("hidden reasoning");
            None
        }
        _ => {
            out.lost("block of an unknown kind");
            None
        }
    }
}

/// The protocol's word for how far a step is, and whether it says all.
fn plan_word(status: &PlanStatus) -> (&'static str, bool) {
    match status {
        PlanStatus::Pending => ("pending", true),
        PlanStatus::InProgress => ("in_progress", true),
        PlanStatus::Completed => ("completed", true),
        // Nothing is left to do about it.
        PlanStatus::Cancelled => ("completed", false),
        _ => ("pending", false),
    }
}

/// The title of a call, the place it works on, and its input.
fn told_input(update: &mut Object<'_>, name: &Text<'_>, kind: &ToolKind, input: Option<&Json<'_>>) {
    let telling = input.and_then(read::record_of::<Telling<'_>>).unwrap_or_default();
    let title = match kind {
        ToolKind::Execute => telling.command.as_ref(),
        _ => telling.path.as_ref().or(telling.pattern.as_ref()).or(telling.title.as_ref()),
    };
    update.text("title", title.filter(|title| !title.is_empty()).unwrap_or(name));
    if let Some(path) = telling.path.as_ref().filter(|path| !path.is_empty()) {
        update.objects("locations", [path], |location, path| {
            location.text("path", path);
        });
    }
    update.json_if("rawInput", input);
}

/// What a call gave back: for people as content, for programs as it is.
fn write_output(update: &mut Object<'_>, ended: &ToolEnded<'_>, changes: &[u8]) {
    let output = ended.output.as_ref().filter(|output| !output.is_null());
    let list = update.name("content");
    list.push(b'[');
    let first = list.len();
    match output {
        Some(output) if !says_nothing(Some(output)) => show_output(list, output),
        _ => {
            if let Some(error) = &ended.error {
                show_text(list, error);
            }
        }
    }
    if !changes.is_empty() {
        if list.len() > first {
            list.push(b',');
        }
        list.extend_from_slice(changes);
    }
    list.push(b']');
    let raw = ended.structured.as_ref().or(output.filter(|output| output.as_text().is_none()));
    update.json_if("rawOutput", raw);
}

record! {
    struct OutputBlock<'a> {
        kind: text "type",
        text: text "text",
    }
}

fn show_output(list: &mut Bytes, output: &Json<'_>) {
    let blocks = read::records_of::<OutputBlock<'_>>(output).filter(|_| output.is_array());
    let blocks = blocks.filter(|blocks| blocks.iter().all(|block| block.kind.is_some()));
    let Some(blocks) = blocks else {
        let (text, _) = output_text(output);
        show_text(list, &text);
        return;
    };
    let first = list.len();
    for text in blocks.iter().filter_map(|block| block.text.as_ref()) {
        if list.len() > first {
            list.push(b',');
        }
        show_text(list, text);
    }
}

fn show_text(list: &mut Bytes, text: &Text<'_>) {
    list.extend_from_slice(br#"{"type":"content","content":{"type":"text","text":"#);
    write::text(list, text);
    list.extend_from_slice(b"}}");
}

/// A difference, where both texts are known.
fn show_change(list: &mut Bytes, change: &FileChange<'_>) {
    let difference = change.diff.as_ref().and_then(read::record_of::<Difference<'_>>);
    let Some(Difference { old_text, new_text: Some(new_text) }) = difference else { return };
    if !list.is_empty() {
        list.push(b',');
    }
    let mut diff = Object::open(list);
    diff.fixed(r#""type":"diff""#).text("path", &change.path);
    diff.text_if("oldText", old_text.as_ref()).text("newText", &new_text);
    diff.close();
}

fn tell_change(list: &mut Bytes, change: &FileChange<'_>) {
    if !list.is_empty() {
        list.push(b',');
    }
    let mut told = Object::open(list);
    told.text("path", &change.path).text_if("oldPath", change.old_path.as_ref());
    told.string("kind", change.kind.as_str()).json_if("diff", change.diff.as_ref());
    told.close();
}

fn says_nothing(output: Option<&Json<'_>>) -> bool {
    output.is_none_or(|output| {
        output.is_null() || output.as_text().is_some_and(|text| text.is_empty())
    })
}

/// Whether these are options that a client of the protocol can show.
fn are_options(options: &Json<'_>) -> bool {
    let Some(list) = read::records_of::<OfferedOption<'_>>(options) else { return false };
    let known = |option: &OfferedOption<'_>| {
        let kind = option.kind.as_ref().map_or("", Text::body);
        let kinds = ["allow_once", "allow_always", "reject_once", "reject_always"];
        option.id.is_some() && option.name.is_some() && kinds.contains(&kind)
    };
    !list.is_empty() && list.iter().all(known)
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
        Data::QuestionAsked(_) => "question",
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
