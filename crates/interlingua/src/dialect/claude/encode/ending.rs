//! How a turn ends: that somebody stopped it, what the program says in the model's place, and the
//! `result`.

use super::{ClaudeEncoder, NOT_COUNTED_YET, Turn};
use crate::dialect::Output;
use crate::dialect::claude::partial;
use crate::dialect::claude::result::{Seen, Verdict, error_code, write_result};
use crate::event::{Data, Event, Interrupted, Reason, TurnEnded};
use crate::json::Text;

/// How every sentence begins with which Claude Code says that somebody stopped it.
const STOPPED: &str = "[Request interrupted by user";

impl ClaudeEncoder {
    pub(super) fn end_turn(&mut self, ended: &TurnEnded<'_>, event: &Event<'_>, out: &mut Output) {
        let added = event.synthetic.is_some();
        let verdict = Verdict::of(ended, added, self.turn.stopped_in_call);
        self.end_message(verdict.message_stop_reason(), verdict.is_error, out);
        if std::mem::take(&mut self.passed_message) && out.is_passing() {
            partial::stop_message(None, &mut self.stamp, out);
        }
        self.tell_interrupt(out);
        self.spent.add(ended, super::session::model(&self.facts));
        let duration_ms = ended.duration_ms.or_else(|| {
            let began = self.turn.began_ms?;
            out.now_ms().map(|now| now.saturating_sub(began).max(1))
        });
        let retries = std::mem::take(&mut self.turn.retries);
        let cause = ended.cause.as_ref();
        let untold = |error: &&Text<'_>| cause != Some(*error) && !retries.contains(error);
        let mut errors: Vec<&Text<'_>> = ended.errors.iter().filter(untold).collect();
        if verdict.subtype == "success" {
            // A `success` has no list of errors, whether it is one or not.
            errors.drain(..).for_each(|error| self.informational(error, "error", out));
        } else {
            errors.splice(..0, cause);
        }
        if let Some(failure) = verdict.failure {
            self.in_the_models_place(failure, ended, event, out);
        }
        let denials = self.denials(ended);
        let seen = Seen {
            last_text: &std::mem::take(&mut self.last_text),
            duration_ms,
            requests: std::mem::take(&mut self.messages.requests).max(1),
            denials: &denials,
            errors: &errors,
        };
        self.take_late_name();
        let mut record = out.record("result");
        write_result(&mut record, ended, &verdict, &seen, &self.spent);
        self.stamp.end(record);
        let end_added = event.synthetic.as_ref().is_some_and(Reason::is_end_of_input);
        self.turn = Turn { end_added, ..Turn::default() };
        self.models.clear();
    }

    /// What the program says where the model could not: programs that show the stream show it.
    fn in_the_models_place(
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

    /// Takes note that somebody stopped the turn. Claude Code says so after all that was said and
    /// answered before, and others as soon as they know.
    pub(super) fn interrupted(
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

    /// Says that somebody stopped the turn, unless that was said.
    pub(super) fn tell_interrupt(&mut self, out: &mut Output) {
        self.turn.went_on = false;
        if let Some(event) = self.turn.interrupted.take()
            && let Data::Interrupted(interrupted) = &event.data
        {
            self.write_interrupt(interrupted.text.as_ref(), &event, out);
        }
    }

    /// Says it in Claude's own words, which programs look for.
    fn write_interrupt(&mut self, told: Option<&Text<'_>>, event: &Event<'_>, out: &mut Output) {
        let usual = Text::plain(if self.turn.stopped_in_call {
            "[Request interrupted by user for tool use]"
        } else {
            "[Request interrupted by user]"
        });
        let text = told.filter(|told| told.body().starts_with(STOPPED)).unwrap_or(&usual);
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
