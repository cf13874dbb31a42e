//! `Read`: text with line numbers, images, documents and notebooks.
//!
//! Only what is shown is read, with a bound on what is skipped before it.

mod notebook;
mod text;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use base64::Engine;
use interlingua::event::ToolStatus;
use serde::Deserialize;
use serde_json::json;

use super::place::failure;
use super::seen::Stamp;
use super::{Content, Failure, Outcome, Output, Scope};

/// How many bytes decide what a file is.
const START: u64 = 8 << 10;

/// The maximum size of an image; models take no larger ones.
const MAX_IMAGE: u64 = 5 << 20;

/// The maximum size of a document.
const MAX_DOCUMENT: u64 = 20 << 20;

/// The maximum size of a notebook. Parsed, it may need ten times as much.
const MAX_NOTEBOOK: u64 = 10 << 20;

#[derive(Debug, Deserialize)]
pub(super) struct Input {
    file_path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

pub(super) fn run(scope: &Scope<'_>, input: Input) -> Outcome {
    let place = scope.place(&input.file_path)?;
    let shown = scope.shown(&place.path);
    let failed = |problem: io::Error| failure(&shown, &problem);
    let (mut file, metadata) = place.open().map_err(failed)?;
    let mut start = Vec::new();
    Read::by_ref(&mut file).take(START).read_to_end(&mut start).map_err(failed)?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let size = metadata.len();
    let output = match media_type(&start) {
        Some(kind @ "application/pdf") => {
            check_size(&shown, size, MAX_DOCUMENT)?;
            let data = encoded(&mut file, MAX_DOCUMENT).map_err(failed)?;
            let name = place.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let content = Content::Document { media_type: kind.to_owned(), data, name };
            with_media(content, format!("{shown}: a PDF of {size} bytes"))
        }
        Some(kind) => {
            check_size(&shown, size, MAX_IMAGE)?;
            let data = encoded(&mut file, MAX_IMAGE).map_err(failed)?;
            let content = Content::Image { media_type: kind.to_owned(), data };
            with_media(content, format!("{shown}: an image of {size} bytes"))
        }
        None if is_notebook(&place.path) && input.offset.is_none() && input.limit.is_none() => {
            check_size(&shown, size, MAX_NOTEBOOK)?;
            let mut text = Vec::new();
            file.take(MAX_NOTEBOOK).read_to_end(&mut text).map_err(failed)?;
            notebook::run(&shown, &text)?
        }
        // A file in UTF-16 has such bytes, too, and could not be edited either.
        None if start.contains(&0) => {
            return Err(Failure(format!(
                "{shown} is a binary file of {size} bytes, which cannot be shown"
            )));
        }
        None => {
            let range = text::Range::new(input.offset, input.limit);
            let text = text::read(&mut file, &range).map_err(failed)?;
            let mut output = Output::completed(text.shown(&shown, &range)?);
            output.structured = Some(json!({
                "file_path": place.path,
                "start_line": range.first,
                "lines": text.lines,
                "complete": text.is_complete(&range),
            }));
            output
        }
    };
    scope.shared.seen.record(&place.path, Stamp::of(&metadata));
    Ok(output)
}

fn with_media(content: Content, text: String) -> Output {
    Output::of(ToolStatus::Completed, vec![Content::Text(text), content])
}

fn is_notebook(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"))
}

/// The media type of what models can see, by the first bytes.
pub(crate) fn media_type(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'%', b'P', b'D', b'F', b'-', ..] => Some("application/pdf"),
        _ => None,
    }
}

/// An image that a model can see, from base64. The type that is stated is not trusted: a provider
/// refuses every request with an image that it cannot read, and an image stays in the conversation.
pub(crate) fn image(data: &str) -> Result<Content, String> {
    let data: String = data.split_ascii_whitespace().collect();
    match checked(&data, MAX_IMAGE)? {
        "application/pdf" => Err("it is a PDF".to_owned()),
        kind => Ok(Content::Image { media_type: kind.to_owned(), data }),
    }
}

/// A PDF, from base64.
pub(crate) fn document(data: &str, name: &str) -> Result<Content, String> {
    let data: String = data.split_ascii_whitespace().collect();
    match checked(&data, MAX_DOCUMENT)? {
        kind @ "application/pdf" => {
            let (media_type, name) = (kind.to_owned(), name.to_owned());
            Ok(Content::Document { media_type, data, name })
        }
        other => Err(format!("it is of the type {other}")),
    }
}

/// The type of data in base64, if a model can take it.
fn checked(data: &str, limit: u64) -> Result<&'static str, String> {
    let size = data.len() as u64 / 4 * 3;
    if size > limit {
        return Err(format!("it has {size} bytes; at most {limit} can be shown"));
    }
    let bytes = base64::engine::general_purpose::STANDARD.decode(data);
    let bytes = bytes.map_err(|problem| format!("it is not valid base64: {problem}"))?;
    media_type(&bytes).ok_or_else(|| "it is neither PNG, JPEG, GIF, WebP nor PDF".to_owned())
}

fn check_size(shown: &str, size: u64, limit: u64) -> Result<(), Failure> {
    match size > limit {
        true => Err(Failure(format!(
            "{shown} has {size} bytes; at most {limit} can be shown of a file of this kind"
        ))),
        false => Ok(()),
    }
}

fn encoded(file: &mut File, limit: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(base64::engine::general_purpose::STANDARD.encode(bytes))
}
