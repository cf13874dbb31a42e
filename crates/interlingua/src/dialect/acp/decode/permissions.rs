//! What the agent may and may not do: its requests, and what became of them.

use super::agent::Agent;
use super::calls::{OpenCall, says_something};
use super::{AcpDecoder, Asking, meta_of, request_name};
use crate::dialect::EventSink;
use crate::dialect::acp::wire::{Params, PermissionOption, Selected, Update};
use crate::event::{
    Decision, Event, PermissionRequested, PermissionResolved, ToolEnded, ToolStatus,
};
use crate::json::read;
use crate::json::{Json, Text};

/// An answer that the user may choose.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    id: Text<'static>,
    name: Option<Text<'static>>,
    /// It does not let the call run.
    refuses: bool,
}

impl AcpDecoder {
    /// The agent asks whether it may run a call, of which this may be the first that is heard.
    pub(super) fn permission(
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
        self.deny_unheard(Some(&call_id), sink);
        let mut call = self.take_call(&call_id, &update, &meta);
        call.only_asked_for = !call.announced;
        let ours = meta_of(&params.meta).and_then(|meta| meta.ours).unwrap_or_default();
        // Our own writer tells a call apart from what is asked about it: a request makes none.
        let by_us = ours.request.is_some();
        if !by_us {
            call.learn_of_request(&update);
            call.tell_input(false, sink);
        }
        let options = ours.options.or(params.options);
        let request = ours.request.or(id.map(request_name)).unwrap_or_default();
        if let Some(id) = id {
            let choices = choices(options.as_ref());
            let asking = Asking::Permission { call: call.id.clone(), choices };
            self.remember_asking(id, asking);
        }
        call.request = Some(request.clone().into_owned());
        // What the call was given says it better than what is asked about it.
        let given = call.input.as_ref().filter(|it| !by_us && says_something(it));
        let given = given.map(Json::borrowed);
        let asked = PermissionRequested {
            native_call: None,
            request,
            call: Some(call_id.clone()),
            tool: Some(call.name.borrowed()),
            description: ours.description.or(update.title),
            input: given.or(update.raw_input).or_else(|| call.input.as_ref().map(Json::borrowed)),
            options,
        };
        sink.event(Event::new(asked).within(call.parent.clone()));
        if call.announced || !by_us {
            self.calls.open.insert(call_id.to_plain().into_owned(), call);
        }
    }

    /// What the user decided.
    pub(super) fn permitted(
        &mut self,
        id: &Json<'_>,
        selected: &Selected<'_>,
        sink: &mut dyn EventSink,
    ) {
        let (call, choices) = match self.take_asking(id) {
            Some(Asking::Permission { call, choices }) => (Some(call), choices),
            _ => (None, Vec::new()),
        };
        let option = selected.option.as_ref();
        let chosen = choices.into_iter().find(|choice| option == Some(&choice.id));
        let refusal = chosen.filter(|choice| choice.refuses);
        let selected = selected.outcome.as_ref().is_some_and(|outcome| *outcome == "selected");
        let decision = match (selected, &refusal) {
            (true, None) => Decision::Allowed,
            (true, Some(_)) => Decision::Denied,
            (false, _) => Decision::Withdrawn,
        };
        if let Some(call) = &call {
            self.calls.decided(call, decision == Decision::Allowed);
        }
        sink.event(Event::new(PermissionResolved {
            request: Some(request_name(id)),
            call,
            tool: None,
            decision,
            by: Some(Text::plain("client")),
            reason: refusal.and_then(|choice| choice.name),
        }));
    }

    /// Of a call that the user did not let run Gemini says nothing more, and it does one thing after
    /// the other: what it asked for was refused if it goes on with something else.
    #[inline]
    pub(super) fn deny_unheard(&mut self, but: Option<&Text<'_>>, sink: &mut dyn EventSink) {
        if self.agent == Agent::Gemini && !self.calls.open.is_empty() {
            self.deny_all_unheard(but, sink);
        }
    }

    fn deny_all_unheard(&mut self, but: Option<&Text<'_>>, sink: &mut dyn EventSink) {
        let open = &mut self.calls.open;
        let unheard = |call: &mut OpenCall| call.only_asked_for && but != Some(&call.id);
        let mut denied: Vec<_> = open.extract_if(|_, call| unheard(call)).collect();
        denied.sort_unstable_by_key(|(_, call)| call.order);
        for (_, call) in denied {
            call.tell_denied(None, sink);
            let status = ToolStatus::Denied;
            let ended = ToolEnded { call: call.id, status, ..ToolEnded::default() };
            sink.event(Event::new(ended).within(call.parent));
        }
    }
}

impl OpenCall {
    /// Tells that the user did not let the call run, unless the answer itself told it.
    pub(super) fn tell_denied(&self, reason: Option<Text<'_>>, sink: &mut dyn EventSink) {
        if self.refused {
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

fn choices(options: Option<&Json<'_>>) -> Vec<Choice> {
    let options = options.and_then(read::records_of::<PermissionOption<'_>>).unwrap_or_default();
    let choice = |option: PermissionOption<'_>| {
        Some(Choice {
            id: option.id?.into_owned(),
            name: option.name.map(Text::into_owned),
            refuses: option.kind.is_some_and(|kind| kind.body().starts_with("reject")),
        })
    };
    options.into_iter().filter_map(choice).collect()
}
