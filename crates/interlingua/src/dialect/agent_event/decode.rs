//! Decodes `AgentEvent` streams.

use std::collections::BTreeSet;

use super::wire::{self, Line};
use crate::dialect::decode::Own;
use crate::dialect::{Decoder, EventSink, each_record, tools, unknown};
use crate::event::{
    Block, BlockDelta, BlockEnded, BlockKind, Data, Error, ErrorClass, Event, Native, Notice,
    Outcome, PlanUpdated, SessionStarted, ToolEnded, ToolStarted, ToolStatus, TurnEnded,
    TurnStarted,
};
use crate::framing::FrameText;
use crate::json::{Json, Text};

/// The number of todo lists that are remembered, to recognise the results of the tools that wrote
/// them.
const LISTS_KEPT: usize = 64;

/// The decoder of `agent-event`.
#[derive(Debug, Default)]
pub struct AgentEventDecoder {
    /// The index of the current block, and its kind while it is open.
    block: u64,
    open: Option<BlockKind>,
    /// A record followed the end of the last turn.
    in_turn: bool,
    /// The text of the last message.
    last_text: String,
    /// The final text, if the stream repeats it before the turn ends.
    final_text: Option<Text<'static>>,
    /// The ids of the todo lists. They are those of the calls that wrote them.
    lists: Vec<Text<'static>>,
    /// The calls that were started and are not answered yet.
    calls: BTreeSet<String>,
}

impl Decoder for AgentEventDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            self.line(std::mem::take(line), own, sink);
        });
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        // A final text whose turn never ended is emitted as text.
        if let Some(text) = self.final_text.take() {
            self.end_block(None, sink);
            let index = self.block;
            sink.event(Event::new(Block { index, text, ..Block::default() }));
        }
    }
}

impl AgentEventDecoder {
    fn line<'a>(&mut self, mut line: Line<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
        let time = line.timestamp.take();
        let kind = line.kind.take();
        let kind_body = kind.as_ref().map_or("", Text::body);
        let in_turn = std::mem::replace(&mut self.in_turn, kind_body != "turn.completed");
        if kind_body == "text" {
            self.text(line, time, sink);
            return;
        }
        self.end_block(time.clone(), sink);
        let data = match kind_body {
            "session.started" => {
                let agent = line.agent_type.map(|agent| dialect_name(&agent));
                let started = SessionStarted { agent, ..SessionStarted::default() };
                if in_turn {
                    Data::from(started)
                } else {
                    sink.event(Event::new(started).at(time.clone()));
                    Data::from(TurnStarted::default())
                }
            }
            "tool.started" => {
                self.calls.extend(line.tool_id.as_ref().map(ToString::to_string));
                Data::from(call(line))
            }
            "tool.completed" if self.wrote_a_list(&line) => {
                Data::from(Native { name: Text::plain("todo_result"), raw: own.json() })
            }
            "tool.completed" => Data::from(answer(&line)),
            "todo_list" => {
                self.remember(line.todo_id.as_ref());
                let items = line.items.as_ref().and_then(tools::plan_items).unwrap_or_default();
                let plan = PlanUpdated { plan: line.todo_id, call: None, items };
                sink.event(Event::new(plan).at(time));
                return;
            }
            "error" => Data::from(problem(line)),
            "turn.completed" => {
                let outcome = outcome(line.finish_reason.as_ref());
                let final_text = self.final_text.take();
                let reason = line.finish_reason;
                Data::from(TurnEnded { outcome, final_text, reason, ..TurnEnded::default() })
            }
            _ => unknown(kind, own),
        };
        sink.event(Event::new(data).at(time));
    }

    fn text(&mut self, line: Line<'_>, time: Option<Json<'_>>, sink: &mut dyn EventSink) {
        let text = line.text.unwrap_or_default();
        let category = line.category.as_ref().map_or("", Text::body);
        if category == "result" {
            self.end_block(time.clone(), sink);
            // It usually repeats the last message; otherwise it is a message of its own.
            let repeats = self.last_text.is_empty() || *self.last_text == *text.to_plain();
            if !repeats {
                let index = self.block;
                self.block += 1;
                let block = Block { index, text: text.borrowed(), ..Block::default() };
                sink.event(Event::new(block).at(time));
            }
            self.final_text = Some(text.into_owned());
            return;
        }
        if line.role.is_some_and(|role| role == "system") {
            self.end_block(time.clone(), sink);
            sink.event(Event::new(Notice { text, ..Notice::default() }).at(time));
            return;
        }
        let kind = match category {
            "reasoning" | "thinking" => BlockKind::Reasoning,
            _ => BlockKind::Text,
        };
        if self.open.as_ref() != Some(&kind) {
            self.end_block(time.clone(), sink);
            self.open = Some(kind.clone());
            if kind == BlockKind::Text {
                self.last_text.clear();
            }
        }
        if kind == BlockKind::Text {
            self.last_text.push_str(&text.to_plain());
        }
        let delta = BlockDelta { index: self.block, kind, text, ..BlockDelta::default() };
        sink.event(Event::new(delta).at(time));
    }

    fn end_block(&mut self, time: Option<Json<'_>>, sink: &mut dyn EventSink) {
        if let Some(kind) = self.open.take() {
            let ended = BlockEnded { index: self.block, kind, ..BlockEnded::default() };
            self.block += 1;
            sink.event(Event::new(ended).at(time));
        }
    }

    fn remember(&mut self, list: Option<&Text<'_>>) {
        let Some(list) = list.filter(|list| !self.lists.contains(list)) else { return };
        if self.lists.len() == LISTS_KEPT {
            self.lists.remove(0);
        }
        self.lists.push(list.clone().into_owned());
    }

    /// Whether a result is that of a todo tool whose call appeared only as a list.
    fn wrote_a_list(&mut self, line: &Line<'_>) -> bool {
        let Some(call) = &line.tool_id else { return false };
        !self.calls.remove(&*call.to_plain()) && self.lists.contains(call)
    }
}

fn dialect_name<'a>(agent_type: &Text<'a>) -> Text<'a> {
    let plain = agent_type.to_plain();
    let dialect = wire::dialect_of(&plain);
    if *agent_type == *dialect { agent_type.clone() } else { Text::from(dialect.to_owned()) }
}

fn call(line: Line<'_>) -> ToolStarted<'_> {
    let name = line.tool_name.unwrap_or_default();
    ToolStarted {
        call: line.tool_id.unwrap_or_default(),
        kind: tools::kind_of(&name),
        name,
        input: line.input.or_else(|| Some(Json::object(|_| {}))),
        ..ToolStarted::default()
    }
}

fn answer<'a>(line: &Line<'a>) -> ToolEnded<'a> {
    let error = line.error.as_ref().map(message);
    ToolEnded {
        call: line.tool_id.clone().unwrap_or_default(),
        name: line.tool_name.clone().unwrap_or_default(),
        status: if error.is_some() { ToolStatus::Failed } else { ToolStatus::Completed },
        output: line.output.clone(),
        error,
        ..ToolEnded::default()
    }
}

fn problem(line: Line<'_>) -> Error<'_> {
    let class = match line.code.as_ref().map_or("", Text::body) {
        "PROCESS_EXIT" | "PROCESS_SPAWN_ERROR" => ErrorClass::Process,
        code => match ErrorClass::from(&*code.to_ascii_lowercase()) {
            ErrorClass::Other(_) => ErrorClass::Unspecified,
            known => known,
        },
    };
    Error {
        fatal: class == ErrorClass::Process,
        class,
        message: line.error.as_ref().map(message).unwrap_or_default(),
        code: line.code,
        ..Error::default()
    }
}

/// The message of an `error`. Shipped parsers also write values that are not strings.
fn message(error: &Json<'_>) -> Text<'static> {
    match error.as_text() {
        Some(text) => text.into_owned(),
        None => Text::from(error.get().to_owned()),
    }
}

fn outcome(reason: Option<&Text<'_>>) -> Outcome {
    match reason.map_or("", Text::body) {
        "done" => Outcome::Completed,
        "error" | "" => Outcome::Failed,
        "cancelled" => Outcome::Cancelled,
        "timeout" => Outcome::TimedOut,
        other => Outcome::from(other),
    }
}
