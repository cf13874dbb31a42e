//! The result of a call of an MCP server, as the model receives it.

use interlingua::event::ToolStatus;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use crate::tool::{self, Content, Output};

/// The most bytes of text that the model receives; what exceeds them would fill its window.
const LONGEST: usize = 100_000;

/// The output of a call that the server answered.
pub(super) fn output(result: CallToolResult) -> Output {
    let CallToolResult { content, structured_content, is_error, .. } = result;
    let mut content: Vec<_> = content.into_iter().map(part).collect();
    if content.is_empty() {
        let text = structured_content.as_ref().map(ToString::to_string);
        content.push(Content::Text(text.unwrap_or_else(|| "(no output)".to_owned())));
    }
    limit(&mut content);
    let failed = is_error == Some(true);
    Output {
        status: if failed { ToolStatus::Failed } else { ToolStatus::Completed },
        content,
        exit_code: None,
        structured: structured_content,
        changes: Vec::new(),
    }
}

/// The output of a call that has no result.
pub(super) fn without_result(status: ToolStatus, text: String) -> Output {
    Output {
        status,
        content: vec![Content::Text(text)],
        exit_code: None,
        structured: None,
        changes: Vec::new(),
    }
}

fn part(block: ContentBlock) -> Content {
    match block {
        ContentBlock::Text(text) => Content::Text(text.text),
        ContentBlock::Image(image) => tool::image(&image.data)
            .unwrap_or_else(|problem| not_shown("an image", &image.mime_type, &problem)),
        ContentBlock::Audio(audio) => Content::Text(format!(
            "(audio of the type {}, which cannot be shown: {} bytes in base64)",
            audio.mime_type,
            audio.data.len()
        )),
        ContentBlock::Resource(embedded) => resource(embedded.resource),
        ContentBlock::ResourceLink(link) => {
            let about = link.description.unwrap_or_default();
            Content::Text(
                format!("Resource {} ({}) {about}", link.uri, link.name).trim_end().to_owned(),
            )
        }
        // The protocol may have further kinds.
        other => Content::Text(serde_json::to_string(&other).unwrap_or_default()),
    }
}

fn resource(contents: ResourceContents) -> Content {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            Content::Text(format!("Resource {uri}:\n{text}"))
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let media_type = mime_type.unwrap_or_default();
            match &*media_type {
                "application/pdf" => tool::document(&blob, &uri)
                    .unwrap_or_else(|problem| not_shown(&uri, &media_type, &problem)),
                image if image.starts_with("image/") => tool::image(&blob)
                    .unwrap_or_else(|problem| not_shown(&uri, &media_type, &problem)),
                _ => Content::Text(format!(
                    "(resource {uri} of the type {media_type:?}, which cannot be shown: {} bytes in base64)",
                    blob.len()
                )),
            }
        }
        other => Content::Text(serde_json::to_string(&other).unwrap_or_default()),
    }
}

/// In place of content that a provider would refuse, again with every request that follows.
fn not_shown(what: &str, media_type: &str, problem: &str) -> Content {
    Content::Text(format!("({what} of the type {media_type:?} cannot be shown: {problem})"))
}

/// Cuts texts off once they are longer than the limit, all together.
fn limit(content: &mut [Content]) {
    let mut left = LONGEST;
    for part in content {
        let Content::Text(text) = part else { continue };
        let kept = text.floor_char_boundary(left);
        left -= kept;
        if kept < text.len() {
            let omitted = text.len() - kept;
            text.truncate(kept);
            text.push_str(&format!("\n({omitted} bytes are omitted; ask for less at once)"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(result: Value) -> Output {
        output(serde_json::from_value(result).unwrap())
    }

    fn texts(result: Value) -> Vec<String> {
        let texts = of(result).content.into_iter().map(|content| match content {
            Content::Text(text) => text,
            other => format!("{other:?}"),
        });
        texts.collect()
    }

    #[test]
    fn every_kind_of_content_arrives() {
        let output = of(json!({"content": [
            {"type": "text", "text": "a"},
            {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///b.txt", "text": "b"}},
            {"type": "resource", "resource": {"uri": "u", "mimeType": "application/pdf", "blob": "JVBERi0="}},
            {"type": "resource", "resource": {"uri": "u", "mimeType": "image/gif", "blob": "R0lGODlh"}},
        ]}));
        let expected = vec![
            Content::Text("a".to_owned()),
            Content::Image { media_type: "image/png".to_owned(), data: "iVBORw0KGgo=".to_owned() },
            Content::Text("Resource file:///b.txt:\nb".to_owned()),
            Content::Document {
                media_type: "application/pdf".to_owned(),
                data: "JVBERi0=".to_owned(),
                name: "u".to_owned(),
            },
            Content::Image { media_type: "image/gif".to_owned(), data: "R0lGODlh".to_owned() },
        ];
        assert_eq!(output.content, expected);
        assert_eq!(output.status, ToolStatus::Completed);
    }

    #[test]
    fn what_cannot_be_shown_is_mentioned() {
        let texts = texts(json!({"content": [
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "u", "mimeType": "application/zip", "blob": "AAAA"}},
            {"type": "resource_link", "uri": "file:///c", "name": "c", "description": "The letter."},
        ]}));
        assert!(texts[0].contains("audio/wav") && texts[0].contains("4 bytes"), "{texts:?}");
        assert!(texts[1].contains("application/zip"), "{texts:?}");
        assert_eq!(texts[2], "Resource file:///c (c) The letter.");
    }

    /// A provider refuses a request with such an image, and the image stays in the conversation.
    #[test]
    fn an_image_that_no_provider_takes_is_replaced_by_a_text() {
        let large = format!("iVBORw0KGgo{}", "A".repeat(7 << 20));
        let texts = texts(json!({"content": [
            {"type": "image", "data": "PHN2Zz4=", "mimeType": "image/svg+xml"},
            {"type": "image", "data": "PHN2Zz4=", "mimeType": "image/png"},
            {"type": "image", "data": "?", "mimeType": "image/png"},
            {"type": "image", "data": large, "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "u", "mimeType": "image/tiff", "blob": "SUkqAA=="}},
            {"type": "resource", "resource": {"uri": "u", "mimeType": "application/pdf", "blob": "AAAA"}},
        ]}));
        assert!(texts[0].contains("svg+xml") && texts[0].contains("neither PNG"), "{texts:?}");
        assert!(texts[1].contains("neither PNG") && texts[2].contains("base64"), "{texts:?}");
        assert!(texts[3].contains("at most 5242880 can be shown"), "{}", texts[3].len());
        assert!(texts[4].contains("image/tiff") && texts[5].contains("cannot be shown"));
    }

    #[test]
    fn structured_content_is_kept_and_shown_if_there_is_nothing_else() {
        let output = of(json!({"content": [], "structuredContent": {"a": 1}}));
        assert_eq!(output.structured, Some(json!({"a": 1})));
        assert_eq!(output.text(), r#"{"a":1}"#);
        let both = of(
            json!({"content": [{"type": "text", "text": "one"}], "structuredContent": {"a": 1}}),
        );
        assert_eq!((both.text(), both.structured), ("one".to_owned(), Some(json!({"a": 1}))));
        assert_eq!(texts(json!({"content": []})), ["(no output)"]);
    }

    #[test]
    fn an_error_is_a_failure() {
        let output = of(json!({"content": [{"type": "text", "text": "no"}], "isError": true}));
        assert_eq!((output.status, output.content.len()), (ToolStatus::Failed, 1));
    }

    #[test]
    fn long_texts_are_cut_off_at_a_character() {
        let long = "é".repeat(LONGEST);
        let texts = texts(json!({"content": [
            {"type": "text", "text": "x"},
            {"type": "text", "text": long},
            {"type": "text", "text": "more"},
        ]}));
        assert_eq!(texts[0], "x");
        assert!(texts[1].starts_with("éé") && texts[1].len() < LONGEST + 100);
        assert!(
            texts[1].ends_with("(100002 bytes are omitted; ask for less at once)"),
            "{}",
            texts[1].len()
        );
        // One byte was left, into which the next text did not fit.
        assert!(texts[2].contains("bytes are omitted"), "{}", texts[2]);
    }
}
