//! Calls of tools that the client runs.
//!
//! A call arrives at the MCP server of the client's tools, or through the driver of an agent that carries
//! the messages of MCP in its own protocol, and suspends the turn until the client has answered. What the agent's stream reports of it is matched by the reader.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use super::{Live, Wake, now_ms, until};
use crate::agent::{ClientToolNeeds, Launch};
use crate::client_tool::{ClientResult, ClientToolOffer, ReceivedCall, ToolMessage};
use crate::driver::ClientToolCall;
use crate::error::Error;
use crate::permission::{Decision, PermissionRequest};
use crate::session::{CallOutcome, ClientCall, Refused, Stop, Wanted};

/// How long an agent that takes prompts before it knows the tools may take to list them.
const LISTED_WITHIN: Duration = Duration::from_secs(20);

/// How long the list takes to be known to the agent.
const LISTING_SETTLES: Duration = Duration::from_millis(50);

/// How long an agent that has given a call up may take to exit. Some give their calls up when they are asked to
/// exit, and such a call waits on without its process.
const GIVING_UP: Duration = Duration::from_secs(3);

/// The calls that wait for the client.
#[derive(Debug)]
pub(super) struct ClientCalls {
    /// Keeps the tools available.
    offer: Arc<ClientToolOffer>,
    messages: mpsc::UnboundedReceiver<ToolMessage>,
    /// What the driver has reported, until what it had printed before has been observed.
    reported: VecDeque<CallMessage>,
    listings: watch::Receiver<u64>,
    /// The list of tools is awaited, before which no prompt is sent.
    awaited: Option<AwaitedList>,
    needs: ClientToolNeeds,
    open: Vec<OpenCall>,
    /// The numbers of calls that the agent has given up, and when they end.
    given_up: VecDeque<(u64, Instant)>,
}

/// A list of tools that an agent has not requested, or has not received for long enough.
#[derive(Debug)]
struct AwaitedList {
    /// It was requested, and is on its way.
    requested: bool,
    /// Until when it is awaited.
    until: Instant,
}

/// A call that the agent waits for.
#[derive(Debug)]
struct OpenCall {
    id: String,
    number: u64,
    waiter: Waiter,
}

/// What waits for the answer to a call.
#[derive(Debug)]
enum Waiter {
    /// The MCP server.
    Server(oneshot::Sender<ClientResult>),
    /// The driver, whose agent calls through its own protocol.
    Driver,
}

/// What an agent reports of its calls, in one of two ways.
#[derive(Debug)]
pub(super) enum CallMessage {
    /// Through the MCP server.
    Server(ToolMessage),
    /// Through its driver, in the process after this number of disconnections.
    Driver(DriverMessage, u64),
    /// A call that it has given up ends, since its process lives on.
    GivenUp(u64),
}

/// What a driver reports of the calls of its agent.
#[derive(Debug)]
pub(super) enum DriverMessage {
    /// The agent calls a tool.
    Called(ClientToolCall),
    /// The agent does not wait for the answer to this call any more.
    Withdrawn(u64),
}

impl ClientCalls {
    /// The calls of a session. An offer is for one session.
    pub(super) fn new(offer: Arc<ClientToolOffer>) -> Result<Self, Error> {
        Ok(Self {
            messages: offer.take_messages().ok_or(Error::ClientToolsTaken)?,
            reported: VecDeque::new(),
            listings: offer.listings(),
            awaited: None,
            needs: ClientToolNeeds::default(),
            open: Vec::new(),
            given_up: VecDeque::new(),
            offer,
        })
    }

    /// A process of the agent was started.
    pub(super) fn begin_epoch(&mut self, launch: &Launch, now: Instant) {
        self.needs = launch.client_tools;
        self.listings.mark_unchanged();
        let awaited = AwaitedList { requested: false, until: now + LISTED_WITHIN };
        self.awaited = self.needs.late.then_some(awaited);
    }

    /// The process was asked to exit. Gemini does not while it is connected.
    pub(super) fn disconnect(&self) {
        self.offer.disconnect();
    }

    /// The process is gone, and nothing waits any more. What it called last is not for the next one.
    pub(super) fn end_epoch(&mut self) {
        self.offer.disconnect();
        self.reported.clear();
        self.open.clear();
        self.given_up.clear();
        self.awaited = None;
    }

    /// Takes what the driver reports.
    pub(super) fn report(&mut self, message: DriverMessage) {
        self.reported.push_back(CallMessage::Driver(message, self.offer.generation()));
    }

    /// Whether a call waits.
    pub(super) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// How long the agent waits for the answer to a call, if it cannot be configured.
    pub(super) fn limit(&self) -> Option<Duration> {
        self.needs.limit
    }

    /// Forgets a call that was answered, or that has ended in another way. If the agent still waits
    /// for it, it learns that no answer comes.
    pub(super) fn forget(&mut self, id: &str) {
        self.open.retain(|call| call.id != id);
    }

    fn take(&mut self, id: &str) -> Option<OpenCall> {
        let at = self.open.iter().position(|call| call.id == id)?;
        let call = self.open.remove(at);
        self.given_up.retain(|(number, _)| *number != call.number);
        Some(call)
    }

    /// The number of a call, if the agent does not wait for it any more.
    fn given_up(&self, id: &str) -> Option<u64> {
        let number = self.open.iter().find(|call| call.id == id)?.number;
        self.given_up.iter().any(|(other, _)| *other == number).then_some(number)
    }
}

/// Waits for a call, or for the tools to be listed. Without tools, forever.
pub(super) async fn wait(calls: Option<&mut ClientCalls>) -> Wake {
    let Some(calls) = calls else { return std::future::pending().await };
    if let Some(message) = calls.reported.pop_front() {
        return Wake::Tool(message);
    }
    let due = calls.awaited.as_ref().map(|awaited| awaited.until);
    let given_up = calls.given_up.front().copied();
    tokio::select! {
        Some(message) = calls.messages.recv() => Wake::Tool(CallMessage::Server(message)),
        Ok(()) = calls.listings.changed(), if due.is_some() => {
            let until = Instant::now() + LISTING_SETTLES;
            calls.awaited = Some(AwaitedList { requested: true, until });
            Wake::Again
        }
        () = until(given_up.map(|(_, due)| due)), if given_up.is_some() => {
            calls.given_up.pop_front();
            given_up.map_or(Wake::Again, |(number, _)| Wake::Tool(CallMessage::GivenUp(number)))
        }
        () = until(due), if due.is_some() => match calls.awaited.take() {
            Some(AwaitedList { requested: false, .. }) => Wake::NoTools,
            _ => Wake::Again,
        },
        else => std::future::pending().await,
    }
}

impl Live {
    /// Whether prompts are held back until the agent knows the tools.
    pub(super) fn awaits_tools(&self) -> bool {
        self.client_calls.as_ref().is_some_and(|calls| calls.awaited.is_some())
    }

    pub(super) fn tools_overdue(&mut self) {
        self.warn("the agent has not asked for the tools of the client, and may not know them");
    }

    /// Whether a permission request is about a call of the client, which can refuse it itself. Its name
    /// would not do: a tool of the agent may have the same one.
    pub(super) fn is_of_client(&self, request: &PermissionRequest) -> bool {
        let Some(calls) = &self.client_calls else { return false };
        let is_offered = calls.offer.tools().iter().any(|tool| tool.name == request.tool);
        is_offered && self.outlets.watch.has_client_call(&request.call)
    }

    pub(super) async fn tool_message(&mut self, message: CallMessage) {
        match message {
            CallMessage::Server(ToolMessage::Called(call)) => {
                let ReceivedCall { number, generation, native, tool, input, answer } = call;
                let call = ClientToolCall { number, native, tool, input };
                self.client_called(call, generation, Waiter::Server(answer));
            }
            CallMessage::Driver(DriverMessage::Called(call), generation) => {
                self.client_called(call, generation, Waiter::Driver);
            }
            CallMessage::Server(ToolMessage::Withdrawn(number))
            | CallMessage::Driver(DriverMessage::Withdrawn(number), _) => {
                let is_ended = self.stop.as_ref().is_some_and(|stop| *stop != Stop::Suspended);
                if self.interrupted || is_ended {
                    self.give_up_call(number);
                } else if let Some(calls) = &mut self.client_calls
                    && calls.open.iter().any(|call| call.number == number)
                {
                    calls.given_up.push_back((number, Instant::now() + GIVING_UP));
                }
            }
            CallMessage::GivenUp(_) if self.stop == Some(Stop::Suspended) => {}
            CallMessage::GivenUp(number) => self.give_up_call(number),
        }
        self.handle_observations().await;
    }

    fn give_up_call(&mut self, number: u64) {
        let calls = self.client_calls.iter().flat_map(|calls| &calls.open);
        let given_up = calls.into_iter().find(|call| call.number == number);
        if let Some(id) = given_up.map(|call| call.id.clone()) {
            let why = "the agent does not wait for this call any more";
            self.end_client_call(&id, &CallOutcome::Cancelled(why.to_owned()));
        }
    }

    /// Ends a call that the agent has given up, before the client answers it.
    pub(super) fn end_given_up(&mut self, id: &str) {
        if let Some(number) = self.client_calls.as_ref().and_then(|calls| calls.given_up(id)) {
            self.give_up_call(number);
        }
    }

    /// Gives the answer to a call to what waits for it.
    fn give(&mut self, number: u64, waiter: Waiter, result: ClientResult) {
        match waiter {
            // It may have been withdrawn in this moment.
            Waiter::Server(answer) => drop(answer.send(result)),
            Waiter::Driver => {
                let (text, failed) = match result {
                    ClientResult::Output(text) => (text, false),
                    ClientResult::Error(text) => (text, true),
                };
                self.call_driver(|driver, steps| {
                    driver.client_answered(number, &text, failed, steps);
                });
            }
        }
    }

    /// The agent calls a tool: the turn waits for the client.
    fn client_called(&mut self, call: ClientToolCall, generation: u64, waiter: Waiter) {
        let ClientToolCall { number, native, tool, input } = call;
        let Some(calls) = self.client_calls.as_ref() else { return };
        let refused = |why: &str| ClientResult::Error(why.to_owned());
        // The process that called is gone, or ends, or its turn has ended before its call arrived.
        let is_late = generation != calls.offer.generation() || !self.in_turn;
        if is_late || self.epoch.is_none() || self.stop.is_some() {
            self.give(number, waiter, refused("no turn is running any more"));
            return;
        }
        let native = native.filter(|_| calls.needs.passes_ids);
        let input = self.redactor.redact_text(&input).into_owned();
        let received =
            interlingua::ClientCall { native: native.as_deref(), tool: &tool, input: &input };
        let (reader, outlets, now) = (&mut self.reader, &mut self.outlets, Some(now_ms()));
        let Ok(id) = reader.client_call(&received, now, outlets);
        let Some(id) = id else {
            self.give(number, waiter, refused("this call has ended already"));
            return;
        };
        let Ok(_) = reader.suspend(now, outlets);
        self.outlets.pass_on(self.record.as_mut(), &mut self.outbox);
        if let Some(calls) = &mut self.client_calls {
            calls.open.push(OpenCall { id: id.clone(), number, waiter });
        }
        let sequence = self.outlets.watch.last();
        let wanted = ClientCall { id: id.clone(), tool, input };
        if !self.ask(Wanted::Call(wanted), sequence) {
            self.client_fails(&id, ClientCall::NO_CLIENT);
        }
    }

    /// The client has run a tool.
    pub(super) fn client_answers(&mut self, id: &str, answer: &Value) {
        self.end_client_call(id, &CallOutcome::Output(answer.clone()));
    }

    /// A tool has failed, or was not run.
    pub(super) fn client_fails(&mut self, id: &str, why: &str) {
        self.end_client_call(id, &CallOutcome::Failed(why.to_owned()));
    }

    /// The client has refused a call.
    pub(super) fn client_decides(&mut self, id: &str, decision: Decision) -> Result<(), Refused> {
        let Decision::Deny(reason) = decision else { return Err(Refused::needs_result(id)) };
        let reason = if reason.is_empty() { ClientCall::REFUSED.to_owned() } else { reason };
        self.end_client_call(id, &CallOutcome::Denied(reason));
        Ok(())
    }

    /// The client has not answered in time.
    pub(super) fn client_overdue(&mut self, id: &str) {
        let limit = self.client_calls.as_ref().and_then(ClientCalls::limit);
        let why = match limit {
            Some(_) => "the user has not answered yet; call this tool again to keep waiting",
            None => ClientCall::OVERDUE,
        };
        self.client_fails(id, why);
    }

    /// Emits the end of a call before the agent learns of it, so that no answer is sent that is not in
    /// the log.
    fn end_client_call(&mut self, id: &str, outcome: &CallOutcome) {
        let call = self.client_calls.as_mut().and_then(|calls| calls.take(id));
        let ended = outcome.to_event(id, |text| self.redactor.redact_text(text).into_owned());
        self.emit(ended);
        self.forget_request(id);
        if let Some(call) = call {
            let (text, failed) = outcome.text();
            let result = if failed { ClientResult::Error } else { ClientResult::Output };
            let text = self.long_results.shown(text).into_owned();
            self.give(call.number, call.waiter, result(text));
        }
    }
}
