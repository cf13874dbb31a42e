//! Requests to the client: permission requests and questions.

use super::AcpEncoder;
use super::calls::{write_list, write_text_content};
use super::subject::Subject;
use crate::dialect::Output;
use crate::dialect::acp::{form, tools};
use crate::event::{PermissionRequested, QuestionAsked, ToolKind};
use crate::json::read;
use crate::json::write::{Bytes, Object};
use crate::json::{Json, Text, record};

/// The options of a request whose own options are not those of the protocol.
const USUAL_OPTIONS: &str = r#"[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]"#;

record! {
    /// An option of a permission request, with the fields that the protocol requires.
    struct OfferedOption<'a> {
        id: text "optionId",
        name: text "name",
        kind: text "kind",
    }
}

impl AcpEncoder {
    /// Writes a permission request. It repeats the call, and what it contains replaces what the
    /// client shows, so the text of the request must not hide the command or the edit.
    pub(super) fn write_permission_request(
        &mut self,
        requested: &PermissionRequested<'_>,
        out: &mut Output,
    ) {
        let own_options = requested.options.as_ref().filter(|options| are_options(options));
        let id = self.next_request_id();
        let mut request = Object::open(out.bytes());
        request.fixed(r#""jsonrpc":"2.0""#).number("id", id);
        request.fixed(r#""method":"session/request_permission""#);
        request.object("params", |params| {
            params.raw_bytes("sessionId", &self.session_id);
            params.object("toolCall", |call| self.write_requested_call(call, id, requested));
            match own_options {
                Some(options) => params.json("options", options),
                None => params.raw("options", USUAL_OPTIONS),
            };
            params.object("_meta", |meta| {
                meta.object("interlingua", |facts| {
                    facts.text("requestId", &requested.request);
                    facts.text_if("description", requested.description.as_ref());
                    if own_options.is_none() {
                        facts.json_if("options", requested.options.as_ref());
                    }
                });
            });
        });
        request.end();
    }

    /// Writes the call that a request is about. A call that the client knows keeps the fields that
    /// the request leaves out.
    fn write_requested_call(
        &self,
        call: &mut Object<'_>,
        id: u64,
        requested: &PermissionRequested<'_>,
    ) {
        let PermissionRequested { tool, description, input, .. } = requested;
        match &requested.call {
            Some(id) => call.text("toolCallId", id),
            None => call.string("toolCallId", &format!("permission-{}-{id}", self.id_tag)),
        };
        let known = requested.call.as_ref().and_then(|id| self.position_of_call(id));
        let known = known.and_then(|at| self.calls.get(at));
        let by_name = || tool.as_ref().map(|tool| tools::kind_of(tool, None));
        let kind = known.map(|call| call.kind.clone()).or_else(by_name).unwrap_or_default();
        let description = description.as_ref().filter(|text| !text.is_empty());
        let unnamed = Text::plain("Permission");
        let mut subject = Subject::of(&kind, input.as_ref());
        if known.is_none() {
            subject = subject.with_default_title(description.or(tool.as_ref()).unwrap_or(&unnamed));
        }
        subject.write(call, input.as_ref(), &self.folder);
        if known.is_none() {
            call.text_if("name", tool.as_ref());
            if kind != ToolKind::Unspecified {
                call.string("kind", tools::protocol_kind(&kind));
            }
        }
        let reason = description.filter(|text| !subject.title_contains(text));
        let shown_edits = known.map_or(&[][..], |call| &call.edits);
        let own_edits = self.input_diffs(&kind, input.as_ref());
        let edits = if own_edits.is_empty() { shown_edits } else { &own_edits };
        if reason.is_some() || edits != shown_edits {
            write_list(call, "content", &join_content(reason, edits));
        }
    }

    /// Writes questions as a form. Options that may be left aside, previews and the name of an MCP
    /// server are only in the metadata.
    pub(super) fn write_question(&mut self, asked: &QuestionAsked<'_>, out: &mut Output) {
        let schema = match &asked.schema {
            Some(schema) if schema.is_object() => Some(schema.borrowed()),
            _ if asked.questions.is_empty() => None,
            _ => Some(form::schema(&asked.questions)),
        };
        if schema.is_none() && asked.url.is_none() {
            out.lost("questions");
            return;
        }
        let id = self.next_request_id();
        let mut request = Object::open(out.bytes());
        request.fixed(r#""jsonrpc":"2.0""#).number("id", id);
        request.fixed(r#""method":"elicitation/create""#);
        request.object("params", |params| {
            params.raw_bytes("sessionId", &self.session_id);
            params.text_if("toolCallId", asked.call.as_ref());
            params.string("mode", if asked.url.is_some() { "url" } else { "form" });
            params.text("message", &form::message(asked));
            match &asked.url {
                Some(url) => params.text("elicitationId", &asked.request).text("url", url),
                None => params.json_if("requestedSchema", schema.as_ref()),
            };
            params.object("_meta", |meta| {
                meta.object("interlingua", |facts| {
                    facts.text("requestId", &asked.request);
                    facts.text_if("message", asked.message.as_ref());
                    facts.text_if("server", asked.server.as_ref());
                    if !asked.questions.is_empty() {
                        let questions = Json::from_serialize(&asked.questions);
                        facts.json_if("questions", questions.as_ref());
                    }
                });
            });
        });
        request.end();
    }

    fn next_request_id(&mut self) -> u64 {
        let id = self.requests;
        self.requests += 1;
        id
    }
}

fn join_content(reason: Option<&Text<'_>>, edits: &[u8]) -> Bytes {
    let mut shown = Bytes::new();
    if let Some(reason) = reason {
        write_text_content(&mut shown, reason);
    }
    if !shown.is_empty() && !edits.is_empty() {
        shown.push(b',');
    }
    shown.extend_from_slice(edits);
    shown
}

/// Whether a client of the protocol can show these options.
fn are_options(options: &Json<'_>) -> bool {
    let Some(list) = read::records_of::<OfferedOption<'_>>(options) else { return false };
    let known = |option: &OfferedOption<'_>| {
        let kind = option.kind.as_ref().map_or("", Text::body);
        let kinds = ["allow_once", "allow_always", "reject_once", "reject_always"];
        option.id.is_some() && option.name.is_some() && kinds.contains(&kind)
    };
    !list.is_empty() && list.iter().all(known)
}
