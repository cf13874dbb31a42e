//! Decodes the flat contract. It passes Claude's nested records on to the decoder of `claude`.

use super::CLIENT;
use super::ending::{Ending, error_list, failure_text};
use super::wire::{Answer, CompactMetadata, Counts, Line};
use crate::dialect::claude::ClaudeDecoder;
use crate::dialect::decode::Own;
use crate::dialect::{Decoder, Emitter, EventSink, content, each_record, tools};
use crate::event::{
    BlockDelta, BlockEnded, BlockKind, Compacted, Data, Error, ErrorClass, Event, Executor,
    Interrupted, Native, PlanUpdated, Scope, SessionStarted, SessionUpdated, ToolEnded,
    ToolStarted, ToolStatus, TurnStarted, Usage,
};
use crate::framing::FrameText;
use crate::json::read;
use crate::json::{Json, Text};

/// The decoder of `yume`.
#[derive(Debug, Default)]
pub struct YumeDecoder {
    /// Decodes Claude's records.
    claude: ClaudeDecoder,
    /// The index of the current block: consecutive records of one type are one block.
    block: u64,
    open: Option<OpenBlock>,
    /// The answers whose last part is missing.
    parts: Vec<Parts>,
    ending: Ending,
}

#[derive(Debug, PartialEq)]
struct OpenBlock {
    kind: BlockKind,
    parent: Option<Text<'static>>,
}

/// An answer that is split into several records.
#[derive(Debug)]
struct Parts {
    call: Text<'static>,
    parent: Option<Text<'static>>,
    text: String,
    failed: bool,
}

impl Decoder for YumeDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        if frame.text.trim_ascii() == "$" {
            self.end_block(sink);
            sink.record(frame.text);
            self.end_message(Native { name: Text::plain("$"), raw: None }, sink);
            return;
        }
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            self.decode_line(std::mem::take(line), own, sink);
        });
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        self.abandon_parts(sink);
    }
}

impl YumeDecoder {
    fn decode_line<'a>(&mut self, mut line: Line<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
        let kind = line.kind.take();
        let text = match kind.as_ref().map_or("", Text::body) {
            "text" => Some(BlockKind::Text),
            "thinking" => Some(BlockKind::Reasoning),
            _ => None,
        };
        if let Some(block) = text {
            self.emit_delta(block, line, sink);
            return;
        }
        self.end_block(sink);
        let mut out = Emitter::new(own, sink).within(line.parent.take()).at(line.timestamp.take());
        match kind.as_ref().map_or("", Text::body) {
            "tool_use" => self.decode_call(line, &mut out),
            "tool_result" => self.decode_answer(line, &mut out),
            "usage" => {
                let usage = line_usage(&line);
                self.ending.note_usage(usage.clone());
                out.emit(usage);
            }
            "result" => self.decode_result(line, &mut out),
            "system" => self.decode_system(line, own, &mut out),
            "error" => self.emit_error(error_of(line), &mut out),
            "interrupt" => {
                self.ending.note_interrupt();
                out.emit(Interrupted { text: line.message });
            }
            "message_stop" => {
                let native = Native { name: Text::plain("message_stop"), raw: own.json() };
                self.end_message(native, out.sink);
            }
            "assistant" | "user" | "stream_event" => self.decode_nested(own, out.sink),
            _ => out.unknown(kind),
        }
    }

    /// Emits a delta of text or reasoning.
    fn emit_delta(&mut self, kind: BlockKind, line: Line<'_>, sink: &mut dyn EventSink) {
        let text = line.content.as_ref().and_then(Json::as_text);
        let text = match kind {
            BlockKind::Text => text.or(line.text),
            _ => line.thought.or(text).or(line.text),
        };
        let parent = line.parent.clone().map(Text::into_owned);
        let block = OpenBlock { kind: kind.clone(), parent };
        if self.open.as_ref() != Some(&block) {
            self.end_block(sink);
        }
        self.open = Some(block);
        self.ending.note_activity();
        let text = text.unwrap_or_default();
        let delta = BlockDelta { index: self.block, kind, text, ..BlockDelta::default() };
        sink.event(Event::new(delta).within(line.parent).at(line.timestamp));
    }

    fn end_block(&mut self, sink: &mut dyn EventSink) {
        let Some(open) = self.open.take() else { return };
        let ended = BlockEnded { index: self.block, kind: open.kind, ..BlockEnded::default() };
        self.block += 1;
        sink.event(Event::new(ended).within(open.parent));
    }

    /// Decodes a record of Claude's. The sink has already received its text.
    fn decode_nested(&mut self, own: Own<'_>, sink: &mut dyn EventSink) {
        let frame = FrameText {
            text: own.0,
            noise: "",
            replaced: false,
            unterminated: false,
            several_lines: false,
            event: "",
        };
        let Self { claude, ending, .. } = self;
        claude.decode(&frame, &mut |event: Event<'_>| {
            match &event.data {
                Data::ToolStarted(call) => {
                    ending.note_call(&call.call, call.executor == Executor::Client);
                }
                Data::ToolEnded(ended) => ending.note_answer(&ended.call),
                Data::Block(_) | Data::BlockDelta(_) => ending.note_activity(),
                _ => {}
            }
            sink.event(event);
        });
    }

    /// Decodes the end of a turn. If `message_stop` has already ended the turn, only its errors are
    /// emitted.
    fn decode_result<'a>(&mut self, mut line: Line<'a>, out: &mut Emitter<'_, 'a>) {
        self.abandon_parts(out.sink);
        if !self.ending.is_ended() {
            out.emit(self.ending.result(line));
            return;
        }
        if line.is_error == Some(true) {
            let errors = line.errors.as_ref().map(error_list).unwrap_or_default();
            let message = line.message.take().or_else(|| errors.last().cloned());
            out.emit(error_of(Line { message, ..line }));
        }
        out.native("result");
    }

    /// Ends a message, and its turn if no `result` has ended that.
    fn end_message(&mut self, marker: Native<'_>, sink: &mut dyn EventSink) {
        match self.ending.message_stop() {
            Some(ended) => {
                self.abandon_parts(sink);
                sink.event(Event::new(ended));
            }
            None => sink.event(Event::new(marker)),
        }
    }

    fn emit_error(&mut self, error: Error<'_>, out: &mut Emitter<'_, '_>) {
        self.ending.note_error(&error.message);
        out.emit(error);
    }

    fn decode_system(&mut self, line: Line<'_>, own: Own<'_>, out: &mut Emitter<'_, '_>) {
        match line.subtype.as_ref().map_or("", Text::body) {
            "init" => {
                out.emit(SessionStarted {
                    id: line.session_id,
                    agent: Some(Text::plain("yume")),
                    version: None,
                    model: line.model,
                    cwd: line.cwd,
                    permission_mode: line.permission_mode,
                    tools: line.tools,
                    host_fields: Vec::new(),
                });
                self.ending.begin();
                out.emit(TurnStarted::default());
            }
            "session_id" => {
                out.emit(SessionUpdated { id: line.session_id, ..SessionUpdated::default() });
            }
            "compact_boundary" => out.emit(compacted(line.compact_metadata)),
            "error" => {
                let mut error = error_of(line);
                if error.class == ErrorClass::Unspecified {
                    error.class = ErrorClass::Configuration;
                }
                self.emit_error(error, out);
            }
            // Other subtypes are Claude's or unknown.
            _ => self.decode_nested(own, out.sink),
        }
    }

    fn decode_call(&mut self, line: Line<'_>, out: &mut Emitter<'_, '_>) {
        let name = line.name.unwrap_or_default();
        let call = line.id.or(line.tool_id).unwrap_or_default();
        let input = line.input.unwrap_or_else(|| Json::object(|_| {}));
        let by_client = line.executor.is_some_and(|executor| executor == CLIENT);
        self.ending.note_call(&call, by_client);
        out.emit(ToolStarted {
            call: call.borrowed(),
            kind: tools::kind_of(&name),
            name: name.borrowed(),
            executor: if by_client { Executor::Client } else { Executor::Agent },
            input: Some(input.borrowed()),
            ..ToolStarted::default()
        });
        if let Some(items) = tools::plan_written(&tools::kind_of(&name), &input) {
            out.emit(PlanUpdated { plan: None, call: Some(call.borrowed()), items });
        }
    }

    fn decode_answer(&mut self, line: Line<'_>, out: &mut Emitter<'_, '_>) {
        let failed = line.is_error.unwrap_or(false)
            || line.status.as_ref().is_some_and(|status| *status == "error");
        let call = line.tool_id.or(line.id).unwrap_or_default();
        if line.partial != Some(true) {
            self.ending.note_answer(&call);
        }
        let output = line.content.or(line.output);
        let output = output.as_ref().map(unwrap_output);
        let at = self.parts.iter().position(|parts| parts.call == call);
        if line.partial != Some(true) && at.is_none() {
            out.emit(tool_ended(call, output, failed));
            return;
        }
        let at = at.unwrap_or_else(|| {
            let parent = out.parent.clone().map(Text::into_owned);
            let call = call.clone().into_owned();
            self.parts.push(Parts { call, parent, text: String::new(), failed: false });
            self.parts.len() - 1
        });
        if let Some(parts) = self.parts.get_mut(at) {
            parts.failed |= failed;
            if let Some(output) = &output {
                parts.text.push_str(&content::output_text(output).0.to_plain());
            }
        }
        if line.partial != Some(true) {
            let parts = self.parts.remove(at);
            let output = Json::from(&Text::plain(&parts.text));
            out.emit(tool_ended(call, Some(output), parts.failed));
        }
    }

    /// Abandons the answers whose last part is missing.
    fn abandon_parts(&mut self, sink: &mut dyn EventSink) {
        for parts in self.parts.drain(..) {
            let output = Some(Json::from(&Text::plain(&parts.text)));
            let ended = tool_ended(parts.call, output, parts.failed);
            let ended = ToolEnded { status: ToolStatus::Abandoned, ..ended };
            sink.event(Event::new(ended).within(parts.parent));
        }
    }
}

fn tool_ended<'a>(call: Text<'a>, output: Option<Json<'a>>, failed: bool) -> ToolEnded<'a> {
    let status = if failed { ToolStatus::Failed } else { ToolStatus::Completed };
    ToolEnded { call, status, output, ..ToolEnded::default() }
}

/// The output of a tool; an object may contain it in `content` or `output`.
fn unwrap_output<'a>(output: &'a Json<'_>) -> Json<'a> {
    if output.is_object()
        && let Some(answer) = read::record_of::<Answer<'_>>(output)
        && let Some(inner) = answer.content.or(answer.output)
    {
        return inner;
    }
    output.borrowed()
}

fn line_usage<'a>(line: &Line<'a>) -> Usage<'a> {
    match &line.usage {
        Some(counts) => usage(counts),
        None => Usage {
            input: line.input_tokens,
            output: line.output_tokens,
            cache_write: line.cache_write,
            cache_read: line.cache_read,
            estimated: line.estimated.unwrap_or(false),
            ..Usage::default()
        },
    }
}

pub(super) fn usage<'a>(counts: &Counts<'a>) -> Usage<'a> {
    Usage {
        scope: Scope::Turn,
        input: counts.input,
        output: counts.output,
        cache_write: counts.cache_write,
        cache_read: counts.cache_read,
        estimated: counts.estimated.unwrap_or(false),
        ..Usage::default()
    }
}

fn error_of(line: Line<'_>) -> Error<'_> {
    let message = line.message.or(failure_text(line.error)).unwrap_or_default();
    let code = line.code.map(|code| match code.as_text() {
        Some(text) => text.into_owned(),
        None => Text::from(code.get().to_owned()),
    });
    let (class, http_status) = classify(code.as_ref(), &message);
    Error { class, message, code, http_status, ..Error::default() }
}

/// Classifies a failure by its code, or else by its message.
fn classify(code: Option<&Text<'_>>, message: &Text<'_>) -> (ErrorClass, Option<u64>) {
    let code = code.map(|code| code.to_plain().to_ascii_lowercase()).unwrap_or_default();
    if let Ok(status @ 400..=599) = code.parse::<u64>() {
        return (ErrorClass::of_http_status(status), Some(status));
    }
    let message = message.to_plain().to_ascii_lowercase();
    let mentions =
        |words: &[&str]| words.iter().any(|word| code.contains(word) || message.contains(word));
    let class = if mentions(&["auth", "api key", "api_key", "log in", "login", "logged in"]) {
        ErrorClass::Authentication
    } else if mentions(&["rate limit", "rate_limit"]) {
        ErrorClass::RateLimit
    } else if mentions(&["timeout", "timed out", "took too long"]) {
        ErrorClass::TimedOut
    } else {
        ErrorClass::Unspecified
    };
    (class, None)
}

fn compacted(details: Option<Json<'_>>) -> Compacted<'static> {
    let metadata = details.as_ref().and_then(read::record_of::<CompactMetadata<'_>>);
    let metadata = metadata.unwrap_or_default();
    Compacted {
        trigger: metadata.trigger.map(Text::into_owned),
        tokens_before: metadata.before,
        tokens_after: metadata.after,
        details: details.as_ref().map(|details| details.clone().into_owned()),
    }
}
