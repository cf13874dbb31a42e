//! The current plan: repeated updates are dropped, and a refused update is undone.
//!
//! Every agent has a plan of its own: a sub-agent's plan does not replace that of its parent.

use super::stream::{Emit, Stream};
use crate::event::{Data, Event, PlanUpdated, Reason, ToolStatus, own_plan};
use crate::json::Text;

/// The number of agents whose plans are remembered.
const MAX_PLANS: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Plans {
    plans: Vec<Plan>,
}

/// The plan of one agent.
#[derive(Debug)]
struct Plan {
    parent: Option<Text<'static>>,
    current: PlanUpdated<'static>,
    /// The call that wrote the current plan, and the plan that it replaced.
    replaced: Option<(Text<'static>, PlanUpdated<'static>)>,
}

/// A plan that is restored, and the agent that it belongs to.
#[derive(Debug)]
pub(super) struct RestoredPlan {
    parent: Option<Text<'static>>,
    plan: PlanUpdated<'static>,
}

impl Plans {
    pub(super) fn push(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::PlanUpdated(update) = &event.data else { return };
        let plan = self.plan_of(&event.parent);
        let repeats = update.call.is_none()
            && update.plan == plan.current.plan
            && update.items == plan.current.items;
        if repeats {
            stream.count_repeated();
            return;
        }
        let before = std::mem::replace(&mut plan.current, own_plan(update.clone()));
        plan.replaced = update.call.clone().map(|call| (call.into_owned(), before));
        stream.emit_decoded(&mut { event }, emit);
    }

    /// The plan to restore, if a call that wrote one was refused.
    pub(super) fn refused_by(&mut self, event: &Event<'_>) -> Option<RestoredPlan> {
        let Data::ToolEnded(ended) = &event.data else { return None };
        let wrote =
            |plan: &&mut Plan| plan.replaced.as_ref().is_some_and(|(call, _)| *call == ended.call);
        let plan = self.plans.iter_mut().find(wrote)?;
        let (_, before) = plan.replaced.take()?;
        let refused = matches!(ended.status, ToolStatus::Failed | ToolStatus::Denied);
        refused.then(|| RestoredPlan { parent: plan.parent.clone(), plan: before })
    }

    pub(super) fn restore(
        &mut self,
        refused: Option<RestoredPlan>,
        stream: &mut Stream,
        emit: Emit<'_>,
    ) {
        let Some(RestoredPlan { parent, mut plan }) = refused else { return };
        plan.call = None;
        self.plan_of(&parent).current = plan.clone();
        stream.emit_added(&mut Event::new(plan).within(parent), Reason::Refused, emit);
    }

    fn plan_of(&mut self, parent: &Option<Text<'_>>) -> &mut Plan {
        let at = self.plans.iter().position(|plan| plan.parent == *parent);
        let at = at.unwrap_or_else(|| {
            if self.plans.len() == MAX_PLANS {
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
