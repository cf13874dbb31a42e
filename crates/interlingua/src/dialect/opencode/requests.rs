//! Permission requests and questions to the user.

use super::calls::Calls;
use super::wire::{Input, Properties};
use crate::dialect::EventSink;
use crate::dialect::questions::{AnswerKey, read_answer_lists, read_questions};
use crate::event::{
    Decision, Event, PermissionRequested, PermissionResolved, QuestionAnswered, QuestionAsked,
};
use crate::json::{Json, Text, read};

/// The permission requests that have no reply yet.
#[derive(Debug, Default)]
pub(super) struct Requests {
    pending: Vec<PendingRequest>,
}

#[derive(Debug)]
struct PendingRequest {
    request: String,
    call: Option<Text<'static>>,
    tool: Option<Text<'static>>,
    /// The reason of the decision that was sent.
    reason: Option<Text<'static>>,
}

impl Requests {
    /// Emits a permission request.
    pub(super) fn emit_permission_request(
        &mut self,
        properties: Properties<'_>,
        parent: Option<Text<'static>>,
        calls: &Calls,
        sink: &mut dyn EventSink,
    ) {
        let call = properties.tool.and_then(|tool| tool.call);
        let folder = call.as_ref().and_then(|call| calls.folder_of(call));
        let request = properties.id.unwrap_or_default();
        self.pending.push(PendingRequest {
            request: request.to_plain().into_owned(),
            call: call.clone().map(Text::into_owned),
            tool: properties.permission.clone().map(Text::into_owned),
            reason: None,
        });
        let patterns = properties.patterns.as_ref().and_then(Json::read::<Vec<String>>);
        let event = PermissionRequested {
            native_call: None,
            request,
            call,
            tool: properties.permission,
            description: patterns.map(|patterns| Text::from(patterns.join("\n"))),
            input: properties.metadata.map(|metadata| with_folder(metadata, folder)),
            options: options(properties.always.as_ref()),
        };
        sink.event(Event::new(event).within(parent));
    }

    /// Keeps the reason of a decision until the server confirms it.
    pub(super) fn set_reason(&mut self, request: &str, reason: Text<'_>) {
        if let Some(pending) = self.pending.iter_mut().find(|pending| pending.request == request) {
            pending.reason = Some(reason.into_owned());
        }
    }

    /// Emits the user's reply to a permission request.
    pub(super) fn emit_permission_reply(
        &mut self,
        properties: Properties<'_>,
        parent: Option<Text<'static>>,
        calls: &mut Calls,
        sink: &mut dyn EventSink,
    ) {
        let request = properties.request.unwrap_or_default();
        let at = self.pending.iter().position(|pending| request == *pending.request);
        let (call, tool, reason) = match at.map(|at| self.pending.swap_remove(at)) {
            Some(pending) => (pending.call, pending.tool, pending.reason),
            None => (None, None, None),
        };
        let rejected = properties.reply.as_ref().is_some_and(|reply| *reply == "reject");
        if let Some(call) = call.as_ref().filter(|_| rejected) {
            calls.deny(call);
        }
        let event = PermissionResolved {
            request: Some(request),
            call,
            tool,
            decision: if rejected { Decision::Denied } else { Decision::Allowed },
            by: Some(Text::plain("user")),
            reason: reason.or_else(|| {
                // opencode does not ask again.
                let is_always = properties.reply.is_some_and(|reply| reply == "always");
                is_always.then(|| Text::plain("for the rest of the session"))
            }),
        };
        sink.event(Event::new(event).within(parent));
    }
}

/// The metadata of a request, with the folder of its command, which they lack.
fn with_folder<'a>(metadata: Json<'a>, folder: Option<&Text<'_>>) -> Json<'a> {
    let names_folder = |metadata| read::record_of::<Input<'_>>(metadata)?.folder;
    match folder {
        Some(folder) if metadata.is_object() && names_folder(&metadata).is_none() => {
            Json::object(|fields| {
                fields.fields_of(metadata.get()).text("workdir", folder);
            })
        }
        _ => metadata,
    }
}

/// An option of a permission request.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct PermissionOption<'a> {
    option_id: &'static str,
    name: &'a str,
    kind: &'static str,
}

/// The options of a permission request. `always` allows all requests that match the patterns.
fn options(always: Option<&Json<'_>>) -> Option<Json<'static>> {
    let patterns = always.and_then(Json::read::<Vec<String>>).unwrap_or_default();
    let name = if patterns.is_empty() {
        "Always allow".to_owned()
    } else {
        format!("Always allow: {}", patterns.join(", "))
    };
    Json::from_serialize(&[
        PermissionOption { option_id: "once", name: "Allow once", kind: "allow_once" },
        PermissionOption { option_id: "always", name: &name, kind: "allow_always" },
        PermissionOption { option_id: "reject", name: "Reject", kind: "reject_once" },
    ])
}

/// Emits questions to the user. Their answers are a list in the same order.
pub(super) fn emit_question(
    properties: Properties<'_>,
    parent: Option<Text<'static>>,
    sink: &mut dyn EventSink,
) {
    let event = QuestionAsked {
        request: properties.id.unwrap_or_default(),
        call: properties.tool.and_then(|tool| tool.call),
        questions: read_questions(properties.questions.as_ref(), AnswerKey::Index, true),
        ..QuestionAsked::default()
    };
    sink.event(Event::new(event).within(parent));
}

/// Emits the user's answers to questions, or their rejection.
pub(super) fn emit_answer(
    properties: Properties<'_>,
    parent: Option<Text<'static>>,
    sink: &mut dyn EventSink,
) {
    let event = QuestionAnswered {
        request: properties.request.unwrap_or_default(),
        declined: properties.answers.is_none(),
        answers: properties.answers.as_ref().map(read_answer_lists).unwrap_or_default(),
        ..QuestionAnswered::default()
    };
    sink.event(Event::new(event).within(parent));
}
