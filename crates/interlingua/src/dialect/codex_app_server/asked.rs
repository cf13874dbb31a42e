//! What the agent asked its client, until it is answered.
//!
//! The answer itself goes the other way: where only the agent is heard, what was decided shows in
//! what becomes of the call.

use super::calls::{self, Calls};
use super::wire::{Answer, Params};
use crate::dialect::Emitter;
use crate::event::{
    Decision, PermissionRequested, PermissionResolved, QuestionAnswered, QuestionAsked, ToolEnded,
    ToolStatus,
};
use crate::json::{Json, Text};

#[derive(Debug, Default)]
pub(super) struct Asked {
    open: Vec<Question>,
    /// Calls that may not be made: some of them are never spoken of again.
    denied: Vec<Question>,
}

#[derive(Debug)]
struct Question {
    request: Text<'static>,
    call: Option<Text<'static>>,
    tool: Text<'static>,
    kind: Kind,
    parent: Option<Text<'static>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Permission,
    Choice,
    /// What is between the two: the agent tells what comes of it.
    Errand,
}

/// The id of a request, which may be a number.
pub(super) fn request_id<'a>(id: &'a Json<'_>) -> Text<'a> {
    id.as_text().unwrap_or_else(|| Text::plain(id.get()))
}

impl Asked {
    /// Tells what the agent asks; `false` where the method is none of its requests.
    pub(super) fn ask(
        &mut self,
        method: &str,
        id: &Json<'_>,
        params: &Params<'_>,
        out: &mut Emitter<'_, '_>,
    ) -> bool {
        let request = request_id(id);
        let (kind, tool) = match method {
            "item/commandExecution/requestApproval" | "execCommandApproval" => {
                (Kind::Permission, "command_execution")
            }
            "item/fileChange/requestApproval" | "applyPatchApproval" => {
                (Kind::Permission, "file_change")
            }
            "item/permissions/requestApproval" => (Kind::Permission, "request_permissions"),
            "item/tool/requestUserInput" => (Kind::Choice, "request_user_input"),
            "mcpServer/elicitation/request" => (Kind::Choice, "elicitation"),
            "item/tool/call" | "account/chatgptAuthTokens/refresh" | "attestation/generate" => {
                (Kind::Errand, "")
            }
            _ => return false,
        };
        match kind {
            Kind::Permission => out.emit(PermissionRequested {
                native_call: None,
                request: request.borrowed(),
                call: params.item_id.clone(),
                tool: Some(Text::plain(tool)),
                description: params.reason.clone(),
                input: input(params),
                options: params.decisions.clone(),
            }),
            Kind::Choice => out.emit(QuestionAsked {
                native_call: None,
                request: request.borrowed(),
                call: params.item_id.clone(),
                questions: questions(params),
            }),
            Kind::Errand => out.native(method.to_owned()),
        }
        self.open.push(Question {
            request: request.into_owned(),
            call: params.item_id.clone().map(Text::into_owned),
            tool: Text::plain(tool),
            kind,
            parent: out.parent.clone().map(Text::into_owned),
        });
        true
    }

    /// Tells the client's answer, if it is one to an open question.
    pub(super) fn answer(
        &mut self,
        id: &Json<'_>,
        answer: &Answer<'_>,
        out: &mut Emitter<'_, '_>,
    ) -> bool {
        let Some(at) = self.find(&request_id(id)) else { return false };
        let kind = self.open.get(at).map(|question| question.kind);
        match kind {
            Some(Kind::Permission) if answer.decision.is_some() || answer.permissions.is_some() => {
                let (decision, word) = decided(answer);
                self.resolve(at, decision, Some("client"), word, out);
            }
            Some(Kind::Choice) if answer.answers.is_some() || answer.action.is_some() => {
                let question = self.open.remove(at);
                let action = || answer.action.as_ref().map(Json::from);
                let answers = answer.answers.clone().or_else(|| answer.content.clone());
                out.parent = question.parent;
                out.emit(QuestionAnswered {
                    request: question.request,
                    answers: answers.or_else(action),
                });
            }
            Some(Kind::Errand) if answer.content_items.is_some() => {
                self.open.remove(at);
                out.native("response");
            }
            Some(Kind::Errand) if answer.secret.is_some() => {
                self.open.remove(at);
                out.native_without_text("response");
            }
            _ => return false,
        }
        true
    }

    /// Tells that the client would not answer.
    pub(super) fn refuse(
        &mut self,
        id: &Json<'_>,
        reason: Option<&Text<'_>>,
        out: &mut Emitter<'_, '_>,
    ) -> bool {
        let Some(at) = self.find(&request_id(id)) else { return false };
        let permission = self.open.get(at).is_some_and(|it| it.kind == Kind::Permission);
        if permission {
            let reason = reason.map(|reason| reason.clone().into_owned());
            self.resolve(at, Decision::Denied, Some("client"), reason, out);
        } else {
            self.open.remove(at);
            out.native("response");
        }
        true
    }

    /// The agent says that a request needs no answer any more. What was decided shows later.
    pub(super) fn settled(&mut self, id: &Json<'_>, out: &mut Emitter<'_, '_>) {
        let choice = self.find(&request_id(id)).filter(|at| {
            self.open.get(*at).is_some_and(|question| question.kind != Kind::Permission)
        });
        match choice.map(|at| self.open.remove(at)) {
            Some(question) if question.kind == Kind::Choice => {
                out.parent = question.parent;
                let request = question.request;
                out.emit(QuestionAnswered { request, answers: None });
            }
            _ => out.native("serverRequest/resolved"),
        }
    }

    /// A call goes on, or is over: this shows what was decided about it.
    pub(super) fn call_shows(
        &mut self,
        call: &Text<'_>,
        status: Option<&ToolStatus>,
        out: &mut Emitter<'_, '_>,
    ) {
        while let Some(at) = self.open.iter().position(|question| {
            question.kind == Kind::Permission && question.call.as_ref() == Some(call)
        }) {
            let denied = status == Some(&ToolStatus::Denied);
            let decision = if denied { Decision::Denied } else { Decision::Allowed };
            self.resolve(at, decision, None, None, out);
        }
    }

    /// The turn has ended, and with it all questions and the calls that were not allowed.
    pub(super) fn end_turn(
        &mut self,
        completed: bool,
        calls: &mut Calls,
        out: &mut Emitter<'_, '_>,
    ) {
        while let Some(at) = self.open.iter().position(|it| it.kind == Kind::Permission) {
            if completed {
                self.resolve(at, Decision::Allowed, None, None, out);
            } else {
                let reason = Text::plain("the turn ended before the call was made");
                self.resolve(at, Decision::Denied, None, Some(reason), out);
            }
        }
        self.open.clear();
        for question in std::mem::take(&mut self.denied) {
            let Some(call) = question.call else { continue };
            out.parent = question.parent;
            let status = ToolStatus::Denied;
            let error = calls::reason_of(&status);
            calls.forget(&call);
            out.emit(ToolEnded { call, status, error, ..ToolEnded::default() });
        }
        out.parent = None;
    }

    fn find(&self, request: &Text<'_>) -> Option<usize> {
        self.open.iter().position(|question| question.request == *request)
    }

    fn resolve(
        &mut self,
        at: usize,
        decision: Decision,
        by: Option<&'static str>,
        reason: Option<Text<'static>>,
        out: &mut Emitter<'_, '_>,
    ) {
        let question = self.open.remove(at);
        let parent = std::mem::replace(&mut out.parent, question.parent.clone());
        out.emit(PermissionResolved {
            request: Some(question.request.borrowed()),
            call: question.call.clone(),
            tool: Some(question.tool.borrowed()),
            decision: decision.clone(),
            by: by.map(Text::plain),
            reason,
        });
        out.parent = parent;
        if decision == Decision::Denied {
            self.denied.push(question);
        }
    }
}

/// What a call would be given, as far as the request says it.
fn input(params: &Params<'_>) -> Option<Json<'static>> {
    let known = [&params.command, &params.changes, &params.permissions];
    if known.iter().all(|known| known.is_none()) {
        return None;
    }
    Some(Json::object(|fields| {
        fields.json_if("command", params.command.as_ref());
        fields.text_if("cwd", params.cwd.as_ref());
        fields.json_if("fileChanges", params.changes.as_ref());
        fields.json_if("permissions", params.permissions.as_ref());
    }))
}

/// The questions themselves, or the form that a server of tools wants to be filled in.
fn questions<'a>(params: &Params<'a>) -> Option<Json<'a>> {
    params.questions.clone().or_else(|| {
        Some(Json::object(|fields| {
            fields.json_if("serverName", params.server.as_ref());
            fields.text_if("message", params.message.as_ref());
            fields.json_if("requestedSchema", params.schema.as_ref());
        }))
    })
}

/// What the client decided, and why: its own word where that says more than yes or no.
fn decided(answer: &Answer<'_>) -> (Decision, Option<Text<'static>>) {
    let Some(decision) = &answer.decision else {
        let none = answer.permissions.as_ref().is_none_or(|granted| granted.get() == "{}");
        return (if none { Decision::Denied } else { Decision::Allowed }, None);
    };
    // What is no word is an acceptance with conditions.
    let Some(word) = decision.as_text() else { return (Decision::Allowed, None) };
    match word.body() {
        "accept" | "approved" => (Decision::Allowed, None),
        "acceptForSession" | "approved_for_session" => (Decision::Allowed, Some(word.into_owned())),
        "decline" | "denied" => (Decision::Denied, None),
        "cancel" | "abort" => {
            (Decision::Denied, Some(Text::plain("the client cancelled the turn")))
        }
        _ => (Decision::Denied, Some(word.into_owned())),
    }
}
