//! The agent's requests to its client, until they are resolved.
//!
//! A response is a record of the client. If the stream contains only the agent's records, the
//! decision is inferred from the fate of the call.

use super::calls::{self, Calls};
use super::wire::{Params, ResponseResult};
use crate::dialect::Emitter;
use crate::event::{
    Decision, PermissionRequested, PermissionResolved, QuestionAnswered, QuestionAsked, ToolEnded,
    ToolStatus,
};
use crate::json::{Json, Text};

#[derive(Debug, Default)]
pub(super) struct AgentRequests {
    pending: Vec<AgentRequest>,
    /// Denied calls, some of which the agent never mentions again.
    denied: Vec<AgentRequest>,
}

#[derive(Debug)]
struct AgentRequest {
    id: Text<'static>,
    call: Option<Text<'static>>,
    tool: Text<'static>,
    kind: Kind,
    parent: Option<Text<'static>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Permission,
    Question,
    /// A request between the program and its client. The agent reports its result.
    Other,
}

/// The id of a request as text; it may be a number.
pub(super) fn request_id<'a>(id: &'a Json<'_>) -> Text<'a> {
    id.as_text().unwrap_or_else(|| Text::plain(id.get()))
}

impl AgentRequests {
    /// Emits a request of the agent; returns `false` if the method is not one of its requests.
    pub(super) fn emit_request(
        &mut self,
        method: &str,
        id: &Json<'_>,
        params: &Params<'_>,
        out: &mut Emitter<'_, '_>,
    ) -> bool {
        let id = request_id(id);
        let (kind, tool) = match method {
            "item/commandExecution/requestApproval" | "execCommandApproval" => {
                (Kind::Permission, "command_execution")
            }
            "item/fileChange/requestApproval" | "applyPatchApproval" => {
                (Kind::Permission, "file_change")
            }
            "item/permissions/requestApproval" => (Kind::Permission, "request_permissions"),
            "item/tool/requestUserInput" => (Kind::Question, "request_user_input"),
            "mcpServer/elicitation/request" => (Kind::Question, "elicitation"),
            "item/tool/call" | "account/chatgptAuthTokens/refresh" | "attestation/generate" => {
                (Kind::Other, "")
            }
            _ => return false,
        };
        match kind {
            Kind::Permission => out.emit(PermissionRequested {
                native_call: None,
                request: id.borrowed(),
                call: params.item_id.clone(),
                tool: Some(Text::plain(tool)),
                description: params.reason.clone(),
                input: input(params),
                options: params.decisions.clone(),
            }),
            Kind::Question => out.emit(QuestionAsked {
                native_call: None,
                request: id.borrowed(),
                call: params.item_id.clone(),
                questions: questions(params),
            }),
            Kind::Other => out.native(method.to_owned()),
        }
        self.pending.push(AgentRequest {
            id: id.into_owned(),
            call: params.item_id.clone().map(Text::into_owned),
            tool: Text::plain(tool),
            kind,
            parent: out.parent.clone().map(Text::into_owned),
        });
        true
    }

    /// Emits the response of the client, if it answers a pending request.
    pub(super) fn emit_answer(
        &mut self,
        id: &Json<'_>,
        result: &ResponseResult<'_>,
        out: &mut Emitter<'_, '_>,
    ) -> bool {
        let Some(at) = self.find(&request_id(id)) else { return false };
        let kind = self.pending.get(at).map(|request| request.kind);
        match kind {
            Some(Kind::Permission) if result.decision.is_some() || result.permissions.is_some() => {
                let (decision, reason) = decision_of(result);
                self.resolve(at, decision, Some("client"), reason, out);
            }
            Some(Kind::Question) if result.answers.is_some() || result.action.is_some() => {
                let request = self.pending.remove(at);
                let action = || result.action.as_ref().map(Json::from);
                let answers = result.answers.clone().or_else(|| result.content.clone());
                out.parent = request.parent;
                out.emit(QuestionAnswered {
                    request: request.id,
                    answers: answers.or_else(action),
                });
            }
            Some(Kind::Other) if result.content_items.is_some() => {
                self.pending.remove(at);
                out.native("response");
            }
            Some(Kind::Other) if result.secret.is_some() => {
                self.pending.remove(at);
                out.native_without_text("response");
            }
            _ => return false,
        }
        true
    }

    /// Emits an error response of the client.
    pub(super) fn emit_refusal(
        &mut self,
        id: &Json<'_>,
        reason: Option<&Text<'_>>,
        out: &mut Emitter<'_, '_>,
    ) -> bool {
        let Some(at) = self.find(&request_id(id)) else { return false };
        let permission = self.pending.get(at).is_some_and(|it| it.kind == Kind::Permission);
        if permission {
            let reason = reason.map(|reason| reason.clone().into_owned());
            self.resolve(at, Decision::Denied, Some("client"), reason, out);
        } else {
            self.pending.remove(at);
            out.native("response");
        }
        true
    }

    /// Reads that a request is resolved. A decision about a call shows later.
    pub(super) fn emit_resolved(&mut self, id: &Json<'_>, out: &mut Emitter<'_, '_>) {
        let position = self.find(&request_id(id)).filter(|at| {
            self.pending.get(*at).is_some_and(|request| request.kind != Kind::Permission)
        });
        match position.map(|at| self.pending.remove(at)) {
            Some(request) if request.kind == Kind::Question => {
                out.parent = request.parent;
                let request = request.id;
                out.emit(QuestionAnswered { request, answers: None });
            }
            _ => out.native("serverRequest/resolved"),
        }
    }

    /// Resolves the permission requests of a call that continues or has ended.
    pub(super) fn resolve_by_call(
        &mut self,
        call: &Text<'_>,
        status: Option<&ToolStatus>,
        out: &mut Emitter<'_, '_>,
    ) {
        while let Some(at) = self.pending.iter().position(|request| {
            request.kind == Kind::Permission && request.call.as_ref() == Some(call)
        }) {
            let denied = status == Some(&ToolStatus::Denied);
            let decision = if denied { Decision::Denied } else { Decision::Allowed };
            self.resolve(at, decision, None, None, out);
        }
    }

    /// Ends the turn, and with it all requests and the denied calls.
    pub(super) fn end_turn(
        &mut self,
        completed: bool,
        calls: &mut Calls,
        out: &mut Emitter<'_, '_>,
    ) {
        while let Some(at) = self.pending.iter().position(|it| it.kind == Kind::Permission) {
            if completed {
                self.resolve(at, Decision::Allowed, None, None, out);
            } else {
                let reason = Text::plain("the turn ended before the call was made");
                self.resolve(at, Decision::Denied, None, Some(reason), out);
            }
        }
        self.pending.clear();
        for request in std::mem::take(&mut self.denied) {
            let Some(call) = request.call else { continue };
            out.parent = request.parent;
            let status = ToolStatus::Denied;
            let error = calls::default_error(&status);
            calls.forget(&call);
            out.emit(ToolEnded { call, status, error, ..ToolEnded::default() });
        }
        out.parent = None;
    }

    fn find(&self, id: &Text<'_>) -> Option<usize> {
        self.pending.iter().position(|request| request.id == *id)
    }

    fn resolve(
        &mut self,
        at: usize,
        decision: Decision,
        by: Option<&'static str>,
        reason: Option<Text<'static>>,
        out: &mut Emitter<'_, '_>,
    ) {
        let request = self.pending.remove(at);
        let parent = std::mem::replace(&mut out.parent, request.parent.clone());
        out.emit(PermissionResolved {
            request: Some(request.id.borrowed()),
            call: request.call.clone(),
            tool: Some(request.tool.borrowed()),
            decision: decision.clone(),
            by: by.map(Text::plain),
            reason,
        });
        out.parent = parent;
        if decision == Decision::Denied {
            self.denied.push(request);
        }
    }
}

/// The input of a call, as far as the request contains it.
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

/// The questions, or the form of an MCP server.
fn questions<'a>(params: &Params<'a>) -> Option<Json<'a>> {
    params.questions.clone().or_else(|| {
        Some(Json::object(|fields| {
            fields.json_if("serverName", params.server.as_ref());
            fields.text_if("message", params.message.as_ref());
            fields.json_if("requestedSchema", params.schema.as_ref());
        }))
    })
}

/// The client's decision, and its own value for it if that contains more than yes or no.
fn decision_of(result: &ResponseResult<'_>) -> (Decision, Option<Text<'static>>) {
    let Some(decision) = &result.decision else {
        let none = result.permissions.as_ref().is_none_or(|granted| granted.get() == "{}");
        return (if none { Decision::Denied } else { Decision::Allowed }, None);
    };
    // A decision that is not a string is an acceptance with conditions.
    let Some(value) = decision.as_text() else { return (Decision::Allowed, None) };
    match value.body() {
        "accept" | "approved" => (Decision::Allowed, None),
        "acceptForSession" | "approved_for_session" => {
            (Decision::Allowed, Some(value.into_owned()))
        }
        "decline" | "denied" => (Decision::Denied, None),
        "cancel" | "abort" => {
            (Decision::Denied, Some(Text::plain("the client cancelled the turn")))
        }
        _ => (Decision::Denied, Some(value.into_owned())),
    }
}
