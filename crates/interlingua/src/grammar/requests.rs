//! Ensures that every permission request and every question is resolved exactly once.
//!
//! Few streams contain every answer: a client's answer is in its own direction, and an agent that is
//! stopped leaves its requests open. A call that ended had been allowed, or denied, and the end of a
//! turn withdraws what is still open.

use std::collections::VecDeque;

use super::calls::key;
use super::stream::{Emit, Stream};
use crate::event::{
    Data, Decision, Event, PermissionResolved, QuestionAnswered, Reason, ToolEnded, ToolStatus,
};
use crate::json::read::{self, Fields};
use crate::json::{Json, Text, record};

/// The number of resolved requests by which a repeated resolution is recognised.
const MAX_RESOLVED: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Requests {
    open: Vec<Request>,
    /// The newest resolved requests.
    resolved: VecDeque<Resolved>,
    epoch: u64,
}

#[derive(Debug)]
struct Request {
    id: Text<'static>,
    call: Option<Text<'static>>,
    tool: Option<Text<'static>>,
    parent: Option<Text<'static>>,
    /// The questions, if it is not a permission request.
    questions: Option<Vec<OpenQuestion>>,
    /// The fields of its form whose values are secrets.
    secret_fields: Vec<Box<str>>,
    epoch: u64,
}

#[derive(Debug)]
struct OpenQuestion {
    id: Text<'static>,
    secret: bool,
}

/// A resolved request: the fingerprints of its id and of its call, and whether it was a question.
#[derive(Debug, PartialEq, Eq)]
struct Resolved {
    id: u64,
    call: Option<u64>,
    question: bool,
}

impl Requests {
    /// Begins a new epoch, in which the ids of requests are reset.
    pub(super) fn begin_epoch(&mut self) {
        self.epoch += 1;
        self.resolved.clear();
    }

    /// Opens a request, unless it is repeated.
    pub(super) fn ask(&mut self, mut event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Some(request) = Request::of(&event, self.epoch) else { return };
        let at = self.find(&request.id, request.questions.is_some());
        if at.and_then(|at| self.open.get(at)).is_some_and(|open| open.call == request.call) {
            stream.count_repeated();
            return;
        }
        if let Some(at) = at {
            self.open.remove(at).withdraw(
                "another request has the same id",
                Reason::Implied,
                stream,
                emit,
            );
        }
        let again = (key(&request.id), request.questions.is_some());
        self.resolved.retain(|resolved| (resolved.id, resolved.question) != again);
        self.open.push(request);
        stream.emit_decoded(&mut event, emit);
    }

    /// Resolves a request, unless it was resolved before. A permission may be decided without a
    /// request.
    pub(super) fn resolve(&mut self, mut event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let (id, call, question) = match &event.data {
            Data::PermissionResolved(it) => (it.request.as_ref(), it.call.as_ref(), false),
            Data::QuestionAnswered(it) => (Some(&it.request), it.call.as_ref(), true),
            _ => return,
        };
        let id = id.filter(|id| !id.is_empty());
        let at = match id {
            Some(id) => self.find(id, question),
            None => self.open.iter().position(|open| {
                open.questions.is_some() == question && call.is_some() && open.call.as_ref() == call
            }),
        };
        let Some(at) = at else {
            let (id, call) = (id.map(key), call.map(key));
            let is_same = |it: &Resolved| match id {
                Some(id) => it.id == id,
                None => call.is_some() && it.call == call,
            };
            if self.resolved.iter().any(|it| it.question == question && is_same(it)) {
                stream.count_repeated();
            } else {
                stream.emit_decoded(&mut event, emit);
            }
            return;
        };
        let request = self.open.remove(at);
        self.remember(&request);
        request.complete(&mut event);
        stream.emit_decoded(&mut event, emit);
    }

    /// Resolves the requests of a call that is answered: it had been allowed or denied.
    pub(super) fn end_call(&mut self, ended: &ToolEnded<'_>, stream: &mut Stream, emit: Emit<'_>) {
        while let Some(at) =
            self.open.iter().position(|open| open.call.as_ref() == Some(&ended.call))
        {
            let request = self.open.remove(at);
            self.remember(&request);
            let decision = match ended.status {
                ToolStatus::Denied => Decision::Denied,
                ToolStatus::Cancelled | ToolStatus::Abandoned => Decision::Withdrawn,
                _ => Decision::Allowed,
            };
            request.emit(decision, None, Reason::Implied, stream, emit);
        }
    }

    /// Withdraws the open requests, because their turn ended.
    pub(super) fn end_turn(&mut self, reason: &Reason, stream: &mut Stream, emit: Emit<'_>) {
        for request in std::mem::take(&mut self.open) {
            self.remember(&request);
            let why = "the turn ended before the request was answered";
            request.withdraw(why, reason.clone(), stream, emit);
        }
    }

    fn find(&self, id: &Text<'_>, question: bool) -> Option<usize> {
        self.open.iter().position(|open| {
            open.epoch == self.epoch
                && open.questions.is_some() == question
                && !id.is_empty()
                && open.id == *id
        })
    }

    fn remember(&mut self, request: &Request) {
        if self.resolved.len() == MAX_RESOLVED {
            self.resolved.pop_front();
        }
        self.resolved.push_back(Resolved {
            id: key(&request.id),
            call: request.call.as_ref().map(key),
            question: request.questions.is_some(),
        });
    }
}

impl Request {
    fn of(event: &Event<'_>, epoch: u64) -> Option<Self> {
        let own = |text: &Option<Text<'_>>| text.clone().map(Text::into_owned);
        let parent = own(&event.parent);
        Some(match &event.data {
            Data::PermissionRequested(asked) => Self {
                id: asked.request.clone().into_owned(),
                call: own(&asked.call),
                tool: own(&asked.tool),
                parent,
                questions: None,
                secret_fields: Vec::new(),
                epoch,
            },
            Data::QuestionAsked(asked) => {
                let questions = asked.questions.iter().map(|question| OpenQuestion {
                    id: question.id.clone().into_owned(),
                    secret: question.secret,
                });
                Self {
                    id: asked.request.clone().into_owned(),
                    call: own(&asked.call),
                    tool: None,
                    parent,
                    questions: Some(questions.collect()),
                    secret_fields: asked.secret_fields(),
                    epoch,
                }
            }
            _ => return None,
        })
    }

    /// Completes a resolution with what is known of the request. The answers get the order of the
    /// questions, and secret ones are removed.
    fn complete(self, event: &mut Event<'_>) {
        match &mut event.data {
            Data::PermissionResolved(resolved) => {
                resolved.request = Some(self.id);
                resolved.call = resolved.call.take().or(self.call);
                resolved.tool = resolved.tool.take().or(self.tool);
            }
            Data::QuestionAnswered(answered) => {
                let questions = self.questions.unwrap_or_default();
                answered.call = answered.call.take().or(self.call);
                let place =
                    |id: &Text<'_>| questions.iter().position(|question| question.id == *id);
                for answer in &mut answered.answers {
                    let question = place(&answer.question).and_then(|at| questions.get(at));
                    if question.is_some_and(|question| question.secret) {
                        answer.values.clear();
                    }
                }
                answered
                    .answers
                    .sort_by_key(|answer| place(&answer.question).unwrap_or(questions.len()));
                if !self.secret_fields.is_empty() {
                    let form = answered.form.take();
                    answered.form = form.map(|form| without(&form, &self.secret_fields));
                }
            }
            _ => {}
        }
    }

    fn withdraw(self, why: &'static str, reason: Reason, stream: &mut Stream, emit: Emit<'_>) {
        self.emit(Decision::Withdrawn, Some(Text::plain(why)), reason, stream, emit);
    }

    /// Emits the resolution that the agent's stream does not contain.
    fn emit(
        self,
        decision: Decision,
        why: Option<Text<'static>>,
        reason: Reason,
        stream: &mut Stream,
        emit: Emit<'_>,
    ) {
        let event = if self.questions.is_some() {
            Event::new(QuestionAnswered {
                request: self.id,
                call: self.call,
                declined: decision != Decision::Allowed,
                reason: why,
                ..QuestionAnswered::default()
            })
        } else {
            Event::new(PermissionResolved {
                request: Some(self.id),
                call: self.call,
                tool: self.tool,
                decision,
                by: None,
                reason: why,
            })
        };
        stream.emit_added(&mut event.within(self.parent), reason, emit);
    }
}

record! {
    /// The part of a form's JSON schema that marks fields as secrets.
    struct FormSchema<'a> {
        properties: json "properties",
    }
}

record! {
    struct FormField<'a> {
        format: text "format",
        write_only: flag "writeOnly",
        secret: flag "isSecret",
    }
}

/// The fields of a form that its schema marks as secret.
pub(crate) fn secret_fields(schema: &Json<'_>) -> Vec<Box<str>> {
    let properties = read::record_of::<FormSchema<'_>>(schema).and_then(|it| it.properties);
    let Fields(fields) = properties.as_ref().and_then(read::record_of).unwrap_or_default();
    let is_secret = |(_, field): &(Box<str>, Json<'_>)| {
        let field = read::record_of::<FormField<'_>>(field).unwrap_or_default();
        field.format.is_some_and(|format| format == "password")
            || field.write_only == Some(true)
            || field.secret == Some(true)
    };
    fields.into_iter().filter(is_secret).map(|(name, _)| name).collect()
}

/// The content of a form without some of its fields.
fn without(form: &Json<'_>, names: &[Box<str>]) -> Json<'static> {
    let Fields(fields) = read::record_of(form).unwrap_or_default();
    Json::object(|rest| {
        for (name, value) in fields.iter().filter(|(name, _)| !names.contains(name)) {
            rest.escaped_name(name).extend_from_slice(value.get().as_bytes());
        }
    })
}
