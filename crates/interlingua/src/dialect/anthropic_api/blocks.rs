//! The blocks and the calls of one response. A call has a whole input only if its JSON is complete.

use super::input::{StreamedInput, WholeInput};
use super::wire::{Content, Delta};
use crate::dialect::messages_api::provider_answer;
use crate::dialect::{Emitter, tools};
use crate::event::{
    Block, BlockDelta, BlockEnded, BlockKind, BlockStarted, Executor, Native, PlanUpdated,
    ToolEnded, ToolInput, ToolInputDelta, ToolKind, ToolStarted, ToolStatus,
};
use crate::json::read::Whole;
use crate::json::{Json, Text};

impl<'a> Delta<'a> {
    /// The text of a delta of text or reasoning, if it has no escapes.
    pub(super) fn only_text(&self) -> Option<(&Text<'a>, BlockKind)> {
        let (text, kind) = match self.kind.as_ref().map_or("", Text::body) {
            "text_delta" => (self.text.as_ref()?, BlockKind::Text),
            "thinking_delta" => (self.thinking.as_ref()?, BlockKind::Reasoning),
            _ => return None,
        };
        (!text.has_escapes()).then_some((text, kind))
    }
}

/// The blocks and the calls of one response.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// The id of the response.
    pub(super) message: Option<Text<'static>>,
    next_index: u64,
    open: Vec<OpenBlock>,
    /// The calls that have no answer.
    calls: Vec<Call>,
    /// The ended calls for which no input was streamed. It is empty, unless the response was cut off.
    without_input: Vec<Call>,
    /// The input of a call of the client is no JSON object.
    pub(super) has_malformed: bool,
}

#[derive(Debug)]
struct OpenBlock {
    index: u64,
    content: OpenContent,
}

#[derive(Debug)]
enum OpenContent {
    Text,
    Reasoning {
        signature: Option<Text<'static>>,
    },
    Call {
        call: Call,
        input: StreamedInput,
        /// The input with which the block started, if it was not empty.
        given: Option<Json<'static>>,
    },
    /// A block that was complete when it started.
    Complete,
}

#[derive(Debug, Clone)]
struct Call {
    id: Text<'static>,
    kind: ToolKind,
    executor: Executor,
}

impl Blocks {
    /// The blocks of a response that starts.
    pub(super) fn of(message: Option<Text<'static>>) -> Self {
        Self { message, ..Self::default() }
    }

    /// Decodes the start of a block.
    pub(super) fn start<'a>(
        &mut self,
        index: Option<u64>,
        block: Whole<'a, Content<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) {
        // The model goes on after these calls, so they are complete.
        self.settle_calls_without_input(true, out);
        let index = index.unwrap_or(self.next_index);
        if self.open.iter().any(|open| open.index == index) {
            self.end(Some(index), out);
        }
        let content = self.start_content(index, block, out);
        self.next_index = index + 1;
        self.open.push(OpenBlock { index, content });
    }

    fn start_content<'a>(
        &mut self,
        index: u64,
        block: Whole<'a, Content<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) -> OpenContent {
        let Whole { json, record: content } = block;
        let (kind, text, open) = match content.kind.as_ref().map_or("", Text::body) {
            "text" => (BlockKind::Text, content.text, OpenContent::Text),
            "thinking" => {
                let signature = content.signature.filter(|signature| !signature.is_empty());
                let signature = signature.map(Text::into_owned);
                (BlockKind::Reasoning, content.thinking, OpenContent::Reasoning { signature })
            }
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                let given = content.input.clone().filter(|input| !is_empty_object(input));
                let given = given.map(Json::into_owned);
                let call = self.start_call(content, None, out);
                return OpenContent::Call { call, input: StreamedInput::default(), given };
            }
            _ => {
                self.emit_whole(index, Whole { json, record: content }, out);
                return OpenContent::Complete;
            }
        };
        out.emit(BlockStarted { block: 0, message: self.message(), index, kind: kind.clone() });
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            out.emit(BlockDelta { block: 0, message: self.message(), index, kind, text });
        }
        open
    }

    /// Decodes the next piece of a block.
    pub(super) fn add_delta<'a>(
        &mut self,
        index: Option<u64>,
        delta: Delta<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let index = index.unwrap_or_else(|| self.next_index.saturating_sub(1));
        let (kind, text) = match delta.kind.as_ref().map_or("", Text::body) {
            "text_delta" => (BlockKind::Text, delta.text),
            "thinking_delta" => (BlockKind::Reasoning, delta.thinking),
            "input_json_delta" => {
                let open = self.open.iter_mut().rfind(|open| open.index == index);
                let Some(OpenContent::Call { call, input, .. }) = open.map(|it| &mut it.content)
                else {
                    out.unknown(Text::plain("content_block_delta/input_json_delta"));
                    return;
                };
                let text = delta.partial_json.unwrap_or_default();
                input.add(&text);
                out.emit(ToolInputDelta { call: call.id.borrowed(), text });
                return;
            }
            "signature_delta" => {
                let open = self.open.iter_mut().rfind(|open| open.index == index);
                if let Some(OpenContent::Reasoning { signature }) = open.map(|it| &mut it.content) {
                    *signature = delta.signature.map(Text::into_owned);
                }
                out.native("signature_delta");
                return;
            }
            "citations_delta" => {
                out.native("citations_delta");
                return;
            }
            other => {
                out.unknown(Text::from(format!("content_block_delta/{other}")));
                return;
            }
        };
        self.emit_delta(index, kind, text.unwrap_or_default(), out);
    }

    /// Emits the next piece of a text.
    #[inline]
    pub(super) fn emit_delta<'a>(
        &self,
        index: u64,
        kind: BlockKind,
        text: Text<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        out.emit(BlockDelta { block: 0, message: self.message(), index, kind, text });
    }

    /// Decodes the end of a block.
    pub(super) fn end(&mut self, index: Option<u64>, out: &mut Emitter<'_, '_>) {
        let at = match index {
            Some(index) => self.open.iter().rposition(|open| open.index == index),
            None => self.open.len().checked_sub(1),
        };
        let Some(block) = at.map(|at| self.open.remove(at)) else {
            out.unknown(Text::plain("content_block_stop"));
            return;
        };
        match block.content {
            OpenContent::Call { call, input, given } => match (input.end(), given) {
                (WholeInput::Object(input), _) | (WholeInput::Empty, Some(input)) => {
                    self.emit_input(&call, input, out);
                }
                (WholeInput::Empty, None) => {
                    self.without_input.push(call);
                    out.native("content_block_stop");
                }
                (WholeInput::Broken, _) => {
                    self.has_malformed |= call.executor == Executor::Client;
                    self.abandon(&call, "the input of this call is not complete", out);
                }
            },
            OpenContent::Complete => out.native("content_block_stop"),
            content => self.end_text(block.index, content, out),
        }
    }

    fn end_text(&self, index: u64, content: OpenContent, out: &mut Emitter<'_, '_>) {
        let (kind, signature) = match content {
            OpenContent::Reasoning { signature } => (BlockKind::Reasoning, signature),
            _ => (BlockKind::Text, None),
        };
        out.emit(BlockEnded { block: 0, message: self.message(), index, kind, signature });
    }

    /// Ends what is open at the end of the response. A call that is still open is incomplete.
    pub(super) fn end_all(&mut self, out: &mut Emitter<'_, '_>) {
        for OpenBlock { index, content } in std::mem::take(&mut self.open) {
            match content {
                OpenContent::Call { call, .. } => {
                    self.abandon(&call, "the input of this call is not complete", out);
                }
                OpenContent::Complete => {}
                content => self.end_text(index, content, out),
            }
        }
    }

    /// Decodes a block of a response that was not streamed.
    pub(super) fn take_whole<'a>(
        &mut self,
        index: u64,
        block: Whole<'a, Content<'a>>,
        is_cut: bool,
        out: &mut Emitter<'_, 'a>,
    ) {
        let kind = block.record.kind.as_ref().map_or("", Text::body);
        if !matches!(kind, "tool_use" | "server_tool_use" | "mcp_tool_use") {
            self.emit_whole(index, block, out);
        } else if is_cut {
            let call = self.start_call(block.record, None, out);
            self.abandon(&call, "the input of this call is not complete", out);
        } else {
            let input = block.record.input.clone().unwrap_or_else(|| empty_object());
            let call = self.start_call(block.record, Some(input.clone()), out);
            emit_plan(&call, &input, out);
        }
    }

    /// Emits a block that is complete, and is not a call.
    fn emit_whole<'a>(
        &mut self,
        index: u64,
        block: Whole<'a, Content<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let Whole { json, record: content } = block;
        let mut block = Block { message: self.message.clone(), index, ..Block::default() };
        match content.kind.as_ref().map_or("", Text::body) {
            "text" => block.text = content.text.unwrap_or_default(),
            "thinking" => {
                block.kind = BlockKind::Reasoning;
                block.text = content.thinking.unwrap_or_default();
                block.signature = content.signature;
            }
            "redacted_thinking" => {
                block.kind = BlockKind::HiddenReasoning;
                block.signature = content.data;
            }
            kind if kind.ends_with("_tool_result") => {
                let ended = provider_answer(content.tool_use_id, content.content, content.is_error);
                self.calls.retain(|call| call.id != ended.call);
                out.emit(ended);
                return;
            }
            other => {
                block.kind = BlockKind::from(other);
                block.content = Some(json);
            }
        }
        out.emit(block);
        if let Some(citations) = content.citations.filter(|citations| citations.get() != "[]") {
            out.emit(Native { name: Text::plain("citations"), raw: Some(citations) });
        }
    }

    fn start_call<'a>(
        &mut self,
        content: Content<'a>,
        input: Option<Json<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) -> Call {
        let name = content.name.unwrap_or_default();
        let id = content.id.unwrap_or_default();
        let (kind, executor) = match content.kind.as_ref().map_or("", Text::body) {
            "server_tool_use" => (kind_of_server_tool(&name), Executor::Provider),
            "mcp_tool_use" => (ToolKind::Mcp, Executor::Provider),
            _ => (tools::kind_of(&name), Executor::Client),
        };
        let call = Call { id: id.clone().into_owned(), kind, executor };
        out.emit(ToolStarted {
            native_call: None,
            call: id,
            name,
            kind: call.kind.clone(),
            executor: call.executor.clone(),
            message: self.message(),
            input,
        });
        self.calls.push(call.clone());
        call
    }

    fn emit_input(&mut self, call: &Call, input: Json<'static>, out: &mut Emitter<'_, '_>) {
        let whole = Some(input.borrowed());
        out.emit(ToolInput { call: call.id.borrowed(), input: whole, ..ToolInput::default() });
        emit_plan(call, &input, out);
    }

    /// Emits the empty input of the calls for which none was streamed, or abandons them if the
    /// response was cut off before it.
    pub(super) fn settle_calls_without_input(&mut self, complete: bool, out: &mut Emitter<'_, '_>) {
        for call in std::mem::take(&mut self.without_input) {
            if complete {
                self.emit_input(&call, empty_object(), out);
            } else {
                self.abandon(&call, "the input of this call is not complete", out);
            }
        }
    }

    /// Abandons all calls that have no answer, since the response ended in a way that leaves none.
    pub(super) fn abandon_all(&mut self, why: &'static str, out: &mut Emitter<'_, '_>) {
        self.without_input.clear();
        for call in std::mem::take(&mut self.calls) {
            self.abandon(&call, why, out);
        }
    }

    /// The calls that the client has to answer.
    pub(super) fn take_client_calls(&mut self) -> Vec<Text<'static>> {
        let calls = std::mem::take(&mut self.calls).into_iter();
        calls.filter(|call| call.executor == Executor::Client).map(|call| call.id).collect()
    }

    /// Ends a call that will not be answered.
    fn abandon(&mut self, call: &Call, why: &'static str, out: &mut Emitter<'_, '_>) {
        self.calls.retain(|open| open.id != call.id);
        out.emit(abandoned(call.id.borrowed(), why));
    }

    fn message(&self) -> Option<Text<'_>> {
        self.message.as_ref().map(Text::borrowed)
    }
}

/// The end of a call that will not be answered.
pub(super) fn abandoned<'a>(call: Text<'a>, why: &'static str) -> ToolEnded<'a> {
    ToolEnded {
        call,
        status: ToolStatus::Abandoned,
        error: Some(Text::plain(why)),
        ..ToolEnded::default()
    }
}

fn emit_plan(call: &Call, input: &Json<'_>, out: &mut Emitter<'_, '_>) {
    if let Some(items) = tools::plan_written(&call.kind, input) {
        out.emit(PlanUpdated { plan: None, call: Some(call.id.borrowed()), items });
    }
}

fn kind_of_server_tool(name: &Text<'_>) -> ToolKind {
    match name.body() {
        "code_execution" | "bash_code_execution" => ToolKind::Execute,
        "text_editor_code_execution" => ToolKind::Edit,
        _ => tools::kind_of(name),
    }
}

fn empty_object() -> Json<'static> {
    Json::object(|_| {})
}

fn is_empty_object(json: &Json<'_>) -> bool {
    let inside = json.get().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    inside.is_some_and(|inside| inside.trim_ascii().is_empty())
}
