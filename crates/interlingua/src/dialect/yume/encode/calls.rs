//! Tool calls, their answers, the files that they change, and plans.

use std::borrow::Cow;

use super::YumeEncoder;
use crate::dialect::claude::changes::{self, FileCall};
use crate::dialect::claude::tools as claude;
use crate::dialect::yume::calls::{
    TOOL_ROOM, Written, all_drawn, as_claude_tool, drawn_name, listed, with_exit_code,
};
use crate::dialect::yume::{names, shorten};
use crate::dialect::{Output, content};
use crate::event::{FileChange, FilesChanged, PlanUpdated, ToolEnded, ToolKind, ToolStatus};
use crate::json::{Json, Text};

/// What `TodoWrite` says when it has done its work.
const PLAN_WRITTEN: &str = "Todos have been modified successfully";
/// What is said of a list that is shown again, since the one after it was refused.
const PLAN_STANDS: &str = "The earlier list stands";

/// The files that open calls change, until the calls are answered.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes {
    /// The files that calls changed, as lists.
    done: Vec<(Text<'static>, String)>,
    /// Calls that were written as one call a file.
    split: Vec<(Text<'static>, Vec<FileChange<'static>>)>,
}

impl Changes {
    /// Forgets the files of calls that were never answered: the turn is over.
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
    /// Writes a call; one that changes files by a list as one call a file.
    pub(super) fn call(
        &mut self,
        call: Written<'_>,
        (name, kind, input): (&Text<'_>, &ToolKind, Option<&Json<'_>>),
        out: &mut Output,
    ) {
        self.ensure_init(out);
        self.turn.called();
        if let Some(files) = changes::translate_changes(kind, input) {
            self.file_calls(call, files, out);
            return;
        }
        if input.is_some_and(|input| !input.is_object()) {
            out.lost("tool input that is no object");
        }
        let tool = as_claude_tool(name, kind, input);
        if tool.steps_changed {
            out.lost("status of a step");
        }
        self.write_call(call, &tool.name, &tool.input, out);
    }

    fn file_calls(&mut self, call: Written<'_>, files: Vec<FileCall>, out: &mut Output) {
        for (at, file) in files.iter().enumerate() {
            let id = id_of_file(call.id, at);
            let name = Text::plain(file.name);
            self.write_call(Written { id: &id, ..call }, &name, file.input.get(), out);
        }
        if files.len() > 1 {
            let changes = files.into_iter().map(|file| file.change).collect();
            self.changes.split.push((call.id.clone().into_owned(), changes));
        }
    }

    fn write_call(&mut self, call: Written<'_>, name: &Text<'_>, input: &str, out: &mut Output) {
        let input = fitting(input, out);
        let (id, name) = (names::call(call.id, out), names::tool(name, out));
        let parent = call.parent.map(|parent| names::id(parent, out));
        self.hold.call(&id.to_plain(), out.bytes(), |lines| {
            let written = Written { id: &id, parent: parent.as_ref(), ..call };
            written.call(lines, &name, &input);
        });
    }

    /// Writes an answer; that of a call which was written as one call a file for each of them.
    pub(super) fn answer(
        &mut self,
        ended: &ToolEnded<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let Some(files) = self.changes.take_split(&ended.call) else {
            let files = self.changes.take_done(&ended.call);
            self.answer_one(ended, files, parent, out);
            return;
        };
        self.changes.take_done(&ended.call);
        for (at, file) in files.iter().enumerate() {
            let line = Some(listed(std::slice::from_ref(file)));
            if at == 0 {
                // What the agent says of all files is said once.
                self.answer_one(ended, line, parent, out);
                continue;
            }
            let of_file = ToolEnded {
                call: id_of_file(&ended.call, at),
                name: ended.name.borrowed(),
                kind: ended.kind.clone(),
                status: ended.status.clone(),
                ..ToolEnded::default()
            };
            self.answer_one(&of_file, line, parent, out);
        }
    }

    /// Writes one answer. Where the agent says nothing, it is the list of files that changed, or that
    /// the call failed.
    fn answer_one(
        &mut self,
        ended: &ToolEnded<'_>,
        files: Option<String>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        self.ensure_init(out);
        let (text, others) = content::answer_text(ended);
        for _ in 0..others {
            out.lost("tool output that is no text");
        }
        if ended.structured.is_some() {
            out.lost("structured tool output");
        }
        let failed = ended.status != ToolStatus::Completed;
        let code = ended.exit_code.filter(|code| failed && *code != 0);
        if code.is_none() && ended.exit_code.is_some() {
            out.lost("exit code of a command");
        }
        let text = match (code, files) {
            (Some(code), _) => with_exit_code(code, text),
            (None, Some(files)) if text.is_empty() && !failed => Text::from(files),
            (None, _) if text.is_empty() && failed => claude::default_answer(
                &ended.status,
                &drawn_name(claude::translate_name(&ended.name, &ended.kind), &ended.kind),
            ),
            _ => text,
        };
        let id = names::call(&ended.call, out);
        let parent = parent.map(|parent| names::id(parent, out));
        let waited_for = self.hold.answer(&id.to_plain(), out.bytes(), |lines| {
            let written = Written { id: &id, parent: parent.as_ref(), by_client: false };
            written.answer(lines, &text, failed);
        });
        if !waited_for {
            out.lost("answer that came after its turn");
        }
    }

    /// Keeps which files a call changed, for an answer that says nothing.
    pub(super) fn files(&mut self, files: &FilesChanged<'_>, out: &mut Output) {
        match &files.call {
            Some(call) => {
                self.changes.take_done(call);
                self.changes.done.push((call.clone().into_owned(), listed(&files.changes)));
            }
            None => out.lost("file changes outside a tool"),
        }
    }

    /// A plan that no tool call wrote is told as one. A refused one leaves the list before it, which
    /// is shown again if there was any.
    pub(super) fn plan(
        &mut self,
        plan: &PlanUpdated<'_>,
        parent: Option<&Text<'_>>,
        refused: bool,
        out: &mut Output,
    ) {
        // In a stream that is passed on, every plan is there already.
        if plan.call.is_some() || out.is_passing() || (refused && plan.items.is_empty()) {
            return;
        }
        self.ensure_init(out);
        self.turn.called();
        let id = Text::from(self.identity.named("plan-"));
        let input = claude::todo_input(&plan.items);
        if !all_drawn(&plan.items) {
            out.lost("status of a step");
        }
        let input = fitting(input.get(), out);
        let parent = parent.map(|parent| names::id(parent, out));
        let lines = self.lines(out);
        let written = Written { id: &id, parent: parent.as_ref(), by_client: false };
        written.call(lines, &Text::plain("TodoWrite"), &input);
        let answer = if refused { PLAN_STANDS } else { PLAN_WRITTEN };
        written.answer(lines, &Text::plain(answer), false);
    }
}

/// The id of the call for one of several files; the first has that of the agent's own call.
fn id_of_file(call: &Text<'_>, at: usize) -> Text<'static> {
    match at {
        0 => call.clone().into_owned(),
        at => Text::from(format!("{call}#file-{}", at + 1)),
    }
}

/// The input of a tool, made short enough for a line.
fn fitting<'i>(input: &'i str, out: &mut Output) -> Cow<'i, str> {
    if input.len() <= TOOL_ROOM {
        return Cow::Borrowed(input);
    }
    out.lost("tool input over the line limit");
    Cow::Owned(shorten::object(input, TOOL_ROOM))
}
