//! Tool calls and their answers, as lines; and the tools by the names that Claude gives them.

use std::borrow::Cow;

use super::pieces::{self, Piece};
use super::{FILE_TOOLS, LINE_LIMIT, NAME_LIMIT};
use crate::dialect::claude::tools as claude;
use crate::dialect::tools;
use crate::event::{FileChange, PlanItem, ToolKind};
use crate::json::read;
use crate::json::write::{Bytes, Object};
use crate::json::{Json, Text, record};

/// The room for a tool's input or output in a line, beside ids and names.
pub(super) const TOOL_ROOM: usize = LINE_LIMIT - 400 - NAME_LIMIT * 8;
/// The room for the names of all tools.
const TOOLS_ROOM: usize = LINE_LIMIT - 400 - NAME_LIMIT * 16;

/// A call that is written: its id, whose sub-agent made it, and who answers it. Both ids are short
/// enough for a line.
#[derive(Clone, Copy)]
pub(super) struct Written<'w> {
    pub(super) id: &'w Text<'w>,
    pub(super) parent: Option<&'w Text<'w>>,
    pub(super) by_client: bool,
}

impl Written<'_> {
    /// Writes the call; one that the client must answer says so.
    pub(super) fn call(self, lines: &mut Bytes, name: &Text<'_>, input: &str) {
        let mut record = Object::record(lines, "tool_use");
        record.text("id", self.id).text("name", name).raw("input", input);
        if self.by_client {
            record.string("executor", super::CLIENT);
        }
        write_parent(&mut record, self.parent);
        record.end();
    }

    /// Writes the answer; a long one in several records, of which all but the last say so.
    pub(super) fn answer(self, lines: &mut Bytes, text: &Text<'_>, failed: bool) {
        let mut pieces = pieces::pieces(text, TOOL_ROOM).peekable();
        let mut part = 0;
        while let Some(piece) = pieces.next() {
            part += 1;
            let mut record = Object::record(lines, "tool_result");
            record.text("tool_use_id", self.id);
            piece.write(record.name("content"));
            if failed {
                record.flag("is_error", true);
            }
            if pieces.peek().is_some() {
                record.flag("partial", true).number("part", part);
            }
            write_parent(&mut record, self.parent);
            record.end();
        }
    }
}

/// Says whose sub-agent it was.
#[inline]
pub(super) fn write_parent(record: &mut Object<'_>, parent: Option<&Text<'_>>) {
    if let Some(parent) = parent {
        record.text("parent_tool_use_id", parent);
    }
}

/// An answer with the exit code before it, as Claude tells it.
pub(super) fn with_exit_code(code: i64, text: Text<'_>) -> Text<'_> {
    let plain = text.to_plain();
    if plain.starts_with("Exit code ") {
        return text;
    }
    let line = if plain.is_empty() { "" } else { "\n" };
    Text::from(format!("Exit code {code}{line}{plain}"))
}

/// The files that a call changed, one a line.
pub(super) fn listed(changes: &[FileChange<'_>]) -> String {
    let lines = changes.iter().map(|change| match &change.old_path {
        Some(old) => format!("{} {old} -> {}", change.kind.as_str(), change.path),
        None => format!("{} {}", change.kind.as_str(), change.path),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// As many names as there is room for, as a JSON array; and how many are left out.
pub(super) fn names_json(names: &[String]) -> (Bytes, usize) {
    let mut json = Bytes::from(*b"[");
    let mut left_out = 0;
    for name in names {
        let piece = Piece::Plain(name);
        if json.len() + piece.encoded_length() + 4 > TOOLS_ROOM {
            left_out += 1;
            continue;
        }
        if json.len() > 1 {
            json.push(b',');
        }
        piece.write(&mut json);
    }
    json.push(b']');
    (json, left_out)
}

record! {
    /// What a reader wants to know of a tool that works on a file.
    struct FileInput<'a> {
        file_path: json "file_path",
    }
}

/// A tool as Claude would have called it.
pub(super) struct ClaudeTool<'t> {
    pub(super) name: Text<'t>,
    pub(super) input: Cow<'t, str>,
    /// Some steps of a plan have another status than the agent gave them.
    pub(super) steps_changed: bool,
}

/// The tool as Claude would have called it, under a name that Yume draws; one that works on a file says
/// on which, if only that nobody knows.
pub(super) fn as_claude_tool<'a>(
    name: &Text<'a>,
    kind: &ToolKind,
    input: Option<&'a Json<'_>>,
) -> ClaudeTool<'a> {
    let (own_name, own_input) = claude::translate_call(name, kind, input);
    // What is called so is drawn as a plan, whatever it was told to be.
    let drawn_as = if own_name == "TodoWrite" { &ToolKind::Plan } else { kind };
    if let Some(items) = input.and_then(|input| tools::plan_written(drawn_as, input))
        && !all_drawn(&items)
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
    ClaudeTool { name: drawn_name(own_name, kind), input, steps_changed: false }
}

/// The name under which Yume draws a tool of Claude's: it knows `Agent` by its older name alone.
pub(super) fn drawn_name<'a>(name: Text<'a>, kind: &ToolKind) -> Text<'a> {
    if *kind == ToolKind::Task && name == "Agent" { Text::plain("Task") } else { name }
}

/// Whether Yume draws every step of a plan as the agent told it.
pub(super) fn all_drawn(items: &[PlanItem<'_>]) -> bool {
    items.iter().all(|item| claude::can_express_status(&item.status))
}
