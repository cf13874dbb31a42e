//! Treats empty names and ids as absent.
//!
//! Consumers join records by names: the id of a session or of a call, the call of a sub-agent. An
//! empty one identifies nothing, and a writer that passes it on breaks the contract of its
//! protocol.

use crate::event::{Data, Event, QuestionAsked, SessionStarted, SessionUpdated};
use crate::json::Text;

/// Removes the empty names of an event.
pub(super) fn remove_empty(event: &mut Event<'_>) {
    match &mut event.data {
        Data::SessionStarted(started) => {
            let SessionStarted { id, agent, version, model, cwd, permission_mode, .. } =
                &mut **started;
            [id, agent, version, model, cwd, permission_mode].into_iter().for_each(remove_if_empty);
        }
        Data::SessionUpdated(update) => {
            let SessionUpdated { id, agent, version, model, cwd, permission_mode, .. } =
                &mut **update;
            [id, agent, version, model, cwd, permission_mode].into_iter().for_each(remove_if_empty);
        }
        Data::PermissionRequested(asked) => {
            [&mut asked.call, &mut asked.tool].into_iter().for_each(remove_if_empty);
        }
        Data::PermissionResolved(resolved) => {
            [&mut resolved.call, &mut resolved.tool].into_iter().for_each(remove_if_empty);
        }
        Data::QuestionAsked(asked) => {
            let QuestionAsked { call, message, server, url, .. } = &mut **asked;
            [call, message, server, url].into_iter().for_each(remove_if_empty);
        }
        Data::QuestionAnswered(answered) => remove_if_empty(&mut answered.call),
        Data::FilesChanged(files) => remove_if_empty(&mut files.call),
        Data::PlanUpdated(plan) => {
            [&mut plan.plan, &mut plan.call].into_iter().for_each(remove_if_empty)
        }
        Data::SubagentStarted(started) => {
            [&mut started.id, &mut started.call].into_iter().for_each(remove_if_empty);
        }
        Data::SubagentEnded(ended) => {
            [&mut ended.id, &mut ended.call].into_iter().for_each(remove_if_empty);
        }
        _ => {}
    }
}

/// Removes a name if it is empty.
#[inline]
pub(super) fn remove_if_empty(name: &mut Option<Text<'_>>) {
    if name.as_ref().is_some_and(Text::is_empty) {
        *name = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::PermissionRequested;

    #[test]
    fn an_empty_name_is_absent() {
        let (id, model) = (Some(Text::plain("")), Some(Text::plain("m")));
        let mut event = Event::new(SessionStarted { id, model, ..SessionStarted::default() });
        remove_empty(&mut event);
        let model = Some(Text::plain("m"));
        assert_eq!(event, Event::new(SessionStarted { model, ..SessionStarted::default() }));
        let call = Some(Text::plain(""));
        let mut event = Event::new(PermissionRequested { call, ..PermissionRequested::default() });
        remove_empty(&mut event);
        assert_eq!(event, Event::new(PermissionRequested::default()));
    }
}
