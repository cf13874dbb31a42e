//! Writes messages, tool calls and the ends of turns as text.
//!
//! Text is written delta by delta. Everything else is one line, written once it is complete. The
//! lines of less frequent events are made in [`notes`].

use super::line::{self, LINE, one_line};
use super::notes;
use super::screen::{Part, Screen};
use crate::dialect::content::answer_text;
use crate::dialect::{Encoder, Output};
use crate::event::{
    Block, BlockKind, Data, Decision, Event, Executor, FileChangeKind, FilesChanged, Outcome,
    PermissionResolved, PlanStatus, PlanUpdated, Reason, SessionEnded, SessionUpdated, ToolEnded,
    ToolInput, ToolKind, ToolStarted, ToolStatus, TurnEnded, UserMessage,
};
use crate::json::{Json, Text};

/// The maximum length of a note, in characters. It is generous, since a note may be the only report
/// of what happened.
const NOTE: usize = 4 * LINE;
/// The number of lines of standard error that are shown.
const STDERR_LINES: usize = 10;

/// The maximum number of notes that are held back until a line of text ends.
const HELD: usize = 100;

/// The encoder of `text`.
#[derive(Debug, Clone, Default)]
pub struct TextEncoder {
    screen: Screen,
    /// The calls that are not answered yet.
    open: Vec<OpenCall>,
    /// The call whose line is the last one about tools. Its answer does not repeat its name.
    last_call: String,
    /// The message of the last error. The end of the turn does not repeat it.
    last_error: String,
    /// The agent of a session whose start was added by the grammar.
    implied_agent: Option<Text<'static>>,
    /// Why the last turn did not complete. It may contain how the process ended.
    last_cause: String,
    /// Notes that are held back, since they would split a line of streamed text.
    held: Vec<Note>,
}

/// A line about an event outside messages and calls.
#[derive(Debug, Clone)]
struct Note {
    line: String,
    nested: bool,
}

/// A call that is not answered yet.
#[derive(Debug, Clone)]
struct OpenCall {
    call: String,
    parent: Option<Text<'static>>,
    /// The name for the call in an answer that does not follow the call's line.
    name: String,
    /// The call's line contains the complete name.
    line_has_name: bool,
    /// The plan that the call wrote was shown.
    plan_shown: bool,
}

impl Encoder for TextEncoder {
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        let nested = event.parent.is_some();
        let parent = event.parent.as_ref();
        match &event.data {
            Data::BlockDelta(delta) => {
                self.text_delta(delta.block, &delta.kind, &delta.text, nested, out);
            }
            Data::BlockEnded(ended) => self.block_ended(ended.block, out),
            Data::Block(block) => self.block(block, nested, out),
            Data::ToolStarted(started) => self.tool_started(started, parent, out),
            Data::ToolInput(input) => self.tool_input(input, parent, out),
            Data::ToolEnded(ended) => self.answer(ended, parent, out),
            Data::FilesChanged(changed) => self.files(changed, nested, out),
            Data::PlanUpdated(plan) => {
                let refused = event.synthetic == Some(Reason::Refused);
                self.plan(plan, refused, nested, out);
            }
            Data::PermissionResolved(resolved) if self.answer_reports(resolved) => {}
            // The end of the call or of the turn, which follows, shows what an added one means.
            Data::PermissionResolved(_) | Data::QuestionAnswered(_)
                if event.synthetic.as_ref().is_some_and(|why| *why != Reason::Elsewhere) => {}
            Data::UserMessage(message) => self.user_message(message, nested, out),
            Data::TurnStarted(_) => {}
            Data::TurnEnded(ended) => self.turn_ended(ended, out),
            Data::SessionEnded(ended) => self.session_ended(ended, out),
            Data::SessionStarted(started) if event.synthetic.is_some() => {
                self.implied_agent = started.agent.clone().map(Text::into_owned);
            }
            Data::SessionUpdated(update)
                if self.implied_agent.is_some()
                    && (update.model.is_some() || update.id.is_some()) =>
            {
                let agent = update.agent.clone().or(self.implied_agent.take());
                let update = SessionUpdated { agent, ..(**update).clone() };
                self.note(&Event::new(update), nested, out);
            }
            Data::Error(error) => {
                self.last_error = error.message.to_plain().into_owned();
                self.note(event, nested, out);
            }
            _ => self.note(event, nested, out),
        }
    }

    fn finish(&mut self, out: &mut Output) {
        self.release_notes(out);
        self.screen.end_line(out.bytes());
    }
}

/// Messages.
impl TextEncoder {
    fn text_delta(
        &mut self,
        block: u64,
        kind: &BlockKind,
        text: &Text<'_>,
        nested: bool,
        out: &mut Output,
    ) {
        if text.is_empty() {
            return;
        }
        if *kind == BlockKind::HiddenReasoning {
            out.lost("hidden reasoning");
            return;
        }
        if self.screen.last() != Part::Prose(block) {
            self.release_notes(out);
            self.begin_prose(block, kind, nested, out);
        }
        let text = text.to_plain();
        let rest = match text.split_once('\n').filter(|_| !self.held.is_empty()) {
            Some((line, rest)) => {
                self.screen.write(line, out.bytes());
                self.release_notes(out);
                if rest.is_empty() {
                    return;
                }
                self.begin_prose(block, kind, nested, out);
                rest
            }
            None => &text,
        };
        self.screen.write(rest, out.bytes());
    }

    fn begin_prose(&mut self, block: u64, kind: &BlockKind, nested: bool, out: &mut Output) {
        let bytes = out.bytes();
        self.screen.begin(Part::Prose(block), nested, bytes);
        if *kind == BlockKind::Reasoning {
            self.screen.write("thinking: ", bytes);
            self.screen.set_hanging("  ");
        }
    }

    fn block_ended(&mut self, block: u64, out: &mut Output) {
        if self.screen.last() == Part::Prose(block) {
            self.screen.end_line(out.bytes());
            self.release_notes(out);
        }
    }

    fn block(&mut self, block: &Block<'_>, nested: bool, out: &mut Output) {
        match &block.kind {
            BlockKind::Text | BlockKind::Reasoning => {
                self.text_delta(block.block, &block.kind, &block.text, nested, out);
                self.block_ended(block.block, out);
            }
            BlockKind::HiddenReasoning => out.lost("hidden reasoning"),
            other => {
                let name = line::word(other.as_str());
                self.line(&format!("[{name}] {}", block.text), nested, out);
                let picture = *other == BlockKind::Image;
                out.lost(if picture { "pictures" } else { "blocks of an unknown kind" });
            }
        }
    }

    fn user_message(&mut self, message: &UserMessage<'_>, nested: bool, out: &mut Output) {
        let text = message.text.to_plain();
        if message.injected {
            let to = if nested { "to the sub-agent" } else { "injected by the agent" };
            self.line(&format!("> ({to}) {text}"), nested, out);
            out.lost("messages that the agent injected, beyond one line");
            return;
        }
        self.release_notes(out);
        // The grammar numbers blocks from zero, so no block has this number.
        self.screen.begin(Part::Prose(u64::MAX), nested, out.bytes());
        self.screen.set_hanging("> ");
        self.screen.write(&text, out.bytes());
        self.screen.end_line(out.bytes());
    }
}

/// Tool calls.
impl TextEncoder {
    fn tool_started(
        &mut self,
        started: &ToolStarted<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let ToolStarted { call, name, kind, executor, input, .. } = started;
        if input.is_some() {
            self.call(call, (name, kind, executor), input.as_ref(), parent, out);
        }
    }

    fn tool_input(&mut self, known: &ToolInput<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        let ToolInput { call, name, kind, executor, input, .. } = known;
        self.call(call, (name, kind, executor), input.as_ref(), parent, out);
    }

    fn call(
        &mut self,
        call: &Text<'_>,
        (name, kind, executor): (&Text<'_>, &ToolKind, &Executor),
        input: Option<&Json<'_>>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let line::Call { line, files, more } = line::call(&name.to_plain(), kind, input);
        let whose = if *executor == Executor::Client { " (for the client to run)" } else { "" };
        self.write_line(&format!("▸ {line}{whose}"), parent.is_some(), out);
        if more {
            out.lost("tool inputs beyond one value");
        }
        self.last_call.clear();
        self.last_call.push_str(&call.to_plain());
        self.open.push(OpenCall {
            call: self.last_call.clone(),
            parent: parent.cloned().map(Text::into_owned),
            line_has_name: files.is_none(),
            name: files.unwrap_or(line),
            plan_shown: false,
        });
    }

    fn answer(&mut self, ended: &ToolEnded<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        let (text, others) = answer_text(ended);
        let (mut answer, more) = line::answer(ended, &text.to_plain());
        let showed_plan = |open: &OpenCall| open.plan_shown && ended.call == *open.call;
        if more && ended.status == ToolStatus::Completed && self.open.iter().any(showed_plan) {
            // The output repeats the plan, or instructs the model how to use it.
            answer = "done".to_owned();
        }
        let line = match self.name_for_answer(ended, parent) {
            Some(name) => format!("  ⎿ ({}) {answer}", one_line(&name, LINE / 2)),
            None => format!("  ⎿ {answer}"),
        };
        self.write_line(&line, parent.is_some(), out);
        if more {
            out.lost("tool outputs beyond one line");
        }
        if others > 0 {
            out.lost("tool outputs that are not text");
        }
    }

    /// The name of the answered call, unless it is clear from the line above: the line is that of
    /// the call, and no other call is open.
    fn name_for_answer(
        &mut self,
        ended: &ToolEnded<'_>,
        parent: Option<&Text<'_>>,
    ) -> Option<String> {
        let near = ended.call == *std::mem::take(&mut self.last_call);
        let Some(at) = self.open.iter().position(|open| ended.call == *open.call) else {
            return Some(ended.name.to_string());
        };
        let alone = self.open.iter().filter(|open| open.parent.as_ref() == parent).count() == 1;
        let OpenCall { name, line_has_name, .. } = self.open.remove(at);
        let clear = near && alone && (line_has_name || ended.status == ToolStatus::Completed);
        (!clear).then_some(name)
    }

    /// Whether the answer of an open call will report this decision: it was denied, or has run.
    fn answer_reports(&self, resolved: &PermissionResolved<'_>) -> bool {
        let decisions = [Decision::Denied, Decision::Allowed];
        let call = resolved.call.as_ref().filter(|_| decisions.contains(&resolved.decision));
        call.is_some_and(|call| self.open.iter().any(|open| *call == *open.call))
    }

    fn files(&mut self, changed: &FilesChanged<'_>, nested: bool, out: &mut Output) {
        for change in &changed.changes {
            let mark = match &change.kind {
                FileChangeKind::Add => '+',
                FileChangeKind::Delete => '-',
                FileChangeKind::Move => '→',
                FileChangeKind::Update | FileChangeKind::Other(_) => '~',
            };
            let path = match &change.old_path {
                Some(old) => format!("{old} → {}", change.path),
                None => change.path.to_string(),
            };
            self.write_line(&format!("  {mark} {}", one_line(&path, NOTE)), nested, out);
            if change.diff.is_some() {
                out.lost("diffs");
            }
        }
    }

    /// Writes a plan. A plan that is restored after its successor was rejected is not repeated.
    fn plan(&mut self, plan: &PlanUpdated<'_>, refused: bool, nested: bool, out: &mut Output) {
        match (refused, plan.items.is_empty()) {
            (true, true) => return self.write_line("! the plan was rejected", nested, out),
            (true, false) => {
                let line = "! the plan was rejected; the previous plan still applies";
                return self.write_line(line, nested, out);
            }
            (false, true) => self.write_line("plan: (empty)", nested, out),
            (false, false) => self.write_line("plan:", nested, out),
        }
        if let Some(call) = &plan.call {
            let writer = self.open.iter_mut().find(|open| *call == *open.call);
            writer.into_iter().for_each(|open| open.plan_shown = true);
        }
        for item in &plan.items {
            let mark = match &item.status {
                PlanStatus::Pending => "[ ]",
                PlanStatus::InProgress => "[~]",
                PlanStatus::Completed => "[x]",
                PlanStatus::Cancelled => "[-]",
                PlanStatus::Blocked => "[!]",
                PlanStatus::Other(_) => "[?]",
            };
            let text = one_line(&item.text.to_plain(), LINE);
            self.write_line(&format!("  {mark} {text}"), nested, out);
        }
    }
}

/// Ends of turns and of the session.
impl TextEncoder {
    fn turn_ended(&mut self, ended: &TurnEnded<'_>, out: &mut Output) {
        let facts = self.facts_of(ended);
        self.release_notes(out);
        self.screen.begin(Part::TurnEnd, false, out.bytes());
        self.screen.write(&format!("— {}", facts.join(" · ")), out.bytes());
        self.screen.end_line(out.bytes());
        self.open.clear();
        self.last_call.clear();
        self.last_error.clear();
        self.last_cause = ended.cause.as_ref().map(ToString::to_string).unwrap_or_default();
    }

    /// Whether the cause in the line of the last turn contains these words.
    fn cause_contains(&self, words: &str) -> bool {
        self.last_cause.contains(words)
    }

    fn facts_of(&self, ended: &TurnEnded<'_>) -> Vec<String> {
        let mut facts = Vec::new();
        if ended.outcome != Outcome::Completed {
            let outcome = line::word(ended.outcome.as_str());
            let cause = ended.cause.as_ref().map(Text::to_plain).unwrap_or_default();
            let cause_is_shown = cause.is_empty() || *cause == self.last_error;
            facts.push(if cause_is_shown {
                outcome
            } else {
                format!("{outcome}: {}", one_line(&cause, NOTE))
            });
        }
        facts.extend(ended.usage.as_ref().and_then(line::tokens));
        // A smaller cost would be rounded to zero.
        if let Some(cost) = ended.cost.as_ref().filter(|cost| cost.usd >= 0.000_05) {
            let about = if cost.estimated { "about " } else { "" };
            facts.push(format!("{about}${:.4}", cost.usd));
        }
        facts.extend(ended.duration_ms.map(line::duration));
        if facts.is_empty() {
            facts.push(line::word(ended.outcome.as_str()));
        }
        facts
    }

    fn session_ended(&mut self, ended: &SessionEnded<'_>, out: &mut Output) {
        let signal = ended.signal.filter(|it| !self.cause_contains(&format!("signal {it} ")));
        let code =
            ended.exit_code.filter(|it| *it != 0 && !self.cause_contains(&format!("code {it}")));
        if let Some(signal) = signal {
            self.line(&format!("! the agent was terminated by signal {signal}"), false, out);
        } else if let Some(code) = code {
            self.line(&format!("! the agent exited with code {code}"), false, out);
        }
        let Some(stderr) = &ended.stderr else { return };
        let stderr = stderr.to_plain();
        let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
        let skipped = lines.len().saturating_sub(STDERR_LINES);
        for line in lines.iter().skip(skipped) {
            self.line(&format!("| {line}"), false, out);
        }
        if skipped > 0 {
            out.lost("standard error beyond its last lines");
        }
    }
}

/// Lines.
impl TextEncoder {
    fn note(&mut self, event: &Event<'_>, nested: bool, out: &mut Output) {
        // The agent waits for the user, so a request or a question is shown at once.
        let asks = matches!(event.data, Data::PermissionRequested(_) | Data::QuestionAsked(_));
        for note in notes::of(event, out) {
            let line = one_line(&note, NOTE);
            if self.screen.is_mid_prose() && !asks && self.held.len() < HELD {
                self.held.push(Note { line, nested });
            } else {
                self.write_line(&line, nested, out);
            }
        }
    }

    /// Writes the notes that were held back.
    fn release_notes(&mut self, out: &mut Output) {
        for Note { line, nested } in std::mem::take(&mut self.held) {
            self.append_line(&line, nested, out);
        }
    }

    /// Writes text as one line.
    fn line(&mut self, text: &str, nested: bool, out: &mut Output) {
        self.write_line(&one_line(text, LINE), nested, out);
    }

    /// Writes a line that contains no line end and is not too long.
    fn write_line(&mut self, line: &str, nested: bool, out: &mut Output) {
        self.release_notes(out);
        self.append_line(line, nested, out);
    }

    fn append_line(&mut self, line: &str, nested: bool, out: &mut Output) {
        self.screen.begin(Part::Line, nested, out.bytes());
        self.screen.write(line, out.bytes());
        self.screen.end_line(out.bytes());
    }
}
