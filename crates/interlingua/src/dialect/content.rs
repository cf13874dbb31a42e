//! What a tool gave back, as text.

use crate::json::read;
use crate::json::{Json, Text, record};

record! {
    /// A content block, as Claude and MCP servers write them.
    struct ContentBlock<'a> {
        kind: text "type",
        text: text "text",
    }
}

/// The text of an output: a string as it is, blocks joined line by line, anything else as JSON.
///
/// The second value counts the blocks that are no text.
pub(crate) fn output_text<'a>(output: &'a Json<'_>) -> (Text<'a>, usize) {
    if let Some(text) = output.as_text() {
        return (text, 0);
    }
    let blocks =
        if output.is_array() { read::records_of::<ContentBlock<'_>>(output) } else { None };
    let Some(blocks) = blocks.filter(|blocks| blocks.iter().all(|block| block.kind.is_some()))
    else {
        return (Text::plain(output.get()), 0);
    };
    let texts: Vec<_> =
        blocks.iter().filter_map(|block| block.text.as_ref()).map(Text::to_plain).collect();
    (Text::from(texts.join("\n")), blocks.len() - texts.len())
}

/// What to show of a call that was answered: its output, or else what went wrong.
pub(crate) fn answer_text<'a>(ended: &'a crate::event::ToolEnded<'_>) -> (Text<'a>, usize) {
    let (text, others) = match &ended.output {
        Some(output) => output_text(output),
        None => (Text::default(), 0),
    };
    match &ended.error {
        Some(error) if text.is_empty() => (error.borrowed(), others),
        _ => (text, others),
    }
}
