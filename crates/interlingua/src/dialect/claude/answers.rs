//! Decodes the answers to tool calls: the status of a call, the files that it changed, and the
//! decision on its permission request. It knows no message and no block.

use std::collections::BTreeMap;

use super::wire::{Content, ControlResponse, HostAnswer, PermissionDecision, ResultMeta};
use crate::dialect::Emitter;
use crate::event::{
    Decision, FileChange, FileChangeKind, FilesChanged, PermissionResolved, ToolEnded, ToolStatus,
};
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

/// The permission requests without a decision, by call.
#[derive(Debug, Default)]
pub(super) struct PermissionRequests {
    requests: BTreeMap<String, Text<'static>>,
}

impl PermissionRequests {
    /// Remembers the request for a call.
    pub(super) fn add(&mut self, call: Option<&Text<'_>>, request: &Text<'_>) {
        if let Some(call) = call {
            self.requests.insert(call.to_string(), request.clone().into_owned());
        }
    }

    /// The decision of the host, for a stream that also contains what the host sends.
    pub(super) fn resolve_by_host<'a>(
        &mut self,
        response: Option<ControlResponse<'a>>,
    ) -> Option<PermissionResolved<'a>> {
        let ControlResponse { request_id, answer } = response?;
        let (request, HostAnswer { behavior, message }) = (request_id?, answer?.record);
        let decision = match behavior?.body() {
            "allow" => Decision::Allowed,
            _ => Decision::Denied,
        };
        let call = self.requests.iter().find(|(_, pending)| **pending == request)?.0.clone();
        self.requests.remove(&call);
        Some(PermissionResolved {
            request: Some(request),
            call: Some(Text::from(call)),
            decision,
            reason: message,
            ..PermissionResolved::default()
        })
    }

    /// The decision on a call that had a permission request. Older versions do not state it, so it
    /// follows from the status of the answer.
    fn resolve_by_answer<'a>(
        &mut self,
        status: &ToolStatus,
        call: &Text<'a>,
        decision: Option<PermissionDecision<'a>>,
    ) -> Option<PermissionResolved<'a>> {
        if self.requests.is_empty() {
            return None;
        }
        let request = self.requests.remove(&*call.to_plain())?;
        let decision = decision.unwrap_or_default();
        let accepted = match decision.decision.as_ref().map(Text::body) {
            Some(decision) => decision == "accept",
            None => *status != ToolStatus::Denied,
        };
        Some(PermissionResolved {
            request: Some(request),
            call: Some(call.clone()),
            tool: None,
            decision: if accepted { Decision::Allowed } else { Decision::Denied },
            by: decision.source,
            reason: decision.reason,
        })
    }

    /// Emits the answer to a call, after the decision on its permission and the files it changed.
    pub(super) fn emit_answer<'a>(
        &mut self,
        content: Content<'a>,
        meta: Option<ResultMeta<'a>>,
        structured: Option<Json<'a>>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let meta = meta.unwrap_or_default();
        let call = content.tool_use_id.clone().unwrap_or_default();
        let ended = answer(content, meta.non_execution_kind, structured);
        if let Some(resolved) =
            self.resolve_by_answer(&ended.status, &call, meta.permission_decision)
        {
            out.emit(resolved);
        }
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

/// The answer to a call that the provider of the model ran.
pub(super) fn provider_answer(content: Content<'_>) -> ToolEnded<'_> {
    ToolEnded {
        call: content.tool_use_id.unwrap_or_default(),
        output: content.content,
        ..ToolEnded::default()
    }
}
