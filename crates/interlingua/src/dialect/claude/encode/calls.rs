//! Tool calls and their answers.

use std::collections::VecDeque;

use super::{ClaudeEncoder, Content};
use crate::dialect::claude::{result, tools};
use crate::dialect::{Output, content};
use crate::event::{
    Event, FileChange, FileChangeKind, FilesChanged, PlanUpdated, Reason, ToolEnded, ToolKind,
    ToolProgress, ToolStatus, TurnEnded,
};
use crate::json::read;
use crate::json::write::{self, Bytes, Object};
use crate::json::{Json, Text, record};

/// How many calls are remembered by their input.
const REMEMBERED: usize = 64;

/// The longest input that is remembered of a call that was answered.
const INPUT_KEPT: usize = 4 << 10;

/// The calls of the turn at hand.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    /// The last ones, in the order in which they were made: what speaks of one later names it so.
    made: VecDeque<MadeCall>,
    /// Those that were refused, as the end of the turn lists them, with a comma after each.
    denials: Bytes,
    /// The files that a call has changed, one a line.
    changed: Option<(Text<'static>, String)>,
}

#[derive(Debug, Clone, Default)]
struct MadeCall {
    /// The literal of its id.
    id: Bytes,
    /// How the list of refused calls would tell it.
    denial: Bytes,
    answered: bool,
}

record! {
    /// A call as it was told.
    pub(super) struct Told<'a> {
        name: text "tool_name",
        input: json "tool_input",
    }
}

impl MadeCall {
    fn told(&self) -> Option<Told<'_>> {
        let mut told = Told::default();
        read::record(std::str::from_utf8(&self.denial).ok()?, &mut told).ok()?;
        Some(told)
    }

    /// Of a call that was answered, little more than the name is spoken of.
    fn forget_long_input(&mut self) {
        if self.denial.capacity() <= INPUT_KEPT {
            return;
        }
        let name = self.told().and_then(|told| told.name).map(Text::into_owned);
        self.denial = Bytes::new();
        let mut denial = Object::open(&mut self.denial);
        denial.text_if("tool_name", name.as_ref());
        denial.close();
    }
}

impl Calls {
    fn made(&mut self, call: &Text<'_>, name: &Text<'_>, input: &str) {
        let forgotten = if self.made.len() < REMEMBERED { None } else { self.made.pop_front() };
        let mut made = forgotten.unwrap_or_default();
        made.id.clear();
        made.denial.clear();
        write::text(&mut made.id, call);
        write_denial(&mut made.denial, call, name, input);
        made.answered = false;
        self.made.push_back(made);
    }

    /// Notes that a call was answered, and how.
    fn answered(&mut self, ended: &ToolEnded<'_>) {
        let mut id = Bytes::new();
        let id = match ended.call.as_literal() {
            Some(literal) => literal.as_bytes(),
            None => {
                write::text(&mut id, &ended.call);
                &id
            }
        };
        let made = self.made.iter_mut().rfind(|made| made.id == id);
        if ended.status == ToolStatus::Denied {
            match &made {
                Some(made) => self.denials.extend_from_slice(&made.denial),
                None => write_denial(&mut self.denials, &ended.call, &ended.name, "{}"),
            }
            self.denials.push(b',');
        }
        if let Some(made) = made {
            made.answered = true;
            made.forget_long_input();
        }
    }

    /// Whether all calls were answered.
    pub(super) fn none_open(&self) -> bool {
        self.made.iter().all(|made| made.answered)
    }

    /// How a call was told, if it is one of the last.
    pub(super) fn told(&self, call: &Text<'_>) -> Option<Told<'_>> {
        let mut id = Bytes::new();
        write::text(&mut id, call);
        self.made.iter().rfind(|made| made.id == id)?.told()
    }

    /// Those that were refused, as a JSON array.
    pub(super) fn take_denials(&mut self) -> Bytes {
        let mut denials = std::mem::take(&mut self.denials);
        denials.pop();
        [b"[", &*denials, b"]"].concat()
    }

    fn changed(&mut self, changed: &FilesChanged<'_>) {
        let Some(call) = &changed.call else { return };
        let lines: Vec<String> = changed.changes.iter().map(line_of).collect();
        self.changed = Some((call.clone().into_owned(), lines.join("\n")));
    }

    fn files_of(&mut self, call: &Text<'_>) -> Option<String> {
        let its_own = self.changed.as_ref().is_some_and(|(by, _)| by == call);
        if its_own { self.changed.take().map(|(_, files)| files) } else { None }
    }
}

fn write_denial(out: &mut Bytes, call: &Text<'_>, name: &Text<'_>, input: &str) {
    let mut denial = Object::open(out);
    denial.text("tool_name", name).text("tool_use_id", call).raw("tool_input", input);
    denial.close();
}

fn line_of(change: &FileChange<'_>) -> String {
    let path = change.path.to_plain();
    match (&change.kind, &change.old_path) {
        (FileChangeKind::Add, _) => format!("A {path}"),
        (FileChangeKind::Delete, _) => format!("D {path}"),
        (FileChangeKind::Move, Some(old)) => format!("R {old} -> {path}"),
        _ => format!("M {path}"),
    }
}

impl ClaudeEncoder {
    /// Keeps what a call did to files for its answer.
    pub(in crate::dialect::claude) fn changed(&mut self, changed: &FilesChanged<'_>) {
        self.calls.changed(changed);
    }

    pub(super) fn call(
        &mut self,
        (call, name, kind): (&Text<'_>, &Text<'_>, &ToolKind),
        input: Option<&Json<'_>>,
        message: Option<&Text<'_>>,
        event: &Event<'_>,
        out: &mut Output,
    ) {
        let (name, input) = tools::call(name, kind, input);
        self.calls.made(call, &name, &input);
        self.messages.enter(message, &mut self.stamp.identity);
        if let Some(pieces) = self.pieces.as_mut().filter(|_| event.parent.is_none()) {
            let model = self.models.of(message, &self.facts);
            pieces.call(&self.messages, model, call, &name, &mut self.stamp, out);
            pieces.input(&input, &mut self.stamp, out);
        }
        let content = Content::ToolUse { call, name: &name, input: &input };
        self.assistant(&content, message, event, out);
        self.end_pieces(event, out);
    }

    pub(super) fn answer(&mut self, ended: &ToolEnded<'_>, event: &Event<'_>, out: &mut Output) {
        self.end_message(None, ended.status == ToolStatus::Abandoned, out);
        self.turn.stopped_in_call = matches!(
            ended.status,
            ToolStatus::Abandoned | ToolStatus::Cancelled | ToolStatus::Denied
        );
        let text = self.answer_text(ended, out);
        self.calls.answered(ended);
        let mut record = out.record("user");
        record.object("message", |fields| {
            fields.raw("role", "\"user\"");
            fields.objects("content", [ended], |block, ended| {
                block.text("tool_use_id", &ended.call).raw("type", "\"tool_result\"");
                match (&text, &ended.output) {
                    (Some(text), _) => {
                        block.text("content", text);
                    }
                    (None, Some(blocks)) => result::write_blocks(block, blocks),
                    (None, None) => {}
                }
                if ended.status != ToolStatus::Completed {
                    block.flag("is_error", true);
                }
            });
        });
        record.json_if("tool_use_result", ended.structured.as_ref());
        if ended.status == ToolStatus::Denied {
            record.objects("tool_result_meta", [&ended.call], |meta, call| {
                meta.text("id", call).string("non_execution_kind", "permission-rule");
            });
        }
        self.stamp.end_within(record, event);
    }

    /// The answer as text; `None` where it is a list of blocks.
    fn answer_text<'e>(&mut self, ended: &'e ToolEnded<'_>, out: &mut Output) -> Option<Text<'e>> {
        let files = self.calls.files_of(&ended.call);
        let exit_code = ended.exit_code.filter(|code| *code != 0);
        let blocks = ended.output.as_ref().is_some_and(Json::is_array);
        if blocks || ended.status == ToolStatus::Completed {
            exit_code.inspect(|_| out.lost("exit codes"));
        }
        if blocks {
            return None;
        }
        let (text, _) = content::answer_text(ended);
        Some(match (&ended.status, exit_code, files) {
            (ToolStatus::Completed, _, Some(files)) if text.is_empty() => Text::from(files),
            (ToolStatus::Completed, ..) => text,
            (_, Some(code), _) => with_exit_code(text, code),
            (status, ..) if text.is_empty() => {
                let told = self.calls.told(&ended.call).and_then(|told| told.name);
                tools::unsaid(
                    status,
                    &told.unwrap_or_else(|| tools::name(&ended.name, &ended.kind)),
                )
            }
            _ => text,
        })
    }

    /// That a call still runs, where the agent says for how long.
    pub(super) fn progress(
        &mut self,
        progress: &ToolProgress<'_>,
        event: &Event<'_>,
        out: &mut Output,
    ) {
        if progress.output.is_some() {
            out.lost("output of running tools");
        }
        let Some(elapsed_ms) = progress.elapsed_ms else { return };
        let told = self.calls.told(&progress.call).and_then(|told| told.name);
        let mut record = out.record("tool_progress");
        record.text("tool_use_id", &progress.call).text_if("tool_name", told.as_ref());
        record.number("elapsed_time_seconds", elapsed_ms / 1000);
        self.stamp.end_within(record, event);
    }

    /// Those that were refused: as Claude lists them; of others as they were told, or else as the agent
    /// lists them.
    pub(super) fn denials(&mut self, ended: &TurnEnded<'_>) -> Bytes {
        let seen = self.calls.take_denials();
        let told = |call: &Text<'_>| self.calls.told(call).and_then(|told| told.name);
        match ended.denials.as_ref().filter(|denials| denials.is_array()) {
            Some(list) if self.is_claudes() && tools::names_denials(list, told) => {
                list.get().into()
            }
            Some(list) if self.is_claudes() || seen == b"[]" => tools::denials(list, told),
            _ => seen,
        }
    }

    /// A plan that no tool call wrote is told by the tool that Claude has for it. One that stands
    /// again because a call was refused was told before, and the failed call says the rest.
    pub(super) fn plan(&mut self, plan: &PlanUpdated<'_>, event: &Event<'_>, out: &mut Output) {
        if event.synthetic == Some(Reason::Refused) {
            return;
        }
        for _ in plan.items.iter().filter(|item| !tools::has_word_for(&item.status)) {
            out.lost("how far a step of the plan is");
        }
        if plan.call.is_some() {
            return;
        }
        let call = Text::from(self.stamp.identity.named("plan-"));
        let input = tools::todo_input(&plan.items);
        let name = Text::plain("TodoWrite");
        let (requests, counted) = (self.messages.requests, self.messages.counted);
        self.call((&call, &name, &ToolKind::Plan), Some(&input), None, event, out);
        let done = Json::from(&Text::plain("Todos have been modified successfully"));
        let ended = ToolEnded { call, name, output: Some(done), ..ToolEnded::default() };
        self.answer(&ended, event, out);
        self.messages.requests = requests;
        self.messages.counted = counted;
    }
}

/// The answer of a command that failed, as Claude Code gives it: with the exit code in front.
fn with_exit_code(text: Text<'_>, code: i64) -> Text<'_> {
    let (start, said) = (format!("Exit code {code}"), text.to_plain());
    let told = said
        .strip_prefix(&start)
        .is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()));
    match (told, said.is_empty()) {
        (true, _) => text,
        (false, true) => Text::from(start),
        (false, false) => Text::from(format!("{start}\n{said}")),
    }
}
