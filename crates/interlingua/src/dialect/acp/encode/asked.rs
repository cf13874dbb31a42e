//! What the agent asks the user: may I, and which one.

use super::AcpEncoder;
use super::calls::{show_text, write_list};
use super::form::Form;
use super::subject::Subject;
use crate::dialect::Output;
use crate::dialect::acp::tools;
use crate::event::{PermissionRequested, QuestionAsked, ToolKind};
use crate::json::read;
use crate::json::write::{Bytes, Object};
use crate::json::{Json, Text, record};

/// What a user may answer where the agent offers nothing that the protocol knows.
const USUAL_OPTIONS: &str = r#"[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]"#;

record! {
    /// An option, as far as one can see whether it is one of the protocol.
    struct OfferedOption<'a> {
        id: text "optionId",
        name: text "name",
        kind: text "kind",
    }
}

impl AcpEncoder {
    /// A request for permission. It tells the call anew, and what it tells replaces what is shown: the
    /// words of the request must not hide what would be done.
    pub(super) fn permission(&mut self, asked: &PermissionRequested<'_>, out: &mut Output) {
        let own_options = asked.options.as_ref().filter(|options| are_options(options));
        let id = self.next_request();
        let mut request = Object::open(out.bytes());
        request.fixed(r#""jsonrpc":"2.0""#).number("id", id);
        request.fixed(r#""method":"session/request_permission""#);
        request.object("params", |params| {
            params.raw_bytes("sessionId", &self.session_id);
            params.object("toolCall", |call| self.asked_call(call, id, asked));
            match own_options {
                Some(options) => params.json("options", options),
                None => params.raw("options", USUAL_OPTIONS),
            };
            params.object("_meta", |meta| {
                meta.object("interlingua", |facts| {
                    facts.text("requestId", &asked.request);
                    facts.text_if("description", asked.description.as_ref());
                    if own_options.is_none() {
                        facts.json_if("options", asked.options.as_ref());
                    }
                });
            });
        });
        request.end();
    }

    /// The call that a request is about. One that the client knows keeps what the request does not tell.
    fn asked_call(&self, call: &mut Object<'_>, id: u64, asked: &PermissionRequested<'_>) {
        let PermissionRequested { tool, description, input, .. } = asked;
        match &asked.call {
            Some(id) => call.text("toolCallId", id),
            None => call.string("toolCallId", &format!("permission-{}-{id}", self.id_tag)),
        };
        let known = asked.call.as_ref().and_then(|id| self.call_at(id));
        let known = known.and_then(|at| self.calls.get(at));
        let by_name = || tool.as_ref().map(|tool| tools::kind_of(tool, None));
        let kind = known.map(|call| call.kind.clone()).or_else(by_name).unwrap_or_default();
        let description = description.as_ref().filter(|text| !text.is_empty());
        let unnamed = Text::plain("Permission");
        let mut subject = Subject::of(&kind, input.as_ref());
        if known.is_none() {
            subject = subject.or_titled(description.or(tool.as_ref()).unwrap_or(&unnamed));
        }
        subject.write(call, input.as_ref(), &self.folder);
        if known.is_none() {
            call.text_if("name", tool.as_ref());
            if kind != ToolKind::Unspecified {
                call.string("kind", tools::word_of(&kind));
            }
        }
        let reason = description.filter(|text| !subject.says(text));
        let shown_edits = known.map_or(&[][..], |call| &call.edits);
        let own_edits = self.edits_of(&kind, input.as_ref());
        let edits = if own_edits.is_empty() { shown_edits } else { &own_edits };
        if reason.is_some() || edits != shown_edits {
            write_list(call, "content", &shown_with(reason, edits));
        }
    }

    /// Agents have many forms of questions: those that the protocol has no form for are lost.
    pub(super) fn question(&mut self, asked: &QuestionAsked<'_>, out: &mut Output) {
        let Some(form) = asked.questions.as_ref().and_then(Form::of) else {
            out.lost("question");
            return;
        };
        let id = self.next_request();
        let mut request = Object::open(out.bytes());
        request.fixed(r#""jsonrpc":"2.0""#).number("id", id);
        request.fixed(r#""method":"elicitation/create""#);
        request.object("params", |params| {
            params.raw_bytes("sessionId", &self.session_id);
            params.text_if("toolCallId", asked.call.as_ref());
            params.fixed(r#""mode":"form""#).text("message", &form.message);
            params.raw_bytes("requestedSchema", &form.schema);
            params.object("_meta", |meta| {
                meta.object("interlingua", |facts| {
                    facts.text("requestId", &asked.request);
                });
            });
        });
        request.end();
    }

    fn next_request(&mut self) -> u64 {
        let id = self.requests;
        self.requests += 1;
        id
    }
}

fn shown_with(reason: Option<&Text<'_>>, edits: &[u8]) -> Bytes {
    let mut shown = Bytes::new();
    if let Some(reason) = reason {
        show_text(&mut shown, reason);
    }
    if !shown.is_empty() && !edits.is_empty() {
        shown.push(b',');
    }
    shown.extend_from_slice(edits);
    shown
}

/// Whether these are options that a client of the protocol can show.
fn are_options(options: &Json<'_>) -> bool {
    let Some(list) = read::records_of::<OfferedOption<'_>>(options) else { return false };
    let known = |option: &OfferedOption<'_>| {
        let kind = option.kind.as_ref().map_or("", Text::body);
        let kinds = ["allow_once", "allow_always", "reject_once", "reject_always"];
        option.id.is_some() && option.name.is_some() && kinds.contains(&kind)
    };
    !list.is_empty() && list.iter().all(known)
}
