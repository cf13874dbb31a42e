//! Decodes Gemini's stream.

use std::collections::BTreeMap;

use super::wire::{Line, Stats, ToolOutput};
use crate::dialect::decode::Own;
use crate::dialect::{Decoder, EventSink, each_record, tools, unknown};
use crate::event::{
    Block, BlockDelta, BlockEnded, Data, Error, ErrorClass, Event, Native, Notice, Outcome,
    PlanUpdated, Scope, SessionStarted, Severity, ToolEnded, ToolStarted, ToolStatus, TurnEnded,
    TurnStarted, Usage, UserMessage, own_usage,
};
use crate::framing::FrameText;
use crate::json::read;
use crate::json::{Json, Text};

/// The decoder of `gemini`.
#[derive(Debug)]
pub struct GeminiDecoder {
    agent: &'static str,
    /// The index of the current block. Consecutive deltas are one block.
    block: u64,
    open: bool,
}

impl Decoder for GeminiDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            self.line(line, own, sink);
        });
    }
}

impl GeminiDecoder {
    /// A decoder for the stream of this agent.
    pub fn new(agent: &'static str) -> Self {
        Self { agent, block: 0, open: false }
    }

    pub(in crate::dialect) fn line<'a>(
        &mut self,
        line: &mut Line<'a>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let time = line.timestamp.take();
        let kind = line.kind.take();
        let kind_body = kind.as_ref().map_or("", Text::body);
        if kind_body == "message" {
            self.message(line, time, own, sink);
            return;
        }
        self.end_block(time.clone(), sink);
        let mut emit = |data: Data<'_>| sink.event(Event::new(data).at(time.clone()));
        match kind_body {
            "init" => {
                emit(Data::from(SessionStarted {
                    id: line.session_id.take(),
                    model: line.model.take(),
                    agent: Some(Text::plain(self.agent)),
                    ..SessionStarted::default()
                }));
                emit(Data::from(TurnStarted::default()));
            }
            "tool_use" => call(std::mem::take(line), &mut emit),
            "tool_result" => emit(Data::from(answer(std::mem::take(line)))),
            "error" => emit(problem(std::mem::take(line))),
            "result" => {
                let ended = ended(std::mem::take(line));
                if let Some(error) = failure(&ended) {
                    emit(Data::from(error));
                }
                emit(Data::from(ended));
            }
            _ => emit(unknown(kind, own)),
        }
    }

    fn message<'a>(
        &mut self,
        line: &mut Line<'a>,
        time: Option<Json<'a>>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let role = line.role.as_ref().map_or("", Text::body);
        let text = line.content.take().unwrap_or_default();
        if role == "assistant" && line.delta == Some(true) {
            self.open = true;
            let delta = BlockDelta { index: self.block, text, ..BlockDelta::default() };
            sink.event(Event::new(delta).at(time));
            return;
        }
        self.end_block(time.clone(), sink);
        let data = match role {
            "assistant" => {
                let index = self.block;
                self.block += 1;
                Data::from(Block { index, text, ..Block::default() })
            }
            "user" => Data::from(UserMessage { text, ..UserMessage::default() }),
            "system" => Data::from(Notice { severity: Severity::Info, text }),
            _ => Data::from(Native { name: Text::plain("message"), raw: own.json() }),
        };
        sink.event(Event::new(data).at(time));
    }

    pub(in crate::dialect) fn end_block(
        &mut self,
        time: Option<Json<'_>>,
        sink: &mut dyn EventSink,
    ) {
        if std::mem::replace(&mut self.open, false) {
            let ended = BlockEnded { index: self.block, ..BlockEnded::default() };
            self.block += 1;
            sink.event(Event::new(ended).at(time));
        }
    }
}

fn call(line: Line<'_>, emit: &mut dyn FnMut(Data<'_>)) {
    let name = line.tool_name.unwrap_or_default();
    let call = line.tool_id.unwrap_or_default();
    let input = line.parameters.or_else(|| Some(Json::object(|_| {})));
    emit(Data::from(ToolStarted {
        call: call.clone(),
        kind: tools::kind_of(&name),
        name: name.clone(),
        input: input.clone(),
        ..ToolStarted::default()
    }));
    if let Some(items) =
        input.as_ref().and_then(|input| tools::plan_written(&tools::kind_of(&name), input))
    {
        emit(Data::from(PlanUpdated { plan: None, call: Some(call.borrowed()), items }));
    }
}

fn answer(line: Line<'_>) -> ToolEnded<'_> {
    let cancelled = line
        .output
        .as_ref()
        .and_then(Json::as_text)
        .is_some_and(|text| text.body().starts_with("Command cancelled by user"));
    let status = match line.status.as_ref().map_or("success", Text::body) {
        "success" if cancelled => ToolStatus::Cancelled,
        "success" => ToolStatus::Completed,
        _ => ToolStatus::Failed,
    };
    let (mut output, mut structured) = (line.output, None);
    if let Some(text) =
        output.as_ref().and_then(read::record_of::<ToolOutput<'_>>).and_then(|it| it.text)
    {
        let text = Json::from(&text);
        structured = output.replace(text);
    }
    ToolEnded {
        call: line.tool_id.unwrap_or_default(),
        status,
        output,
        structured,
        error: line.error.and_then(|error| error.message),
        ..ToolEnded::default()
    }
}

fn problem(line: Line<'_>) -> Data<'_> {
    let text = line.message.unwrap_or_default();
    if line.severity.is_some_and(|severity| severity == "warning") {
        return Data::from(Notice { severity: Severity::Warning, text });
    }
    let (class, http_status) = classify(&text);
    Data::from(Error { class, message: text, http_status, ..Error::default() })
}

fn ended(line: Line<'_>) -> TurnEnded<'_> {
    let success = line.status.as_ref().is_some_and(|status| *status == "success");
    let (kind, cause) = match line.error {
        Some(error) => (error.kind, error.message),
        None => (None, None),
    };
    let (class, http_status) = cause.as_ref().map(classify).unwrap_or_default();
    let class = Some(class).filter(|class| *class != ErrorClass::Unspecified);
    let outcome = match kind.as_ref().map_or("", Text::body) {
        _ if success => Outcome::Completed,
        "FatalCancellationError" => Outcome::Cancelled,
        "FatalTurnLimitedError" => Outcome::LimitReached,
        _ => Outcome::Failed,
    };
    // A failed run prints zeros for unknown numbers.
    let known = |number: Option<u64>| number.filter(|number| success || *number > 0);
    let duration_ms = line.stats.as_ref().and_then(|stats| known(stats.duration_ms));
    let models = line.stats.as_ref().and_then(|stats| stats.models.as_ref());
    let by_model = models.map(models_of).unwrap_or_default();
    let counted = |usage: &Usage<'_>| match usage {
        Usage { input: None, output: None, total: None, .. } => false,
        usage => success || usage.all() > 0,
    };
    let usage = line.stats.map(counts).filter(counted);
    TurnEnded {
        outcome,
        cause,
        class,
        reason: kind,
        http_status,
        usage,
        by_model,
        duration_ms,
        ..TurnEnded::default()
    }
}

/// The error that ended a turn, if its end states the cause.
fn failure<'a>(ended: &TurnEnded<'a>) -> Option<Error<'a>> {
    let failed = ended.outcome == Outcome::Failed;
    let message = ended.cause.clone().filter(|_| failed)?;
    Some(Error {
        class: ended.class.clone().unwrap_or_default(),
        message,
        code: ended.reason.clone(),
        http_status: ended.http_status,
        fatal: true,
        ..Error::default()
    })
}

fn counts(stats: Stats<'_>) -> Usage<'_> {
    let uncached = stats.input_all.map(|all| all.saturating_sub(stats.cached.unwrap_or(0)));
    // The total contains the tokens of reasoning, but the output does not.
    let visible = stats.input_all.zip(stats.output).map(|(input, output)| input + output);
    let reasoning = stats.total.zip(visible).map(|(total, visible)| total.saturating_sub(visible));
    let reasoning = reasoning.filter(|reasoning| *reasoning > 0);
    Usage {
        scope: Scope::Turn,
        input: stats.input.or(uncached),
        cache_read: stats.cached,
        output: stats.output.map(|output| output + reasoning.unwrap_or(0)),
        reasoning,
        total: stats.total,
        ..Usage::default()
    }
}

/// The usage of each model.
fn models_of(models: &Json<'_>) -> Vec<Usage<'static>> {
    let models: BTreeMap<String, Json<'_>> = models.read().unwrap_or_default();
    let usage = |(name, model): (String, Json<'_>)| {
        let usage = counts(read::record_of::<Stats<'_>>(&model)?);
        Some(own_usage(Usage { model: Some(Text::from(name)), ..usage }))
    };
    models.into_iter().filter_map(usage).filter(|usage| usage.all() > 0).collect()
}

/// Classifies an error message, which contains the provider's response.
fn classify(message: &Text<'_>) -> (ErrorClass, Option<u64>) {
    let text = message.to_plain();
    if let Some((_, rest)) = text.split_once("\"code\":") {
        let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
        if let Ok(status) = digits.parse() {
            return (ErrorClass::of_http_status(status), Some(status));
        }
    }
    let class = if text.contains("terminated") || text.contains("fetch failed") {
        ErrorClass::Network
    } else if text.contains("quota") || text.contains("rate limit") {
        ErrorClass::RateLimit
    } else {
        ErrorClass::Unspecified
    };
    (class, None)
}
