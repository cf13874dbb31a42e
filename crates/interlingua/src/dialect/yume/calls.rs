//! Tool calls and their answers, as lines; and the tools by the names that Claude gives them.

use std::borrow::Cow;

use super::pieces::{self, Piece};
use super::{FILE_TOOLS, LINE_LIMIT, NAME_LIMIT};
use crate::dialect::claude::tools as claude;
use crate::dialect::tools;
use crate::event::ToolKind;
use crate::json::read;
use crate::json::write::{Bytes, Object};
use crate::json::{Json, Text, record};

/// The room for a tool's input or output in a line, beside ids and names.
pub(super) const TOOL_ROOM: usize = LINE_LIMIT - 400 - NAME_LIMIT * 8;
/// The room for the names of all tools.
pub(super) const TOOLS_ROOM: usize = LINE_LIMIT - 400 - NAME_LIMIT * 16;

/// An id or a name that is neither too long nor empty.
pub(super) fn named<'t>(text: &'t Text<'_>) -> Text<'t> {
    if text.is_empty() { Text::plain("unknown") } else { pieces::bounded(text, NAME_LIMIT) }
}

/// Writes a call; one that the client must answer says so.
pub(super) fn write_call(
    lines: &mut Bytes,
    (id, name): (&Text<'_>, &Text<'_>),
    input: &str,
    by_client: bool,
) {
    let mut record = Object::record(lines, "tool_use");
    record.text("id", id).text("name", name).raw("input", input);
    if by_client {
        record.string("executor", super::CLIENT);
    }
    record.end();
}

/// Writes an answer; a long one in several records, of which all but the last say so.
pub(super) fn write_answer(lines: &mut Bytes, id: &Text<'_>, text: &Text<'_>, failed: bool) {
    let mut pieces = pieces::pieces(text, TOOL_ROOM).peekable();
    let mut part = 0;
    while let Some(piece) = pieces.next() {
        part += 1;
        let mut record = Object::record(lines, "tool_result");
        record.text("tool_use_id", id);
        piece.write(record.name("content"));
        if failed {
            record.flag("is_error", true);
        }
        if pieces.peek().is_some() {
            record.flag("partial", true).number("part", part);
        }
        record.end();
    }
}

/// The tools by the names under which they will be called.
pub(super) fn tool_names(list: &Json<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in list.read::<Vec<Json<'_>>>().unwrap_or_default() {
        let Some(name) = name.as_text() else { continue };
        let own = claude::name(&name, &tools::kind_of(&name)).to_plain().into_owned();
        if !names.contains(&own) {
            names.push(own);
        }
    }
    names
}

/// Writes as many names as there is room for.
pub(super) fn write_names(out: &mut Bytes, names: &[String]) {
    let end = out.len() + TOOLS_ROOM;
    out.push(b'[');
    for (at, name) in names.iter().enumerate() {
        let piece = Piece::Plain(name);
        if out.len() + piece.encoded_length() + 4 > end {
            break;
        }
        if at > 0 {
            out.push(b',');
        }
        piece.write(out);
    }
    out.push(b']');
}

record! {
    /// What a reader wants to know of a tool that works on a file.
    struct FileInput<'a> {
        file_path: json "file_path",
    }
}

/// The tool as Claude would have called it. One that says which file it works on, under a name of
/// Claude's, does so; another keeps its own name, or has an empty path.
pub(super) fn as_file_tool<'a>(
    name: &Text<'a>,
    kind: &ToolKind,
    input: Option<&'a Json<'_>>,
) -> (Text<'a>, Cow<'a, str>) {
    let (own_name, own_input) = (claude::name(name, kind), claude::input(name, kind, input));
    let for_files = FILE_TOOLS.contains(&&*own_name.to_plain());
    let has_path = |input: &str| {
        let mut file = FileInput::default();
        read::record(input, &mut file).is_ok() && file.file_path.is_some()
    };
    if !for_files || has_path(&own_input) {
        return (own_name, own_input);
    }
    if own_name != *name && !FILE_TOOLS.contains(&&*name.to_plain()) {
        return (name.clone(), own_input);
    }
    let fields = own_input.trim_ascii_start().strip_prefix('{').unwrap_or("}");
    let comma = if fields.trim_ascii_start().starts_with('}') { "" } else { "," };
    (own_name, format!("{{\"file_path\":\"\"{comma}{fields}").into())
}
