//! Decodes tool calls. A message streams their input, and pi runs them once it is complete.

use super::decode::{PiDecoder, emit_native};
use super::tools;
use super::wire::{Content, Line, Outcome, Update};
use crate::dialect::EventSink;
use crate::dialect::content::output_text;
use crate::dialect::decode::Own;
use crate::event::{
    Event, ToolEnded, ToolInput, ToolInputDelta, ToolProgress, ToolStarted, ToolStatus,
};
use crate::json::{Json, Text};

/// A call of the current message.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) index: u64,
    call: String,
    /// Its input is complete.
    pub(super) complete: bool,
}

/// A call that is running.
#[derive(Debug)]
pub(super) struct Running {
    call: String,
    input: Option<Json<'static>>,
    /// Its output so far, escaped as on the wire. Every update repeats all of it.
    output: String,
}

impl PiDecoder {
    pub(super) fn begin_input<'a>(
        &mut self,
        index: u64,
        update: Update<'a>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        self.end_block(None, sink);
        let (Some(call), Some(name)) = (update.id, update.name) else {
            // Older versions state the name of the call after its input.
            emit_native("message_update/again", own.json(), sink);
            return;
        };
        self.made.push(Made { index, call: call.to_plain().into_owned(), complete: false });
        self.start_call(call, name, None, sink);
    }

    pub(super) fn input_delta<'a>(
        &mut self,
        index: u64,
        update: Update<'a>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let open = self.made.iter().rfind(|made| made.index == index && !made.complete);
        let delta = update.delta.filter(|delta| !delta.is_empty());
        let (Some(Made { call, .. }), Some(text)) = (open, delta) else {
            emit_native("message_update/again", own.json(), sink);
            return;
        };
        sink.event(Event::new(ToolInputDelta { call: Text::plain(call), text }));
    }

    /// Emits a call whose input is complete.
    pub(super) fn call_made(&mut self, index: u64, made: Content<'_>, sink: &mut dyn EventSink) {
        let (call, name) = (made.id.unwrap_or_default(), made.name.unwrap_or_default());
        let input = made.arguments.or_else(|| Some(Json::object(|_| {})));
        match self.made.iter_mut().find(|made| call == *made.call) {
            Some(made) => made.complete = true,
            None => {
                let call = call.to_plain().into_owned();
                self.made.push(Made { index, call, complete: true });
            }
        }
        self.start_call(call.clone(), name, None, sink);
        sink.event(Event::new(ToolInput { call, input, ..ToolInput::default() }));
    }

    fn start_call<'a>(
        &mut self,
        call: Text<'a>,
        name: Text<'a>,
        input: Option<Json<'a>>,
        sink: &mut dyn EventSink,
    ) {
        let message = Some(Text::plain(&self.message)).filter(|message| !message.is_empty());
        let kind = tools::kind_of(&name);
        sink.event(Event::new(ToolStarted {
            call,
            name,
            kind,
            message,
            input,
            ..ToolStarted::default()
        }));
    }

    /// Cancels the calls of a message that was cut off, since pi never runs them.
    pub(super) fn cancel_calls(&mut self, sink: &mut dyn EventSink) {
        for made in self.made.drain(..) {
            let (call, status) = (Text::from(made.call), ToolStatus::Cancelled);
            sink.event(Event::new(ToolEnded { call, status, ..ToolEnded::default() }));
        }
    }

    pub(super) fn call(&mut self, line: &mut Line<'_>, sink: &mut dyn EventSink) {
        let (call, name) = (line.call.take().unwrap_or_default(), line.tool.take());
        let input = line.args.take();
        self.running.push(Running {
            call: call.to_plain().into_owned(),
            input: input.clone().map(Json::into_owned),
            output: String::new(),
        });
        self.made.retain(|made| call != *made.call);
        // Usually the message has started the call; that it runs is progress.
        self.start_call(call.clone(), name.unwrap_or_default(), input, sink);
        sink.event(Event::new(ToolProgress { call, ..ToolProgress::default() }));
    }

    pub(super) fn progress(&mut self, line: &mut Line<'_>, sink: &mut dyn EventSink) {
        let call = line.call.take().unwrap_or_default();
        let content = line.partial.take().and_then(|partial| partial.content);
        let text = content.as_ref().map(|content| output_text(content).0).unwrap_or_default();
        let body = text.literal_body();
        let running = self.running.iter_mut().rfind(|running| call == *running.call);
        let delta = match &running {
            Some(running) if !running.output.is_empty() => {
                // The beginning of a long output may be truncated; then there is no delta.
                let added = body.strip_prefix(&*running.output).unwrap_or_default();
                Text::from(Text::of_literal_body(added))
            }
            _ => text.borrowed(),
        };
        let output = Some(delta).filter(|delta| !delta.is_empty());
        sink.event(Event::new(ToolProgress { call, output, elapsed_ms: None }));
        if let Some(running) = running {
            running.output.clear();
            running.output.push_str(&body);
        }
    }

    pub(super) fn answer(&mut self, line: &mut Line<'_>, sink: &mut dyn EventSink) {
        let call = line.call.take().unwrap_or_default();
        let tool = line.tool.take().unwrap_or_default();
        let failed = line.is_error == Some(true);
        let outcome = line.result.take().unwrap_or_default();
        let at = self.running.iter().rposition(|running| call == *running.call);
        let input = at.and_then(|at| self.running.swap_remove(at).input);
        let Outcome { details, .. } = &outcome;
        let details = details.clone();
        if !failed
            && let Some(changed) =
                tools::files_changed(&call, &tool, input.as_ref(), details.as_ref())
        {
            sink.event(Event::new(changed));
        }
        sink.event(Event::new(tools::answer(call, &tool, outcome, failed)));
    }
}
