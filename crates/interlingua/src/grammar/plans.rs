//! The plan that stands: no update says it again, and a refused one is put back.

use super::{Emit, Stream};
use crate::event::{Data, Event, PlanUpdated, Reason, ToolStatus, own_plan};
use crate::json::Text;

#[derive(Debug, Default)]
pub(super) struct Plans {
    current: PlanUpdated<'static>,
    /// The call that wrote the current plan, and the plan that stood before it.
    replaced: Option<(Text<'static>, PlanUpdated<'static>)>,
}

impl Plans {
    pub(super) fn push(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::PlanUpdated(update) = &event.data else { return };
        let repeats = update.call.is_none()
            && update.plan == self.current.plan
            && update.items == self.current.items;
        if repeats {
            return;
        }
        let before = std::mem::replace(&mut self.current, own_plan(update.clone()));
        self.replaced = update.call.clone().map(|call| (call.into_owned(), before));
        stream.said(&mut { event }, emit);
    }

    /// The plan to put back, if a call that wrote one was refused.
    pub(super) fn refused_by(&mut self, event: &Event<'_>) -> Option<PlanUpdated<'static>> {
        let Data::ToolEnded(ended) = &event.data else { return None };
        let (call, _) = self.replaced.as_ref()?;
        if *call != ended.call {
            return None;
        }
        let (_, before) = self.replaced.take()?;
        matches!(ended.status, ToolStatus::Failed | ToolStatus::Denied).then_some(before)
    }

    pub(super) fn put_back(
        &mut self,
        refused: Option<PlanUpdated<'static>>,
        stream: &mut Stream,
        emit: Emit<'_>,
    ) {
        let Some(mut before) = refused else { return };
        before.call = None;
        self.current = before.clone();
        stream.added(&mut Event::new(before), Reason::Refused, emit);
    }
}
