//! Updates outside the conversation: settings, the cost, notices and compactions.

use super::session::{SessionStage, settings};
use super::turns::SessionCost;
use super::{AcpDecoder, meta_of};
use crate::dialect::EventSink;
use crate::dialect::acp::wire::{Cost, Update};
use crate::dialect::decode::Own;
use crate::dialect::unknown;
use crate::event::{Compacted, Event, Native, Notice, SessionStarted, SessionUpdated, Severity};
use crate::json::Text;
use crate::json::read;

impl AcpDecoder {
    /// Reads an update outside the conversation.
    pub(super) fn read_other_update<'a>(
        &mut self,
        update: &Update<'a>,
        session: Option<Text<'a>>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let kind = update.kind.as_ref().map_or("", Text::body);
        let changes = match kind {
            "current_mode_update" => {
                SessionUpdated { permission_mode: update.mode.clone(), ..SessionUpdated::default() }
            }
            "config_option_update" => settings(update.options.as_ref()),
            "session_info_update" => {
                let meta = meta_of(&update.meta);
                if let Some(ours) = meta.as_ref().and_then(|meta| meta.ours.as_ref()) {
                    self.stage = SessionStage::Open;
                    self.session_cost = SessionCost::of_new_session();
                    self.session.started = true;
                    self.session.id = session.clone().map(Text::into_owned);
                    // An id that became known late is in the metadata; updates continue under the
                    // first one.
                    sink.event(Event::new(SessionStarted {
                        id: ours.session.clone().or(session),
                        agent: ours.agent.clone(),
                        version: ours.version.clone(),
                        model: ours.model.clone(),
                        cwd: ours.cwd.clone(),
                        permission_mode: ours.permission_mode.clone(),
                        tools: ours.tools.clone(),
                        host_fields: Vec::new(),
                    }));
                    return;
                }
                SessionUpdated::default()
            }
            "available_commands_update" => {
                if self.stage == SessionStage::StillReplaying {
                    self.stage = SessionStage::Open;
                    self.end_turn_without_response(sink);
                }
                SessionUpdated::default()
            }
            "usage_update" => {
                self.keep_cost(update);
                SessionUpdated::default()
            }
            "notice" => {
                sink.event(Event::new(notice(update)));
                return;
            }
            "compaction_update" => {
                let done = update.status.as_ref().is_some_and(|status| *status == "completed");
                if done {
                    let details = own.json();
                    sink.event(Event::new(Compacted { details, ..Compacted::default() }));
                    return;
                }
                SessionUpdated::default()
            }
            "compaction_summary_chunk" => SessionUpdated::default(),
            _ => {
                let name = Text::from(format!("session/update/{kind}"));
                sink.event(Event::new(unknown(Some(name), own)));
                return;
            }
        };
        if changes.model.is_some() || changes.permission_mode.is_some() {
            self.update_session(changes, sink);
        }
        let name = Text::from(format!("session/update/{kind}"));
        sink.event(Event::new(Native { name, raw: own.json() }));
    }

    /// Keeps the cost of the session in dollars. A cost of zero was not counted.
    fn keep_cost(&mut self, update: &Update<'_>) {
        let cost = update.cost.as_ref().and_then(read::record_of::<Cost<'_>>);
        let dollars = cost.filter(|cost| cost.currency.as_ref().is_some_and(|it| *it == "USD"));
        let amount = dollars.and_then(|cost| cost.amount);
        if let Some(usd) = amount.filter(|usd| *usd > 0.0 && usd.is_finite()) {
            self.session_cost.record(usd, self.turn);
        }
    }
}

fn notice<'a>(update: &Update<'a>) -> Notice<'a> {
    let severity = update.severity.as_ref().map_or(Severity::Info, |it| it.body().into());
    let title = update.title.clone().unwrap_or_default();
    let text = match &update.description {
        Some(description) => Text::from(format!("{title}\n{description}")),
        None => title,
    };
    Notice { severity, text }
}
