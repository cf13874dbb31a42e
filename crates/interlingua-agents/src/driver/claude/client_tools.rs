//! The client's tools over the control channel: an MCP server without a connection, whose messages travel
//! in control requests.
//!
//! The program asks a hook of ours before it makes a call, and the call is with the client while the hook
//! is not answered. Then the call is allowed, and its result is there when it is made. Instead, it can be
//! *deferred*: the program ends its turn, and asks again when its session is resumed, so that the result
//! gets into the call's own place. If the hook is not asked, the call itself waits, and cannot be deferred.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::{ClientToolCall, Step};
use super::requests::{refusal, respond};
use crate::client_tool::{
    ClientTool, LONGEST_WAIT, MOST_OPEN, MessageCall, MessageServer, Received, SERVER_NAME,
};

/// The id by which the program asks our hook.
const HOOK: &str = "interlingua-client-tool";

/// The client's tools, and the calls that are with the client.
#[derive(Debug)]
pub(super) struct ClientTools {
    server: MessageServer,
    open: Vec<OpenCall>,
    /// The results of calls that the program has not made yet, by its own ids of them.
    results: HashMap<String, CallResult>,
    calls: u64,
    message: LastMessage,
    /// The open call is to be deferred as soon as its message is complete.
    defers: bool,
}

/// What the model reads of a result, and whether it is an error.
type CallResult = (String, bool);

/// A call that is with the client.
#[derive(Debug)]
struct OpenCall {
    number: u64,
    native: Option<String>,
    /// The control request that waits for it.
    request: String,
    place: Place,
}

/// What waits for the client.
#[derive(Debug, PartialEq)]
enum Place {
    /// The hook.
    Hook,
    /// The call itself, a request with this id.
    Call(Value),
}

/// The calls of the newest message of the model. Those of sub-agents are not among them.
#[derive(Debug, Default)]
struct LastMessage {
    calls: HashSet<String>,
    is_complete: bool,
}

/// What a hook is asked.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HookInput {
    tool_name: String,
    tool_input: Option<Box<RawValue>>,
    tool_use_id: Option<String>,
}

/// A call that the program makes, or that it asks a hook about.
#[derive(Debug)]
pub(super) struct AskedCall {
    /// The control request that has to be answered.
    request: String,
    native: Option<String>,
    tool: String,
    input: String,
}

impl AskedCall {
    /// Whether it is asked for by this control request.
    pub(super) fn is_of(&self, request: &str) -> bool {
        self.request == request
    }
}

impl ClientTools {
    pub(super) fn new(tools: &[ClientTool]) -> Self {
        Self {
            server: MessageServer::new(tools),
            open: Vec::new(),
            results: HashMap::new(),
            calls: 0,
            message: LastMessage::default(),
            defers: false,
        }
    }

    /// The request that registers the hook. The program gives one up after a minute, unless it has a limit of
    /// its own.
    pub(super) fn initialization() -> Value {
        let hook = json!({
            "matcher": format!("^mcp__{SERVER_NAME}__.*"),
            "hookCallbackIds": [HOOK],
            "timeout": LONGEST_WAIT.as_secs(),
        });
        json!({"subtype": "initialize", "hooks": {"PreToolUse": [hook]}})
    }

    /// The call that a hook is asked about. Of what is none of the client's, the hook decides nothing: another
    /// server may have a name that begins as ours.
    pub(super) fn asked(
        &self,
        request: &str,
        callback: &str,
        input: &RawValue,
        steps: &mut Vec<Step>,
    ) -> Option<AskedCall> {
        if callback != HOOK {
            steps.push(Step::Send(refusal(request, "this hook")));
            return None;
        }
        let HookInput { tool_name, tool_input, tool_use_id } =
            serde_json::from_str(input.get()).unwrap_or_default();
        let tool = tool_name.strip_prefix(&format!("mcp__{SERVER_NAME}__"));
        let known = tool.filter(|tool| self.server.has(tool)).zip(tool_use_id);
        let Some((tool, native)) = known else {
            steps.push(respond(request, &json!({})));
            return None;
        };
        let input = tool_input.map_or_else(|| "{}".to_owned(), |input| input.get().to_owned());
        let (request, native, tool) = (request.to_owned(), Some(native), tool.to_owned());
        Some(AskedCall { request, native, tool, input })
    }

    /// Gives a call to the client that the hook is asked about, or allows it if its result is there.
    pub(super) fn hold(&mut self, asked: AskedCall, steps: &mut Vec<Step>) {
        if self.defers {
            // The message has another call, so that the program is killed soon.
            return;
        }
        if self.has_result(&asked) {
            steps.push(decision(&asked.request, "allow"));
        } else if self.open.len() < MOST_OPEN {
            self.give(asked, Place::Hook, steps);
        } else {
            steps.push(decision(&asked.request, "allow"));
            self.prepare(asked.native.unwrap_or_default(), (too_many(), true));
        }
    }

    /// Gives a call to the client.
    fn give(&mut self, asked: AskedCall, place: Place, steps: &mut Vec<Step>) {
        let AskedCall { request, native, tool, input } = asked;
        self.calls += 1;
        let number = self.calls;
        self.open.push(OpenCall { number, native: native.clone(), request, place });
        steps.push(Step::CallClient(Box::new(ClientToolCall { number, native, tool, input })));
    }

    /// Takes a message for the server.
    pub(super) fn message(&mut self, request: &str, message: &RawValue, steps: &mut Vec<Step>) {
        let message = serde_json::from_str(message.get()).unwrap_or_default();
        let noted = || json!({"jsonrpc": "2.0", "id": 0, "result": {}});
        match self.server.receive(&message) {
            Received::Answered(answer) => steps.push(mcp_answer(request, &answer)),
            Received::Called(MessageCall { id, native, tool, input }) => {
                let request = request.to_owned();
                self.called(id, AskedCall { request, native, tool, input }, steps);
            }
            Received::Cancelled(id) => {
                self.withdraw(|call| call.place == Place::Call(id.clone()), steps);
                steps.push(mcp_answer(request, &noted()));
            }
            Received::Noted => steps.push(mcp_answer(request, &noted())),
        }
    }

    /// The program makes a call. Its result is there, unless no hook was asked about it, or the hook was
    /// given up.
    fn called(&mut self, id: Value, call: AskedCall, steps: &mut Vec<Step>) {
        let result = call.native.as_ref().and_then(|native| self.results.remove(native));
        let is_same = |open: &&mut OpenCall| call.native.is_some() && open.native == call.native;
        if let Some((text, failed)) = result {
            steps.push(mcp_answer(&call.request, &MessageServer::answer(&id, &text, failed)));
        } else if let Some(open) = self.open.iter_mut().find(is_same) {
            (open.request, open.place) = (call.request, Place::Call(id));
        } else if self.open.len() < MOST_OPEN {
            self.give(call, Place::Call(id), steps);
        } else {
            steps.push(mcp_answer(&call.request, &MessageServer::answer(&id, &too_many(), true)));
        }
    }

    /// The program does not wait for the answer to a request any more.
    pub(super) fn cancelled(&mut self, request: &str, steps: &mut Vec<Step>) {
        self.withdraw(|call| call.request == request, steps);
    }

    fn withdraw(&mut self, is_gone: impl Fn(&OpenCall) -> bool, steps: &mut Vec<Step>) {
        let gone = self.open.extract_if(.., |call| is_gone(call));
        steps.extend(gone.map(|call| Step::WithdrawCall(call.number)));
    }

    /// The client has answered a call.
    pub(super) fn answered(&mut self, number: u64, result: CallResult, steps: &mut Vec<Step>) {
        let Some(at) = self.open.iter().position(|call| call.number == number) else { return };
        let OpenCall { native, request, place, .. } = self.open.remove(at);
        match place {
            Place::Call(id) => {
                let answer = MessageServer::answer(&id, &result.0, result.1);
                steps.push(mcp_answer(&request, &answer));
            }
            Place::Hook => {
                self.prepare(native.unwrap_or_default(), result);
                steps.push(decision(&request, "allow"));
            }
        }
    }

    /// Keeps the result of a call until the program makes it.
    pub(super) fn prepare(&mut self, native: String, result: CallResult) {
        self.results.insert(native, result);
    }

    /// Whether the result of a call is there.
    pub(super) fn has_result(&self, asked: &AskedCall) -> bool {
        asked.native.as_ref().is_some_and(|native| self.results.contains_key(native))
    }

    /// Forgets the results of calls that the program has not made.
    pub(super) fn forget_results(&mut self) {
        self.results.clear();
    }

    /// Defers the only call of the newest message, as soon as it is complete. With two calls, the program would
    /// lose one of them.
    pub(super) fn defer(&mut self, steps: &mut Vec<Step>) -> bool {
        let [OpenCall { native: Some(native), request, place: Place::Hook, .. }] = &*self.open
        else {
            return false;
        };
        let LastMessage { calls, is_complete } = &self.message;
        if calls.len() != 1 || !calls.contains(native) {
            return false;
        }
        self.defers = !is_complete;
        if *is_complete {
            steps.push(decision(request, "defer"));
            self.open.clear();
        }
        true
    }

    /// Notes which calls the newest message has.
    pub(super) fn observe(&mut self, record: &str, steps: &mut Vec<Step>) {
        let concerns = |word| record.contains(word);
        if ["\"message_start\"", "\"message_stop\"", "\"tool_use\""].into_iter().any(concerns) {
            // What is no record of a message contains the words in another place.
            if let Ok(line) = serde_json::from_str::<MessageLine>(record) {
                self.message.observe(line);
            }
            if self.defers && self.message.is_complete {
                self.defer(steps);
            }
        }
    }
}

/// A record that concerns a message of the model.
#[derive(Deserialize)]
struct MessageLine {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    parent_tool_use_id: Option<String>,
    #[serde(default)]
    event: Kind,
    #[serde(default)]
    message: Content,
}

#[derive(Default, Deserialize)]
struct Kind {
    #[serde(rename = "type", default)]
    kind: String,
}

#[derive(Default, Deserialize)]
struct Content {
    #[serde(default)]
    content: Vec<ContentBlock>,
}

#[derive(Deserialize)]
struct ContentBlock {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    id: Option<String>,
}

impl LastMessage {
    fn observe(&mut self, line: MessageLine) {
        if line.parent_tool_use_id.is_some() {
            return;
        }
        match (&*line.kind, &*line.event.kind) {
            ("stream_event", "message_start") => *self = Self::default(),
            ("stream_event", "message_stop") => self.is_complete = true,
            ("assistant", _) => {
                let calls = line.message.content.into_iter().filter(|it| it.kind == "tool_use");
                self.calls.extend(calls.filter_map(|call| call.id));
            }
            _ => {}
        }
    }
}

fn too_many() -> String {
    format!("{MOST_OPEN} calls wait for the user already: wait for them")
}

/// The answer of the hook.
fn decision(request: &str, decision: &str) -> Step {
    let output = json!({"hookEventName": "PreToolUse", "permissionDecision": decision});
    respond(request, &json!({"hookSpecificOutput": output}))
}

/// The answer to a message for the server.
fn mcp_answer(request: &str, answer: &Value) -> Step {
    respond(request, &json!({"mcp_response": answer}))
}
