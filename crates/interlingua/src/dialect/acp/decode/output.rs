//! The output of a call: its text, its diffs, and its structured result.

use super::meta_of;
use crate::dialect::acp::wire::{Content, RawOutput, ShownText, Update};
use crate::dialect::acp::wire_meta::InterlinguaChange;
use crate::event::{FileChange, FileChangeKind};
use crate::json::read::{self, Shaped};
use crate::json::write;
use crate::json::{Json, Text};

/// The content of a completed call: a single text as it is, several blocks as a list.
pub(super) fn shown_output<'u>(update: &'u Update<'_>) -> Option<Json<'u>> {
    let Shaped::List(parts) = &update.content else { return None };
    let raw: Vec<_> = parts.iter().filter_map(|part| part.inner.as_ref()).collect();
    if let [only] = &*raw {
        let block = read::record_of::<ShownText<'_>>(only)?;
        let is_text = block.kind.is_some_and(|kind| kind == "text");
        if let Some(text) = block.text.filter(|text| is_text && text.as_text().is_some()) {
            return Some(text);
        }
    }
    if raw.is_empty() {
        return None;
    }
    let list = raw.iter().map(|block| block.get()).collect::<Vec<_>>().join(",");
    Json::from_text(format!("[{list}]"))
}

/// The text of a result that the agent reports only in `rawOutput`.
pub(super) fn raw_text(raw: Option<&Json<'_>>, facts: &RawOutput<'_>) -> Option<Json<'static>> {
    let texts = [raw, facts.content.as_ref(), facts.output.as_ref(), facts.text.as_ref()];
    let text = texts.into_iter().flatten().find_map(Json::as_text)?;
    let mut literal = Vec::new();
    write::text(&mut literal, &text);
    String::from_utf8(literal).ok().and_then(Json::from_text)
}

/// The content block inside a part of the content of a call.
pub(super) fn content_block<'p>(part: &'p Content<'_>) -> Option<Content<'p>> {
    read::record_of::<Content<'_>>(part.inner.as_ref()?)
}

pub(super) fn change_from_diff(part: &Content<'_>) -> Option<FileChange<'static>> {
    if part.kind.as_ref().is_none_or(|kind| *kind != "diff") {
        return None;
    }
    let path = part.path.as_ref()?;
    let meta = meta_of(&part.meta);
    let stated = meta.as_ref().and_then(|meta| meta.kind.as_ref()).map_or("", Text::body);
    let was_empty = part.old_text.as_ref().is_none_or(|old| old.get() == "\"\"");
    let kind = match stated {
        "add" => FileChangeKind::Add,
        "delete" => FileChangeKind::Delete,
        "" if was_empty => FileChangeKind::Add,
        _ => FileChangeKind::Update,
    };
    let diff = Json::object(|fields| {
        fields.json_if("oldText", part.old_text.as_ref());
        fields.json_if("newText", part.new_text.as_ref());
    });
    Some(FileChange { path: path.clone().into_owned(), old_path: None, kind, diff: Some(diff) })
}

pub(super) fn change_from_meta(change: &InterlinguaChange<'_>) -> FileChange<'static> {
    let own = |text: &Option<Text<'_>>| text.clone().map(Text::into_owned);
    FileChange {
        path: own(&change.path).unwrap_or_default(),
        old_path: own(&change.old_path),
        kind: change.kind.as_ref().map(|kind| kind.body().into()).unwrap_or_default(),
        diff: change.diff.clone().map(Json::into_owned),
    }
}
