//! A name that says nothing is no name: it is absent.
//!
//! Names are what records are put together by: the id of a session or of a call, the call of a
//! sub-agent. An empty one names nothing, and writers that pass it on break the contract of their
//! protocol.

use crate::event::{Data, Event, SessionStarted, SessionUpdated};
use crate::json::Text;

/// Takes the names out of an event that say nothing.
pub(super) fn settle(event: &mut Event<'_>) {
    match &mut event.data {
        Data::SessionStarted(started) => {
            let SessionStarted { id, agent, version, model, cwd, permission_mode, .. } =
                &mut **started;
            [id, agent, version, model, cwd, permission_mode].into_iter().for_each(or_absent);
        }
        Data::SessionUpdated(update) => {
            let SessionUpdated { id, agent, version, model, cwd, permission_mode, .. } =
                &mut **update;
            [id, agent, version, model, cwd, permission_mode].into_iter().for_each(or_absent);
        }
        Data::PermissionRequested(asked) => {
            [&mut asked.call, &mut asked.tool].into_iter().for_each(or_absent);
        }
        Data::PermissionResolved(resolved) => {
            [&mut resolved.call, &mut resolved.tool].into_iter().for_each(or_absent);
        }
        Data::QuestionAsked(asked) => or_absent(&mut asked.call),
        Data::FilesChanged(files) => or_absent(&mut files.call),
        Data::PlanUpdated(plan) => [&mut plan.plan, &mut plan.call].into_iter().for_each(or_absent),
        Data::SubagentStarted(started) => {
            [&mut started.id, &mut started.call].into_iter().for_each(or_absent);
        }
        Data::SubagentEnded(ended) => {
            [&mut ended.id, &mut ended.call].into_iter().for_each(or_absent);
        }
        _ => {}
    }
}

/// A name, if it says something.
#[inline]
pub(super) fn or_absent(name: &mut Option<Text<'_>>) {
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
        settle(&mut event);
        let model = Some(Text::plain("m"));
        assert_eq!(event, Event::new(SessionStarted { model, ..SessionStarted::default() }));
        let call = Some(Text::plain(""));
        let mut event = Event::new(PermissionRequested { call, ..PermissionRequested::default() });
        settle(&mut event);
        assert_eq!(event, Event::new(PermissionRequested::default()));
    }
}
