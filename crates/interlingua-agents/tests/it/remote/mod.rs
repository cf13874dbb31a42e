//! Remote agents: a scripted service streams runs, and takes the results of the client's tools.

mod calls;
mod endings;
mod failures;
mod turns;

use fake_model::service::{FakeService, Run, Step};
use interlingua_agents::api::{Connection, RetryPolicy};
use interlingua_agents::remote::{Access, Contract, RemoteAgent, RemoteSettings};
use interlingua_agents::{ClientTool, InputRequest, Options};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;

use crate::support::*;

/// A service with a script.
fn service(runs: Vec<Vec<Step>>) -> FakeService {
    FakeService::start(runs.into_iter().map(Run::Stream).collect()).unwrap()
}

fn settings(service: &FakeService, contract: Contract) -> RemoteSettings {
    RemoteSettings {
        connection: Connection {
            base_url: service.address(),
            key: "key-of-the-service-0123".to_owned(),
            missing_key: None,
            headers: Vec::new(),
            certificates: Vec::new(),
            silence: Duration::from_secs(60),
        },
        contract,
        agent_type: None,
        snapshot: None,
        relay_hosts: Vec::new(),
        retries: RetryPolicy { first_delay: Duration::from_millis(1), ..RetryPolicy::default() },
        client_tools: ClientTool::form(),
        access: Access::default(),
        message: None,
    }
}

/// A session with someone who answers.
async fn open(settings: RemoteSettings) -> (Watched, mpsc::UnboundedReceiver<InputRequest>) {
    let (requests, asked) = mpsc::unbounded_channel();
    let options = Options { input_requests: Some(requests), ..options() };
    (Watched::open(RemoteAgent::new(settings), options).await, asked)
}

fn record(record: Value) -> Step {
    Step::Record(record)
}

fn init(session: &str) -> Step {
    record(json!({"type": "init", "session_id": session, "model": "m"}))
}

fn said(text: &str) -> Step {
    record(json!({"type": "message", "role": "assistant", "content": text, "delta": true}))
}

fn asks(request: &str) -> Step {
    record(asked(request))
}

/// Records that arrive together.
fn together(records: &[Value]) -> Step {
    Step::Text(records.iter().map(|record| format!("{record}\n")).collect())
}

fn asked(request: &str) -> Value {
    json!({"type": "snapshot_request", "requestId": request, "instruction": "all"})
}

fn gate(name: &str) -> Step {
    Step::AwaitGate(name.to_owned())
}

fn is(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |event: &Value| event["type"] == kind
}

/// The events of these kinds, in their order.
fn of<'e>(events: &'e [Value], kinds: &[&str]) -> Vec<&'e Value> {
    events.iter().filter(|event| kinds.iter().any(|kind| event["type"] == *kind)).collect()
}
