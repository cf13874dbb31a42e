//! Writes the records outside the conversation: notices, retries, compactions, limits and
//! sub-agents. It also counts the events that have no record.

use super::ClaudeEncoder;
use crate::dialect::Output;
use crate::dialect::claude::result::{retry_code, write_names};
use crate::event::{Data, Event, Retry, SubagentEnded, SubagentStarted};
use crate::json::Text;

impl ClaudeEncoder {
    /// Writes the record of an event outside the conversation.
    pub(super) fn write_notice(&mut self, event: &Event<'_>, out: &mut Output) {
        match &event.data {
            Data::Notice(notice) => {
                self.write_informational(&notice.text, notice.severity.as_str(), out);
            }
            // The errors of a turn are written with its `result`, which depends on its outcome.
            Data::Error(error) if !self.turn.open => {
                self.write_informational(&error.message, "error", out);
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
            Data::PermissionRequested(request) => {
                self.write_permission_request(request, event, out)
            }
            Data::PermissionResolved(resolved) => self.write_decision(resolved, out),
            Data::QuestionAsked(question) => self.write_question(question, event, out),
            // A question that the agent no longer asks is cancelled.
            Data::QuestionAnswered(answered) if answered.declined && event.synthetic.is_some() => {
                let mut record = out.record("control_cancel_request");
                record.text("request_id", &answered.request);
                record.end();
            }
            Data::SubagentStarted(started) => self.write_subagent_started(started, out),
            Data::SubagentEnded(ended) => self.write_subagent_ended(ended, out),
            Data::Limit(limit) => {
                let mut record = out.record("rate_limit_event");
                record.json_if("rate_limit_info", limit.details.as_ref());
                self.stamp.end(record);
            }
            Data::FilesChanged(changed) if changed.call.is_some() => self.keep_files(changed),
            Data::SessionEnded(ended) => self.count_exit_losses(ended, out),
            other => count_losses(other, out),
        }
    }

    /// Writes a message for a person.
    pub(super) fn write_informational(&mut self, text: &Text<'_>, level: &str, out: &mut Output) {
        let mut record = out.record("system");
        record.string("subtype", "informational").text("content", text).string("level", level);
        self.stamp.end(record);
    }

    /// Writes the retry of a request. Claude Code states the cause as a code; the message of
    /// another agent is added to it.
    pub(super) fn write_retry(&mut self, retry: &Retry<'_>, out: &mut Output) {
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

    fn write_subagent_started(&mut self, started: &SubagentStarted<'_>, out: &mut Output) {
        let mut record = out.record("system");
        record.string("subtype", "task_started").text_if("task_id", started.id.as_ref());
        record.text_if("tool_use_id", started.call.as_ref());
        record.text_if("description", started.description.as_ref());
        record.text_if("subagent_type", started.kind.as_ref());
        record.string("task_type", "local_agent").text_if("prompt", started.prompt.as_ref());
        self.stamp.end(record);
    }

    fn write_subagent_ended(&mut self, ended: &SubagentEnded<'_>, out: &mut Output) {
        let mut record = out.record("system");
        record.string("subtype", "task_notification").text_if("task_id", ended.id.as_ref());
        record.text_if("tool_use_id", ended.call.as_ref());
        record.text_if("status", ended.status.as_ref());
        record.text_if("summary", ended.summary.as_ref());
        self.stamp.end(record);
    }
}

/// Counts what has no record.
fn count_losses(data: &Data<'_>, out: &mut Output) {
    match data {
        Data::FilesChanged(_) => out.lost("file changes outside a tool"),
        Data::Native(native) => out.lost(&format!("records of the agent's own: {}", native.name)),
        Data::Unknown(unknown) => out.lost(&format!("unknown records: {}", unknown.name)),
        Data::Unparsed(_) => out.lost("unreadable lines"),
        Data::Log(_) => out.lost("log lines"),
        Data::Artifact(_) => out.lost("artifacts"),
        Data::QuestionAnswered(_) => out.lost("answers to questions"),
        // The other events, such as message bounds and input deltas, are in other records.
        _ => {}
    }
}
