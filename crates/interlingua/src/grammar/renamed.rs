//! Calls that are emitted under another id than the agent's own.
//!
//! Native ids are unique within an epoch at best: agents count from zero in every process, and some
//! providers in every answer. Consumers join records by the id of a call, so every call of a
//! session needs a unique one, and every event about the call has to carry it.

use std::collections::HashMap;

use super::calls::key;
use crate::event::{Data, Event};
use crate::json::Text;

/// The emitted ids of this epoch's renamed calls, by the fingerprint of the native id.
#[derive(Debug, Default)]
pub(super) struct Renamed {
    emitted_as: HashMap<u64, String>,
}

impl Renamed {
    /// The id under which the newest call of a native id is emitted.
    pub(super) fn emitted_as<'a>(&'a self, native: &'a Text<'_>) -> Text<'a> {
        if self.emitted_as.is_empty() {
            return native.borrowed();
        }
        self.emitted_as.get(&key(native)).map_or_else(|| native.borrowed(), |id| Text::plain(id))
    }

    /// Emits the call with this native id under another id from now on.
    pub(super) fn insert(&mut self, native: &Text<'_>, id: String) {
        self.emitted_as.insert(key(native), id);
    }

    /// Clears all renames, because a new epoch begins.
    pub(super) fn clear(&mut self) {
        self.emitted_as.clear();
    }

    /// Replaces the native ids in an event with the emitted ones.
    #[inline]
    pub(super) fn rename(&self, event: &mut Event<'_>) {
        if !self.emitted_as.is_empty() {
            self.rename_all(event);
        }
    }

    fn rename_all(&self, event: &mut Event<'_>) {
        let rename = |call: &mut Text<'_>| {
            if let Some(id) = self.emitted_as.get(&key(call)) {
                *call = Text::from(id.clone());
            }
        };
        let mut native = None;
        let mut rename_keeping = |call: &mut Text<'_>| {
            if let Some(id) = self.emitted_as.get(&key(call)) {
                let given = std::mem::replace(call, Text::from(id.clone()));
                native = Some(given.into_owned());
            }
        };
        event.parent.iter_mut().for_each(rename);
        match &mut event.data {
            Data::ToolStarted(started) => {
                rename_keeping(&mut started.call);
                started.native_call = native.or(started.native_call.take());
            }
            Data::PermissionRequested(asked) => {
                asked.call.iter_mut().for_each(rename_keeping);
                asked.native_call = native.or(asked.native_call.take());
            }
            Data::QuestionAsked(asked) => {
                asked.call.iter_mut().for_each(rename_keeping);
                asked.native_call = native.or(asked.native_call.take());
            }
            Data::ToolInputDelta(delta) => rename(&mut delta.call),
            Data::ToolInput(input) => rename(&mut input.call),
            Data::ToolProgress(progress) => rename(&mut progress.call),
            Data::ToolEnded(ended) => rename(&mut ended.call),
            Data::PermissionResolved(resolved) => resolved.call.iter_mut().for_each(rename),
            Data::QuestionAnswered(answered) => answered.call.iter_mut().for_each(rename),
            Data::FilesChanged(files) => files.call.iter_mut().for_each(rename),
            Data::PlanUpdated(plan) => plan.call.iter_mut().for_each(rename),
            Data::SubagentStarted(started) => started.call.iter_mut().for_each(rename),
            Data::SubagentEnded(ended) => ended.call.iter_mut().for_each(rename),
            _ => {}
        }
    }
}
