//! The results of calls: what the model gets of them, and what is reported.

use std::borrow::Cow;

use interlingua::event::{FileChange, FilesChanged, ToolEnded, ToolStatus};
use interlingua::json::{Json, Text};
use serde_json::{Value, json};

use super::Live;
use super::calls::CallState;
use crate::api::history::Part;
use crate::tool::{Change, Content, Output};

impl Live {
    /// Passes the output of a tool of ours on to the model, and reports it.
    pub(super) fn call_ended(&mut self, id: &str, output: Output) {
        let content: Vec<_> =
            output.content.into_iter().map(|content| self.part(content)).collect();
        let structured = output.structured.as_ref().and_then(|value| self.redacted_json(value));
        let changes = output.changes.iter().map(|change| self.file_change(change)).collect();
        let ended = ToolEnded {
            call: Text::from(id.to_owned()),
            status: output.status,
            output: output_json(&content),
            structured,
            exit_code: output.exit_code,
            ..ToolEnded::default()
        };
        self.end_call(id, content, changes, ended);
    }

    /// Passes the result of a call on to the model, and reports it.
    pub(super) fn end_call(
        &mut self,
        id: &str,
        content: Vec<Part>,
        changes: Vec<FileChange<'static>>,
        ended: ToolEnded<'static>,
    ) {
        let Some(call) = self.calls.find(id) else { return };
        call.state = CallState::Ended;
        let is_error = ended.status != ToolStatus::Completed;
        // It is stored before it is reported: what was reported is known to a resumed session.
        let next = self.agent.result(id, content, is_error);
        self.store_history();
        if !changes.is_empty() {
            self.emit(FilesChanged { call: Some(Text::from(id.to_owned())), changes });
        }
        self.emit(ended);
        if let Some(next) = next {
            self.calls.queue.clear();
            self.follow(next);
        } else if self.calls.is_left_to_client() {
            self.suspend();
        }
    }

    /// A piece of a result, without keys.
    fn part(&mut self, content: Content) -> Part {
        match content {
            Content::Text(text) => Part::Text(self.redactor.redact_text(&text).into_owned()),
            file => file,
        }
    }

    /// A value without keys.
    fn redacted_json(&mut self, value: &Value) -> Option<Json<'static>> {
        Json::from_text(self.redactor.redact_text(&value.to_string()).into_owned())
    }

    /// What is stored, without keys, wherever it is from: an earlier session may contain them.
    pub(super) fn without_keys(&mut self, raw: Json<'static>) -> Option<Json<'static>> {
        match self.redactor.redact_text(raw.get()) {
            Cow::Borrowed(_) => Some(raw),
            Cow::Owned(redacted) => Json::from_text(redacted),
        }
    }

    /// A change, whose diff may show a key beside what was changed.
    fn file_change(&mut self, change: &Change) -> FileChange<'static> {
        let shown = |path: &std::path::Path| Text::from(path.display().to_string());
        FileChange {
            path: shown(&change.path),
            old_path: change.old_path.as_deref().map(shown),
            kind: change.kind.clone(),
            diff: Json::from_serialize(&self.redactor.redact_text(&change.diff)),
        }
    }
}

/// The output of a call as an event carries it: a text, or a list of blocks.
fn output_json(content: &[Part]) -> Option<Json<'static>> {
    if let [Part::Text(text)] = content {
        return Json::from_serialize(text);
    }
    let blocks: Vec<_> = content.iter().map(block).collect();
    Json::from_serialize(&blocks)
}

/// A part as a content block.
pub(super) fn block(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Image { media_type, data } => json!({
            "type": "image",
            "source": {"type": "base64", "media_type": media_type, "data": data},
        }),
        Part::Document { media_type, data, name } => json!({
            "type": "document",
            "title": name,
            "source": {"type": "base64", "media_type": media_type, "data": data},
        }),
    }
}
