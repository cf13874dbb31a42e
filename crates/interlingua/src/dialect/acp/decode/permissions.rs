//! Permission requests of the agent, and how they were decided.

use super::agent::Agent;
use super::calls::{OpenCall, is_meaningful};
use super::{AcpDecoder, AgentRequest, meta_of, request_id};
use crate::dialect::EventSink;
use crate::dialect::acp::wire::{Params, PermissionOption, Selected, Update};
use crate::event::{
    Decision, Event, PermissionRequested, PermissionResolved, ToolEnded, ToolStatus,
};
use crate::json::read;
use crate::json::{Json, Text};

/// An option that the user may choose.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    id: Text<'static>,
    name: Option<Text<'static>>,
    /// It denies the call.
    denies: bool,
}

impl AcpDecoder {
    /// Reads a permission request, which may be the first record about its call.
    pub(super) fn read_permission_request(
        &mut self,
        id: Option<&Json<'_>>,
        params: Params<'_>,
        sink: &mut dyn EventSink,
    ) {
        self.end_block(sink);
        let update = params.call.as_ref().and_then(read::record_of::<Update<'_>>);
        let update = update.unwrap_or_default();
        let call_id = update.call.clone().unwrap_or_default();
        let meta = meta_of(&update.meta).unwrap_or_default();
        self.deny_dropped_calls(Some(&call_id), sink);
        let mut call = self.take_call(&call_id, &update, &meta);
        call.only_requested = !call.start_emitted;
        let ours = meta_of(&params.meta).and_then(|meta| meta.ours).unwrap_or_default();
        // Interlingua's own encoder writes a call separately from the permission request: the
        // request starts none.
        let is_ours = ours.request.is_some();
        if !is_ours {
            call.learn_from_request(&update, self.session.cwd.as_ref());
            call.emit_input(false, sink);
        }
        if !is_ours && self.is_question(&meta) {
            self.ask(id, call, &meta, params.options.as_ref(), sink);
            return;
        }
        let options = ours.options.or(params.options);
        let request = ours.request.or(id.map(request_id)).unwrap_or_default();
        if let Some(id) = id {
            let choices = choices(options.as_ref());
            let request = AgentRequest::Permission { call: call.id.clone(), choices };
            self.remember_agent_request(id, request);
        }
        call.request = Some(request.clone().into_owned());
        // The input of the call is more precise than the one in the request.
        let known = call.input.as_ref().filter(|it| !is_ours && is_meaningful(it));
        let known = known.map(Json::borrowed);
        let requested = PermissionRequested {
            native_call: None,
            request,
            call: Some(call_id.clone()),
            tool: Some(call.name.borrowed()),
            description: ours.description.or(update.title),
            input: known.or(update.raw_input).or_else(|| call.input.as_ref().map(Json::borrowed)),
            options,
        };
        sink.event(Event::new(requested).within(call.parent.clone()));
        if call.start_emitted || !is_ours {
            self.calls.open.insert(call_id.to_plain().into_owned(), call);
        }
    }

    /// Reads the user's decision.
    pub(super) fn read_permission_response(
        &mut self,
        id: &Json<'_>,
        selected: &Selected<'_>,
        answers: Option<&Json<'_>>,
        sink: &mut dyn EventSink,
    ) {
        let (call, choices) = match self.take_agent_request(id) {
            Some(AgentRequest::Permission { call, choices }) => (Some(call), choices),
            Some(AgentRequest::Question(question)) => {
                self.read_question_response(question, selected, answers, sink);
                return;
            }
            _ => (None, Vec::new()),
        };
        let option = selected.option.as_ref();
        let chosen = choices.into_iter().find(|choice| option == Some(&choice.id));
        let denial = chosen.filter(|choice| choice.denies);
        let selected = selected.outcome.as_ref().is_some_and(|outcome| *outcome == "selected");
        let decision = match (selected, &denial) {
            (true, None) => Decision::Allowed,
            (true, Some(_)) => Decision::Denied,
            (false, _) => Decision::Withdrawn,
        };
        if let Some(call) = &call {
            self.calls.record_decision(call, decision == Decision::Allowed);
        }
        sink.event(Event::new(PermissionResolved {
            request: Some(request_id(id)),
            call,
            tool: None,
            decision,
            by: Some(Text::plain("client")),
            reason: denial.and_then(|choice| choice.name),
        }));
    }

    /// Denies the calls that Gemini has dropped. Gemini reports nothing more about a call that the
    /// user denied, and it does one thing at a time: if it continues with something else, the call
    /// was denied.
    #[inline]
    pub(super) fn deny_dropped_calls(
        &mut self,
        except: Option<&Text<'_>>,
        sink: &mut dyn EventSink,
    ) {
        if self.agent == Agent::Gemini && !self.calls.open.is_empty() {
            self.deny_all_dropped_calls(except, sink);
        }
    }

    fn deny_all_dropped_calls(&mut self, except: Option<&Text<'_>>, sink: &mut dyn EventSink) {
        let open = &mut self.calls.open;
        let is_dropped = |call: &mut OpenCall| call.only_requested && except != Some(&call.id);
        let mut denied: Vec<_> = open.extract_if(|_, call| is_dropped(call)).collect();
        denied.sort_unstable_by_key(|(_, call)| call.order);
        for (_, call) in denied {
            call.emit_denial(None, sink);
            let status = ToolStatus::Denied;
            let ended = ToolEnded { call: call.id, status, ..ToolEnded::default() };
            sink.event(Event::new(ended).within(call.parent));
        }
    }
}

impl Choice {
    /// Whether the user chose this option, and it denies what was requested.
    pub(super) fn denies(&self, option: Option<&Text<'_>>) -> bool {
        self.denies && option == Some(&self.id)
    }
}

impl OpenCall {
    /// Emits that the user denied the call, unless the response to the request was already emitted.
    pub(super) fn emit_denial(&self, reason: Option<Text<'_>>, sink: &mut dyn EventSink) {
        if self.denied {
            return;
        }
        let denied = PermissionResolved {
            request: self.request.as_ref().map(Text::borrowed),
            call: Some(self.id.borrowed()),
            tool: Some(self.name.borrowed()),
            decision: Decision::Denied,
            by: None,
            reason,
        };
        sink.event(Event::new(denied).within(self.parent.clone()));
    }
}

pub(super) fn choices(options: Option<&Json<'_>>) -> Vec<Choice> {
    let options = options.and_then(read::records_of::<PermissionOption<'_>>).unwrap_or_default();
    let choice = |option: PermissionOption<'_>| {
        Some(Choice {
            id: option.id?.into_owned(),
            name: option.name.map(Text::into_owned),
            denies: option.kind.is_some_and(|kind| kind.body().starts_with("reject")),
        })
    };
    options.into_iter().filter_map(choice).collect()
}
