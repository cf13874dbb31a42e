//! Calls of the client: what the service asks of the client's form, and how the results reach it.

use std::time::{Duration, Instant};

use interlingua::event::{ErrorClass, Severity};
use serde_json::Value;

use super::runs::Work;
use super::seen::MadeCall;
use super::{GivenResult, Live};
use crate::api::failure::Failure;
use crate::api::http::{Client, Exchange, Received};
use crate::client_tool::MOST_OPEN;
use crate::permission::Decision;
use crate::remote::{Contract, RelayAccess, contract};
use crate::session::{CallOutcome, ClientCall, LateResult, Refused, Wanted};

/// How often a result is sent to a relay that cannot be reached.
const ATTEMPTS: u32 = 5;

/// The delay before the second attempt. It doubles with every further one.
const FIRST_DELAY: Duration = Duration::from_millis(250);

/// How long the relay may take for an answer, besides the time that a slow connection needs for the response.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a slow connection transfers in a second, in bytes.
const SLOW: u64 = 32 << 10;

/// A call that waits for the client.
pub(super) struct OpenCall {
    id: String,
    /// The id of the call at the service.
    request: String,
    tool: String,
}

impl Live {
    /// Gives the calls that were read to the client.
    pub(super) fn take_calls(&mut self) {
        for ended in std::mem::take(&mut self.outlets.seen.ended) {
            // The service does not wait for the result any more.
            self.forget_call(&ended);
        }
        for MadeCall { id, request, tool, input } in std::mem::take(&mut self.outlets.seen.calls) {
            self.open.push(OpenCall { id: id.clone(), request, tool: tool.clone() });
            let is_offered = self.settings.client_tools.iter().any(|known| known.name == tool);
            let call = ClientCall { id: id.clone(), tool, input };
            let wanted = self.pending.add(Wanted::Call(call), self.outlets.last);
            let user = self.input_requests.as_ref().filter(|_| is_offered);
            if self.open.len() > MOST_OPEN {
                let why = format!("{MOST_OPEN} calls wait for the user already: wait for them");
                self.client_ends(&id, &CallOutcome::Failed(why));
            } else if user.is_some_and(|user| user.send(wanted).is_ok()) {
                self.clock.called_client(id, None, Instant::now());
            } else {
                self.client_ends(&id, &CallOutcome::Failed(ClientCall::NO_CLIENT.to_owned()));
            }
            if matches!(self.work, Work::Idle) {
                // The turn has failed, and with it all of its calls.
                return;
            }
        }
    }

    /// Goes on with results for which an earlier program of the session waited.
    pub(super) fn resume(&mut self, results: &[LateResult]) {
        self.work = Work::Paused;
        for result in results {
            let (request, tool) = (result.native_id().to_owned(), result.tool.clone());
            let given = GivenResult { request, tool, outcome: result.outcome.clone() };
            if let Err(why) = self.give(&result.call, given, ATTEMPTS) {
                return self.fail_to_give(&why);
            }
        }
        self.go_on();
    }

    /// The id of the call of the client that is named.
    pub(super) fn pending_call(&self, name: &str) -> Result<String, Refused> {
        self.pending.find(name).map(|wanted| wanted.id().to_owned())
    }

    pub(super) fn client_answers(&mut self, call: &str, answer: Value) {
        self.client_ends(call, &CallOutcome::Output(answer));
    }

    pub(super) fn client_fails(&mut self, call: &str, why: &str) {
        self.client_ends(call, &CallOutcome::Failed(why.to_owned()));
    }

    /// The client has refused a call.
    pub(super) fn client_decides(&mut self, call: &str, decision: Decision) -> Result<(), Refused> {
        let Decision::Deny(reason) = decision else { return Err(Refused::needs_result(call)) };
        let reason = if reason.is_empty() { ClientCall::REFUSED.to_owned() } else { reason };
        self.client_ends(call, &CallOutcome::Denied(reason));
        Ok(())
    }

    /// The client has not answered in time.
    pub(super) fn client_overdue(&mut self, call: &str) {
        self.client_fails(call, ClientCall::OVERDUE);
    }

    /// No client is there any more.
    pub(super) fn fail_client_calls(&mut self) {
        for wanted in self.pending.all() {
            self.client_fails(wanted.id(), ClientCall::NO_CLIENT);
        }
    }

    /// Ends a call. The answer is emitted before the service gets it, so that the log has every answer that
    /// was given.
    fn client_ends(&mut self, id: &str, outcome: &CallOutcome) {
        let Some(OpenCall { request, tool, .. }) = self.forget_call(id) else { return };
        let ended = outcome.to_event(id, |text| self.redactor.redact_text(text).into_owned());
        self.emit(ended.data);
        match self.give(id, GivenResult { request, tool, outcome: outcome.clone() }, ATTEMPTS) {
            Ok(()) => self.go_on(),
            Err(why) => self.fail_to_give(&why),
        }
    }

    fn fail_to_give(&mut self, why: &str) {
        let why = format!("the result of a call cannot be given to the service: {why}");
        self.fail(&Failure::new(ErrorClass::BadRequest, why));
    }

    /// Forgets a call that is not waited for any more.
    fn forget_call(&mut self, id: &str) -> Option<OpenCall> {
        self.clock.resolved(id, Instant::now());
        self.pending.remove(id);
        let at = self.open.iter().position(|call| call.id == id)?;
        Some(self.open.remove(at))
    }

    /// Forgets all calls, whose turn has ended. What the relay still says of their results concerns no later
    /// turn.
    pub(super) fn forget_calls(&mut self) {
        for call in std::mem::take(&mut self.open) {
            self.clock.resolved(&call.id, Instant::now());
        }
        self.pending.clear();
        self.outlets.seen.calls.clear();
        self.outlets.seen.ended.clear();
        self.turn += 1;
        self.in_flight = 0;
    }

    /// Lets the agent at the service go on without the results that it waits for, if that is possible.
    pub(super) fn release_calls(&mut self, cause: &str) {
        if self.settings.contract == Contract::Relay {
            for OpenCall { id, request, tool } in std::mem::take(&mut self.open) {
                let outcome = CallOutcome::Cancelled(cause.to_owned());
                // The turn ends in any case.
                let _ = self.give(&id, GivenResult { request, tool, outcome }, 1);
            }
        }
    }

    /// Gives a result to the service: with the next run, or through its relay.
    fn give(&mut self, id: &str, result: GivenResult, attempts: u32) -> Result<(), String> {
        if self.settings.contract == Contract::Results {
            self.results.push(result);
            return Ok(());
        }
        let relay = self.access.relay.clone().ok_or("the service has not named its relay")?;
        self.settings.check_relay(&relay.url)?;
        let (client, turn, call) = (self.client.clone(), self.turn, id.to_owned());
        self.in_flight += 1;
        self.relayed.spawn(async move {
            let end = relay_result(&client, &relay, &result, attempts).await;
            Relayed { turn, call, end }
        });
        Ok(())
    }

    /// The relay has taken a result, or has not.
    pub(super) fn was_relayed(&mut self, relayed: Relayed) {
        let Relayed { turn, call, end } = relayed;
        if turn != self.turn {
            return;
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        match end {
            RelayEnd::Taken => {}
            RelayEnd::NotAwaited => {
                let text = format!("the service does not wait for the result of {call} any more");
                self.notify(Severity::Warning, &text);
            }
            RelayEnd::Refused(why) => {
                let text = format!(
                    "the service refused the result of {call}, and its agent got an error: {why}"
                );
                self.notify(Severity::Warning, &text);
            }
            RelayEnd::Failed(failure) => {
                let message =
                    format!("the result of {call} did not reach the service: {}", failure.message);
                return self.fail(&Failure { message, ..failure });
            }
        }
        self.go_on();
    }
}

/// What became of a result that was sent to the relay.
pub(super) struct Relayed {
    /// The number of the turn.
    turn: u64,
    /// The emitted id of the call.
    call: String,
    end: RelayEnd,
}

enum RelayEnd {
    /// The relay has taken it.
    Taken,
    /// The agent does not wait for it any more, or has another one.
    NotAwaited,
    /// The relay has refused it, and has taken an error in its place.
    Refused(String),
    /// Nothing has reached the relay.
    Failed(Failure),
}

/// Gives a result to the relay. One that the relay cannot take is replaced by an error, so that the agent does not
/// wait for ever.
async fn relay_result(
    client: &Client,
    relay: &RelayAccess,
    result: &GivenResult,
    attempts: u32,
) -> RelayEnd {
    match respond(client, &relay.url, &result.to_relay(relay), attempts).await {
        Ok(()) => RelayEnd::Taken,
        Err(failure) if failure.http_status == Some(404) => RelayEnd::NotAwaited,
        Err(failure) if matches!(failure.http_status, Some(400 | 413 | 422)) => {
            let why = failure.message.clone();
            let outcome = CallOutcome::Failed(format!("the result was refused: {why}"));
            let error = GivenResult { outcome, ..result.clone() };
            match respond(client, &relay.url, &error.to_relay(relay), attempts).await {
                // A relay that refuses a response of the wrong type has released the agent itself.
                Ok(()) => RelayEnd::Refused(why),
                Err(again) if again.http_status == Some(404) => RelayEnd::Refused(why),
                Err(_) => RelayEnd::Failed(failure),
            }
        }
        Err(failure) => RelayEnd::Failed(failure),
    }
}

/// Sends a response to the relay. A relay that has it already does not wait for it any more.
async fn respond(client: &Client, url: &str, body: &str, attempts: u32) -> Result<(), Failure> {
    let patience = PATIENCE + Duration::from_secs(body.len() as u64 / SLOW);
    let mut attempt = 1;
    loop {
        let exchange = client.send_to(url, Vec::new(), body.to_owned());
        let answered = tokio::time::timeout(patience, response(exchange)).await;
        let failure = match answered {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(failure)) => failure,
            Err(_) => Failure::new(ErrorClass::TimedOut, "its relay did not answer in time"),
        };
        match failure.http_status {
            Some(404) if attempt > 1 => return Ok(()),
            None | Some(429 | 502 | 503 | 504) if attempt < attempts => {}
            _ => return Err(failure),
        }
        tokio::time::sleep(FIRST_DELAY * (1 << (attempt - 1).min(8))).await;
        attempt += 1;
    }
}

async fn response(mut exchange: Exchange) -> Result<(), Failure> {
    loop {
        match exchange.next().await {
            // It only says that the result was taken.
            Received::Bytes(_) => {}
            Received::Ended => return Ok(()),
            Received::Refused { status, headers, body } => {
                return Err(contract::failure(status, &headers, &body));
            }
            Received::Failed(failure) => return Err(failure),
        }
    }
}
