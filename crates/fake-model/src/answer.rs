//! Decides the answer to a request: its kind, its breaches, and the reply that it gets.
//!
//! All decisions are made under one lock of the state, and without I/O; the server plays the
//! result.

use serde_json::Value;

use crate::check::{self, Breach};
use crate::conversation::Conversation;
use crate::gate;
use crate::http::{Header, Incoming};
use crate::keys;
use crate::play::{self, Beat, Mark, Step};
use crate::protocol::{
    Answer, Bit, Block, Content, Endpoint, ErrorAnswer, Forms, Protocol, SentCall, endpoint,
};
use crate::record::{Kind, Outcome, Request};
use crate::script::{
    Action, ApiError, Call, Cut, Ending, Part, RawAnswer, Reply, Sending, SignaturePlace, Stop,
};
use crate::side::{self, SideAnswer};
use crate::state::{CallPlace, Rest, Shared, State};
use crate::strict::{self, SentAnswer};
use crate::tools;

/// What the server sends.
#[derive(Debug)]
pub(crate) enum Plan {
    /// A body of known length, after the gates and pauses among the steps.
    Whole { status: u16, headers: Vec<Header>, body: String, steps: Vec<Step> },
    /// A stream, whose head waits at a gate.
    Stream { hold: Option<String>, headers: Vec<Header>, steps: Vec<Step> },
}

impl Plan {
    fn json(status: u16, mut headers: Vec<Header>, body: &Value, steps: Vec<Step>) -> Self {
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        Self::Whole { status, headers, body: body.to_string(), steps }
    }

    fn error(error: ErrorAnswer, hold: Option<&String>) -> Self {
        Self::json(error.status, error.headers, &error.body, gates(hold))
    }

    fn raw(raw: &RawAnswer, hold: Option<&String>) -> Self {
        let headers = raw.headers.clone().into_iter().collect();
        Self::Whole { status: raw.status, headers, body: raw.body.clone(), steps: gates(hold) }
    }

    /// The number of gates that it waits at.
    pub(crate) fn gates(&self) -> usize {
        let (hold, steps) = match self {
            Self::Whole { steps, .. } => (None, steps),
            Self::Stream { hold, steps, .. } => (hold.as_ref(), steps),
        };
        let inside = steps.iter().filter(|step| matches!(step, Step::Gate(_))).count();
        inside + usize::from(hold.is_some())
    }
}

fn gates(hold: Option<&String>) -> Vec<Step> {
    hold.map(|gate| Step::Gate(gate.clone())).into_iter().collect()
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
        let asked = request.clone();
        state.requests.push(Request { number, ..request });
        let desk = Desk { shared, state, number, asked: &asked };
        let (kind, plan) = desk.decide(endpoint, problem);
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
    asked: &'a Request,
}

/// A reply that was chosen for a request.
struct Chosen {
    place: Option<usize>,
    reply: Reply,
    blocks: Vec<Block>,
    /// The request that the reply first answered: this one, unless it continues an earlier answer.
    number: usize,
    /// All blocks that the agent has received in the end, if that is more than `blocks`.
    whole: Option<Vec<Block>>,
}

impl Desk<'_> {
    fn decide(mut self, endpoint: Endpoint, problem: Option<(u16, String)>) -> (Kind, Plan) {
        let protocol = protocol_of(endpoint).unwrap_or(Protocol::Chat);
        if let (true, Some((status, message))) = (endpoint != Endpoint::Unknown, problem) {
            self.state.find(self.number, vec![(Breach::BodyUnreadable, message.clone())]);
            return (Kind::Unreadable, self.refuse(protocol, status, message));
        }
        match endpoint {
            Endpoint::Generate(protocol) => self.generate(protocol),
            Endpoint::CountTokens(protocol) => {
                // Four bytes per token are accurate enough for this count.
                let count = protocol.token_count(self.asked.body.to_string().len() / 4);
                (Kind::CountTokens, Plan::json(200, Vec::new(), &count, Vec::new()))
            }
            Endpoint::Models(protocol) => {
                (Kind::Models, Plan::json(200, Vec::new(), &protocol.models(), Vec::new()))
            }
            Endpoint::Unknown => {
                let path = &self.asked.path;
                if let Some(name) = gate::name(path) {
                    let body = Value::from(format!("The gate {name:?} is open."));
                    let steps = vec![Step::Gate(name)];
                    return (Kind::Gate, Plan::json(200, Vec::new(), &body, steps));
                }
                let message = format!("fake-model has nothing at {path}");
                (Kind::Unknown, self.refuse(protocol, 404, message))
            }
        }
    }

    fn refuse(&self, protocol: Protocol, status: u16, message: String) -> Plan {
        let error = ApiError { status, message, retry_after: None };
        Plan::error(protocol.error(&error, self.number), None)
    }

    fn generate(&mut self, protocol: Protocol) -> (Kind, Plan) {
        let conversation = protocol.read(&self.asked.path, &self.asked.body);
        let mut breaches = check::conversation(protocol, &conversation);
        if self.state.paused {
            // A paused answer is sent back as it is, and continued.
            breaches.retain(|(breach, _)| *breach != Breach::LastRole);
        }
        self.state.find(self.number, breaches);
        let strict = self.shared.script.strict;
        let breaches = strict::version(protocol, self.asked, strict);
        self.state.find(self.number, breaches);
        let side = self.shared.script.side_requests;
        if let Some(reason) = side::reason(&conversation).filter(|_| side) {
            let blocks = vec![self.side_block(&conversation)];
            let reply = Reply::new();
            let answer = self.compose(&conversation, &reply, blocks, self.number);
            return (Kind::Side(reason), self.plan(protocol, &conversation, &reply, &answer));
        }
        let breaches = check::stream(self.shared.script.expect_stream, &conversation);
        self.state.find(self.number, breaches);
        self.state.follow_calls(self.number, &conversation);
        let thread = strict.then(|| self.check_strictly(protocol));
        let chosen = self.choose(protocol, &conversation);
        let (reply, kind) = (&chosen.reply, Kind::Main(chosen.place));
        let hold = reply.hold.as_ref();
        if let Some(raw) = &reply.raw {
            return (kind, Plan::raw(raw, hold));
        }
        if let Some(failure) = &reply.failure {
            return (kind, Plan::error(protocol.failure(failure, self.number), hold));
        }
        if let Some(error) = &reply.error {
            return (kind, Plan::error(protocol.error(error, self.number), hold));
        }
        let answer = self.compose(&conversation, reply, chosen.blocks, chosen.number);
        if reply.ending == Ending::Complete {
            let reason = answer.forms.messages.stop_reason.as_deref();
            self.state.paused = protocol == Protocol::Messages && reason == Some("pause_turn");
        }
        if let Some(thread) = thread {
            let mut received = answer.clone();
            if let Some(whole) = chosen.whole {
                received.blocks = whole;
            }
            let streamed = conversation.stream && !reply.whole_json;
            let pieces = protocol.pieces(&received, streamed);
            self.remember(thread, &received, reply, pieces);
        }
        let plan = self.plan(protocol, &conversation, reply, &answer);
        (kind, plan)
    }

    /// Finds what only a strict reading of the API refuses, and returns the thread of the request.
    fn check_strictly(&mut self, protocol: Protocol) -> usize {
        let breaches = strict::rules(protocol, self.asked);
        self.state.find(self.number, breaches);
        let body = &self.asked.body;
        let State { threads, requests, gates_ahead, .. } = &mut *self.state;
        let left = |number: usize| State::gave_up(requests, gates_ahead, number);
        let (thread, breaches) = threads.follow(protocol, body, &left);
        self.state.find(self.number, breaches);
        thread
    }

    /// Remembers what must come back with the next request of the thread.
    fn remember(&mut self, thread: usize, answer: &Answer, reply: &Reply, pieces: Vec<Value>) {
        let half =
            |block: &Block| matches!(&block.content, Content::Call(call) if call.sending.truncated);
        let complete = reply.ending == Ending::Complete
            && reply.stop != Stop::Refusal
            && answer.refusal().is_none()
            && answer.forms.gemini.block_reason.is_none()
            && !answer.blocks.iter().any(half);
        let answer = SentAnswer { request: self.number, pieces, complete };
        self.state.threads.sent(thread, answer);
    }

    /// The reply for a request: the rest of an earlier one if the request has its token, else the
    /// next one.
    fn choose(&mut self, protocol: Protocol, conversation: &Conversation) -> Chosen {
        let token = self.asked.body.get("continuationToken").and_then(Value::as_str);
        if let Some(token) = token {
            if let Some(rest) = self.state.rests.get_mut(token) {
                let failure = rest.reply.continuation_failure.take();
                if failure.is_some() {
                    return Chosen {
                        place: rest.place,
                        reply: Reply { failure, ..Reply::default() },
                        blocks: Vec::new(),
                        number: rest.number,
                        whole: None,
                    };
                }
                return Chosen {
                    place: rest.place,
                    reply: Reply { ending: Ending::Complete, ..rest.reply.clone() },
                    blocks: rest.whole.iter().skip(rest.start).cloned().collect(),
                    number: rest.number,
                    whole: Some(rest.whole.clone()),
                };
            }
            let detail = format!("no answer has the continuationToken {token:?}");
            self.state.find(self.number, vec![(Breach::FieldRefused, detail)]);
        }
        let (place, reply) = self.shared.next_reply(self.state, self.number, conversation);
        let mut blocks = self.blocks(protocol, conversation, &reply);
        self.sign(protocol, &reply, &mut blocks);
        for (index, block) in blocks.iter().enumerate() {
            if let Content::Checkpoint(token) = &block.content {
                let rest = Rest {
                    place,
                    reply: reply.clone(),
                    number: self.number,
                    whole: blocks.clone(),
                    start: index + 1,
                };
                self.state.rests.insert(token.clone(), rest);
            }
        }
        Chosen { place, reply, blocks, number: self.number, whole: None }
    }

    /// Gives each block that has a signature one of its own.
    fn sign(&self, protocol: Protocol, reply: &Reply, blocks: &mut [Block]) {
        let number = self.number;
        // Letters and digits in groups of four are valid Base64, which some clients decode.
        let signature = |place: usize| Some(format!("fakeSign{number:04}{place:04}"));
        if protocol != Protocol::Gemini {
            for (place, block) in blocks.iter_mut().enumerate() {
                if matches!(block.content, Content::Reasoning | Content::Redacted) {
                    block.signature = signature(place);
                }
            }
            return;
        }
        if reply.gemini.signature == SignaturePlace::Nowhere {
            return;
        }
        let call = |block: &Block| matches!(block.content, Content::Call(_));
        let text = |block: &Block| block.content == Content::Text;
        let place = blocks.iter().position(call).or_else(|| blocks.iter().rposition(text));
        if let Some((place, block)) = place.and_then(|place| Some((place, blocks.get_mut(place)?)))
        {
            block.signature = signature(place);
        }
    }

    fn side_block(&mut self, conversation: &Conversation) -> Block {
        match side::answer(conversation, &self.shared.script.side_text) {
            SideAnswer::Text(text) => {
                Block { content: Content::Text, bits: vec![Bit::Delta(text)], signature: None }
            }
            SideAnswer::Call { name, input } => {
                let id = format!("side_{}", self.number);
                let sending = Sending::default();
                SentCall { id, name, input, free_text: false, sending }.into_block(None)
            }
        }
    }

    /// The parts of a reply as blocks: adjacent parts of a kind become one block, and tools are
    /// chosen.
    fn blocks(
        &mut self,
        protocol: Protocol,
        conversation: &Conversation,
        reply: &Reply,
    ) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        for (place, part) in reply.parts.iter().enumerate() {
            let (content, bit) = match part {
                Part::Call(call) => {
                    let block = self.call_block(protocol, conversation, reply, &blocks, call);
                    blocks.push(block);
                    continue;
                }
                Part::RedactedReasoning => (Content::Redacted, None),
                Part::Checkpoint if protocol == Protocol::Gemini => {
                    let token = format!("fakeContinue{:04}{place:04}", self.number);
                    (Content::Checkpoint(token), None)
                }
                Part::Checkpoint => continue,
                Part::Text(text) => (Content::Text, Some(Bit::Delta(text.clone()))),
                Part::Json(value) => (Content::Text, Some(Bit::Delta(value.to_string()))),
                Part::Refusal(text) => (Content::Refusal, Some(Bit::Delta(text.clone()))),
                Part::Reasoning(text) => (Content::Reasoning, Some(Bit::Delta(text.clone()))),
                Part::Gate(name) => (Content::Gates, Some(Bit::Gate(name.clone()))),
            };
            match (blocks.last_mut(), bit) {
                (Some(last), Some(bit)) if last.takes(&content) => last.bits.push(bit),
                (_, bit) => {
                    blocks.push(Block {
                        content,
                        bits: bit.into_iter().collect(),
                        signature: None,
                    });
                }
            }
        }
        blocks
    }

    fn call_block(
        &mut self,
        protocol: Protocol,
        conversation: &Conversation,
        reply: &Reply,
        before: &[Block],
        call: &Call,
    ) -> Block {
        let (name, input, gate, sending) = match call {
            Call::Raw { name, input, gate_inside, sending } => {
                (name.clone(), input.clone(), gate_inside, sending)
            }
            Call::Action { action, gate_inside, sending } => {
                let action = match action {
                    Action::WaitAtGate { gate } => {
                        let command = gate::command(self.shared.address, gate);
                        &Action::Shell { command }
                    }
                    action => action,
                };
                match tools::choose(action, &conversation.tools) {
                    Some(chosen) => (chosen.name, chosen.input, gate_inside, sending),
                    None => return self.no_tool(conversation, call),
                }
            }
        };
        let place = CallPlace {
            request: self.number,
            conversation,
            complete: reply.ending == Ending::Complete && !sending.truncated,
        };
        // A request has no id for such a call either, and its reader numbers it by its name.
        let unnamed = (protocol == Protocol::Gemini && reply.gemini.without_call_ids)
            .then(|| conversation.next_unnamed(&name, before.iter().filter_map(Block::call_id)));
        let id = self.state.new_call(&name, &place, unnamed);
        let tool = conversation.tools.iter().find(|tool| tool.name == name);
        let free_text = tool.is_some_and(|tool| tool.schema.is_none());
        let sending = sending.clone();
        SentCall { id, name, input, free_text, sending }.into_block(gate.clone())
    }

    fn no_tool(&mut self, conversation: &Conversation, call: &Call) -> Block {
        let names: Vec<&str> = conversation.tools.iter().map(|tool| tool.name.as_str()).collect();
        let detail = format!("no tool for {call:?} among {}", names.join(", "));
        self.state.find(self.number, vec![(Breach::ActionWithoutTool, detail)]);
        let text = "(no tool for the scripted action)".to_owned();
        Block { content: Content::Text, bits: vec![Bit::Delta(text)], signature: None }
    }

    fn compose(
        &self,
        conversation: &Conversation,
        reply: &Reply,
        blocks: Vec<Block>,
        number: usize,
    ) -> Answer {
        let mut forms = Forms::of(reply);
        forms.responses.phases |= self.shared.script.strict;
        Answer {
            number,
            model: conversation.model.clone().unwrap_or_default(),
            blocks,
            usage: (!reply.without_usage).then_some(reply.usage),
            stop: reply.stop,
            wants_usage: conversation.wants_usage,
            continued: reply.ending == Ending::Continuation,
            forms,
        }
    }

    fn plan(
        &self,
        protocol: Protocol,
        conversation: &Conversation,
        reply: &Reply,
        answer: &Answer,
    ) -> Plan {
        let error = match &reply.ending {
            Ending::Error(error) => Some(protocol.error(error, self.number)),
            Ending::Failure(failure) => Some(protocol.failure(failure, self.number)),
            Ending::Complete | Ending::Cut(_) | Ending::Continuation => None,
        };
        let headers = protocol.headers(self.number);
        if conversation.stream && !reply.whole_json {
            let form = reply.responses.error_event;
            let error = error.map(|error| protocol.error_event(&error, form));
            let steps = play::steps(protocol.stream(answer), reply, error);
            return Plan::Stream { hold: reply.hold.clone(), headers, steps };
        }
        match error {
            Some(error) => Plan::error(error, reply.hold.as_ref()),
            None => plan_without_stream(protocol, headers, answer, reply),
        }
    }
}

/// An answer without a stream: all gates first, then the body, which a cut halves.
fn plan_without_stream(
    protocol: Protocol,
    headers: Vec<Header>,
    answer: &Answer,
    reply: &Reply,
) -> Plan {
    let body = protocol.body(answer);
    let mut beats: Vec<Beat> = reply.hold.iter().map(|gate| Beat::Gate(gate.clone())).collect();
    beats.extend(answer.blocks.iter().flat_map(Block::gates));
    beats.push(Beat::Event(Mark::Text, body.to_string()));
    let mut reply = reply.clone();
    if matches!(reply.ending, Ending::Cut(cut) if cut != Cut::BeforeFirstByte) {
        reply.ending = Ending::Cut(Cut::InText);
    }
    let steps = play::steps(beats, &reply, None);
    Plan::json(200, headers, &body, steps)
}
