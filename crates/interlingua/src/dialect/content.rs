//! Texts that several encoders share: the output of a tool, and the description of a retry.

use crate::json::read;
use crate::json::{Json, Text, record};

record! {
    /// A content block, as Claude and MCP servers write them.
    struct ContentBlock<'a> {
        kind: text "type",
        text: text "text",
    }
}

/// The text of an output: a string unchanged, blocks joined by line feeds, anything else as JSON.
///
/// The second value is the number of blocks that are not text.
pub(crate) fn output_text<'a>(output: &'a Json<'_>) -> (Text<'a>, usize) {
    if let Some(text) = output.as_text() {
        return (text, 0);
    }
    let blocks =
        if output.is_array() { read::records_of::<ContentBlock<'_>>(output) } else { None };
    // A list of other values contains no blocks, but is not empty.
    let are_blocks = |blocks: &Vec<ContentBlock<'_>>| match &**blocks {
        [] => output.get().trim_start_matches('[').trim_start() == "]",
        blocks => blocks.iter().all(|block| block.kind.is_some()),
    };
    let Some(blocks) = blocks.filter(are_blocks) else {
        return (Text::plain(output.get()), 0);
    };
    // Usually there is one, and its literal is passed on unchanged.
    if let [ContentBlock { text: Some(text), .. }] = &*blocks {
        return (text.clone(), 0);
    }
    let texts: Vec<_> =
        blocks.iter().filter_map(|block| block.text.as_ref()).map(Text::to_plain).collect();
    (Text::from(texts.join("\n")), blocks.len() - texts.len())
}

/// The text to show for an answered call: its output, or its error.
///
/// The second value is the number of content blocks that are not text.
pub fn answer_text<'a>(ended: &'a crate::event::ToolEnded<'_>) -> (Text<'a>, usize) {
    let (text, others) = match &ended.output {
        Some(output) if !output.is_null() => output_text(output),
        _ => (Text::default(), 0),
    };
    let Some(error) = &ended.error else { return (text, others) };
    let (output_text, error_text) = (text.to_plain(), error.to_plain());
    if output_text.is_empty() || error_text.contains(&*output_text) {
        (error.borrowed(), others)
    } else if output_text.contains(&*error_text) {
        (text, others)
    } else {
        (Text::from(format!("{output_text}\n{error_text}")), others)
    }
}

/// The description of a retry whose agent gives none.
pub(crate) fn retry_in_words(retry: &crate::event::Retry<'_>) -> String {
    let status = retry.http_status.map_or(String::new(), |it| format!(", HTTP status {it}"));
    let attempt = match (retry.attempt, retry.of) {
        (Some(attempt), Some(of)) => format!("attempt {attempt} of {of}"),
        (Some(attempt), None) => format!("attempt {attempt}"),
        (None, _) => "another attempt".to_owned(),
    };
    let delay = retry.delay_ms.map_or(String::new(), |it| format!(" after {it} ms"));
    format!("a request failed ({}{status}); {attempt} follows{delay}", retry.class.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ToolEnded;

    #[test]
    fn an_answer_is_the_output_and_the_error() {
        let answer = |output: &str, error: Option<&'static str>| {
            let output = Json::from_text(output.to_owned());
            let ended = ToolEnded { output, error: error.map(Text::plain), ..ToolEnded::default() };
            answer_text(&ended).0.to_string()
        };
        assert_eq!(answer("null", None), "");
        assert_eq!(answer("[ ]", None), "");
        assert_eq!(answer("[1,2]", None), "[1,2]");
        assert_eq!(answer(r#"[{"type":"text","text":"a"},{"type":"image"}]"#, None), "a");
        assert_eq!(answer("null", Some("stopped")), "stopped");
        assert_eq!(answer(r#""out""#, Some("stopped")), "out\nstopped");
        assert_eq!(answer(r#""was stopped\n""#, Some("stopped")), "was stopped\n");
    }
}
