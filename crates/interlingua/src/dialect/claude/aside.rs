//! Writes what stands beside the conversation: notices, retries, sub-agents; and counts what has no
//! record at all.

use super::encode::ClaudeEncoder;
use super::result::{retry_code, write_names};
use crate::dialect::Output;
use crate::event::{Data, Event, Retry, SubagentEnded, SubagentStarted};
use crate::json::Text;

impl ClaudeEncoder {
    /// What has a record of its own beside the conversation, and what has none.
    pub(super) fn aside(&mut self, event: &Event<'_>, out: &mut Output) {
        match &event.data {
            Data::Notice(notice) => {
                self.informational(&notice.text, notice.severity.as_str(), out);
            }
            // The end of a turn tells its errors: only then it is known what they came to.
            Data::Error(error) if !self.turn.open => {
                self.informational(&error.message, "error", out);
            }
            Data::Compacted(compacted) => {
                let mut record = out.record("system");
                record.string("subtype", "compact_boundary");
                match &compacted.details {
                    Some(details) => record.json("compact_metadata", details),
                    None => record.object("compact_metadata", |fields| {
                        fields.text_if("trigger", compacted.trigger.as_ref());
                        fields.number_if("pre_tokens", compacted.tokens_before);
                        fields.number_if("post_tokens", compacted.tokens_after);
                    }),
                };
                self.stamp.end(record);
            }
            Data::PermissionRequested(request) => self.permission_requested(request, event, out),
            Data::PermissionResolved(resolved) => self.permission_resolved(resolved, out),
            Data::QuestionAsked(question) => self.question_asked(question, event, out),
            Data::SubagentStarted(started) => self.subagent_started(started, out),
            Data::SubagentEnded(ended) => self.subagent_ended(ended, out),
            Data::Limit(limit) => {
                let mut record = out.record("rate_limit_event");
                record.json_if("rate_limit_info", limit.details.as_ref());
                self.stamp.end(record);
            }
            Data::FilesChanged(changed) if changed.call.is_none() => out.lost("file changes"),
            Data::FilesChanged(changed) => self.changed(changed),
            Data::SessionEnded(ended) => self.session_ended(ended, out),
            Data::Native(native) => out.lost(&format!("records of its own: {}", native.name)),
            Data::Unknown(unknown) => out.lost(&format!("unknown records: {}", unknown.name)),
            Data::Unparsed(_) => out.lost("unreadable lines"),
            Data::Log(_) => out.lost("lines between the records"),
            Data::Artifact(_) => out.lost("artifacts"),
            Data::QuestionAnswered(_) => out.lost("answers to questions"),
            // Message bounds and pieces of input are told by the records.
            _ => {}
        }
    }

    /// A line for a person to read.
    pub(super) fn informational(&mut self, text: &Text<'_>, level: &str, out: &mut Output) {
        let mut record = out.record("system");
        record.string("subtype", "informational").text("content", text).string("level", level);
        self.stamp.end(record);
    }

    /// That a request is tried again. Claude Code says why with a code, so what another agent says in
    /// words stands beside it.
    pub(super) fn retry(&mut self, retry: &Retry<'_>, out: &mut Output) {
        let mut record = out.record("system");
        record.string("subtype", "api_retry");
        record.number("attempt", retry.attempt.unwrap_or(0));
        record.number("max_retries", retry.of.unwrap_or(0));
        record.number("retry_delay_ms", retry.delay_ms.unwrap_or(0));
        match retry.http_status {
            Some(status) => record.number("error_status", status),
            None => record.raw("error_status", "null"),
        };
        record.string("error", retry_code(&retry.class));
        record.text_if("message", retry.message.as_ref());
        write_names(
            &mut record,
            "unknown_fields",
            &[
                ("attempt", retry.attempt.is_none()),
                ("max_retries", retry.of.is_none()),
                ("retry_delay_ms", retry.delay_ms.is_none()),
            ],
        );
        self.stamp.end(record);
        self.turn.retries.extend(retry.message.clone().map(Text::into_owned));
    }

    fn subagent_started(&mut self, started: &SubagentStarted<'_>, out: &mut Output) {
        let mut record = out.record("system");
        record.string("subtype", "task_started").text_if("task_id", started.id.as_ref());
        record.text_if("tool_use_id", started.call.as_ref());
        record.text_if("description", started.description.as_ref());
        record.text_if("subagent_type", started.kind.as_ref());
        record.string("task_type", "local_agent").text_if("prompt", started.prompt.as_ref());
        self.stamp.end(record);
    }

    fn subagent_ended(&mut self, ended: &SubagentEnded<'_>, out: &mut Output) {
        let mut record = out.record("system");
        record.string("subtype", "task_notification").text_if("task_id", ended.id.as_ref());
        record.text_if("tool_use_id", ended.call.as_ref());
        record.text_if("status", ended.status.as_ref());
        record.text_if("summary", ended.summary.as_ref());
        self.stamp.end(record);
    }
}
