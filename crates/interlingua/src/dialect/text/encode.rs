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
    Block, BlockKind, Data, Event, Executor, FileChangeKind, FilesChanged, Outcome, PlanStatus,
    PlanUpdated, SessionEnded, ToolEnded, ToolInput, ToolKind, ToolStarted, TurnEnded, UserMessage,
};
use crate::json::{Json, Text};

/// The longest line about something that happened, in characters: it may be all that is known.
const NOTE: usize = 4 * LINE;
/// How many lines of standard error are shown.
const STDERR_LINES: usize = 10;

/// A writer of text for a person.
#[derive(Debug, Default)]
pub struct TextEncoder {
    screen: Screen,
    /// The call whose line was written last: its answer needs no name.
    last_call: String,
    /// What was said to have gone wrong last: the turn's end does not say it again.
    last_error: String,
}

impl Encoder for TextEncoder {
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        let nested = event.parent.is_some();
        match &event.data {
            Data::BlockDelta(delta) => {
                self.piece(delta.block, &delta.kind, &delta.text, nested, out);
            }
            Data::BlockEnded(_) => self.screen.end_line(out.bytes()),
            Data::Block(block) => self.block(block, nested, out),
            Data::ToolStarted(started) => self.tool_started(started, nested, out),
            Data::ToolInput(input) => self.tool_input(input, nested, out),
            Data::ToolEnded(ended) => self.answer(ended, nested, out),
            Data::FilesChanged(changed) => self.files(changed, nested, out),
            Data::PlanUpdated(plan) => self.plan(plan, nested, out),
            Data::UserMessage(message) => self.user_message(message, nested, out),
            Data::TurnStarted(_) => {}
            Data::TurnEnded(ended) => self.turn_ended(ended, out),
            Data::SessionEnded(ended) => self.session_ended(ended, out),
            Data::Error(error) => {
                self.last_error = error.message.to_plain().into_owned();
                self.note(event, nested, out);
            }
            _ => self.note(event, nested, out),
        }
    }

    fn finish(&mut self, out: &mut Output) {
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
        let bytes = out.bytes();
        if self.screen.last() != Part::Prose(block) {
            self.screen.begin(Part::Prose(block), nested, bytes);
            if *kind == BlockKind::Reasoning {
                self.screen.write("thinking: ", bytes);
                self.screen.hang("  ");
            }
        }
        let text = text.to_plain();
        self.screen.write(&text, bytes);
    }

    fn block(&mut self, block: &Block<'_>, nested: bool, out: &mut Output) {
        match &block.kind {
            BlockKind::Text | BlockKind::Reasoning => {
                self.piece(block.block, &block.kind, &block.text, nested, out);
                self.screen.end_line(out.bytes());
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
            self.line(&format!("> (the agent to itself) {text}"), nested, out);
            out.lost("what the agent tells itself in the user's name, beyond one line");
            return;
        }
        // No block has this number: the grammar counts from zero.
        self.screen.begin(Part::Prose(u64::MAX), nested, out.bytes());
        self.screen.hang("> ");
        self.screen.write(&text, out.bytes());
        self.screen.end_line(out.bytes());
    }
}

/// What its tools do.
impl TextEncoder {
    fn tool_started(&mut self, started: &ToolStarted<'_>, nested: bool, out: &mut Output) {
        let ToolStarted { call, name, kind, executor, input, .. } = started;
        if input.is_some() {
            self.call(call, (name, kind, executor), input.as_ref(), nested, out);
        }
    }

    fn tool_input(&mut self, known: &ToolInput<'_>, nested: bool, out: &mut Output) {
        let ToolInput { call, name, kind, executor, input, .. } = known;
        self.call(call, (name, kind, executor), input.as_ref(), nested, out);
    }

    fn call(
        &mut self,
        call: &Text<'_>,
        (name, kind, executor): (&Text<'_>, &ToolKind, &Executor),
        input: Option<&Json<'_>>,
        nested: bool,
        out: &mut Output,
    ) {
        let (line, more) = line::call(&name.to_plain(), kind, input);
        let whose = if *executor == Executor::Client { " (for the client to run)" } else { "" };
        self.write_line(&format!("▸ {line}{whose}"), nested, out);
        if more {
            out.lost("tool inputs beyond one value");
        }
        self.last_call.clear();
        self.last_call.push_str(&call.to_plain());
    }

    fn answer(&mut self, ended: &ToolEnded<'_>, nested: bool, out: &mut Output) {
        let (text, others) = answer_text(ended);
        let (answer, more) = line::answer(ended, &text.to_plain());
        let line = if ended.call == *self.last_call {
            format!("  ⎿ {answer}")
        } else {
            format!("  ⎿ {}: {answer}", one_line(&ended.name.to_plain(), LINE / 2))
        };
        self.write_line(&line, nested, out);
        if more {
            out.lost("tool outputs beyond one line");
        }
        if others > 0 {
            out.lost("tool outputs that are no text");
        }
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

    fn plan(&mut self, plan: &PlanUpdated<'_>, nested: bool, out: &mut Output) {
        let empty = if plan.items.is_empty() { " (empty)" } else { "" };
        self.write_line(&format!("plan:{empty}"), nested, out);
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
        if let Some(answer) = &ended.structured {
            self.screen.begin(Part::Prose(u64::MAX), false, out.bytes());
            self.screen.write(answer.get(), out.bytes());
        }
        let facts = self.facts_of(ended);
        self.screen.end_line(out.bytes());
        if !facts.is_empty() {
            self.screen.begin(Part::TurnEnd, false, out.bytes());
            self.screen.write(&format!("— {}", facts.join(" · ")), out.bytes());
            self.screen.end_line(out.bytes());
        }
        self.last_call.clear();
        self.last_error.clear();
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
        if let Some(cost) = &ended.cost {
            let about = if cost.estimated { "about " } else { "" };
            facts.push(format!("{about}${:.4}", cost.usd));
        }
        facts.extend(ended.duration_ms.map(line::duration));
        facts
    }

    fn session_ended(&mut self, ended: &SessionEnded<'_>, out: &mut Output) {
        if let Some(signal) = ended.signal {
            self.line(&format!("! signal {signal} ended the agent"), false, out);
        } else if let Some(code) = ended.exit_code.filter(|code| *code != 0) {
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
        for note in notes::of(event, out) {
            self.write_line(&one_line(&note, NOTE), nested, out);
        }
    }

    /// Writes one line, whatever it is made of.
    fn line(&mut self, text: &str, nested: bool, out: &mut Output) {
        self.write_line(&one_line(text, LINE), nested, out);
    }

    /// Writes a line that is known to be one.
    fn write_line(&mut self, line: &str, nested: bool, out: &mut Output) {
        self.screen.begin(Part::Line, nested, out.bytes());
        self.screen.write(line, out.bytes());
        self.screen.end_line(out.bytes());
    }
}

#[cfg(test)]
mod tests {
    use crate::dialect::{self, FramingKind};
    use crate::{Exit, Options, Translator};

    /// What a person sees of a stream, and what was lost.
    fn shown_of(from: &str, lines: &str, exit: &Exit) -> (String, Vec<String>) {
        let options = Options { framing: Some(FramingKind::Lines), ..Options::default() };
        let to = dialect::find("text").unwrap();
        let mut translator = Translator::new(dialect::find(from), to, options).unwrap();
        let mut shown = translator.push(lines.as_bytes()).to_vec();
        shown.extend_from_slice(translator.finish(exit));
        let lost = translator.losses().iter().map(|(what, count)| format!("{count} {what}"));
        let lost = lost.collect();
        (String::from_utf8(shown).unwrap(), lost)
    }

    const CODEX: &str = r#"{"type":"thread.started","thread_id":"t"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"0","type":"reasoning","text":"Look first.\nThen act."}}
{"type":"item.started","item":{"id":"1","type":"command_execution","command":"cat a\n  b","aggregated_output":"","exit_code":null,"status":"in_progress"}}
{"type":"item.completed","item":{"id":"1","type":"command_execution","command":"cat a","aggregated_output":"one\ntwo\nthree\n","exit_code":2,"status":"failed"}}
{"type":"item.completed","item":{"id":"2","type":"file_change","changes":[{"path":"a.txt","kind":"add"},{"path":"b.txt","kind":"delete"}],"status":"completed"}}
{"type":"item.completed","item":{"id":"3","type":"todo_list","items":[{"text":"Look","completed":true},{"text":"Act","completed":false}]}}
{"type":"item.completed","item":{"id":"4","type":"agent_message","text":"Done\u001b[2J.\rReally."}}
not a record
{"type":"nobody.knows","x":1}
{"type":"turn.completed","usage":{"input_tokens":12345,"cached_input_tokens":40,"output_tokens":20}}
"#;

    #[test]
    fn a_turn_reads_well() {
        let (shown, lost) = shown_of("codex", CODEX, &Exit::default());
        assert_eq!(
            shown,
            "\
thinking: Look first.
  Then act.

▸ command_execution: cat a b
  ⎿ failed, exit code 2: one … (+2 lines)
▸ file_change
  + a.txt
  - b.txt
  ⎿ done
plan:
  [x] Look
  [ ] Act

Done.Really.

? line 9: this is not JSON: unexpected character at column 1: not a record
? line 10: a record that nobody knows: \"nobody.knows\"

— 12,345 tokens in (40 cached), 20 out
"
        );
        assert_eq!(lost, ["1 tool outputs beyond one line"]);
    }

    #[test]
    fn a_turn_that_was_cut_off_says_so() {
        let line = r#"{"type":"item.started","item":{"id":"1","type":"command_execution","command":"sleep 9","status":"in_progress"}}"#;
        let exit = Exit { code: Some(1), stderr: Some("boom\n".to_owned()), ..Exit::default() };
        let (shown, _) = shown_of("codex", &format!("{line}\n"), &exit);
        assert!(shown.starts_with("▸ command_execution: sleep 9\n  ⎿ abandoned: "), "{shown}");
        assert!(shown.contains("\n\n— failed: the agent exited with code 1"), "{shown}");
        assert!(shown.ends_with("\n! the agent exited with code 1\n| boom\n"), "{shown}");
    }

    #[test]
    fn pieces_are_written_as_they_come() {
        let to = dialect::find("text").unwrap();
        let codex = dialect::find("codex");
        let mut translator = Translator::new(codex, to, Options::default()).unwrap();
        let piece = |text| {
            format!(
                "{{\"type\":\"message.output_text.delta\",\"item_id\":\"a\",\"delta\":\"{text}\"}}\n"
            )
        };
        assert_eq!(translator.push(piece("Hel").as_bytes()), b"Hel");
        assert_eq!(translator.push(piece("lo\\n").as_bytes()), b"lo\n");
        assert_eq!(translator.push(piece("you").as_bytes()), b"you");
    }

    #[test]
    fn a_sub_agent_stands_to_the_right() {
        let lines = r#"{"type":"assistant","session_id":"s","message":{"id":"m","content":[{"type":"tool_use","id":"c","name":"Task","input":{"description":"look","prompt":"Look."}}]}}
{"type":"assistant","session_id":"s","parent_tool_use_id":"c","message":{"id":"n","content":[{"type":"text","text":"one\ntwo"}]}}
{"type":"user","session_id":"s","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":"found"}]}}
"#;
        let (shown, _) = shown_of("claude", lines, &Exit::default());
        let start = "▸ Task: look\n\n    one\n    two\n\n  ⎿ found\n";
        assert!(shown.starts_with(start), "{shown}");
    }
}
