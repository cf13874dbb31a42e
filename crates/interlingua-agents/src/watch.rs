//! Observes the entries on their way to the consumer, for the events that a session has to act on.

use std::path::PathBuf;

use interlingua::EntryRef;
use interlingua::dialect::Dialect;
use interlingua::event::{
    self, Data, Executor, Outcome, PermissionRequested, QuestionAsked, ToolKind,
};
use interlingua::json::{Json, Text};

use crate::permission::PermissionRequest;
use crate::session::{Question, QuestionRequest, Wanted};

/// An event that a session has to act on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Observation {
    /// The agent requests a permission, or asks a question, with the sequence number of the entry.
    Wanted(Box<Wanted>, u64),
    /// The request was withdrawn, or answered, or the call of the client has ended.
    Resolved(String),
    /// A live (non-replayed) turn ended with this outcome.
    TurnEnded(Outcome),
    /// A live turn started.
    TurnStarted,
    /// The agent reported its own id for the session.
    SessionId(String),
    /// A request to the model failed, and is retried.
    Retrying,
    /// The model made progress: it emitted text, or a tool call.
    Progress,
}

/// The state that is derived from the entries so far.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The folder in which the agent works.
    folder: PathBuf,
    /// The dialect of the agent, whose names of tools tell their kinds.
    dialect: &'static Dialect,
    observations: Vec<Observation>,
    calls: Vec<OpenCall>,
    /// The sequence number of the last entry.
    last: u64,
}

/// A call that has not ended.
#[derive(Debug)]
struct OpenCall {
    id: String,
    kind: ToolKind,
    /// The client runs it.
    is_client: bool,
    /// Its input was reported.
    has_input: bool,
    /// The input of a call that reads: OpenCode's requests to read a file do not name it.
    input: Option<String>,
}

impl OpenCall {
    fn learn(&mut self, input: &Json<'_>) {
        self.has_input = true;
        if matches!(self.kind, ToolKind::Read | ToolKind::Search | ToolKind::Glob | ToolKind::List)
        {
            self.input = Some(input.get().to_owned());
        }
    }
}

impl Watch {
    pub(crate) fn new(folder: PathBuf, dialect: &'static Dialect) -> Self {
        Self { folder, dialect, observations: Vec::new(), calls: Vec::new(), last: 0 }
    }

    /// The sequence number of the last entry.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Whether one of these ids is that of an open call of the client.
    pub(crate) fn has_client_call(&self, ids: &[String]) -> bool {
        self.calls.iter().any(|call| call.is_client && ids.contains(&call.id))
    }

    /// The observations since the last call.
    pub(crate) fn take_observations(&mut self) -> Vec<Observation> {
        std::mem::take(&mut self.observations)
    }

    /// Whether a tool is running; there is no limit to its silence.
    pub(crate) fn tool_running(&self) -> bool {
        !self.calls.is_empty()
    }

    pub(crate) fn observe(&mut self, entry: EntryRef<'_>) {
        self.last = entry.sequence;
        let observation = match &entry.event.data {
            Data::PermissionRequested(asked) => {
                let wanted = Wanted::Permission(self.permission_request(asked));
                Observation::Wanted(Box::new(wanted), entry.sequence)
            }
            Data::QuestionAsked(asked) => Observation::Wanted(
                Box::new(Wanted::Answer(question_request(asked))),
                entry.sequence,
            ),
            Data::PermissionResolved(resolved) => match &resolved.request {
                Some(id) => Observation::Resolved(id.to_string()),
                None => return,
            },
            Data::QuestionAnswered(answered) => Observation::Resolved(answered.request.to_string()),
            Data::ToolStarted(started) => {
                let (id, kind) = (started.call.to_string(), started.kind.clone());
                let is_client = started.executor == Executor::Client;
                let mut call = OpenCall { id, kind, is_client, has_input: false, input: None };
                if let Some(input) = &started.input {
                    call.learn(input);
                }
                self.calls.push(call);
                Observation::Progress
            }
            Data::ToolInput(known) => {
                let call = self.calls.iter_mut().find(|call| known.call == *call.id);
                if let (Some(call), Some(input)) = (call, &known.input) {
                    call.learn(input);
                }
                return;
            }
            Data::ToolEnded(ended) => {
                let ends = |call: &mut OpenCall| ended.call == *call.id;
                match self.calls.extract_if(.., ends).last() {
                    Some(call) if call.is_client => Observation::Resolved(call.id),
                    _ => Observation::Progress,
                }
            }
            Data::TurnStarted(started) if !started.replay => Observation::TurnStarted,
            Data::TurnEnded(ended) if !ended.replay => {
                self.calls.clear();
                Observation::TurnEnded(ended.outcome.clone())
            }
            Data::SessionStarted(started) => match &started.id {
                Some(id) => Observation::SessionId(id.to_string().trim().to_owned()),
                None => return,
            },
            Data::SessionUpdated(updated) => match &updated.id {
                Some(id) => Observation::SessionId(id.to_string().trim().to_owned()),
                None => return,
            },
            Data::Retry(_) => Observation::Retrying,
            Data::BlockDelta(_) | Data::Block(_) | Data::BlockStarted(_) => Observation::Progress,
            _ => return,
        };
        if observation != Observation::Progress || self.observations.last() != Some(&observation) {
            self.observations.push(observation);
        }
    }

    fn permission_request(&self, asked: &PermissionRequested<'_>) -> PermissionRequest {
        let call = asked.call.as_ref();
        let call = self.calls.iter().find(|open| call.is_some_and(|call| *call == *open.id));
        let input = asked.input.as_ref().map(Json::get).filter(|input| *input != "{}");
        let of_call = call.and_then(|call| call.input.as_deref());
        // A request may precede its call, as those of Claude's sub-agents do. Rules about a kind of work
        // apply to it all the same.
        let kind_by_name = || asked.tool.as_ref().map(self.dialect.kind_of_tool);
        let kind = call.map(|call| call.kind.clone()).or_else(kind_by_name);
        PermissionRequest {
            id: asked.request.to_string(),
            call: calls([&asked.call, &asked.native_call]),
            tool: text(&asked.tool).unwrap_or_default(),
            kind: kind.unwrap_or_default(),
            input: input.or(of_call).map(str::to_owned),
            may_lack_input: call.is_some_and(|call| !call.has_input),
            description: text(&asked.description),
            folder: self.folder.clone(),
            ..PermissionRequest::default()
        }
    }
}

fn question_request(asked: &QuestionAsked<'_>) -> QuestionRequest {
    QuestionRequest {
        id: asked.request.to_string(),
        call: calls([&asked.call, &asked.native_call]),
        message: text(&asked.message),
        server: text(&asked.server),
        questions: asked.questions.iter().map(question).collect(),
        schema: asked.schema.as_ref().and_then(|schema| serde_json::from_str(schema.get()).ok()),
        secret_fields: asked.secret_fields().into_iter().map(String::from).collect(),
        url: text(&asked.url),
    }
}

fn question(asked: &event::Question<'_>) -> Question {
    let options = asked.options.iter();
    Question {
        id: asked.id.to_string(),
        header: text(&asked.header),
        text: asked.text.to_string(),
        options: options.map(|it| (it.label.to_string(), text(&it.description))).collect(),
        multiple: asked.multiple,
        free_text: asked.free_text,
        secret: asked.secret,
    }
}

/// The ids of a call.
fn calls(ids: [&Option<Text<'_>>; 2]) -> Vec<String> {
    ids.into_iter().filter_map(text).collect()
}

fn text(text: &Option<Text<'_>>) -> Option<String> {
    text.as_ref().map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use interlingua::{ReadOptions, Reader, Source};
    use serde_json::{Value, json};

    use super::*;
    use crate::permission::{Decision, Effect, Mode, Policy, Rule, Rules, Verdict};

    /// The permission request among these events of OpenCode.
    fn request(lines: &[Value]) -> PermissionRequest {
        request_in("opencode", lines)
    }

    /// The permission request among these records of a dialect.
    fn request_in(dialect: &str, lines: &[Value]) -> PermissionRequest {
        let mut watch = Watch::new("/w".into(), interlingua::dialect::named(dialect).unwrap());
        let source = Source::named(dialect).unwrap();
        let mut reader = Reader::new(source, ReadOptions::default()).unwrap();
        for line in lines {
            let line = format!("{line}\n");
            let _ = reader.push(line.as_bytes(), None, &mut |entry: EntryRef<'_>| {
                watch.observe(entry);
            });
        }
        let found = watch.take_observations().into_iter().find_map(|it| match it {
            Observation::Wanted(wanted, _) => Some(*wanted),
            _ => None,
        });
        match found {
            Some(Wanted::Permission(request)) => request,
            other => panic!("{other:?}"),
        }
    }

    fn asked(permission: &str, metadata: Value) -> Value {
        let tool = json!({"callID": "c"});
        let request = json!({"id": "per", "sessionID": "s", "permission": permission,
            "metadata": metadata, "tool": tool});
        json!({"type": "permission.asked", "properties": request})
    }

    fn call(tool: &str, state: Value) -> Value {
        let part = json!({"id": "p", "messageID": "m", "type": "tool", "tool": tool,
            "callID": "c", "state": state});
        json!({"type": "message.part.updated", "properties": {"sessionID": "s", "part": part}})
    }

    #[test]
    fn a_request_before_the_input_of_its_call_may_lack_some_of_it() {
        let metadata = json!({"command": "ls"});
        let requested =
            |state: Value| request(&[call("bash", state), asked("bash", metadata.clone())]);
        assert!(requested(json!({"status": "pending", "input": {}})).may_lack_input);
        let known = requested(json!({"status": "running", "input": {"command": "ls"}}));
        assert!(!known.may_lack_input);
        assert!(!request(&[asked("bash", metadata.clone())]).may_lack_input, "it has no call");
    }

    /// Claude Code 2.1.325 requests permissions for the calls of a sub-agent before it reports them. With
    /// `deny execute rm *`, the sub-agent's `rm` was allowed in the mode `auto`.
    #[test]
    fn rules_for_a_kind_of_work_apply_to_a_request_that_precedes_its_call() {
        let denied = |rule: (&str, &str), tool: &str, input: Value| {
            let asked = json!({"subtype": "can_use_tool", "tool_name": tool, "input": input,
                "tool_use_id": "toolu_1"});
            let line = json!({"type": "control_request", "request_id": "r", "request": asked});
            let request = request_in("claude", &[line]);
            let rule = Rule::new(rule.0, Some(rule.1), Effect::Deny).unwrap();
            let policy = Policy { mode: Mode::Auto, rules: Rules::new(vec![rule]) };
            matches!(policy.judge(&request), Verdict::Decided(Decision::Deny(_)))
        };
        let file = |path: &str| json!({"file_path": path});
        let search = |path: &str| json!({"pattern": "x", "path": path});
        for (rule, tool, matching, other) in [
            (("execute", "rm *"), "Bash", json!({"command": "rm x"}), json!({"command": "ls"})),
            (("read", "*.env"), "Read", file("/w/.env"), file("/w/a")),
            (("edit", "*.lock"), "Edit", file("/w/x.lock"), file("/w/a")),
            (("write", "*.lock"), "Write", file("/w/x.lock"), file("/w/a")),
            (("edit", "*.lock"), "Write", file("/w/x.lock"), file("/w/a")),
            (("search", "/w/a"), "Grep", search("/w/a"), search("/w/b")),
            (("glob", "/w/a"), "Glob", search("/w/a"), search("/w/b")),
            (("list", "/w/a"), "LS", json!({"path": "/w/a"}), json!({"path": "/w/b"})),
            (("fetch", "*evil*"), "WebFetch", json!({"url": "evil"}), json!({"url": "good"})),
            (("web_search", "a*"), "WebSearch", json!({"query": "ab"}), json!({"query": "b"})),
        ] {
            assert!(denied(rule, tool, matching), "deny {rule:?}: {tool}");
            assert!(!denied(rule, tool, other), "deny {rule:?}: {tool}");
        }
    }

    /// Without a snapshot before it, the call starts with its input.
    #[test]
    fn a_call_that_starts_with_its_input_completes_a_request() {
        let state = json!({"status": "running", "input": {"filePath": "/w/a"}});
        let request = request(&[call("read", state), asked("read", json!({}))]);
        assert_eq!(request.input.as_deref(), Some(r#"{"filePath":"/w/a"}"#));
    }
}
