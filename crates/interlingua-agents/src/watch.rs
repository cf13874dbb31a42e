//! What a run has to know of what the agent says: it looks at the entries on their way to the writer.

use interlingua::event::{Data, Event, Outcome, PermissionRequested, ToolKind};
use interlingua::json::{Json, Text};

use crate::permission::Wish;

/// Something that a run has to act on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Note {
    /// The agent asks whether it may.
    Asks(Wish),
    /// The question was taken back, or somebody else answered it.
    Settled(String),
    /// A turn of the present ended so.
    TurnEnded(Outcome),
    /// The turn began.
    TurnStarted,
    /// A request to the model failed, and is made again.
    Retries,
    /// The model said or did something.
    Works,
}

/// What was seen of the entries so far.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    notes: Vec<Note>,
    /// The tools of the calls that are open.
    calls: Vec<(String, ToolKind)>,
}

impl Watch {
    /// What happened since this was asked last.
    pub(crate) fn notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Whether a tool is running, which may be silent as long as it likes.
    pub(crate) fn tool_runs(&self) -> bool {
        !self.calls.is_empty()
    }

    pub(crate) fn look(&mut self, event: &Event<'_>) {
        match &event.data {
            Data::PermissionRequested(asked) => {
                let note = Note::Asks(self.wish(asked));
                self.notes.push(note);
            }
            Data::PermissionResolved(resolved) => {
                self.notes
                    .extend(resolved.request.as_ref().map(|id| Note::Settled(id.to_string())));
            }
            Data::ToolStarted(started) => {
                self.calls.push((started.call.to_string(), started.kind.clone()));
                self.notes.push(Note::Works);
            }
            Data::ToolEnded(ended) => {
                self.calls.retain(|(call, _)| ended.call != **call);
                self.notes.push(Note::Works);
            }
            Data::TurnStarted(started) if !started.replay => self.notes.push(Note::TurnStarted),
            Data::TurnEnded(ended) if !ended.replay => {
                self.calls.clear();
                self.notes.push(Note::TurnEnded(ended.outcome.clone()));
            }
            Data::Retry(_) => self.notes.push(Note::Retries),
            Data::BlockDelta(_) | Data::Block(_) | Data::BlockStarted(_)
                if self.notes.last() != Some(&Note::Works) =>
            {
                self.notes.push(Note::Works);
            }
            _ => {}
        }
    }

    fn wish(&self, asked: &PermissionRequested<'_>) -> Wish {
        let call = asked.call.as_ref().map(ToString::to_string).unwrap_or_default();
        let kind = self.calls.iter().find(|(open, _)| *open == call).map(|(_, kind)| kind.clone());
        let text = |text: &Option<Text<'_>>| text.as_ref().map(ToString::to_string);
        Wish {
            request: asked.request.to_string(),
            tool: text(&asked.tool).unwrap_or_default(),
            kind: kind.unwrap_or_default(),
            input: asked.input.as_ref().map(|input: &Json<'_>| input.get().to_owned()),
            description: text(&asked.description),
        }
    }
}
