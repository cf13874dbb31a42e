//! Decodes the answers to tool calls: the status of a call, and the files that it changed. It knows
//! no message and no block.

use super::requests::Requests;
use super::wire::{Content, ResultMeta};
use crate::dialect::Emitter;
use crate::event::{FileChange, FileChangeKind, FilesChanged, ToolEnded, ToolStatus};
use crate::json::read;
use crate::json::{Json, Text, record};

record! {
    /// The structured result of a tool that changes a file.
    struct FileResult<'a> {
        kind: text "type",
        path: text "filePath",
        patch: json "structuredPatch",
    }
}

impl Requests {
    /// Emits the answer to a call, after the decision on its permission and the files it changed.
    pub(super) fn emit_answer<'a>(
        &mut self,
        content: Content<'a>,
        meta: Option<ResultMeta<'a>>,
        structured: Option<Json<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let meta = meta.unwrap_or_default();
        let ended = answer(content, meta.non_execution_kind, structured);
        self.emit_resolved_by_answer(&ended, meta.permission_decision, out);
        if let Some(changed) = files_changed(&ended) {
            out.emit(changed);
        }
        out.emit(ended);
    }
}

fn answer<'a>(
    content: Content<'a>,
    non_execution_kind: Option<Text<'a>>,
    structured: Option<Json<'a>>,
) -> ToolEnded<'a> {
    let text = content.content.as_ref().and_then(Json::as_text);
    let text = text.as_ref().map_or("", Text::body);
    let rejected = structured
        .as_ref()
        .and_then(Json::as_text)
        .is_some_and(|text| text == "User rejected tool use");
    let status = match (content.is_error, non_execution_kind) {
        (Some(true), Some(_)) if text.contains("this call was stopped while running") => {
            ToolStatus::Cancelled
        }
        (Some(true), Some(_)) => ToolStatus::Denied,
        // Versions without `non_execution_kind` answer a cancelled call with this text.
        (Some(true), None) if rejected && text.contains("The user doesn't want to") => {
            ToolStatus::Cancelled
        }
        (Some(true), None) => ToolStatus::Failed,
        _ => ToolStatus::Completed,
    };
    let exit_code = text.strip_prefix("Exit code ").and_then(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    });
    ToolEnded {
        call: content.tool_use_id.unwrap_or_default(),
        status,
        exit_code,
        output: content.content,
        structured,
        ..ToolEnded::default()
    }
}

/// The file that a call changed, if its answer states one.
fn files_changed<'a>(ended: &ToolEnded<'a>) -> Option<FilesChanged<'a>> {
    let result = ended.structured.as_ref().filter(|_| ended.status == ToolStatus::Completed)?;
    // Most tools change no file, and their answers may be long, so parsing is avoided.
    memchr::memmem::find(result.get().as_bytes(), b"\"structuredPatch\"")?;
    let result = read::record_of::<FileResult<'_>>(result)?;
    let diff = result.patch.filter(|patch| patch.get() != "[]");
    let created = result.kind.is_some_and(|kind| kind == "create");
    let change = FileChange {
        path: result.path?.into_owned(),
        old_path: None,
        kind: if created { FileChangeKind::Add } else { FileChangeKind::Update },
        diff: diff.map(Json::into_owned),
    };
    Some(FilesChanged { call: Some(ended.call.clone()), changes: vec![change] })
}
