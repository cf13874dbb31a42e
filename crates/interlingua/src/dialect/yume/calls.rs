//! Writes tool calls and their answers as lines, and translates tools to those of Claude that Yume
//! displays. It knows no order of records.

use std::borrow::Cow;

use super::chunks::{self, Chunk};
use super::{FILE_TOOLS, LINE_LIMIT, NAME_LIMIT};
use crate::dialect::claude::tools as claude;
use crate::dialect::tools;
use crate::event::{FileChange, PlanItem, ToolKind};
use crate::json::read;
use crate::json::write::{Bytes, Object};
use crate::json::{Json, Text, record};

/// The room for a tool's input or output in a line, next to ids and names.
pub(super) const TOOL_ROOM: usize = LINE_LIMIT - 400 - NAME_LIMIT * 8;
/// The room for the names of all tools.
const TOOLS_ROOM: usize = LINE_LIMIT - 400 - NAME_LIMIT * 16;

/// A call to write: its id, its parent call, and whether the client answers it. Both ids are short
/// enough for a line.
#[derive(Clone, Copy)]
pub(super) struct WrittenCall<'w> {
    pub(super) id: &'w Text<'w>,
    pub(super) parent: Option<&'w Text<'w>>,
    pub(super) by_client: bool,
}

impl WrittenCall<'_> {
    /// Writes the call, with its executor if that is the client.
    pub(super) fn write_call(self, lines: &mut Bytes, name: &Text<'_>, input: &str) {
        let mut record = Object::record(lines, "tool_use");
        record.text("id", self.id).text("name", name).raw("input", input);
        if self.by_client {
            record.string("executor", super::CLIENT);
        }
        write_parent(&mut record, self.parent);
        record.end();
    }

    /// Writes the answer. A long one is several records, of which all but the last are marked as
    /// partial.
    pub(super) fn write_answer(self, lines: &mut Bytes, text: &Text<'_>, failed: bool) {
        let mut chunks = chunks::chunks(text, TOOL_ROOM).peekable();
        let mut part = 0;
        while let Some(chunk) = chunks.next() {
            part += 1;
            let mut record = Object::record(lines, "tool_result");
            record.text("tool_use_id", self.id);
            chunk.write(record.name("content"));
            if failed {
                record.flag("is_error", true);
            }
            if chunks.peek().is_some() {
                record.flag("partial", true).number("part", part);
            }
            write_parent(&mut record, self.parent);
            record.end();
        }
    }
}

/// Writes the parent call of a record.
#[inline]
pub(super) fn write_parent(record: &mut Object<'_>, parent: Option<&Text<'_>>) {
    if let Some(parent) = parent {
        record.text("parent_tool_use_id", parent);
    }
}

/// The answer with the exit code first, as Claude Code writes it.
pub(super) fn with_exit_code(code: i64, text: Text<'_>) -> Text<'_> {
    let plain = text.to_plain();
    if plain.starts_with("Exit code ") {
        return text;
    }
    let line = if plain.is_empty() { "" } else { "\n" };
    Text::from(format!("Exit code {code}{line}{plain}"))
}

/// The files that a call changed, one in each line.
pub(super) fn list_files(changes: &[FileChange<'_>]) -> String {
    let lines = changes.iter().map(|change| match &change.old_path {
        Some(old) => format!("{} {old} -> {}", change.kind.as_str(), change.path),
        None => format!("{} {}", change.kind.as_str(), change.path),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The names as a JSON array, and the number of names for which there is no room.
pub(super) fn names_json(names: &[String]) -> (Bytes, usize) {
    let mut json = Bytes::from(*b"[");
    let mut left_out = 0;
    for name in names {
        let chunk = Chunk::Plain(name);
        if json.len() + chunk.encoded_length() + 4 > TOOLS_ROOM {
            left_out += 1;
            continue;
        }
        if json.len() > 1 {
            json.push(b',');
        }
        chunk.write(&mut json);
    }
    json.push(b']');
    (json, left_out)
}

record! {
    /// The input of a tool that works on a file.
    struct FileInput<'a> {
        file_path: json "file_path",
    }
}

/// A call of a tool as Claude Code would have made it.
pub(super) struct ClaudeTool<'t> {
    pub(super) name: Text<'t>,
    pub(super) input: Cow<'t, str>,
    /// Some steps of a plan have a different status from the agent's.
    pub(super) steps_changed: bool,
}

/// Translates a call to one of Claude's, with a name that Yume displays. A call that works on a
/// file always has a `file_path`, which is empty if the file is unknown.
pub(super) fn translate_tool<'a>(
    name: &Text<'a>,
    kind: &ToolKind,
    input: Option<&'a Json<'_>>,
) -> ClaudeTool<'a> {
    let (own_name, own_input) = claude::translate_call(name, kind, input);
    // Yume displays every call of `TodoWrite` as a plan, whatever its kind.
    let displayed_as = if own_name == "TodoWrite" { &ToolKind::Plan } else { kind };
    if let Some(items) = input.and_then(|input| tools::plan_written(displayed_as, input))
        && !can_display_steps(&items)
    {
        let input = claude::todo_input(&items).get().to_owned().into();
        return ClaudeTool { name: own_name, input, steps_changed: true };
    }
    let has_path = |input: &str| {
        let mut file = FileInput::default();
        read::record(input, &mut file).is_ok() && file.file_path.is_some()
    };
    let for_files = FILE_TOOLS.contains(&&*own_name.to_plain());
    let input = if !for_files || has_path(&own_input) {
        own_input
    } else {
        let fields = own_input.trim_ascii_start().strip_prefix('{').unwrap_or("}");
        let comma = if fields.trim_ascii_start().starts_with('}') { "" } else { "," };
        format!("{{\"file_path\":\"\"{comma}{fields}").into()
    };
    ClaudeTool { name: display_name(own_name, kind), input, steps_changed: false }
}

/// The name with which Yume displays a tool of Claude's: it knows only the older name of `Agent`.
pub(super) fn display_name<'a>(name: Text<'a>, kind: &ToolKind) -> Text<'a> {
    if *kind == ToolKind::Task && name == "Agent" { Text::plain("Task") } else { name }
}

/// Whether Yume can display the status of every step of a plan.
pub(super) fn can_display_steps(items: &[PlanItem<'_>]) -> bool {
    items.iter().all(|item| claude::can_express_status(&item.status))
}
