//! Encodes tool calls, their answers, the files that they change, and plans.

use std::borrow::Cow;

use super::YumeEncoder;
use crate::dialect::claude::changes::{self, FileCall};
use crate::dialect::claude::tools as claude;
use crate::dialect::yume::calls::{
    TOOL_ROOM, WrittenCall, can_display_steps, display_name, list_files, translate_tool,
    with_exit_code,
};
use crate::dialect::yume::{names, shorten};
use crate::dialect::{Output, content};
use crate::event::{FileChange, FilesChanged, PlanUpdated, ToolEnded, ToolKind, ToolStatus};
use crate::json::{Json, Text};

/// The answer of a completed `TodoWrite`.
const PLAN_WRITTEN: &str = "Todos have been modified successfully";
/// The answer of a `TodoWrite` that restores a plan, since the call that changed it failed.
const PLAN_RESTORED: &str = "The earlier list stands";

/// The files that open calls change, until the calls are answered.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes {
    /// The files that calls have changed, as text.
    done: Vec<(Text<'static>, String)>,
    /// The calls that were split into one call for each file.
    split: Vec<(Text<'static>, Vec<FileChange<'static>>)>,
}

impl Changes {
    /// Forgets the files of unanswered calls, when the turn ends.
    pub(super) fn end_turn(&mut self) {
        self.done.clear();
    }

    fn take_done(&mut self, call: &Text<'_>) -> Option<String> {
        let at = self.done.iter().position(|(of, _)| of == call)?;
        Some(self.done.swap_remove(at).1)
    }

    fn take_split(&mut self, call: &Text<'_>) -> Option<Vec<FileChange<'static>>> {
        let at = self.split.iter().position(|(of, _)| of == call)?;
        Some(self.split.swap_remove(at).1)
    }
}

impl YumeEncoder {
    /// Writes a call. One that lists the files it changes is written as one call for each file.
    pub(super) fn write_call(
        &mut self,
        call: WrittenCall<'_>,
        (name, kind, input): (&Text<'_>, &ToolKind, Option<&Json<'_>>),
        out: &mut Output,
    ) {
        self.ensure_init(out);
        self.turn.note_call();
        if let Some(files) = changes::translate_changes(kind, input) {
            self.write_file_calls(call, files, out);
            return;
        }
        if input.is_some_and(|input| !input.is_object()) {
            out.lost("tool inputs that are not objects");
        }
        let tool = translate_tool(name, kind, input);
        if tool.steps_changed {
            out.lost("statuses of plan steps");
        }
        self.queue_call(call, &tool.name, &tool.input, out);
    }

    fn write_file_calls(&mut self, call: WrittenCall<'_>, files: Vec<FileCall>, out: &mut Output) {
        for (at, file) in files.iter().enumerate() {
            let id = file_call_id(call.id, at);
            let name = Text::plain(file.name);
            self.queue_call(WrittenCall { id: &id, ..call }, &name, file.input.get(), out);
        }
        if files.len() > 1 {
            let changes = files.into_iter().map(|file| file.change).collect();
            self.changes.split.push((call.id.clone().into_owned(), changes));
        }
    }

    fn queue_call(
        &mut self,
        call: WrittenCall<'_>,
        name: &Text<'_>,
        input: &str,
        out: &mut Output,
    ) {
        let input = shorten_input(input, out);
        let (id, name) = (names::call(call.id, out), names::tool(name, out));
        let parent = call.parent.map(|parent| names::id(parent, out));
        self.queue.call(&id.to_plain(), out.bytes(), |lines| {
            let written = WrittenCall { id: &id, parent: parent.as_ref(), ..call };
            written.write_call(lines, &name, &input);
        });
    }

    /// Writes an answer; for a call that was split, one for each file.
    pub(super) fn write_answer(
        &mut self,
        ended: &ToolEnded<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let Some(files) = self.changes.take_split(&ended.call) else {
            let files = self.changes.take_done(&ended.call);
            self.write_one_answer(ended, files, parent, out);
            return;
        };
        self.changes.take_done(&ended.call);
        for (at, file) in files.iter().enumerate() {
            let line = Some(list_files(std::slice::from_ref(file)));
            if at == 0 {
                // The agent's answer covers all files, so it is written once.
                self.write_one_answer(ended, line, parent, out);
                continue;
            }
            let of_file = ToolEnded {
                call: file_call_id(&ended.call, at),
                name: ended.name.borrowed(),
                kind: ended.kind.clone(),
                status: ended.status.clone(),
                ..ToolEnded::default()
            };
            self.write_one_answer(&of_file, line, parent, out);
        }
    }

    /// Writes one answer. An empty answer is replaced by the list of changed files, or by the
    /// failure.
    fn write_one_answer(
        &mut self,
        ended: &ToolEnded<'_>,
        files: Option<String>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        self.ensure_init(out);
        let (text, others) = content::answer_text(ended);
        for _ in 0..others {
            out.lost("tool outputs that are not text");
        }
        if ended.structured.is_some() {
            out.lost("structured tool outputs");
        }
        let failed = ended.status != ToolStatus::Completed;
        let code = ended.exit_code.filter(|code| failed && *code != 0);
        if code.is_none() && ended.exit_code.is_some() {
            out.lost("exit codes");
        }
        let text = match (code, files) {
            (Some(code), _) => with_exit_code(code, text),
            (None, Some(files)) if text.is_empty() && !failed => Text::from(files),
            (None, _) if text.is_empty() && failed => claude::default_answer(
                &ended.status,
                &display_name(claude::translate_name(&ended.name, &ended.kind), &ended.kind),
            ),
            _ => text,
        };
        let id = names::call(&ended.call, out);
        let parent = parent.map(|parent| names::id(parent, out));
        let expected = self.queue.answer(&id.to_plain(), out.bytes(), |lines| {
            let written = WrittenCall { id: &id, parent: parent.as_ref(), by_client: false };
            written.write_answer(lines, &text, failed);
        });
        if !expected {
            out.lost("answers after the end of their turn");
        }
    }

    /// Keeps the files that a call changed, for an empty answer.
    pub(super) fn keep_files(&mut self, files: &FilesChanged<'_>, out: &mut Output) {
        match &files.call {
            Some(call) => {
                self.changes.take_done(call);
                self.changes.done.push((call.clone().into_owned(), list_files(&files.changes)));
            }
            None => out.lost("file changes outside a tool"),
        }
    }

    /// Writes a plan that no tool call wrote as a call. A plan that is restored because the call
    /// that changed it failed is written again, unless it is empty.
    pub(super) fn write_plan(
        &mut self,
        plan: &PlanUpdated<'_>,
        parent: Option<&Text<'_>>,
        restored: bool,
        out: &mut Output,
    ) {
        // A stream that is passed through already contains every plan.
        if plan.call.is_some() || out.is_passing() || (restored && plan.items.is_empty()) {
            return;
        }
        self.ensure_init(out);
        self.turn.note_call();
        let id = Text::from(self.identity.named("plan-"));
        let input = claude::todo_input(&plan.items);
        if !can_display_steps(&plan.items) {
            out.lost("statuses of plan steps");
        }
        let input = shorten_input(input.get(), out);
        let parent = parent.map(|parent| names::id(parent, out));
        let lines = self.lines(out);
        let written = WrittenCall { id: &id, parent: parent.as_ref(), by_client: false };
        written.write_call(lines, &Text::plain("TodoWrite"), &input);
        let answer = if restored { PLAN_RESTORED } else { PLAN_WRITTEN };
        written.write_answer(lines, &Text::plain(answer), false);
    }
}

/// The id of the call for one of several files; the first has the id of the agent's call.
fn file_call_id(call: &Text<'_>, at: usize) -> Text<'static> {
    match at {
        0 => call.clone().into_owned(),
        at => Text::from(format!("{call}#file-{}", at + 1)),
    }
}

/// The input of a tool, shortened so that it fits a line.
fn shorten_input<'i>(input: &'i str, out: &mut Output) -> Cow<'i, str> {
    if input.len() <= TOOL_ROOM {
        return Cow::Borrowed(input);
    }
    out.lost("tool input over the line limit");
    Cow::Owned(shorten::object(input, TOOL_ROOM))
}
