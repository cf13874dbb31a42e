//! Tool calls: a message makes them, piece by piece, and pi runs them once the message is whole.

use super::decode::{PiDecoder, aside};
use super::tools;
use super::wire::{Content, Line, Outcome, Update};
use crate::dialect::EventSink;
use crate::dialect::content::output_text;
use crate::dialect::decode::Own;
use crate::event::{
    Event, ToolEnded, ToolInput, ToolInputDelta, ToolProgress, ToolStarted, ToolStatus,
};
use crate::json::{Json, Text};

/// A call that the message at hand makes.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) index: u64,
    call: String,
    /// Its input is whole.
    pub(super) whole: bool,
}

/// A call that is running.
#[derive(Debug)]
pub(super) struct Running {
    call: String,
    input: Option<Json<'static>>,
    /// What it gave back so far, as it is escaped on the wire: every update tells all of it.
    output: String,
}

impl PiDecoder {
    pub(super) fn input_begins<'a>(
        &mut self,
        index: u64,
        update: Update<'a>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        self.end_block(None, sink);
        let (Some(call), Some(name)) = (update.id, update.name) else {
            // An older version names the call at the end of its input.
            aside("message_update/again", own.json(), sink);
            return;
        };
        self.made.push(Made { index, call: call.to_plain().into_owned(), whole: false });
        self.start_call(call, name, None, sink);
    }

    pub(super) fn input_piece<'a>(
        &mut self,
        index: u64,
        update: Update<'a>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let open = self.made.iter().rfind(|made| made.index == index && !made.whole);
        let piece = update.delta.filter(|piece| !piece.is_empty());
        let (Some(Made { call, .. }), Some(text)) = (open, piece) else {
            aside("message_update/again", own.json(), sink);
            return;
        };
        sink.event(Event::new(ToolInputDelta { call: Text::plain(call), text }));
    }

    /// A call whose input is whole.
    pub(super) fn call_made(&mut self, index: u64, made: Content<'_>, sink: &mut dyn EventSink) {
        let (call, name) = (made.id.unwrap_or_default(), made.name.unwrap_or_default());
        let input = made.arguments.or_else(|| Some(Json::object(|_| {})));
        match self.made.iter_mut().find(|made| call == *made.call) {
            Some(made) => made.whole = true,
            None => {
                let call = call.to_plain().into_owned();
                self.made.push(Made { index, call, whole: true });
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

    /// Ends the calls of a message that was cut off: pi never runs them.
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
        // As a rule the message has told the call; that it runs is a sign of life.
        self.start_call(call.clone(), name.unwrap_or_default(), input, sink);
        sink.event(Event::new(ToolProgress { call, ..ToolProgress::default() }));
    }

    pub(super) fn progress(&mut self, line: &mut Line<'_>, sink: &mut dyn EventSink) {
        let call = line.call.take().unwrap_or_default();
        let content = line.partial.take().and_then(|partial| partial.content);
        let text = content.as_ref().map(|content| output_text(content).0).unwrap_or_default();
        let body = text.literal_body();
        let running = self.running.iter_mut().rfind(|running| call == *running.call);
        let piece = match &running {
            Some(running) if !running.output.is_empty() => {
                // What was there before may have been cut, to keep the update short.
                let news = body.strip_prefix(&*running.output).unwrap_or_default();
                Text::from(Text::of_literal_body(news))
            }
            _ => text.borrowed(),
        };
        let output = Some(piece).filter(|piece| !piece.is_empty());
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
