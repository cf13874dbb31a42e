//! Decides the answer to a request: its kind, its breaches, and the reply that it gets.
//!
//! All decisions are made under one lock of the state, and without I/O; the server plays the
//! result.

use serde_json::Value;

use crate::check::{self, Breach};
use crate::conversation::Conversation;
use crate::gate;
use crate::http::Incoming;
use crate::keys;
use crate::play::{self, Beat, Mark, Step};
use crate::protocol::{Answer, Bit, Block, Content, Endpoint, Protocol, SentCall, endpoint};
use crate::record::{Kind, Outcome, Request};
use crate::script::{Action, ApiError, Call, Cut, Ending, Part, Reply};
use crate::side::{self, SideAnswer};
use crate::state::{CallPlace, Shared, State};
use crate::tools;

/// What the server sends.
#[derive(Debug)]
pub(crate) enum Plan {
    /// One JSON value.
    Whole { status: u16, retry_after: Option<u64>, body: Value, steps: Vec<Step> },
    /// A stream.
    Stream(Vec<Step>),
}

impl Plan {
    fn json(status: u16, body: Value) -> Self {
        Self::Whole { status, retry_after: None, body, steps: Vec::new() }
    }
}

/// Records a request, and decides its answer and its number.
pub(crate) fn answer(shared: &Shared, incoming: Incoming) -> (usize, Plan) {
    let endpoint = endpoint(&incoming.method, &incoming.path);
    let key = keys::judge(&incoming.headers, &incoming.path, &shared.script.key);
    let (body, problem) = match incoming.body {
        Err(words) => (Value::Null, Some((415, words))),
        Ok(bytes) => parsed(&bytes),
    };
    let request = Request {
        number: 0,
        method: incoming.method,
        path: keys::path_without_key(&incoming.path),
        headers: keys::without_secrets(incoming.headers),
        key,
        body,
        protocol: protocol_of(endpoint),
        kind: Kind::Unknown,
        outcome: Outcome::Pending,
    };
    shared.change(|state| {
        let number = state.requests.len();
        if endpoint != Endpoint::Unknown {
            state.find(number, check::key(key));
        }
        let body = request.body.clone();
        let path = request.path.clone();
        state.requests.push(Request { number, ..request });
        let desk = Desk { shared, state, number };
        let (kind, plan) = desk.decide(endpoint, &path, &body, problem);
        if let Some(request) = state.requests.get_mut(number) {
            request.kind = kind;
        }
        (number, plan)
    })
}

fn parsed(bytes: &[u8]) -> (Value, Option<(u16, String)>) {
    if bytes.is_empty() {
        return (Value::Null, None);
    }
    match serde_json::from_slice(bytes) {
        Ok(body) => (body, None),
        Err(error) => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            (Value::String(text), Some((400, format!("the body is not JSON: {error}"))))
        }
    }
}

fn protocol_of(endpoint: Endpoint) -> Option<Protocol> {
    match endpoint {
        Endpoint::Generate(protocol)
        | Endpoint::CountTokens(protocol)
        | Endpoint::Models(protocol) => Some(protocol),
        Endpoint::Unknown => None,
    }
}

/// The context in which one request is decided.
struct Desk<'a> {
    shared: &'a Shared,
    state: &'a mut State,
    number: usize,
}

impl Desk<'_> {
    fn decide(
        mut self,
        endpoint: Endpoint,
        path: &str,
        body: &Value,
        problem: Option<(u16, String)>,
    ) -> (Kind, Plan) {
        let protocol = protocol_of(endpoint).unwrap_or(Protocol::Chat);
        if let (true, Some((status, message))) = (endpoint != Endpoint::Unknown, problem) {
            self.state.find(self.number, vec![(Breach::BodyUnreadable, message.clone())]);
            let error = ApiError { status, message, retry_after: None };
            return (Kind::Unreadable, Plan::json(status, protocol.error(&error)));
        }
        match endpoint {
            Endpoint::Generate(protocol) => self.generate(protocol, path, body),
            Endpoint::CountTokens(protocol) => {
                // Four bytes per token are accurate enough for this count.
                let count = protocol.token_count(body.to_string().len() / 4);
                (Kind::CountTokens, Plan::json(200, count))
            }
            Endpoint::Models(protocol) => (Kind::Models, Plan::json(200, protocol.models())),
            Endpoint::Unknown => {
                if let Some(name) = gate::name(path) {
                    let body = Value::from(format!("The gate {name:?} is open."));
                    let steps = vec![Step::Gate(name)];
                    let plan = Plan::Whole { status: 200, retry_after: None, body, steps };
                    return (Kind::Gate, plan);
                }
                let message = format!("fake-model has nothing at {path}");
                let error = ApiError { status: 404, message, retry_after: None };
                (Kind::Unknown, Plan::json(404, protocol.error(&error)))
            }
        }
    }

    fn generate(&mut self, protocol: Protocol, path: &str, body: &Value) -> (Kind, Plan) {
        let conversation = protocol.read(path, body);
        let breaches = check::conversation(protocol, &conversation);
        self.state.find(self.number, breaches);
        if let Some(reason) = side::reason(&conversation) {
            let blocks = vec![self.side_block(&conversation)];
            let reply = Reply::new();
            return (Kind::Side(reason), self.plan(protocol, &conversation, &reply, blocks));
        }
        let breaches = check::stream(self.shared.script.expect_stream, &conversation);
        self.state.find(self.number, breaches);
        self.state.follow_calls(self.number, &conversation);
        let (place, reply) = self.shared.next_reply(self.state, self.number, &conversation);
        if let Some(error) = &reply.error {
            return (Kind::Main(place), http_error(protocol, error));
        }
        let blocks = self.blocks(&conversation, &reply);
        (Kind::Main(place), self.plan(protocol, &conversation, &reply, blocks))
    }

    fn side_block(&mut self, conversation: &Conversation) -> Block {
        match side::answer(conversation, &self.shared.script.side_text) {
            SideAnswer::Text(text) => {
                Block { content: Content::Text, bits: vec![Bit::Delta(text)] }
            }
            SideAnswer::Call { name, input } => {
                let id = format!("side_{}", self.number);
                SentCall { id, name, input, free_text: false }.into_block(None)
            }
        }
    }

    /// The parts of a reply as blocks: adjacent parts of a kind become one block, and tools are
    /// chosen.
    fn blocks(&mut self, conversation: &Conversation, reply: &Reply) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        for part in &reply.parts {
            let (content, bit) = match part {
                Part::Call(call) => {
                    blocks.push(self.call_block(conversation, reply, call));
                    continue;
                }
                Part::Text(text) => (Content::Text, Bit::Delta(text.clone())),
                Part::Reasoning(text) => (Content::Reasoning, Bit::Delta(text.clone())),
                Part::Gate(name) => (Content::Gates, Bit::Gate(name.clone())),
            };
            match blocks.last_mut() {
                Some(last)
                    if last.content == content
                        || content == Content::Gates
                            && matches!(last.content, Content::Text | Content::Reasoning) =>
                {
                    last.bits.push(bit);
                }
                _ => blocks.push(Block { content, bits: vec![bit] }),
            }
        }
        blocks
    }

    fn call_block(&mut self, conversation: &Conversation, reply: &Reply, call: &Call) -> Block {
        let (name, input, gate) = match call {
            Call::Raw { name, input, gate_inside } => (name.clone(), input.clone(), gate_inside),
            Call::Action { action, gate_inside } => {
                let action = match action {
                    Action::WaitAtGate { gate } => {
                        let command = gate::command(self.shared.address, gate);
                        &Action::Shell { command }
                    }
                    action => action,
                };
                match tools::choose(action, &conversation.tools) {
                    Some(chosen) => (chosen.name, chosen.input, gate_inside),
                    None => return self.no_tool(conversation, call),
                }
            }
        };
        let place = CallPlace {
            request: self.number,
            conversation,
            complete: reply.ending == Ending::Complete,
        };
        let id = self.state.new_call(&name, &place);
        let tool = conversation.tools.iter().find(|tool| tool.name == name);
        let free_text = tool.is_some_and(|tool| tool.schema.is_none());
        SentCall { id, name, input, free_text }.into_block(gate.clone())
    }

    fn no_tool(&mut self, conversation: &Conversation, call: &Call) -> Block {
        let names: Vec<&str> = conversation.tools.iter().map(|tool| tool.name.as_str()).collect();
        let detail = format!("no tool for {call:?} among {}", names.join(", "));
        self.state.find(self.number, vec![(Breach::ActionWithoutTool, detail)]);
        let text = "(no tool for the scripted action)".to_owned();
        Block { content: Content::Text, bits: vec![Bit::Delta(text)] }
    }

    fn plan(
        &self,
        protocol: Protocol,
        conversation: &Conversation,
        reply: &Reply,
        blocks: Vec<Block>,
    ) -> Plan {
        let answer = Answer {
            number: self.number,
            model: conversation.model.clone().unwrap_or_default(),
            blocks,
            usage: reply.usage,
            stop: reply.stop,
            wants_usage: conversation.wants_usage,
        };
        if conversation.stream {
            let error = match &reply.ending {
                Ending::Error(error) => Some(protocol.error_event(error)),
                _ => None,
            };
            return Plan::Stream(play::steps(protocol.stream(&answer), reply, error));
        }
        match &reply.ending {
            Ending::Error(error) => http_error(protocol, error),
            _ => plan_without_stream(protocol, &answer, reply),
        }
    }
}

/// An answer without a stream: all gates first, then the body, which a cut halves.
fn plan_without_stream(protocol: Protocol, answer: &Answer, reply: &Reply) -> Plan {
    let body = protocol.body(answer);
    let mut beats: Vec<Beat> = answer.blocks.iter().flat_map(Block::gates).collect();
    beats.push(Beat::Event(Mark::Text, body.to_string()));
    let mut reply = reply.clone();
    if matches!(reply.ending, Ending::Cut(cut) if cut != Cut::BeforeFirstByte) {
        reply.ending = Ending::Cut(Cut::InText);
    }
    let steps = play::steps(beats, &reply, None);
    Plan::Whole { status: 200, retry_after: None, body, steps }
}

fn http_error(protocol: Protocol, error: &ApiError) -> Plan {
    Plan::Whole {
        status: error.status,
        retry_after: error.retry_after,
        body: protocol.error(error),
        steps: Vec::new(),
    }
}
