//! Ids that an agent gives to more than one call.
//!
//! Some providers number the calls of each answer from the start, and agents pass that on. Whoever
//! reads our output puts records together by the id, so that a second call needs an id of its own, and
//! all that speaks of it has to be told under that.

use std::collections::HashMap;

use super::calls::key;
use crate::event::{Data, Event};
use crate::json::Text;

/// The ids that were given again, each by its fingerprint, and what the newest call is told as.
#[derive(Debug, Default)]
pub(super) struct Reused {
    told_as: HashMap<u64, String>,
}

impl Reused {
    /// What the newest call of some id is told as.
    pub(super) fn told_as<'a>(&'a self, call: &'a Text<'_>) -> Text<'a> {
        if self.told_as.is_empty() {
            return call.borrowed();
        }
        self.told_as.get(&key(call)).map_or_else(|| call.borrowed(), |id| Text::plain(id))
    }

    /// From now on the id is that of another call.
    pub(super) fn tell_as(&mut self, call: &Text<'_>, id: String) {
        self.told_as.insert(key(call), id);
    }

    /// Puts the ids that calls are told as in place of those that the agent gave them.
    #[inline]
    pub(super) fn rename(&self, event: &mut Event<'_>) {
        if !self.told_as.is_empty() {
            self.rename_all(event);
        }
    }

    fn rename_all(&self, event: &mut Event<'_>) {
        let name = |call: &mut Text<'_>| {
            if let Some(id) = self.told_as.get(&key(call)) {
                *call = Text::from(id.clone());
            }
        };
        event.parent.iter_mut().for_each(name);
        match &mut event.data {
            Data::ToolStarted(started) => name(&mut started.call),
            Data::ToolInputDelta(delta) => name(&mut delta.call),
            Data::ToolInput(input) => name(&mut input.call),
            Data::ToolProgress(progress) => name(&mut progress.call),
            Data::ToolEnded(ended) => name(&mut ended.call),
            Data::PermissionRequested(asked) => asked.call.iter_mut().for_each(name),
            Data::PermissionResolved(resolved) => resolved.call.iter_mut().for_each(name),
            Data::QuestionAsked(asked) => asked.call.iter_mut().for_each(name),
            Data::FilesChanged(files) => files.call.iter_mut().for_each(name),
            Data::PlanUpdated(plan) => plan.call.iter_mut().for_each(name),
            Data::SubagentStarted(started) => started.call.iter_mut().for_each(name),
            Data::SubagentEnded(ended) => ended.call.iter_mut().for_each(name),
            _ => {}
        }
    }
}
