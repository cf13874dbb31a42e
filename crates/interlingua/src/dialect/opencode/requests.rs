//! What opencode asks the user: may I, and which one.

use super::calls::Calls;
use super::wire::Properties;
use crate::dialect::EventSink;
use crate::event::{
    Decision, Event, PermissionRequested, PermissionResolved, QuestionAnswered, QuestionAsked,
};
use crate::json::{Json, Text};

/// The questions that wait for an answer.
#[derive(Debug, Default)]
pub(super) struct Requests {
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    request: String,
    call: Option<Text<'static>>,
    tool: Option<Text<'static>>,
}

impl Requests {
    /// opencode asks whether it may.
    pub(super) fn asked(
        &mut self,
        asked: Properties<'_>,
        parent: Option<Text<'static>>,
        sink: &mut dyn EventSink,
    ) {
        let call = asked.tool.and_then(|tool| tool.call);
        let request = asked.id.unwrap_or_default();
        self.waiting.push(Waiting {
            request: request.to_plain().into_owned(),
            call: call.clone().map(Text::into_owned),
            tool: asked.permission.clone().map(Text::into_owned),
        });
        let patterns = asked.patterns.as_ref().and_then(Json::read::<Vec<String>>);
        let event = PermissionRequested {
            native_call: None,
            request,
            call,
            tool: asked.permission,
            description: patterns.map(|patterns| Text::from(patterns.join("\n"))),
            input: asked.metadata,
            options: options(asked.always.as_ref()),
        };
        sink.event(Event::new(event).within(parent));
    }

    /// The user said whether it may.
    pub(super) fn replied(
        &mut self,
        replied: Properties<'_>,
        parent: Option<Text<'static>>,
        calls: &mut Calls,
        sink: &mut dyn EventSink,
    ) {
        let request = replied.request.unwrap_or_default();
        let at = self.waiting.iter().position(|waiting| request == *waiting.request);
        let (call, tool) = match at.map(|at| self.waiting.swap_remove(at)) {
            Some(waiting) => (waiting.call, waiting.tool),
            None => (None, None),
        };
        let rejected = replied.reply.as_ref().is_some_and(|reply| *reply == "reject");
        if let Some(call) = call.as_ref().filter(|_| rejected) {
            calls.deny(call);
        }
        let event = PermissionResolved {
            request: Some(request),
            call,
            tool,
            decision: if rejected { Decision::Denied } else { Decision::Allowed },
            by: Some(Text::plain("user")),
            reason: replied.reply.filter(|reply| *reply == "always").map(|_| {
                // What was asked once is not asked again.
                Text::plain("for the rest of the session")
            }),
        };
        sink.event(Event::new(event).within(parent));
    }
}

/// One of the answers that opencode takes.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Offer<'a> {
    option_id: &'static str,
    name: &'a str,
    kind: &'static str,
}

/// The answers that opencode takes; one of them allows all that is like what is asked.
fn options(always: Option<&Json<'_>>) -> Option<Json<'static>> {
    let alike = always.and_then(Json::read::<Vec<String>>).unwrap_or_default();
    let name = if alike.is_empty() {
        "Always allow".to_owned()
    } else {
        format!("Always allow: {}", alike.join(", "))
    };
    Json::from_serialize(&[
        Offer { option_id: "once", name: "Allow once", kind: "allow_once" },
        Offer { option_id: "always", name: &name, kind: "allow_always" },
        Offer { option_id: "reject", name: "Reject", kind: "reject_once" },
    ])
}

/// opencode asks the user something.
pub(super) fn question(
    asked: Properties<'_>,
    parent: Option<Text<'static>>,
    sink: &mut dyn EventSink,
) {
    let event = QuestionAsked {
        native_call: None,
        request: asked.id.unwrap_or_default(),
        call: asked.tool.and_then(|tool| tool.call),
        questions: asked.questions,
    };
    sink.event(Event::new(event).within(parent));
}

/// The user answered, or would not.
pub(super) fn answer(
    given: Properties<'_>,
    parent: Option<Text<'static>>,
    sink: &mut dyn EventSink,
) {
    let request = given.request.unwrap_or_default();
    let event = QuestionAnswered { request, answers: given.answers };
    sink.event(Event::new(event).within(parent));
}
