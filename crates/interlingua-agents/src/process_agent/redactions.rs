//! Which keys a session redacts, and how it reports that it did.

use interlingua::event::{Data, Event};
use interlingua::json::Text;

use super::{Live, now_ms};
use crate::process::Command;

impl Live {
    /// Adds the keys that a process of the agent has.
    pub(super) fn add_keys(&mut self, command: &Command) {
        let had_keys = self.redactor.has_keys();
        self.redactor.add_keys(|name| command.variable(name));
        if command.terminal.is_some() && self.redactor.has_keys() && !had_keys {
            self.warn("keys are not redacted in what is read from a screen");
        }
    }

    /// Reports what was redacted since the last report.
    pub(super) fn report_redactions(&mut self) {
        for redacted in self.redactor.take_unreported() {
            self.warn(&redacted.to_string());
        }
    }

    /// Redacts the warning of a driver, which may quote what the agent printed. Other events that a
    /// driver emits are made of bytes that were redacted before, or read from a screen.
    pub(super) fn redact_notice(&mut self, mut event: Event<'static>) -> Event<'static> {
        if let Data::Notice(notice) = &mut event.data {
            let redacted = self.redactor.redact_text(&notice.text.to_plain()).into_owned();
            notice.text = Text::from(redacted);
        }
        event
    }

    /// Reads the end of the output that might have been the beginning of a key, but was not.
    pub(super) async fn read_held_back(&mut self) {
        let Self { epoch: Some(epoch), redactor, record, reader, outlets, .. } = self else {
            return;
        };
        let rest = redactor.redact_end(std::mem::take(&mut epoch.held_back));
        if rest.is_empty() {
            return;
        }
        let mut steps = Vec::new();
        record.iter_mut().for_each(|record| record.printed(&rest));
        if epoch.driver.holds_back() {
            epoch.driver.output(&rest, &mut steps);
        } else {
            let Ok(_) = reader.push(&rest, Some(now_ms()), outlets);
        }
        self.outlets.pass_on(self.record.as_mut(), &mut self.outbox);
        self.execute(steps);
        self.handle_observations().await;
    }
}
