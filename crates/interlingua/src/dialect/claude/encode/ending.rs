//! Writes the end of a turn: the interrupt, the message about a failed request, and the `result`.

use super::{ClaudeEncoder, NOT_COUNTED_YET, Turn};
use crate::dialect::Output;
use crate::dialect::claude::partial;
use crate::dialect::claude::result::{Observed, Verdict, error_code, write_result};
use crate::event::{Data, Event, Interrupted, Reason, TurnEnded};
use crate::json::Text;

/// The prefix of every text with which Claude Code reports an interrupt.
const INTERRUPTED: &str = "[Request interrupted by user";

impl ClaudeEncoder {
    pub(super) fn end_turn(&mut self, ended: &TurnEnded<'_>, event: &Event<'_>, out: &mut Output) {
        let added = event.synthetic.is_some();
        let verdict = Verdict::of(ended, added, self.turn.stopped_in_call);
        self.end_message(verdict.message_stop_reason(), verdict.is_error, out);
        if std::mem::take(&mut self.message_open) && out.is_passing() {
            partial::write_message_stop(None, &mut self.stamp, out);
        }
        self.write_pending_interrupt(out);
        self.totals.add(ended, super::session::model(&self.facts));
        let duration_ms = ended.duration_ms.or_else(|| {
            let began = self.turn.began_ms?;
            out.now_ms().map(|now| now.saturating_sub(began).max(1))
        });
        let retries = std::mem::take(&mut self.turn.retries);
        let cause = ended.cause.as_ref();
        let is_new = |error: &&Text<'_>| cause != Some(*error) && !retries.contains(error);
        let mut errors: Vec<&Text<'_>> = ended.errors.iter().filter(is_new).collect();
        if verdict.subtype == "success" {
            // A `success` has no list of errors, even if its `is_error` is set.
            errors.drain(..).for_each(|error| self.write_informational(error, "error", out));
        } else {
            errors.splice(..0, cause);
        }
        if let Some(failure) = verdict.failure {
            self.write_failure(failure, ended, event, out);
        }
        let denials = self.denials_of(ended);
        let observed = Observed {
            last_text: &std::mem::take(&mut self.last_text),
            duration_ms,
            requests: std::mem::take(&mut self.messages.requests).max(1),
            denials: &denials,
            errors: &errors,
        };
        self.adopt_late_session_id();
        let mut record = out.record("result");
        write_result(&mut record, ended, &verdict, &observed, &self.totals);
        self.stamp.end(record);
        let end_added = event.synthetic.as_ref().is_some_and(Reason::is_end_of_input);
        self.turn = Turn { end_added, ..Turn::default() };
        self.models.clear();
    }

    /// Writes the failure as a message in place of the model's, which consumers display.
    fn write_failure(
        &mut self,
        failure: &Text<'_>,
        ended: &TurnEnded<'_>,
        event: &Event<'_>,
        out: &mut Output,
    ) {
        let mut record = out.record("assistant");
        record.object("message", |fields| {
            self.stamp.identity.uuid().write(fields.name("id"));
            fields.fixed(r#""type":"message","role":"assistant","model":"<synthetic>""#);
            fields.objects("content", [failure], |block, failure| {
                block.raw("type", "\"text\"").text("text", failure);
            });
            fields.fixed(r#""stop_reason":"stop_sequence","stop_sequence":"""#);
            fields.raw("usage", NOT_COUNTED_YET);
        });
        record.string("error", error_code(ended.class.as_ref())).flag("is_api_error_message", true);
        record.number_if("api_error_status", ended.http_status);
        self.stamp.end_within(record, event);
    }

    /// Holds an interrupt back until the open calls are answered, as Claude Code does. Other agents
    /// report it at once.
    pub(super) fn hold_interrupt(
        &mut self,
        interrupted: &Interrupted<'_>,
        event: &Event<'_>,
        out: &mut Output,
    ) {
        if out.is_passing() || event.parent.is_some() {
            self.write_interrupt(interrupted.text.as_ref(), event, out);
        } else {
            self.turn.interrupted = Some(event.clone().into_owned());
        }
    }

    /// Writes the interrupt that is held back, if there is one.
    pub(super) fn write_pending_interrupt(&mut self, out: &mut Output) {
        self.turn.continued = false;
        if let Some(event) = self.turn.interrupted.take()
            && let Data::Interrupted(interrupted) = &event.data
        {
            self.write_interrupt(interrupted.text.as_ref(), &event, out);
        }
    }

    /// Writes an interrupt with Claude's own text, which consumers search for.
    fn write_interrupt(&mut self, text: Option<&Text<'_>>, event: &Event<'_>, out: &mut Output) {
        let usual = Text::plain(if self.turn.stopped_in_call {
            "[Request interrupted by user for tool use]"
        } else {
            "[Request interrupted by user]"
        });
        let text = text.filter(|text| text.body().starts_with(INTERRUPTED)).unwrap_or(&usual);
        let mut record = out.record("user");
        record.object("message", |fields| {
            fields.raw("role", "\"user\"");
            fields.objects("content", [text], |block, text| {
                block.raw("type", "\"text\"").text("text", text);
            });
        });
        self.stamp.end_within(record, event);
    }
}
