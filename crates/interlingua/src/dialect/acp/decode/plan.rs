//! Plans: every update contains the complete list, and may come from a call.

use super::{AcpDecoder, is_replay, meta_of};
use crate::dialect::EventSink;
use crate::dialect::acp::wire::{Entry, NamedPlan, Update};
use crate::dialect::acp::wire_meta::Meta;
use crate::dialect::decode::Own;
use crate::event::{Event, Native, PlanItem, PlanStatus, PlanUpdated};
use crate::json::read;
use crate::json::{Json, Text};

impl AcpDecoder {
    /// Emits a plan, unless its call has already emitted it or it is not a list.
    pub(super) fn read_plan<'a>(
        &mut self,
        update: &Update<'a>,
        session: Option<&Text<'a>>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let meta = meta_of(&update.meta);
        self.enter_turn(false, is_replay(meta.as_ref()), session, sink);
        let kind = update.kind.as_ref().map_or("", Text::body);
        let name = Text::from(format!("session/update/{kind}"));
        sink.event(Event::new(Native { name, raw: own.json() }));
        let ours = meta.as_ref().and_then(|meta| meta.ours.as_ref());
        let call = ours.and_then(|ours| ours.call.as_ref());
        if call.is_some_and(|call| self.calls.has_emitted_plan(call)) {
            return;
        }
        let plan = match kind {
            "plan" => Some(PlanUpdated {
                plan: plan_id(meta.as_ref()),
                call: call.cloned(),
                items: items(update.entries.as_ref()),
            }),
            "plan_removed" => {
                Some(PlanUpdated { plan: update.plan_id.clone(), ..PlanUpdated::default() })
            }
            _ => update.plan.as_ref().and_then(named_plan),
        };
        if let Some(plan) = plan {
            sink.event(Event::new(plan));
        }
    }
}

fn plan_id<'m>(meta: Option<&Meta<'m>>) -> Option<Text<'m>> {
    let ours = meta.and_then(|meta| meta.ours.as_ref()).and_then(|ours| ours.plan.clone());
    let of_qwen = || meta.and_then(|meta| meta.plan.as_ref()).and_then(|plan| plan.id.clone());
    ours.or_else(of_qwen)
}

/// One of several plans. A file or a text is not a list of steps.
fn named_plan<'p>(plan: &'p Json<'_>) -> Option<PlanUpdated<'p>> {
    let plan = read::record_of::<NamedPlan<'_>>(plan)?;
    let listed = plan.kind.as_ref().is_none_or(|kind| *kind == "items");
    let entries = plan.entries.filter(|_| listed)?;
    Some(PlanUpdated { plan: plan.id, call: None, items: items(Some(&entries)) })
}

fn items(entries: Option<&Json<'_>>) -> Vec<PlanItem<'static>> {
    let entries = entries.and_then(read::records_of::<Entry<'_>>).unwrap_or_default();
    let own = |text: Option<Text<'_>>| text.map(Text::into_owned);
    let item = |entry: Entry<'_>| {
        let meta = entry.meta.unwrap_or_default();
        let ours = meta.ours.unwrap_or_default();
        let status = ours.status.or(entry.status);
        PlanItem {
            id: own(ours.id.or(meta.todo.and_then(|todo| todo.id))),
            text: own(entry.content).unwrap_or_default(),
            status: status.map_or(PlanStatus::Pending, |it| PlanStatus::from(&*it.to_plain())),
            active_form: own(ours.active_form),
            priority: own(entry.priority),
            ..PlanItem::default()
        }
    };
    entries.into_iter().map(item).collect()
}
