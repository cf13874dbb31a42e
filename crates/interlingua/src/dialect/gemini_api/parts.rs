//! The parts of one response: blocks of text and thoughts, calls, code that the provider runs, and
//! data.

use super::wire::{CodeExecutionResult, ExecutableCode, FunctionCall, InlineData, Part};
use crate::dialect::{Emitter, tools};
use crate::event::{
    Block, BlockDelta, BlockEnded, BlockKind, BlockStarted, Executor, Native, PlanUpdated,
    ToolEnded, ToolKind, ToolStarted, ToolStatus, Unknown,
};
use crate::json::{Json, Text};

/// The tool that runs code at the provider.
const CODE_TOOL: &str = "code_execution";

/// The parts of one response.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// The id of the response.
    pub(super) message: Option<Text<'static>>,
    next_index: u64,
    open: Option<OpenBlock>,
    /// The client's calls. One that has no id is empty here, and is named by the grammar.
    calls: Vec<Text<'static>>,
    codes: Codes,
}

#[derive(Debug)]
struct OpenBlock {
    index: u64,
    kind: BlockKind,
    signature: Option<Text<'static>>,
}

/// Code that the provider runs. Its ids are made of a tag and a number, if it has none.
#[derive(Debug, Default)]
pub(super) struct Codes {
    pub(super) tag: String,
    made: u64,
    /// The code whose result follows.
    running: Option<Text<'static>>,
}

impl Parts {
    /// Begins the next response.
    pub(super) fn begin(&mut self, message: Option<Text<'static>>) {
        let codes = Codes { running: None, ..std::mem::take(&mut self.codes) };
        *self = Self { message, codes, ..Self::default() };
    }

    /// Sets the tag that distinguishes generated ids from those of other streams.
    pub(super) fn set_id_tag(&mut self, tag: &str) {
        tag.clone_into(&mut self.codes.tag);
    }

    /// Decodes a part, of a whole response or of a chunk; returns whether it emitted an event.
    pub(super) fn take<'a>(
        &mut self,
        part: Part<'a>,
        of_whole: bool,
        out: &mut Emitter<'_, 'a>,
    ) -> bool {
        let mut emitted = true;
        if let Some(call) = part.call {
            self.call(call, part.signature, out);
        } else if let Some(code) = part.code {
            self.run_code(code, out);
            emit_signature(None, part.signature, out);
        } else if let Some(result) = part.code_result {
            self.code_result(result, out);
            emit_signature(None, part.signature, out);
        } else if let Some(data) = part.inline_data {
            self.data(data, out);
            emit_signature(None, part.signature, out);
        } else if let Some(file) = part.file_data {
            self.block(BlockKind::from("file"), Some(file), out);
            emit_signature(None, part.signature, out);
        } else {
            let text = part.text.unwrap_or_default();
            if of_whole && !text.is_empty() {
                self.whole_text(text, part.thought == Some(true), part.signature, out);
                return true;
            }
            emitted = self.text(text, part.thought == Some(true), part.signature, out);
        }
        if let Some((name, raw)) = part.unknown {
            out.emit(Unknown { name: Text::from(format!("part/{name}")), raw: Some(raw) });
            emitted = true;
        }
        emitted
    }

    fn whole_text<'a>(
        &mut self,
        text: Text<'a>,
        thought: bool,
        signature: Option<Text<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let kind = if thought { BlockKind::Reasoning } else { BlockKind::Text };
        let index = self.take_index();
        let message = self.message();
        out.emit(Block { message, index, kind, text, signature, ..Block::default() });
    }

    fn text<'a>(
        &mut self,
        text: Text<'a>,
        thought: bool,
        signature: Option<Text<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) -> bool {
        let kind = if thought { BlockKind::Reasoning } else { BlockKind::Text };
        let continues = self.open.as_ref().is_some_and(|open| open.kind == kind);
        if text.is_empty() && !continues {
            // An empty part is no block, but its signature may have to be sent back.
            return emit_signature(None, signature, out);
        }
        if !continues {
            self.end_block(out);
            let index = self.take_index();
            let message = self.message();
            out.emit(BlockStarted { block: 0, message, index, kind: kind.clone() });
            self.open = Some(OpenBlock { index, kind: kind.clone(), signature: None });
        }
        let Some(open) = &mut self.open else { return false };
        let (index, signed) = (open.index, signature.is_some());
        if let Some(signature) = signature {
            open.signature = Some(signature.into_owned());
        }
        if !text.is_empty() {
            out.emit(BlockDelta { block: 0, message: self.message(), index, kind, text });
        } else if signed {
            out.sink.deferred();
        }
        true
    }

    fn call<'a>(
        &mut self,
        call: FunctionCall<'a>,
        signature: Option<Text<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) {
        self.end_block(out);
        if call.partial_args.is_some() || call.will_continue == Some(true) {
            out.unknown(Text::plain("part/functionCall/partialArgs"));
            return;
        }
        let id = call.id.unwrap_or_default();
        let name = call.name.unwrap_or_default();
        let kind = tools::kind_of(&name);
        let input = call.args.unwrap_or_else(|| Json::object(|_| {}));
        self.calls.push(id.clone().into_owned());
        out.emit(ToolStarted {
            native_call: None,
            call: id.clone(),
            name,
            kind: kind.clone(),
            executor: Executor::Client,
            message: self.message(),
            input: Some(input.clone()),
        });
        emit_signature(Some(&id), signature, out);
        if let Some(items) = tools::plan_written(&kind, &input) {
            out.emit(PlanUpdated { plan: None, call: Some(id), items });
        }
    }

    fn run_code<'a>(&mut self, code: ExecutableCode<'a>, out: &mut Emitter<'_, 'a>) {
        self.end_block(out);
        let call = self.codes.next_id(code.id.as_ref());
        self.codes.running = Some(call.clone());
        let input = Json::object(|input| {
            input.text_if("language", code.language.as_ref()).text_if("code", code.code.as_ref());
        });
        out.emit(ToolStarted {
            call,
            name: Text::plain(CODE_TOOL),
            kind: ToolKind::Execute,
            executor: Executor::Provider,
            message: self.message(),
            input: Some(input),
            ..ToolStarted::default()
        });
    }

    fn code_result<'a>(&mut self, result: CodeExecutionResult<'a>, out: &mut Emitter<'_, 'a>) {
        self.end_block(out);
        let running = self.codes.running.take();
        let call = running.unwrap_or_else(|| self.codes.next_id(result.id.as_ref()));
        let status = match result.outcome.as_ref().map_or("", Text::body) {
            "OUTCOME_FAILED" => ToolStatus::Failed,
            "OUTCOME_DEADLINE_EXCEEDED" => ToolStatus::TimedOut,
            _ => ToolStatus::Completed,
        };
        out.emit(ToolEnded {
            call,
            name: Text::plain(CODE_TOOL),
            status,
            output: result.output.as_ref().map(Json::from),
            ..ToolEnded::default()
        });
    }

    fn data<'a>(&mut self, data: InlineData<'a>, out: &mut Emitter<'_, 'a>) {
        let is_image =
            data.mime_type.as_ref().is_some_and(|kind| kind.to_plain().starts_with("image/"));
        let kind = if is_image { BlockKind::Image } else { BlockKind::from("inline_data") };
        let content = Json::object(|content| {
            content.fixed(r#""type":"base64""#);
            content.text_if("media_type", data.mime_type.as_ref());
            content.text_if("data", data.data.as_ref());
        });
        self.block(kind, Some(content), out);
    }

    fn block<'a>(&mut self, kind: BlockKind, content: Option<Json<'a>>, out: &mut Emitter<'_, 'a>) {
        self.end_block(out);
        let index = self.take_index();
        let message = self.message();
        out.emit(Block { message, index, kind, content, ..Block::default() });
    }

    /// Ends the open block, if there is one.
    pub(super) fn end_block(&mut self, out: &mut Emitter<'_, '_>) {
        if let Some(OpenBlock { index, kind, signature }) = self.open.take() {
            out.emit(BlockEnded { block: 0, message: self.message(), index, kind, signature });
        }
    }

    /// Takes the calls that the client has to answer.
    pub(super) fn take_calls(&mut self) -> Vec<Text<'static>> {
        std::mem::take(&mut self.calls)
    }

    fn take_index(&mut self) -> u64 {
        self.next_index += 1;
        self.next_index - 1
    }

    fn message(&self) -> Option<Text<'_>> {
        self.message.as_ref().map(Text::borrowed)
    }
}

impl Codes {
    /// The id of a call: its own, else a generated one.
    fn next_id(&mut self, own: Option<&Text<'_>>) -> Text<'static> {
        if let Some(own) = own.filter(|own| !own.is_empty()) {
            return own.clone().into_owned();
        }
        self.made += 1;
        Text::from(format!("code_{}_{}", self.tag, self.made))
    }
}

/// Keeps the signature of a part that is not a block of text: it has to be sent back with the part.
/// Returns whether there is one.
fn emit_signature(
    call: Option<&Text<'_>>,
    signature: Option<Text<'_>>,
    out: &mut Emitter<'_, '_>,
) -> bool {
    let Some(signature) = signature else { return false };
    let raw = Json::object(|raw| {
        raw.text_if("call", call.filter(|call| !call.is_empty()));
        raw.text("thoughtSignature", &signature);
    });
    out.emit(Native { name: Text::plain("thoughtSignature"), raw: Some(raw) });
    true
}
