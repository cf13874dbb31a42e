//! Writes what stands beside the conversation: notices, permissions, sub-agents; and counts what has
//! no record at all.

use super::encode::ClaudeEncoder;
use crate::dialect::Output;
use crate::event::{
    Data, Decision, PermissionRequested, PermissionResolved, SubagentEnded, SubagentStarted,
};
use crate::json::Text;

impl ClaudeEncoder {
    /// What has a record of its own beside the conversation, and what has none.
    pub(super) fn aside(&mut self, data: &Data<'_>, out: &mut Output) {
        match data {
            Data::Notice(notice) => {
                let mut record = out.record("system");
                record.string("subtype", "informational").text("content", &notice.text);
                record.string("level", notice.severity.as_str());
                self.stamp.end(record);
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
            Data::PermissionRequested(request) => permission_requested(request, out),
            Data::PermissionResolved(resolved) => self.permission_resolved(resolved, out),
            Data::QuestionAsked(question) => permission_requested(
                &PermissionRequested {
                    request: question.request.borrowed(),
                    call: question.call.clone(),
                    tool: Some(Text::plain("AskUserQuestion")),
                    input: question.questions.clone(),
                    ..PermissionRequested::default()
                },
                out,
            ),
            Data::SubagentStarted(started) => self.subagent_started(started, out),
            Data::SubagentEnded(ended) => self.subagent_ended(ended, out),
            Data::Limit(limit) => {
                let mut record = out.record("rate_limit_event");
                record.json_if("rate_limit_info", limit.details.as_ref());
                self.stamp.end(record);
            }
            Data::FilesChanged(changed) if changed.call.is_none() => out.lost("file changes"),
            Data::Native(native) => out.lost(&format!("records of its own: {}", native.name)),
            Data::Unknown(unknown) => out.lost(&format!("unknown records: {}", unknown.name)),
            Data::Unparsed(_) => out.lost("unreadable lines"),
            Data::Log(_) => out.lost("lines between the records"),
            Data::Artifact(_) => out.lost("artifacts"),
            Data::QuestionAnswered(_) => out.lost("answers to questions"),
            // Errors are told by the result; message bounds and pieces of input by the records.
            _ => {}
        }
    }

    fn permission_resolved(&mut self, resolved: &PermissionResolved<'_>, out: &mut Output) {
        match (&resolved.decision, &resolved.request) {
            (Decision::Denied, _) => {
                let mut record = out.record("system");
                record.string("subtype", "permission_denied");
                record.text_if("tool_name", resolved.tool.as_ref());
                record.text_if("tool_use_id", resolved.call.as_ref());
                record.text_if("message", resolved.reason.as_ref());
                self.stamp.end(record);
            }
            (Decision::Withdrawn, Some(request)) => {
                let mut record = out.record("control_cancel_request");
                record.text("request_id", request);
                record.end();
            }
            _ => out.lost("permissions that were given"),
        }
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

fn permission_requested(request: &PermissionRequested<'_>, out: &mut Output) {
    let mut record = out.record("control_request");
    record.text("request_id", &request.request);
    record.object("request", |fields| {
        fields.raw("subtype", "\"can_use_tool\"");
        fields.text_if("tool_name", request.tool.as_ref());
        fields.json_if("input", request.input.as_ref());
        fields.text_if("description", request.description.as_ref());
        fields.json_if("permission_suggestions", request.options.as_ref());
        fields.text_if("tool_use_id", request.call.as_ref());
    });
    record.end();
}
