//! Tool calls: what each is about, what it shows, what it gives back.
//!
//! What a call shows replaces what it showed before: an edit is shown with the input, and again with
//! the answer.

use super::said::Picture;
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

/// A call that was told and not answered yet.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenCall {
    id: Text<'static>,
    pub(super) kind: ToolKind,
    /// What it would do to files, as its input says.
    pub(super) edits: Bytes,
    /// What it did to files: for people, and for programs.
    shown_changes: Bytes,
    told_changes: Bytes,
}

impl AcpEncoder {
    pub(super) fn tool_started(
        &mut self,
        started: &ToolStarted<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        self.last_said = None;
        let ToolStarted { call, name, kind, executor, input, .. } = started;
        let word = tools::word_of(kind);
        let edits = self.edits_of(kind, input.as_ref());
        let fields = |update: &mut Object<'_>| {
            update.text("toolCallId", call);
            let subject = Subject::of(kind, input.as_ref()).or_titled(name);
            subject.write(update, input.as_ref(), &self.folder);
            update.text("name", name).string("kind", word);
            let status = if input.is_some() { "in_progress" } else { "pending" };
            update.string("status", status);
            write_edits(update, &edits);
        };
        // What the reader would make of the name and the word.
        let told = tools::kind_of(name, Some(&Text::plain(word))) == *kind;
        let more = |facts: &mut Object<'_>| {
            if !told {
                facts.string("kind", kind.as_str());
            }
            if *executor != Executor::Agent {
                facts.string("executor", executor.as_str());
            }
        };
        let has_more = !told || *executor != Executor::Agent;
        self.update("tool_call", parent, out, fields, more, has_more);
        let (id, kind) = (call.clone().into_owned(), kind.clone());
        self.calls.push(OpenCall { id, kind, edits, ..OpenCall::default() });
    }

    pub(super) fn tool_input(
        &mut self,
        input: &ToolInput<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let ToolInput { call, name, kind, input, .. } = input;
        let edits = self.edits_of(kind, input.as_ref());
        let fields = |update: &mut Object<'_>| {
            update.text("toolCallId", call);
            let subject = Subject::of(kind, input.as_ref()).or_titled(name);
            subject.write(update, input.as_ref(), &self.folder);
            update.fixed(r#""status":"in_progress""#);
            write_edits(update, &edits);
        };
        self.update("tool_call_update", parent, out, fields, |_| {}, false);
        if let Some(at) = self.call_at(call)
            && let Some(call) = self.calls.get_mut(at)
        {
            call.edits = edits;
        }
    }

    /// A sign of life. What a call shows replaces what it showed before: a piece of it is no content.
    pub(super) fn tool_progress(
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
        self.update("tool_call_update", parent, out, fields, more, true);
    }

    pub(super) fn files_changed(&mut self, files: &FilesChanged<'_>, out: &mut Output) {
        let at = files.call.as_ref().and_then(|call| self.call_at(call));
        let Some(call) = at.and_then(|at| self.calls.get_mut(at)) else {
            out.lost("file changes outside a tool");
            return;
        };
        for change in &files.changes {
            diffs::of_change(&mut call.shown_changes, change, &self.folder);
            tell_change(&mut call.told_changes, change);
        }
    }

    pub(super) fn tool_ended(
        &mut self,
        ended: &ToolEnded<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        self.last_said = None;
        let call = self.call_at(&ended.call).map(|at| self.calls.swap_remove(at));
        let call = call.unwrap_or_default();
        let completed = ended.status == ToolStatus::Completed;
        let exact = completed || ended.status == ToolStatus::Failed;
        // What a call that failed was to do is not what it did.
        let shown = match &call.shown_changes {
            changes if changes.is_empty() && completed => &call.edits,
            changes => changes,
        };
        let told = &call.told_changes;
        let mut unshown = 0;
        let fields = |update: &mut Object<'_>| {
            update.text("toolCallId", &ended.call);
            update.string("status", if completed { "completed" } else { "failed" });
            unshown = write_output(update, ended, shown);
        };
        // An error that is all there is to show is shown.
        let aside = ended.error.as_ref().filter(|_| !says_nothing(ended.output.as_ref()));
        let more = |facts: &mut Object<'_>| {
            if !exact {
                facts.string("status", ended.status.as_str());
            }
            if let Some(code) = ended.exit_code {
                facts.raw("exitCode", &code.to_string());
            }
            facts.text_if("error", aside);
            if !told.is_empty() {
                write_list(facts, "filesChanged", told);
            }
        };
        let has_more = !exact || ended.exit_code.is_some() || aside.is_some() || !told.is_empty();
        self.update("tool_call_update", parent, out, fields, more, has_more);
        for _ in 0..unshown {
            out.lost("part of a tool's output that is neither text nor a picture");
        }
    }

    /// Where a call stands that is open.
    pub(super) fn call_at(&self, id: &Text<'_>) -> Option<usize> {
        self.calls.iter().rposition(|call| call.id == *id)
    }

    /// What a call would do to files, if it is one that does something to them.
    pub(super) fn edits_of(&self, kind: &ToolKind, input: Option<&Json<'_>>) -> Bytes {
        let mut edits = Bytes::new();
        if let Some(input) = input.filter(|_| matches!(kind, ToolKind::Edit | ToolKind::Write)) {
            diffs::of_input(&mut edits, kind, input, &self.folder);
        }
        edits
    }
}

pub(super) fn show_text(list: &mut Bytes, text: &Text<'_>) {
    list.extend_from_slice(br#"{"type":"content","content":{"type":"text","text":"#);
    write::text(list, text);
    list.extend_from_slice(b"}}");
}

/// A field that is a list whose items are written already.
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

/// What a call gave back: for people as content, for programs as it is where the content does not say
/// all of it. Gives back how many parts are not shown.
fn write_output(update: &mut Object<'_>, ended: &ToolEnded<'_>, changes: &[u8]) -> usize {
    let output = ended.output.as_ref().filter(|output| !says_nothing(Some(output)));
    let list = update.name("content");
    list.push(b'[');
    let first = list.len();
    let shown = match output {
        Some(output) => show_output(list, output),
        None => {
            if let Some(error) = &ended.error {
                show_text(list, error);
            }
            Shown::Whole
        }
    };
    if !changes.is_empty() {
        if list.len() > first {
            list.push(b',');
        }
        list.extend_from_slice(changes);
    }
    list.push(b']');
    let raw = output.filter(|_| !matches!(shown, Shown::Whole));
    update.json_if("rawOutput", ended.structured.as_ref().or(raw));
    match shown {
        Shown::Without(parts) => parts,
        Shown::Whole | Shown::AsJson => 0,
    }
}

/// How much of an output a person sees.
enum Shown {
    Whole,
    /// A value that is no text is shown as the text it is written in.
    AsJson,
    /// All but so many parts.
    Without(usize),
}

record! {
    struct OutputKind<'a> {
        kind: text "type",
        text: text "text",
    }
}

fn show_output(list: &mut Bytes, output: &Json<'_>) -> Shown {
    let blocks = read::records_of::<OutputKind<'_>>(output);
    let blocks = blocks.filter(|blocks| blocks.iter().all(|block| block.kind.is_some()));
    let Some(blocks) = blocks else {
        let (text, _) = output_text(output);
        show_text(list, &text);
        return if output.as_text().is_some() { Shown::Whole } else { Shown::AsJson };
    };
    // Pictures are rare and large: they are looked at only where there are any.
    let is_picture = |block: &OutputKind<'_>| block.kind.as_ref().is_some_and(|it| *it == "image");
    let pictures = blocks.iter().any(is_picture);
    let pictures = pictures.then(|| read::records_of::<Picture<'_>>(output)).flatten();
    let pictures = pictures.unwrap_or_default();
    let (first, mut unshown) = (list.len(), 0);
    for (at, block) in blocks.iter().enumerate() {
        let picture = pictures.get(at).filter(|_| is_picture(block)).and_then(Picture::parts);
        if block.text.is_none() && picture.is_none() {
            unshown += 1;
            continue;
        }
        if list.len() > first {
            list.push(b',');
        }
        match (&block.text, picture) {
            (_, Some((data, mime))) => show_picture(list, data, mime),
            (Some(text), None) => show_text(list, text),
            (None, None) => {}
        }
    }
    if unshown > 0 { Shown::Without(unshown) } else { Shown::Whole }
}

fn show_picture(list: &mut Bytes, data: &Text<'_>, mime: &Text<'_>) {
    let mut part = Object::open(list);
    part.fixed(r#""type":"content""#).object("content", |content| {
        content.fixed(r#""type":"image""#).text("data", data).text("mimeType", mime);
    });
    part.close();
}

fn tell_change(list: &mut Bytes, change: &FileChange<'_>) {
    if !list.is_empty() {
        list.push(b',');
    }
    let mut told = Object::open(list);
    told.text("path", &change.path).text_if("oldPath", change.old_path.as_ref());
    told.string("kind", change.kind.as_str()).json_if("diff", change.diff.as_ref());
    told.close();
}

fn says_nothing(output: Option<&Json<'_>>) -> bool {
    output.is_none_or(|output| {
        output.is_null() || output.as_text().is_some_and(|text| text.is_empty())
    })
}
