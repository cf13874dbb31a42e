//! Observes the entries on their way to the consumer, for the events that a session has to act on.

use std::path::PathBuf;

use interlingua::EntryRef;
use interlingua::event::{
    self, Data, Outcome, PermissionRequested, QuestionAsked, ToolInput, ToolKind,
};
use interlingua::json::{Json, Text};

use crate::permission::PermissionRequest;
use crate::session::{Question, QuestionRequest, Wanted};

/// An event that a session has to act on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Observation {
    /// The agent requests a permission, or asks a question, with the sequence number of the entry.
    Wanted(Box<Wanted>, u64),
    /// The request was withdrawn, or answered.
    Resolved(String),
    /// A live (non-replayed) turn ended with this outcome.
    TurnEnded(Outcome),
    /// A live turn started.
    TurnStarted,
    /// The agent reported its own id for the session.
    SessionId(String),
    /// A request to the model failed, and is retried.
    Retrying,
    /// The model made progress: it emitted text, or a tool call.
    Progress,
}

/// The state that is derived from the entries so far.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The folder in which the agent works.
    folder: PathBuf,
    observations: Vec<Observation>,
    calls: Vec<OpenCall>,
}

/// A call that has not ended.
#[derive(Debug)]
struct OpenCall {
    id: String,
    kind: ToolKind,
    /// The input of a call that reads: OpenCode's requests to read a file do not name it.
    input: Option<String>,
}

impl Watch {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, observations: Vec::new(), calls: Vec::new() }
    }

    /// The observations since the last call.
    pub(crate) fn take_observations(&mut self) -> Vec<Observation> {
        std::mem::take(&mut self.observations)
    }

    /// Whether a tool is running; there is no limit to its silence.
    pub(crate) fn tool_running(&self) -> bool {
        !self.calls.is_empty()
    }

    pub(crate) fn observe(&mut self, entry: EntryRef<'_>) {
        let observation = match &entry.event.data {
            Data::PermissionRequested(asked) => {
                let wanted = Wanted::Permission(self.permission_request(asked));
                Observation::Wanted(Box::new(wanted), entry.sequence)
            }
            Data::QuestionAsked(asked) => Observation::Wanted(
                Box::new(Wanted::Answer(question_request(asked))),
                entry.sequence,
            ),
            Data::PermissionResolved(resolved) => match &resolved.request {
                Some(id) => Observation::Resolved(id.to_string()),
                None => return,
            },
            Data::QuestionAnswered(answered) => Observation::Resolved(answered.request.to_string()),
            Data::ToolStarted(started) => {
                let (id, kind) = (started.call.to_string(), started.kind.clone());
                self.calls.push(OpenCall { id, kind, input: None });
                Observation::Progress
            }
            Data::ToolInput(known) => {
                self.keep_input(known);
                return;
            }
            Data::ToolEnded(ended) => {
                self.calls.retain(|call| ended.call != *call.id);
                Observation::Progress
            }
            Data::TurnStarted(started) if !started.replay => Observation::TurnStarted,
            Data::TurnEnded(ended) if !ended.replay => {
                self.calls.clear();
                Observation::TurnEnded(ended.outcome.clone())
            }
            Data::SessionStarted(started) => match &started.id {
                Some(id) => Observation::SessionId(id.to_string().trim().to_owned()),
                None => return,
            },
            Data::SessionUpdated(updated) => match &updated.id {
                Some(id) => Observation::SessionId(id.to_string().trim().to_owned()),
                None => return,
            },
            Data::Retry(_) => Observation::Retrying,
            Data::BlockDelta(_) | Data::Block(_) | Data::BlockStarted(_) => Observation::Progress,
            _ => return,
        };
        if observation != Observation::Progress || self.observations.last() != Some(&observation) {
            self.observations.push(observation);
        }
    }

    fn keep_input(&mut self, known: &ToolInput<'_>) {
        let reads = [ToolKind::Read, ToolKind::Search, ToolKind::Glob, ToolKind::List];
        if reads.contains(&known.kind)
            && let Some(call) = self.calls.iter_mut().find(|call| known.call == *call.id)
        {
            call.input = known.input.as_ref().map(|input| input.get().to_owned());
        }
    }

    fn permission_request(&self, asked: &PermissionRequested<'_>) -> PermissionRequest {
        let call = asked.call.as_ref();
        let call = self.calls.iter().find(|open| call.is_some_and(|call| *call == *open.id));
        let input = asked.input.as_ref().map(Json::get).filter(|input| *input != "{}");
        let of_call = call.and_then(|call| call.input.as_deref());
        PermissionRequest {
            id: asked.request.to_string(),
            call: calls([&asked.call, &asked.native_call]),
            tool: text(&asked.tool).unwrap_or_default(),
            kind: call.map(|call| call.kind.clone()).unwrap_or_default(),
            input: input.or(of_call).map(str::to_owned),
            description: text(&asked.description),
            folder: self.folder.clone(),
            ..PermissionRequest::default()
        }
    }
}

fn question_request(asked: &QuestionAsked<'_>) -> QuestionRequest {
    QuestionRequest {
        id: asked.request.to_string(),
        call: calls([&asked.call, &asked.native_call]),
        message: text(&asked.message),
        server: text(&asked.server),
        questions: asked.questions.iter().map(question).collect(),
        schema: asked.schema.as_ref().and_then(|schema| serde_json::from_str(schema.get()).ok()),
        secret_fields: asked.secret_fields().into_iter().map(String::from).collect(),
        url: text(&asked.url),
    }
}

fn question(asked: &event::Question<'_>) -> Question {
    let options = asked.options.iter();
    Question {
        id: asked.id.to_string(),
        header: text(&asked.header),
        text: asked.text.to_string(),
        options: options.map(|it| (it.label.to_string(), text(&it.description))).collect(),
        multiple: asked.multiple,
        free_text: asked.free_text,
        secret: asked.secret,
    }
}

/// The ids of a call.
fn calls(ids: [&Option<Text<'_>>; 2]) -> Vec<String> {
    ids.into_iter().filter_map(text).collect()
}

fn text(text: &Option<Text<'_>>) -> Option<String> {
    text.as_ref().map(ToString::to_string)
}
