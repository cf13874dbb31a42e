//! Tool calls: their title, their content and their result.
//!
//! The content of an update replaces the earlier content of the call, so an edit is written with
//! the input, and again with the result.

use super::messages::Picture;
use super::subject::Subject;
use super::{AcpEncoder, diffs};
use crate::dialect::Output;
use crate::dialect::acp::tools;
use crate::dialect::content::output_text;
use crate::event::{
    Executor, FileChange, FilesChanged, ToolEnded, ToolInput, ToolKind, ToolProgress, ToolStarted,
    ToolStatus,
};
use crate::json::read;
use crate::json::write::{self, Bytes, Object};
use crate::json::{Json, Text, record};

/// A call that has no answer yet.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenCall {
    id: Text<'static>,
    pub(super) kind: ToolKind,
    /// The diffs that its input describes.
    pub(super) edits: Bytes,
    /// The diffs of the files that it changed, for people.
    change_diffs: Bytes,
    /// The same changes in the form of events, for programs.
    change_facts: Bytes,
}

impl AcpEncoder {
    pub(super) fn write_tool_started(
        &mut self,
        started: &ToolStarted<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        self.last_block = None;
        let ToolStarted { call, name, kind, executor, input, .. } = started;
        let protocol_kind = tools::protocol_kind(kind);
        let edits = self.input_diffs(kind, input.as_ref());
        let fields = |update: &mut Object<'_>| {
            update.text("toolCallId", call);
            let subject = Subject::of(kind, input.as_ref()).with_default_title(name);
            subject.write(update, input.as_ref(), &self.folder);
            update.text("name", name).string("kind", protocol_kind);
            let status = if input.is_some() { "in_progress" } else { "pending" };
            update.string("status", status);
            write_edits(update, &edits);
        };
        // The decoder infers the kind from the name and the kind of the protocol; another kind is
        // written in `_meta`.
        let is_inferred = tools::kind_of(name, Some(&Text::plain(protocol_kind))) == *kind;
        let more = |facts: &mut Object<'_>| {
            if !is_inferred {
                facts.string("kind", kind.as_str());
            }
            if *executor != Executor::Agent {
                facts.string("executor", executor.as_str());
            }
        };
        let has_more = !is_inferred || *executor != Executor::Agent;
        self.write_update("tool_call", parent, out, fields, more, has_more);
        let (id, kind) = (call.clone().into_owned(), kind.clone());
        self.calls.push(OpenCall { id, kind, edits, ..OpenCall::default() });
    }

    pub(super) fn write_tool_input(
        &mut self,
        input: &ToolInput<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let ToolInput { call, name, kind, input, .. } = input;
        let edits = self.input_diffs(kind, input.as_ref());
        let fields = |update: &mut Object<'_>| {
            update.text("toolCallId", call);
            let subject = Subject::of(kind, input.as_ref()).with_default_title(name);
            subject.write(update, input.as_ref(), &self.folder);
            update.fixed(r#""status":"in_progress""#);
            write_edits(update, &edits);
        };
        self.write_update("tool_call_update", parent, out, fields, |_| {}, false);
        if let Some(at) = self.position_of_call(call)
            && let Some(call) = self.calls.get_mut(at)
        {
            call.edits = edits;
        }
    }

    /// Writes the progress of a call in `_meta`: content would replace the earlier content, and
    /// this is only the next delta.
    pub(super) fn write_tool_progress(
        &mut self,
        progress: &ToolProgress<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        if progress.output.is_none() && progress.elapsed_ms.is_none() {
            return;
        }
        let fields = |update: &mut Object<'_>| {
            update.text("toolCallId", &progress.call);
        };
        let more = |facts: &mut Object<'_>| {
            facts.text_if("output", progress.output.as_ref());
            facts.number_if("elapsedMs", progress.elapsed_ms);
        };
        self.write_update("tool_call_update", parent, out, fields, more, true);
    }

    pub(super) fn keep_file_changes(&mut self, files: &FilesChanged<'_>, out: &mut Output) {
        let at = files.call.as_ref().and_then(|call| self.position_of_call(call));
        let Some(call) = at.and_then(|at| self.calls.get_mut(at)) else {
            out.lost("file changes outside a tool");
            return;
        };
        for change in &files.changes {
            diffs::write_change_diffs(&mut call.change_diffs, change, &self.folder);
            write_change(&mut call.change_facts, change);
        }
    }

    pub(super) fn write_tool_ended(
        &mut self,
        ended: &ToolEnded<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        self.last_block = None;
        let call = self.position_of_call(&ended.call).map(|at| self.calls.swap_remove(at));
        let call = call.unwrap_or_default();
        let completed = ended.status == ToolStatus::Completed;
        let is_exact = completed || ended.status == ToolStatus::Failed;
        // The input of a failed call describes changes that were not made.
        let shown = match &call.change_diffs {
            changes if changes.is_empty() && completed => &call.edits,
            changes => changes,
        };
        let change_facts = &call.change_facts;
        let mut unshown = 0;
        let fields = |update: &mut Object<'_>| {
            update.text("toolCallId", &ended.call);
            update.string("status", if completed { "completed" } else { "failed" });
            unshown = write_output(update, ended, shown);
        };
        // An error without an output is written as the content.
        let extra_error = ended.error.as_ref().filter(|_| !is_empty_output(ended.output.as_ref()));
        let more = |facts: &mut Object<'_>| {
            if !is_exact {
                facts.string("status", ended.status.as_str());
            }
            if let Some(code) = ended.exit_code {
                facts.raw("exitCode", &code.to_string());
            }
            facts.text_if("error", extra_error);
            if !change_facts.is_empty() {
                write_list(facts, "filesChanged", change_facts);
            }
        };
        let has_more = !is_exact
            || ended.exit_code.is_some()
            || extra_error.is_some()
            || !change_facts.is_empty();
        self.write_update("tool_call_update", parent, out, fields, more, has_more);
        for _ in 0..unshown {
            out.lost("parts of tool outputs that are neither text nor pictures");
        }
    }

    /// The position of an open call.
    pub(super) fn position_of_call(&self, id: &Text<'_>) -> Option<usize> {
        self.calls.iter().rposition(|call| call.id == *id)
    }

    /// The diffs that the input of an editing call describes.
    pub(super) fn input_diffs(&self, kind: &ToolKind, input: Option<&Json<'_>>) -> Bytes {
        let mut edits = Bytes::new();
        if let Some(input) = input.filter(|_| matches!(kind, ToolKind::Edit | ToolKind::Write)) {
            diffs::write_input_diffs(&mut edits, kind, input, &self.folder);
        }
        edits
    }
}

pub(super) fn write_text_content(list: &mut Bytes, text: &Text<'_>) {
    list.extend_from_slice(br#"{"type":"content","content":{"type":"text","text":"#);
    write::text(list, text);
    list.extend_from_slice(b"}}");
}

/// Writes a list whose items are already encoded.
pub(super) fn write_list(object: &mut Object<'_>, name: &str, items: &[u8]) {
    let list = object.name(name);
    list.push(b'[');
    list.extend_from_slice(items);
    list.push(b']');
}

fn write_edits(update: &mut Object<'_>, edits: &[u8]) {
    if !edits.is_empty() {
        write_list(update, "content", edits);
    }
}

/// Writes the output of a call as content, and also as it is if the content is incomplete. Returns
/// the number of parts that the content leaves out.
fn write_output(update: &mut Object<'_>, ended: &ToolEnded<'_>, changes: &[u8]) -> usize {
    let output = ended.output.as_ref().filter(|output| !is_empty_output(Some(output)));
    let list = update.name("content");
    list.push(b'[');
    let start = list.len();
    let shown = match output {
        Some(output) => write_output_content(list, output),
        None => {
            if let Some(error) = &ended.error {
                write_text_content(list, error);
            }
            Shown::Complete
        }
    };
    if !changes.is_empty() {
        if list.len() > start {
            list.push(b',');
        }
        list.extend_from_slice(changes);
    }
    list.push(b']');
    let raw = output.filter(|_| !matches!(shown, Shown::Complete));
    update.json_if("rawOutput", ended.structured.as_ref().or(raw));
    match shown {
        Shown::Without(parts) => parts,
        Shown::Complete | Shown::AsJson => 0,
    }
}

/// How much of an output the content contains.
enum Shown {
    Complete,
    /// A value that is not text is written as JSON text.
    AsJson,
    /// All but this number of parts.
    Without(usize),
}

record! {
    struct OutputKind<'a> {
        kind: text "type",
        text: text "text",
    }
}

fn write_output_content(list: &mut Bytes, output: &Json<'_>) -> Shown {
    let blocks = read::records_of::<OutputKind<'_>>(output);
    let blocks = blocks.filter(|blocks| blocks.iter().all(|block| block.kind.is_some()));
    let Some(blocks) = blocks else {
        let (text, _) = output_text(output);
        write_text_content(list, &text);
        return if output.as_text().is_some() { Shown::Complete } else { Shown::AsJson };
    };
    // Pictures are rare and large, so they are read only if there are any.
    let is_picture = |block: &OutputKind<'_>| block.kind.as_ref().is_some_and(|it| *it == "image");
    let pictures = blocks.iter().any(is_picture);
    let pictures = pictures.then(|| read::records_of::<Picture<'_>>(output)).flatten();
    let pictures = pictures.unwrap_or_default();
    let (start, mut unshown) = (list.len(), 0);
    for (at, block) in blocks.iter().enumerate() {
        let picture = pictures.get(at).filter(|_| is_picture(block)).and_then(Picture::parts);
        if block.text.is_none() && picture.is_none() {
            unshown += 1;
            continue;
        }
        if list.len() > start {
            list.push(b',');
        }
        match (&block.text, picture) {
            (_, Some((data, mime))) => write_picture_content(list, data, mime),
            (Some(text), None) => write_text_content(list, text),
            (None, None) => {}
        }
    }
    if unshown > 0 { Shown::Without(unshown) } else { Shown::Complete }
}

fn write_picture_content(list: &mut Bytes, data: &Text<'_>, mime: &Text<'_>) {
    let mut part = Object::open(list);
    part.fixed(r#""type":"content""#).object("content", |content| {
        content.fixed(r#""type":"image""#).text("data", data).text("mimeType", mime);
    });
    part.close();
}

fn write_change(list: &mut Bytes, change: &FileChange<'_>) {
    if !list.is_empty() {
        list.push(b',');
    }
    let mut facts = Object::open(list);
    facts.text("path", &change.path).text_if("oldPath", change.old_path.as_ref());
    facts.string("kind", change.kind.as_str()).json_if("diff", change.diff.as_ref());
    facts.close();
}

fn is_empty_output(output: Option<&Json<'_>>) -> bool {
    output.is_none_or(|output| {
        output.is_null() || output.as_text().is_some_and(|text| text.is_empty())
    })
}
