//! The plan that stands: no update says it again, and a refused one is put back.
//!
//! Every agent has its own: the plan of a sub-agent does not replace that of the one that started it.

use super::stream::{Emit, Stream};
use crate::event::{Data, Event, PlanUpdated, Reason, ToolStatus, own_plan};
use crate::json::Text;

/// How many agents' plans are remembered.
const REMEMBERED: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Plans {
    plans: Vec<Plan>,
}

/// The plan of one agent.
#[derive(Debug)]
struct Plan {
    parent: Option<Text<'static>>,
    current: PlanUpdated<'static>,
    /// The call that wrote the current plan, and the plan that stood before it.
    replaced: Option<(Text<'static>, PlanUpdated<'static>)>,
}

/// A plan that stands again, and whose it is.
#[derive(Debug)]
pub(super) struct PutBack {
    parent: Option<Text<'static>>,
    plan: PlanUpdated<'static>,
}

impl Plans {
    pub(super) fn push(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::PlanUpdated(update) = &event.data else { return };
        let plan = self.of(&event.parent);
        let repeats = update.call.is_none()
            && update.plan == plan.current.plan
            && update.items == plan.current.items;
        if repeats {
            stream.repeated();
            return;
        }
        let before = std::mem::replace(&mut plan.current, own_plan(update.clone()));
        plan.replaced = update.call.clone().map(|call| (call.into_owned(), before));
        stream.said(&mut { event }, emit);
    }

    /// The plan to put back, if a call that wrote one was refused.
    pub(super) fn refused_by(&mut self, event: &Event<'_>) -> Option<PutBack> {
        let Data::ToolEnded(ended) = &event.data else { return None };
        let wrote =
            |plan: &&mut Plan| plan.replaced.as_ref().is_some_and(|(call, _)| *call == ended.call);
        let plan = self.plans.iter_mut().find(wrote)?;
        let (_, before) = plan.replaced.take()?;
        let refused = matches!(ended.status, ToolStatus::Failed | ToolStatus::Denied);
        refused.then(|| PutBack { parent: plan.parent.clone(), plan: before })
    }

    pub(super) fn put_back(
        &mut self,
        refused: Option<PutBack>,
        stream: &mut Stream,
        emit: Emit<'_>,
    ) {
        let Some(PutBack { parent, mut plan }) = refused else { return };
        plan.call = None;
        self.of(&parent).current = plan.clone();
        stream.added(&mut Event::new(plan).within(parent), Reason::Refused, emit);
    }

    fn of(&mut self, parent: &Option<Text<'_>>) -> &mut Plan {
        let at = self.plans.iter().position(|plan| plan.parent == *parent);
        let at = at.unwrap_or_else(|| {
            if self.plans.len() == REMEMBERED {
                self.plans.remove(1);
            }
            let parent = parent.clone().map(Text::into_owned);
            self.plans.push(Plan { parent, current: PlanUpdated::default(), replaced: None });
            self.plans.len() - 1
        });
        // The index was just found or made.
        #[allow(clippy::indexing_slicing)]
        &mut self.plans[at]
    }
}
