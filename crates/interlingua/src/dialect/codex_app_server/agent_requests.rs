//! The agent's requests to its client, until they are resolved.
//!
//! A response is a record of the client. If the stream contains only the agent's records, the
//! decision is inferred from the fate of the call.

use super::calls::{self, Calls};
use super::questions;
use super::wire::{ElicitationMeta, Params, ResponseResult};
use crate::dialect::Emitter;
use crate::event::{
    Decision, PermissionRequested, PermissionResolved, QuestionAnswered, ToolEnded, ToolStatus,
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
    /// A permission request for a tool of an MCP server, which has the form of a question.
    McpApproval,
    Question,
    /// A request between the program and its client. The agent reports its result.
    Other,
}

impl AgentRequest {
    fn is_permission(&self) -> bool {
        matches!(self.kind, Kind::Permission | Kind::McpApproval)
    }
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
        calls: &Calls,
        out: &mut Emitter<'_, '_>,
    ) -> bool {
        let id = request_id(id);
        if method == "mcpServer/elicitation/request"
            && let Some(meta) = params.meta.as_ref().filter(|meta| is_approval(meta))
        {
            self.emit_mcp_approval(&id, params, meta, calls, out);
            return true;
        }
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
            Kind::Permission | Kind::McpApproval => out.emit(PermissionRequested {
                native_call: None,
                request: id.borrowed(),
                call: params.item_id.clone(),
                tool: Some(Text::plain(tool)),
                description: params.reason.clone(),
                input: input(params, calls.input_of(params.item_id.as_ref())),
                options: params.decisions.clone(),
            }),
            Kind::Question => out.emit(questions::asked(id.borrowed(), params)),
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

    /// Emits the request for the approval of a call of an MCP tool. It does not name the call, which
    /// is the one of the same server with the same input.
    fn emit_mcp_approval(
        &mut self,
        id: &Text<'_>,
        params: &Params<'_>,
        meta: &ElicitationMeta<'_>,
        calls: &Calls,
        out: &mut Emitter<'_, '_>,
    ) {
        let server = params.server.clone().unwrap_or_default();
        let awaits_none = |call: &str| {
            self.pending.iter().all(|it| it.call.as_ref().is_none_or(|known| *known != *call))
        };
        let open = calls.of_mcp_server(&server, meta.params.as_ref(), awaits_none);
        let call = open.map(|open| Text::plain(&open.id).into_owned());
        let tool = open.map(|open| Text::from(open.name.to_string()));
        let tool = tool.unwrap_or_else(|| Text::from(format!("mcp__{server}")));
        out.emit(PermissionRequested {
            native_call: None,
            request: id.borrowed(),
            call: call.clone(),
            tool: Some(tool.borrowed()),
            description: params.message.clone(),
            input: meta.params.clone(),
            options: None,
        });
        self.pending.push(AgentRequest {
            id: id.clone().into_owned(),
            call,
            tool,
            kind: Kind::McpApproval,
            parent: out.parent.clone().map(Text::into_owned),
        });
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
            Some(Kind::McpApproval) if result.action.is_some() => {
                let (decision, reason) = decision_of_action(result);
                self.resolve(at, decision, Some("client"), reason, out);
            }
            Some(Kind::Question) if result.answers.is_some() || result.action.is_some() => {
                let request = self.pending.remove(at);
                out.parent = request.parent;
                out.emit(questions::answered(request.id, result));
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
        let reason = reason.map(|reason| reason.clone().into_owned());
        match self.pending.get(at).map(|request| request.kind) {
            Some(Kind::Permission | Kind::McpApproval) => {
                self.resolve(at, Decision::Denied, Some("client"), reason, out);
            }
            Some(Kind::Question) => {
                let request = self.pending.remove(at);
                out.parent = request.parent;
                out.emit(QuestionAnswered {
                    request: request.id,
                    declined: true,
                    reason,
                    ..QuestionAnswered::default()
                });
            }
            _ => {
                self.pending.remove(at);
                out.native("response");
            }
        }
        true
    }

    /// Reads that a request is resolved. A decision about a call shows later.
    pub(super) fn emit_resolved(&mut self, id: &Json<'_>, out: &mut Emitter<'_, '_>) {
        let position = self
            .find(&request_id(id))
            .filter(|at| self.pending.get(*at).is_some_and(|request| !request.is_permission()));
        match position.map(|at| self.pending.remove(at)) {
            Some(request) if request.kind == Kind::Question => {
                out.parent = request.parent;
                let request = request.id;
                out.emit(QuestionAnswered { request, ..QuestionAnswered::default() });
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
        while let Some(at) = self
            .pending
            .iter()
            .position(|request| request.is_permission() && request.call.as_ref() == Some(call))
        {
            let denied = status == Some(&ToolStatus::Denied);
            let decision = if denied { Decision::Denied } else { Decision::Allowed };
            self.resolve(at, decision, None, None, out);
        }
        if status.is_some() {
            self.denied.retain(|denied| denied.call.as_ref() != Some(call));
        }
    }

    /// Ends the turn, and with it all requests and the denied calls.
    pub(super) fn end_turn(
        &mut self,
        completed: bool,
        calls: &mut Calls,
        out: &mut Emitter<'_, '_>,
    ) {
        while let Some(at) = self.pending.iter().position(AgentRequest::is_permission) {
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

/// The input of a call, as far as the request contains it; absent if it contains nothing but the
/// call. What the approval allows beyond the call is a part of it, together with the input of the
/// call: a request for access to the network does not repeat the command.
fn input(params: &Params<'_>, of_call: Option<&Json<'_>>) -> Option<Json<'static>> {
    let kind = params.approval_kind.as_ref().filter(|kind| **kind != "command");
    let beyond = [&params.additional_permissions, &params.network, &params.grant_root];
    let of_request = [&params.command, &params.changes, &params.permissions];
    let has_input = of_request.iter().any(|field| field.is_some());
    if !has_input && kind.is_none() && beyond.iter().all(|field| field.is_none()) {
        return None;
    }
    let of_call = of_call.filter(|_| !has_input).map(Json::get);
    Some(Json::object(|fields| {
        fields.fields_of(of_call.unwrap_or_default());
        fields.json_if("command", params.command.as_ref());
        fields.text_if("cwd", params.cwd.as_ref().filter(|_| of_call.is_none()));
        fields.json_if("fileChanges", params.changes.as_ref());
        fields.json_if("permissions", params.permissions.as_ref());
        fields.text_if("kind", kind);
        fields.json_if("additionalPermissions", params.additional_permissions.as_ref());
        fields.json_if("networkApprovalContext", params.network.as_ref());
        fields.json_if("grantRoot", params.grant_root.as_ref());
    }))
}

/// Whether a form of an MCP server is Codex's own request for the approval of a call.
fn is_approval(meta: &ElicitationMeta<'_>) -> bool {
    meta.approval.as_ref().is_some_and(|kind| *kind == "mcp_tool_call")
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

/// The client's decision about a call of an MCP tool, and for how long it holds.
fn decision_of_action(result: &ResponseResult<'_>) -> (Decision, Option<Text<'static>>) {
    match result.action.as_ref().map_or("", Text::body) {
        "accept" => {
            let persist = result.meta.as_ref().and_then(|meta| meta.persist.as_ref());
            let persist = persist.and_then(Json::as_text).map(Text::into_owned);
            (Decision::Allowed, persist)
        }
        "cancel" => (Decision::Denied, Some(Text::plain("the client cancelled the call"))),
        _ => (Decision::Denied, None),
    }
}
