//! Writes tool calls and their answers, the denied calls, and plans as calls of `TodoWrite`.

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

/// The number of calls whose name and input are remembered.
const MAX_RECENT: usize = 64;

/// The longest input that is kept of an answered call.
const MAX_ANSWERED_INPUT: usize = 4 << 10;

/// The recent calls, and what the answers and the `result` of the turn need of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    /// The recent calls, the oldest first. Later records about a call repeat its written name.
    recent: VecDeque<RecentCall>,
    /// The denied calls, as the `result` lists them, with a comma after each.
    denials: Bytes,
    /// The call that changed files last, and those files, one in each line.
    files: Option<(Text<'static>, String)>,
}

#[derive(Debug, Clone, Default)]
struct RecentCall {
    /// Its id, as a JSON literal.
    id: Bytes,
    /// The call as a JSON object, in the form of the list of denied calls.
    denial: Bytes,
    answered: bool,
}

record! {
    /// A call as it was written.
    pub(super) struct WrittenCall<'a> {
        name: text "tool_name",
        input: json "tool_input",
    }
}

impl RecentCall {
    fn written(&self) -> Option<WrittenCall<'_>> {
        let mut written = WrittenCall::default();
        read::record(std::str::from_utf8(&self.denial).ok()?, &mut written).ok()?;
        Some(written)
    }

    /// Forgets a long input: records after the answer need only the name.
    fn forget_long_input(&mut self) {
        if self.denial.capacity() <= MAX_ANSWERED_INPUT {
            return;
        }
        let name = self.written().and_then(|written| written.name).map(Text::into_owned);
        self.denial = Bytes::new();
        let mut denial = Object::open(&mut self.denial);
        denial.text_if("tool_name", name.as_ref());
        denial.close();
    }
}

impl Calls {
    fn add(&mut self, call: &Text<'_>, name: &Text<'_>, input: &str) {
        let forgotten = if self.recent.len() < MAX_RECENT { None } else { self.recent.pop_front() };
        let mut recent = forgotten.unwrap_or_default();
        recent.id.clear();
        recent.denial.clear();
        write::text(&mut recent.id, call);
        write_denial(&mut recent.denial, call, name, input);
        recent.answered = false;
        self.recent.push_back(recent);
    }

    /// Notes that a call was answered, and keeps it for the `result` if it was denied.
    fn mark_answered(&mut self, ended: &ToolEnded<'_>) {
        let mut id = Bytes::new();
        let id = match ended.call.as_literal() {
            Some(literal) => literal.as_bytes(),
            None => {
                write::text(&mut id, &ended.call);
                &id
            }
        };
        let recent = self.recent.iter_mut().rfind(|recent| recent.id == id);
        if ended.status == ToolStatus::Denied {
            match &recent {
                Some(recent) => self.denials.extend_from_slice(&recent.denial),
                None => write_denial(&mut self.denials, &ended.call, &ended.name, "{}"),
            }
            self.denials.push(b',');
        }
        if let Some(recent) = recent {
            recent.answered = true;
            recent.forget_long_input();
        }
    }

    /// Whether all calls were answered.
    pub(super) fn all_answered(&self) -> bool {
        self.recent.iter().all(|recent| recent.answered)
    }

    /// A call as it was written, if it is a recent one.
    pub(super) fn written(&self, call: &Text<'_>) -> Option<WrittenCall<'_>> {
        let mut id = Bytes::new();
        write::text(&mut id, call);
        self.recent.iter().rfind(|recent| recent.id == id)?.written()
    }

    /// The denied calls, as a JSON array.
    pub(super) fn take_denials(&mut self) -> Bytes {
        let mut denials = std::mem::take(&mut self.denials);
        denials.pop();
        [b"[", &*denials, b"]"].concat()
    }

    fn keep_files(&mut self, changed: &FilesChanged<'_>) {
        let Some(call) = &changed.call else { return };
        let lines: Vec<String> = changed.changes.iter().map(line_of).collect();
        self.files = Some((call.clone().into_owned(), lines.join("\n")));
    }

    fn take_files(&mut self, call: &Text<'_>) -> Option<String> {
        let its_own = self.files.as_ref().is_some_and(|(by, _)| by == call);
        if its_own { self.files.take().map(|(_, files)| files) } else { None }
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
    /// Keeps the files that a call changed for its answer.
    pub(super) fn keep_files(&mut self, changed: &FilesChanged<'_>) {
        self.calls.keep_files(changed);
    }

    pub(super) fn write_call(
        &mut self,
        (call, name, kind): (&Text<'_>, &Text<'_>, &ToolKind),
        input: Option<&Json<'_>>,
        message: Option<&Text<'_>>,
        event: &Event<'_>,
        out: &mut Output,
    ) {
        let (name, input) = tools::translate_call(name, kind, input);
        self.calls.add(call, &name, &input);
        self.messages.enter(message, &mut self.stamp.identity);
        if let Some(partial) = self.partial.as_mut().filter(|_| event.parent.is_none()) {
            let model = self.models.of(message, &self.facts);
            partial.start_call(&self.messages, model, call, &name, &mut self.stamp, out);
            partial.write_input(&input, &mut self.stamp, out);
        }
        let content = Content::ToolUse { call, name: &name, input: &input };
        self.write_assistant(&content, message, event, out);
        self.end_partial_block(event, out);
    }

    pub(super) fn write_answer(
        &mut self,
        ended: &ToolEnded<'_>,
        event: &Event<'_>,
        out: &mut Output,
    ) {
        self.end_message(None, ended.status == ToolStatus::Abandoned, out);
        self.turn.stopped_in_call = matches!(
            ended.status,
            ToolStatus::Abandoned | ToolStatus::Cancelled | ToolStatus::Denied
        );
        let text = self.answer_text(ended, out);
        self.calls.mark_answered(ended);
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

    /// The answer as text; `None` if it is a list of blocks.
    fn answer_text<'e>(&mut self, ended: &'e ToolEnded<'_>, out: &mut Output) -> Option<Text<'e>> {
        let files = self.calls.take_files(&ended.call);
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
                let written = self.calls.written(&ended.call).and_then(|written| written.name);
                tools::default_answer(
                    status,
                    &written.unwrap_or_else(|| tools::translate_name(&ended.name, &ended.kind)),
                )
            }
            _ => text,
        })
    }

    /// Writes that a call is still running, if the agent states for how long.
    pub(super) fn write_progress(
        &mut self,
        progress: &ToolProgress<'_>,
        event: &Event<'_>,
        out: &mut Output,
    ) {
        if progress.output.is_some() {
            out.lost("output of running tools");
        }
        let Some(elapsed_ms) = progress.elapsed_ms else { return };
        let written = self.calls.written(&progress.call).and_then(|written| written.name);
        let mut record = out.record("tool_progress");
        record.text("tool_use_id", &progress.call).text_if("tool_name", written.as_ref());
        record.number("elapsed_time_seconds", elapsed_ms / 1000);
        self.stamp.end_within(record, event);
    }

    /// The denied calls, with the names with which they were written. Claude's own list takes
    /// precedence over the answers that were denied; that of another agent does not.
    pub(super) fn denials_of(&mut self, ended: &TurnEnded<'_>) -> Bytes {
        let observed = self.calls.take_denials();
        let written = |call: &Text<'_>| self.calls.written(call).and_then(|written| written.name);
        match ended.denials.as_ref().filter(|denials| denials.is_array()) {
            Some(list) if self.is_claude() && tools::uses_written_names(list, written) => {
                list.get().into()
            }
            Some(list) if self.is_claude() || observed == b"[]" => {
                tools::write_denials(list, written)
            }
            _ => observed,
        }
    }

    /// Writes a plan that no tool call wrote as a call of Claude's tool for plans. A plan that is
    /// restored because the call that changed it failed was written before, so it is not written
    /// again.
    pub(super) fn write_plan(
        &mut self,
        plan: &PlanUpdated<'_>,
        event: &Event<'_>,
        out: &mut Output,
    ) {
        if event.synthetic == Some(Reason::Refused) {
            return;
        }
        for _ in plan.items.iter().filter(|item| !tools::can_express_status(&item.status)) {
            out.lost("statuses of plan steps");
        }
        if plan.call.is_some() {
            return;
        }
        let call = Text::from(self.stamp.identity.named("plan-"));
        let input = tools::todo_input(&plan.items);
        let name = Text::plain("TodoWrite");
        let (requests, counted) = (self.messages.requests, self.messages.counted);
        self.write_call((&call, &name, &ToolKind::Plan), Some(&input), None, event, out);
        let done = Json::from(&Text::plain("Todos have been modified successfully"));
        let ended = ToolEnded { call, name, output: Some(done), ..ToolEnded::default() };
        self.write_answer(&ended, event, out);
        self.messages.requests = requests;
        self.messages.counted = counted;
    }
}

/// The answer of a failed command, with the exit code first, as Claude Code writes it.
fn with_exit_code(text: Text<'_>, code: i64) -> Text<'_> {
    let (start, plain) = (format!("Exit code {code}"), text.to_plain());
    let has_code = plain
        .strip_prefix(&start)
        .is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()));
    match (has_code, plain.is_empty()) {
        (true, _) => text,
        (false, true) => Text::from(start),
        (false, false) => Text::from(format!("{start}\n{plain}")),
    }
}
