//! Observes the entries on their way to the writer, for the events that a run has to act on.

use std::path::PathBuf;

use interlingua::event::{Data, Event, Outcome, PermissionRequested, ToolKind};
use interlingua::json::{Json, Text};

use crate::permission::PermissionRequest;

/// An event that a run has to act on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Observation {
    /// The agent requests a permission.
    PermissionRequested(PermissionRequest),
    /// The request was withdrawn, or answered by someone else.
    PermissionResolved(String),
    /// A live (non-replayed) turn ended with this outcome.
    TurnEnded(Outcome),
    /// A live turn started.
    TurnStarted,
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
    /// The open calls, with the kinds of their tools.
    calls: Vec<(String, ToolKind)>,
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

    pub(crate) fn observe(&mut self, event: &Event<'_>) {
        match &event.data {
            Data::PermissionRequested(asked) => {
                let observation = Observation::PermissionRequested(self.permission_request(asked));
                self.observations.push(observation);
            }
            Data::PermissionResolved(resolved) => {
                self.observations.extend(
                    resolved
                        .request
                        .as_ref()
                        .map(|id| Observation::PermissionResolved(id.to_string())),
                );
            }
            Data::ToolStarted(started) => {
                self.calls.push((started.call.to_string(), started.kind.clone()));
                self.observations.push(Observation::Progress);
            }
            Data::ToolEnded(ended) => {
                self.calls.retain(|(call, _)| ended.call != **call);
                self.observations.push(Observation::Progress);
            }
            Data::TurnStarted(started) if !started.replay => {
                self.observations.push(Observation::TurnStarted)
            }
            Data::TurnEnded(ended) if !ended.replay => {
                self.calls.clear();
                self.observations.push(Observation::TurnEnded(ended.outcome.clone()));
            }
            Data::Retry(_) => self.observations.push(Observation::Retrying),
            Data::BlockDelta(_) | Data::Block(_) | Data::BlockStarted(_)
                if self.observations.last() != Some(&Observation::Progress) =>
            {
                self.observations.push(Observation::Progress);
            }
            _ => {}
        }
    }

    fn permission_request(&self, asked: &PermissionRequested<'_>) -> PermissionRequest {
        let call = asked.call.as_ref().map(ToString::to_string).unwrap_or_default();
        let kind = self.calls.iter().find(|(open, _)| *open == call).map(|(_, kind)| kind.clone());
        let text = |text: &Option<Text<'_>>| text.as_ref().map(ToString::to_string);
        PermissionRequest {
            id: asked.request.to_string(),
            tool: text(&asked.tool).unwrap_or_default(),
            kind: kind.unwrap_or_default(),
            input: asked.input.as_ref().map(|input: &Json<'_>| input.get().to_owned()),
            description: text(&asked.description),
            folder: self.folder.clone(),
        }
    }
}
