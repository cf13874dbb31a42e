//! Decodes the messages of `copilot --headless --stdio`.

use super::ignored::{self, IGNORED};
use super::wire::{Message, Todo};
use crate::dialect::copilot::CopilotDecoder;
use crate::dialect::copilot::wire::{Details, Line};
use crate::dialect::decode::Own;
use crate::dialect::json_rpc::Failure;
use crate::dialect::{Decoder, Emitter, EventSink, each_record};
use crate::event::{
    Error, ErrorClass, Outcome, PlanItem, PlanStatus, PlanUpdated, Scope, TurnEnded, Usage,
};
use crate::framing::FrameText;
use crate::json::read;
use crate::json::{Json, Text};

/// The number of prompts without a response that are remembered.
const MAX_PENDING: usize = 64;

/// The decoder of `copilot-headless`.
#[derive(Debug, Default)]
pub struct CopilotHeadlessDecoder {
    events: CopilotDecoder,
    /// The usage of the turn so far, with that of its sub-agents.
    usage: Option<Usage<'static>>,
    /// The model of the session, which every list of tools repeats.
    model: Option<Text<'static>>,
    /// The ids of the client's prompts that have no response yet, if its side is read.
    prompts: Vec<Text<'static>>,
}

impl Decoder for CopilotHeadlessDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |message: &mut Message<'_>, own, sink| {
            self.message(message, own, sink);
        });
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        self.events.finish(sink);
    }
}

impl CopilotHeadlessDecoder {
    fn message<'a>(&mut self, message: &mut Message<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
        let Some(method) = message.method.take() else {
            return self.response(message, &mut Emitter::new(own, sink));
        };
        let params = message.params.as_mut();
        if let Some((line, session)) = params.and_then(|params| {
            let session = params.session.take();
            params.event.as_mut().map(|line| (line, session))
        }) {
            return self.event(line, session, own, sink);
        }
        let mut out = Emitter::new(own, sink);
        match method.body() {
            // They may contain the key of a provider.
            "session.create" => out.native_without_text("session.create"),
            "session.resume" => out.native_without_text("session.resume"),
            "session.send" => {
                if let Some(id) = &message.id {
                    self.prompts.truncate(MAX_PENDING - 1);
                    self.prompts.insert(0, id_of(id));
                }
                out.native(method);
            }
            name if IGNORED.iter().any(|ignored| ignored.covers(name)) => out.native(method),
            _ => out.unknown(method),
        }
    }

    /// Reads an event: most are those of the JSON stream.
    fn event<'a>(
        &mut self,
        line: &mut Line<'a>,
        session: Option<Text<'a>>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let details = line.data.get_or_insert_default();
        let is_main = line.agent.is_none();
        match line.kind.as_ref().map_or("", Text::body) {
            "session.idle" if is_main && self.events.has_turn() => {
                let aborted = details.aborted == Some(true);
                let mut out = Emitter::new(own, sink).at(line.timestamp.take());
                return self.events.became_idle(aborted, self.usage.take(), &mut out);
            }
            "assistant.usage" => {
                let parent = details.parent_call.take();
                let mut out = Emitter::new(own, sink).within(parent).at(line.timestamp.take());
                let usage = usage(details);
                let so_far = self.usage.take().unwrap_or_default().plus(&usage);
                self.usage = Some(Usage { scope: Scope::Turn, model: None, ..so_far });
                return out.emit(usage);
            }
            // Only a new session states its id in the event itself.
            "session.start" | "session.resume" if is_main => {
                details.session_id = details.session_id.take().or(session);
                self.states_model(details);
            }
            "session.model_change" if is_main => {
                self.states_model(details);
            }
            "session.tools_updated" if is_main && !self.states_model(details) => {
                let name = line.kind.take().unwrap_or_default();
                return Emitter::new(own, sink).at(line.timestamp.take()).native(name);
            }
            "session.error" if details.status_code.is_none() && is_unauthenticated(details) => {
                details.error_type = Some(Text::plain("authentication"));
            }
            name if ignored::is_only_here(name) => {
                let name = line.kind.take().unwrap_or_default();
                return Emitter::new(own, sink).at(line.timestamp.take()).native(name);
            }
            _ => {}
        }
        self.events.line(line, own, sink);
    }

    /// Notes the model of the session. Returns whether it is another one than before.
    fn states_model(&mut self, details: &Details<'_>) -> bool {
        let is_new = details.model.is_some() && details.model != self.model;
        if is_new {
            self.model = details.model.clone().map(Text::into_owned);
        }
        is_new
    }

    /// Reads a response of either side.
    fn response<'a>(&mut self, message: &mut Message<'a>, out: &mut Emitter<'_, 'a>) {
        let Some(id) = message.id.take() else { return out.unknown(Text::default()) };
        let refuses_prompt = self.take_prompt(&id);
        let result = message.result.as_mut();
        if let Some(error) = &message.error {
            let failure = read::record_of::<Failure<'_>>(error).unwrap_or_default();
            return self.refusal(failure, refuses_prompt, out);
        }
        match result.and_then(|result| result.rows.take()) {
            // A plan belongs to a turn.
            Some(rows) if self.events.has_turn() => out.emit(plan(&rows)),
            _ => out.native("response"),
        }
    }

    /// Reads an error response. A prompt that was refused is a turn that failed.
    fn refusal(&mut self, failure: Failure<'_>, refuses_prompt: bool, out: &mut Emitter<'_, '_>) {
        let fatal = refuses_prompt && !self.events.has_turn();
        out.emit(Error {
            class: ErrorClass::Unspecified,
            message: failure.message.unwrap_or_default(),
            code: failure.code.map(|code| Text::from(code.to_string())),
            fatal,
            ..Error::default()
        });
        if fatal {
            out.emit(TurnEnded { outcome: Outcome::Failed, ..TurnEnded::default() });
        }
    }

    fn take_prompt(&mut self, id: &Json<'_>) -> bool {
        let id = id_of(id);
        let at = self.prompts.iter().position(|pending| *pending == id);
        at.map(|at| self.prompts.remove(at)).is_some()
    }
}

fn id_of(id: &Json<'_>) -> Text<'static> {
    Text::from(id.get().to_owned())
}

/// The counts of one request. Those of the input include the cached tokens.
fn usage<'a>(details: &mut Details<'a>) -> Usage<'a> {
    let (read, written) = (details.cache_read_tokens, details.cache_write_tokens);
    let cached = read.unwrap_or(0) + written.unwrap_or(0);
    Usage {
        scope: Scope::Request,
        model: details.model.take(),
        input: details.input_tokens.map(|all| all.saturating_sub(cached)),
        cache_read: read,
        cache_write: written,
        output: details.output_tokens,
        reasoning: details.reasoning_tokens,
        ..Usage::default()
    }
}

/// Whether the user is not signed in. Copilot states it only in the text of an error.
fn is_unauthenticated(details: &Details<'_>) -> bool {
    let text = details.message_text.as_ref().map(Text::to_plain).unwrap_or_default();
    text.contains("No GitHub OAuth token") || text.contains("No authentication information")
}

/// The todo list, which the model keeps in a database.
fn plan(rows: &Json<'_>) -> PlanUpdated<'static> {
    let todos = read::records_of::<Todo<'_>>(rows).unwrap_or_default();
    let items = todos.into_iter().map(|todo| PlanItem {
        text: todo.title.or(todo.description).unwrap_or_default().into_owned(),
        status: match todo.status.as_ref().map_or("pending", Text::body) {
            "done" => PlanStatus::Completed,
            other => PlanStatus::from(other),
        },
        raw_status: todo.status.as_ref().map(|status| Json::from(status).into_owned()),
        ..PlanItem::default()
    });
    PlanUpdated { items: items.collect(), ..PlanUpdated::default() }
}
