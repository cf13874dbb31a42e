//! Assembles tool calls from their pieces.
//!
//! OpenAI numbers the calls of a message, and states the id and the name of a call in its first piece.
//! Compatible servers leave out the number or the id, repeat them in every piece, state them late, or
//! give every call the same number. A call is emitted when its arguments begin, and its id and name are
//! known by then; otherwise, when the message ends.

use super::wire::{CallPiece, Function};
use crate::dialect::arguments::Arguments;
use crate::dialect::{Emitter, tools};
use crate::event::{
    Executor, PlanUpdated, ToolEnded, ToolInput, ToolInputDelta, ToolStarted, ToolStatus,
};
use crate::json::{Json, Text};

/// The calls of one message.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    /// The call of the last piece.
    current: usize,
}

#[derive(Debug, Default)]
struct Call {
    id: Option<String>,
    index: Option<u64>,
    name: String,
    arguments: Arguments,
    /// It takes free text, which is a string in its input.
    takes_text: bool,
    started: bool,
    settled: bool,
}

/// How the calls of a message end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settlement {
    /// The response is complete, so the client has to run them.
    Complete,
    /// The response stopped early, so none of them is run.
    Stopped(&'static str),
}

/// What the pieces of a call are emitted with.
pub(super) struct Context<'c> {
    pub(super) message: &'c Text<'static>,
    /// The prefix of ids that are generated.
    pub(super) id_prefix: &'c str,
}

impl Calls {
    /// Takes the next piece of a call. Returns `false` if its call is settled already.
    pub(super) fn add<'a>(
        &mut self,
        mut piece: CallPiece<'a>,
        streamed: bool,
        context: &Context<'_>,
        out: &mut Emitter<'_, 'a>,
    ) -> bool {
        let takes_text = piece.function.is_none() && piece.custom.is_some();
        let function = piece.function.take().or(piece.custom.take()).unwrap_or_default();
        let at = self.place(&piece, &function);
        self.current = at;
        let Some(call) = self.calls.get_mut(at).filter(|call| !call.settled) else { return false };
        call.takes_text |= takes_text;
        call.index = call.index.or(piece.index);
        if let Some(id) = piece.id.filter(|id| !id.is_empty() && call.id.is_none()) {
            call.id = Some(id.to_string());
        }
        if let Some(name) = function.name.filter(|name| *name != *call.name && !call.started) {
            call.name.push_str(&name.to_plain());
        }
        let piece = function.arguments.as_ref().map(|piece| call.as_json_text(piece));
        if let Some(piece) = &piece {
            call.arguments.add(piece);
        }
        if !call.started && streamed && call.can_start() {
            call.start(None, context, at, out);
            call.emit_delta(Text::plain(call.arguments.text()), out);
        } else if let Some(piece) = piece.filter(|_| call.started) {
            call.emit_delta(piece, out);
        }
        true
    }

    /// The index of the call that a piece belongs to: by its id, then by its number, then the current
    /// one. A new call is added for a piece that begins one.
    fn place(&mut self, piece: &CallPiece<'_>, function: &Function<'_>) -> usize {
        let id = piece.id.as_ref().filter(|id| !id.is_empty());
        if let Some(id) = id
            && let Some(at) = self.calls.iter().rposition(|call| call.has_id(id))
        {
            return at;
        }
        let numbered = piece
            .index
            .and_then(|index| self.calls.iter().rposition(|call| call.index == Some(index)));
        // The current call may get its number late.
        let current = (self.current < self.calls.len()).then_some(self.current);
        let current = current.filter(|at| {
            let unnumbered = self.calls.get(*at).is_some_and(|call| call.index.is_none());
            piece.index.is_none() || unnumbered
        });
        let found = numbered.or(current).and_then(|at| Some((at, self.calls.get(at)?)));
        let same_place = numbered.is_some() || piece.index.is_none();
        // An id that no call has is that of another call, or the late one of this call.
        let continues = |call: &Call| {
            (id.is_none() || call.id.is_none()) && !call.is_followed_by(function, same_place)
        };
        if let Some((at, _)) = found.filter(|(_, call)| continues(call)) {
            return at;
        }
        self.calls.push(Call::default());
        self.calls.len() - 1
    }

    /// Whether the message has a call.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Emits the inputs of all calls that are not settled, and returns the ids of those that the
    /// client has to run. The others are abandoned.
    pub(super) fn settle(
        &mut self,
        settlement: Settlement,
        context: &Context<'_>,
        out: &mut Emitter<'_, '_>,
    ) -> Vec<Text<'static>> {
        let mut open = Vec::new();
        for (at, call) in self.calls.iter_mut().enumerate().filter(|(_, call)| !call.settled) {
            call.settled = true;
            if settlement == Settlement::Complete {
                call.close_text(out);
            }
            let input = call.arguments.to_input(settlement == Settlement::Complete);
            if call.started {
                let input = input.clone().map(|input| ToolInput {
                    call: call.emitted_id(),
                    input: Some(input),
                    ..ToolInput::default()
                });
                input.into_iter().for_each(|input| out.emit(input));
            } else {
                call.start(input.clone(), context, at, out);
                if input.is_none() && !call.arguments.is_empty() {
                    call.emit_delta(Text::plain(call.arguments.text()), out);
                }
            }
            match (&input, settlement) {
                (Some(input), Settlement::Complete) => {
                    call.emit_plan(input, out);
                    open.push(call.emitted_id().into_owned());
                }
                (_, Settlement::Stopped(why)) => call.abandon(why, out),
                (None, Settlement::Complete) => {
                    call.abandon("its arguments are no JSON object", out)
                }
            }
        }
        open
    }

    /// Emits the calls that were held back, because the stream was cut.
    pub(super) fn release(&mut self, context: &Context<'_>, out: &mut Emitter<'_, '_>) {
        let held = self.calls.iter_mut().enumerate();
        for (at, call) in held.filter(|(_, call)| !call.started && !call.settled) {
            call.start(None, context, at, out);
            if !call.arguments.is_empty() {
                call.emit_delta(Text::plain(call.arguments.text()), out);
            }
        }
    }
}

impl Call {
    fn has_id(&self, id: &Text<'_>) -> bool {
        self.id.as_ref().is_some_and(|own| *id == **own)
    }

    /// Whether a piece without a new id begins another call. Some servers give every call the same
    /// number, or none, and no id: then a name after complete arguments is that of the next call.
    fn is_followed_by(&self, function: &Function<'_>, same_place: bool) -> bool {
        let name = function.name.as_ref().filter(|name| !name.is_empty());
        let Some(name) = name else { return false };
        let has_arguments = function.arguments.as_ref().is_some_and(|it| it.get() != "\"\"");
        let other_name = !self.name.is_empty() && *name != *self.name;
        let begins_other = !same_place || (self.arguments.is_empty() && has_arguments);
        self.arguments.is_closed() || (other_name && begins_other)
    }

    /// A piece of the arguments as a piece of JSON text. Some servers send the object itself.
    fn as_json_text<'j>(&self, arguments: &'j Json<'_>) -> Text<'j> {
        match arguments.as_text() {
            Some(text) if self.takes_text => {
                let start = if self.arguments.is_empty() { "{\"input\":\"" } else { "" };
                Text::from(format!("{start}{}", text.literal_body()))
            }
            Some(text) => text,
            None => Text::plain(arguments.get()),
        }
    }

    /// Closes the string that contains free text.
    fn close_text(&mut self, out: &mut Emitter<'_, '_>) {
        if self.takes_text && !self.arguments.is_empty() && !self.arguments.is_closed() {
            self.arguments.add(&Text::plain("\"}"));
            if self.started {
                self.emit_delta(Text::plain("\"}"), out);
            }
        }
    }

    fn can_start(&self) -> bool {
        self.id.is_some() && !self.name.is_empty() && !self.arguments.is_empty()
    }

    fn start(
        &mut self,
        input: Option<Json<'_>>,
        context: &Context<'_>,
        at: usize,
        out: &mut Emitter<'_, '_>,
    ) {
        self.started = true;
        self.id.get_or_insert_with(|| format!("{}{}", context.id_prefix, at + 1));
        let name = Text::plain(&self.name);
        out.emit(ToolStarted {
            call: self.emitted_id(),
            kind: tools::kind_of(&name),
            name,
            executor: Executor::Client,
            message: Some(context.message.borrowed()),
            input,
            ..ToolStarted::default()
        });
    }

    fn emit_delta(&self, text: Text<'_>, out: &mut Emitter<'_, '_>) {
        if !text.is_empty() {
            out.emit(ToolInputDelta { call: self.emitted_id(), text });
        }
    }

    fn emit_plan(&self, input: &Json<'_>, out: &mut Emitter<'_, '_>) {
        let kind = tools::kind_of(&Text::plain(&self.name));
        if let Some(items) = tools::plan_written(&kind, input) {
            out.emit(PlanUpdated { plan: None, call: Some(self.emitted_id()), items });
        }
    }

    fn abandon(&self, why: &'static str, out: &mut Emitter<'_, '_>) {
        out.emit(ToolEnded {
            call: self.emitted_id(),
            status: ToolStatus::Abandoned,
            error: Some(Text::plain(why)),
            ..ToolEnded::default()
        });
    }

    fn emitted_id(&self) -> Text<'_> {
        Text::plain(self.id.as_deref().unwrap_or_default())
    }
}
