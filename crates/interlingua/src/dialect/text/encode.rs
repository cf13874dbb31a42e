//! Events as text on a terminal: what the model says, what its tools do, how its turns end.
//!
//! Text goes out piece by piece. Everything else is one line, written when all of it is known; the
//! lines of rarer events are in [`notes`](super::notes).

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

/// The longest line about something that happened, in characters: it may be all that is known.
const NOTE: usize = 4 * LINE;
/// How many lines of standard error are shown.
const STDERR_LINES: usize = 10;

/// How many notes wait for the end of a line of text.
const HELD: usize = 100;

/// A writer of text for a person.
#[derive(Debug, Clone, Default)]
pub struct TextEncoder {
    screen: Screen,
    /// The calls that wait for their answers.
    open: Vec<OpenCall>,
    /// The call whose line is the last one about tools: its answer needs no name.
    last_call: String,
    /// What was said to have gone wrong last: the turn's end does not say it again.
    last_error: String,
    /// The agent of a session whose start the agent did not print.
    implied_agent: Option<Text<'static>>,
    /// Why the last turn did not complete: how the process ended may be a part of it.
    last_cause: String,
    /// Notes that would split the line of text that is being streamed, until it ends.
    held: Vec<Note>,
}

/// A line about something that happened.
#[derive(Debug, Clone)]
struct Note {
    line: String,
    nested: bool,
}

/// A call that waits for its answer.
#[derive(Debug, Clone)]
struct OpenCall {
    call: String,
    parent: Option<Text<'static>>,
    /// What to call it where its line stands further up.
    name: String,
    /// Its line says all of that.
    told: bool,
    /// The plan that it wrote was drawn.
    drawn: bool,
}

impl Encoder for TextEncoder {
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        let nested = event.parent.is_some();
        let parent = event.parent.as_ref();
        match &event.data {
            Data::BlockDelta(delta) => {
                self.piece(delta.block, &delta.kind, &delta.text, nested, out);
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
            Data::PermissionResolved(resolved) if self.answer_will_say(resolved) => {}
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

/// What the model says.
impl TextEncoder {
    fn piece(
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
            self.screen.hang("  ");
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
                self.piece(block.block, &block.kind, &block.text, nested, out);
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
            let to = if nested { "to the sub-agent" } else { "the agent to itself" };
            self.line(&format!("> ({to}) {text}"), nested, out);
            out.lost("what the agent tells itself in the user's name, beyond one line");
            return;
        }
        self.release_notes(out);
        // No block has this number: the grammar counts from zero.
        self.screen.begin(Part::Prose(u64::MAX), nested, out.bytes());
        self.screen.hang("> ");
        self.screen.write(&text, out.bytes());
        self.screen.end_line(out.bytes());
    }
}

/// What its tools do.
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
            told: files.is_none(),
            name: files.unwrap_or(line),
            drawn: false,
        });
    }

    fn answer(&mut self, ended: &ToolEnded<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        let (text, others) = answer_text(ended);
        let (mut answer, more) = line::answer(ended, &text.to_plain());
        let drew = |open: &OpenCall| open.drawn && ended.call == *open.call;
        if more && ended.status == ToolStatus::Completed && self.open.iter().any(drew) {
            // It repeats the plan, or tells the model what to do with it.
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
            out.lost("tool outputs that are no text");
        }
    }

    /// The name of a call that is answered, unless its line says it: it stands right above, and no
    /// other call could be meant.
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
        let OpenCall { name, told, .. } = self.open.remove(at);
        let clear = near && alone && (told || ended.status == ToolStatus::Completed);
        (!clear).then_some(name)
    }

    /// Whether a decision is told again by the answer of its call.
    fn answer_will_say(&self, resolved: &PermissionResolved<'_>) -> bool {
        let call = resolved.call.as_ref().filter(|_| resolved.decision == Decision::Denied);
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

    /// Draws a plan; one that stands again, since another was refused, is further up.
    fn plan(&mut self, plan: &PlanUpdated<'_>, refused: bool, nested: bool, out: &mut Output) {
        match (refused, plan.items.is_empty()) {
            (true, true) => return self.write_line("! the plan was refused", nested, out),
            (true, false) => {
                let line = "! the plan was refused: the one before it stands";
                return self.write_line(line, nested, out);
            }
            (false, true) => self.write_line("plan: (empty)", nested, out),
            (false, false) => self.write_line("plan:", nested, out),
        }
        if let Some(call) = &plan.call {
            let writer = self.open.iter_mut().find(|open| *call == *open.call);
            writer.into_iter().for_each(|open| open.drawn = true);
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

/// How it ends.
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

    /// Whether the end of the turn was told with these words.
    fn has_said(&self, words: &str) -> bool {
        self.last_cause.contains(words)
    }

    fn facts_of(&self, ended: &TurnEnded<'_>) -> Vec<String> {
        let mut facts = Vec::new();
        if ended.outcome != Outcome::Completed {
            let outcome = line::word(ended.outcome.as_str());
            let cause = ended.cause.as_ref().map(Text::to_plain).unwrap_or_default();
            let told = cause.is_empty() || *cause == self.last_error;
            facts.push(if told {
                outcome
            } else {
                format!("{outcome}: {}", one_line(&cause, NOTE))
            });
        }
        facts.extend(ended.usage.as_ref().and_then(line::tokens));
        // Nobody pays less than what this many digits can say.
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
        let signal = ended.signal.filter(|it| !self.has_said(&format!("signal {it} ")));
        let code = ended.exit_code.filter(|it| *it != 0 && !self.has_said(&format!("code {it}")));
        if let Some(signal) = signal {
            self.line(&format!("! signal {signal} ended the agent"), false, out);
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
        // The agent waits for an answer to a question, so that it is shown at once.
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

    /// Writes the notes that waited for the end of a line of text.
    fn release_notes(&mut self, out: &mut Output) {
        for Note { line, nested } in std::mem::take(&mut self.held) {
            self.put_line(&line, nested, out);
        }
    }

    /// Writes one line, whatever it is made of.
    fn line(&mut self, text: &str, nested: bool, out: &mut Output) {
        self.write_line(&one_line(text, LINE), nested, out);
    }

    /// Writes a line that is known to be one.
    fn write_line(&mut self, line: &str, nested: bool, out: &mut Output) {
        self.release_notes(out);
        self.put_line(line, nested, out);
    }

    fn put_line(&mut self, line: &str, nested: bool, out: &mut Output) {
        self.screen.begin(Part::Line, nested, out.bytes());
        self.screen.write(line, out.bytes());
        self.screen.end_line(out.bytes());
    }
}
