//! Remote agents of served sessions: a scripted service with the contract of the Giselle API, or another server of
//! ours. The three verifications of seed 001, and its round trip, for the provider.

use std::time::Instant;

use fake_model::service::{FakeService, Run, Step};
use serde_json::{Value, json};

use super::agent_api;
use super::desk::{Desk, PATIENCE};

/// A desk whose agent is described by the address of a service.
fn desk(url: &str, contract: u8) -> Desk {
    desk_with(&format!(
        "url = {url:?}\ncontract = {contract}\ntoken-variable = \"SERVICE_TOKEN\"\n"
    ))
}

fn desk_with(description: &str) -> Desk {
    let mut desk = Desk::prepared();
    std::fs::write(desk.path("cloud.toml"), description).unwrap();
    desk.agent = desk.path("cloud.toml").display().to_string();
    desk.environment.push(("SERVICE_TOKEN", crate::http::TOKEN.to_owned()));
    desk.start();
    desk
}

fn service(runs: Vec<Vec<Step>>) -> FakeService {
    FakeService::start(runs.into_iter().map(Run::Stream).collect()).unwrap()
}

fn record(record: Value) -> Step {
    Step::Record(record)
}

fn init() -> Step {
    record(json!({"type": "init", "session_id": "gem-123", "model": "m"}))
}

fn said(text: &str) -> Step {
    record(json!({"type": "message", "role": "assistant", "content": text, "delta": true}))
}

fn asks() -> Step {
    record(
        json!({"type": "snapshot_request", "requestId": "req-1", "instruction": "Fill the login form"}),
    )
}

fn create(desk: &Desk) -> String {
    let tools = json!(["getFormSnapshot", "executeFormActions"]);
    desk.create_with(
        "k1",
        json!({"agent": desk.agent, "prompt": "Fill the login form", "tools": tools}),
    )
}

/// The session, once it waits for its client. It does so when its entries are stored.
fn until_waiting(desk: &Desk, id: &str) -> Value {
    // Asking all the time would use up what the token may ask.
    desk.until(id, has("suspended"));
    let begun = Instant::now();
    loop {
        let session = desk.session(id);
        if session["state"] == "waiting" {
            return session;
        }
        assert!(begun.elapsed() < PATIENCE, "{session}");
        std::thread::yield_now();
    }
}

fn has(kind: &str) -> impl Fn(&[Value]) -> bool {
    move |events: &[Value]| events.iter().any(|event| event["type"] == kind)
}

/// What an AI SDK client reads of a session.
fn parts(desk: &Desk, id: &str) -> Vec<Value> {
    let answer =
        desk.request("GET", &format!("/v1/sessions/{id}/events?dialect=ai-sdk&turn=1"), None, None);
    serde_json::from_value(answer.json()).unwrap()
}

fn kinds(parts: &[Value]) -> Vec<&str> {
    let kinds = parts.iter().map(|part| part["type"].as_str().unwrap());
    kinds.filter(|kind| !["stream-start", "response-metadata", "raw"].contains(kind)).collect()
}

fn answer(desk: &Desk, id: &str, key: &str) {
    let fields = json!({"type": "answer", "request": "req-1", "answer": {"fields": []}});
    let answered = desk.command(id, key, fields);
    assert_eq!(answered.status, 202, "{}", answered.text());
}

/// The session of seed 001 is deleted with its stream; ours is kept for the next prompt.
#[test]
fn new_session_text_only_stream() {
    let service = service(vec![
        vec![Step::Relay, init(), said("Hello "), said("world!")],
        vec![said("Again.")],
    ]);
    let desk = desk(&service.address(), 1);
    let id = create(&desk);
    desk.until(&id, has("turn_ended"));
    let parts = parts(&desk, &id);
    let all = kinds(&parts);
    assert_eq!(all, ["text-start", "text-delta", "text-delta", "text-end", "finish"], "{parts:?}");
    assert_eq!(parts.last().unwrap()["finishReason"]["unified"], "stop", "{parts:?}");
    assert_eq!(service.runs()[0].body["message"], "Fill the login form");
    assert_eq!(desk.session(&id)["state"], "idle");
    assert_eq!(desk.session(&id)["nativeIds"], json!(["gem-123"]));
    desk.prompt(&id, "and now?", "k2");
    desk.until(&id, |events| {
        events.iter().filter(|event| event["type"] == "turn_ended").count() == 2
    });
    assert_eq!(service.runs()[1].body["session_id"], "gem-123");
}

#[test]
fn new_session_tool_call_pause() {
    let pause =
        vec![Step::Relay, init(), said("I'll fill"), asks(), Step::AwaitGate("never".to_owned())];
    let service = service(vec![pause]);
    let desk = desk(&service.address(), 1);
    let id = create(&desk);
    desk.until(&id, has("suspended"));
    let waits = until_waiting(&desk, &id);
    let expected = json!([{"for": "clientTool", "request": "req-1", "tool": "getFormSnapshot"}]);
    assert_eq!(waits["waiting"], expected);
    let parts = parts(&desk, &id);
    let all = kinds(&parts);
    assert!(all.ends_with(&["text-end", "tool-call", "finish"]), "{parts:?}");
    let finish = parts.last().unwrap();
    assert_eq!(finish["finishReason"]["unified"], "tool-calls", "{finish}");
    // The token of the relay is in no entry.
    let events = serde_json::to_string(&desk.events(&id)).unwrap();
    assert!(!events.contains("relay-token"), "{events}");
}

#[test]
fn resume_hot_path() {
    let waits = Step::AwaitResponse("req-1".to_owned());
    let service = service(vec![vec![Step::Relay, init(), asks(), waits, said("Done!")]]);
    let desk = desk(&service.address(), 1);
    let id = create(&desk);
    until_waiting(&desk, &id);
    answer(&desk, &id, "k2");
    let events = desk.until(&id, has("turn_ended"));
    assert_eq!(service.runs().len(), 1, "the same response went on");
    let relayed = service.relayed();
    let expected = json!({"type": "snapshot_response", "requestId": "req-1", "fields": []});
    assert_eq!((relayed.len(), &relayed[0]["response"]), (1, &expected));
    let ended = events.iter().find(|event| event["type"] == "turn_ended").unwrap();
    assert_eq!(ended["outcome"], "completed");
    assert_eq!(desk.session(&id)["state"], "idle");
    // What a client reads behind the answer.
    let parts = parts(&desk, &id);
    let all = kinds(&parts);
    assert!(all.ends_with(&["text-start", "text-delta", "text-end", "finish"]), "{parts:?}");
    let text = parts.iter().rfind(|part| part["type"] == "text-delta").unwrap();
    assert_eq!(text["delta"], "Done!");
    assert_eq!(parts.last().unwrap()["finishReason"]["unified"], "stop", "{parts:?}");
}

/// The server is killed while the client has a call to answer. The token of the relay is in its record, sealed.
#[test]
fn resume_cold_path() {
    for contract in [1, 3] {
        let pause = vec![Step::Relay, init(), asks(), Step::AwaitGate("never".to_owned())];
        let service = service(vec![pause, vec![Step::Relay, init(), said("Done!")]]);
        let mut desk = desk(&service.address(), contract);
        let id = create(&desk);
        until_waiting(&desk, &id);
        let stored = std::fs::read(&desk.store).unwrap();
        let wal = std::fs::read(desk.store.with_extension("db-wal")).unwrap_or_default();
        let token = b"relay-token-of-the-fake-service";
        let is_stored = |bytes: &[u8]| bytes.windows(token.len()).any(|window| window == token);
        assert!(!is_stored(&stored) && !is_stored(&wal), "the token is stored");
        desk.kill();
        desk.start();
        until_waiting(&desk, &id);
        answer(&desk, &id, "k2");
        let completed = |events: &[Value]| {
            events
                .iter()
                .any(|event| event["type"] == "turn_ended" && event["outcome"] == "completed")
        };
        let events = desk.until(&id, completed);
        let ends = events.iter().filter(|event| event["type"] == "tool_ended").count();
        assert_eq!(ends, 1, "{events:?}");
        let runs = service.runs();
        assert_eq!((runs.len(), &runs[1].body["message"]), (2, &json!("Fill the login form")));
        if contract == 1 {
            assert_eq!(runs[1].body["session_id"], "gem-123");
            assert_eq!(service.relayed().len(), 1);
        } else {
            assert_eq!(runs[1].body["chat_id"], runs[0].body["chat_id"]);
            assert_eq!(runs[1].body["tool_results"][0]["toolCallId"], "req-1");
        }
    }
}

/// The service is another server of ours: its agent fills in the form of the client of this one.
#[test]
fn seed_001_round_trip() {
    for contract in [1, 3] {
        let cloud = agent_api::desk();
        let url = format!("http://{}/agent-api", cloud.address.get().unwrap());
        let desk = desk_with(&format!(
            "url = {url:?}\ncontract = {contract}\nagent = {:?}\ntoken-variable = \"SERVICE_TOKEN\"\n",
            cloud.agent
        ));
        let tools = json!(["getFormSnapshot", "executeFormActions"]);
        let id =
            desk.create_with("k1", json!({"agent": desk.agent, "prompt": "fill", "tools": tools}));
        let says = |events: &[Value]| events.iter().any(|event| event["text"] == "I fill.");
        desk.until(&id, says);
        let call = agent_api::Tools::connect(&cloud).call();
        let waits = until_waiting(&desk, &id);
        let request = waits["waiting"][0]["request"].as_str().unwrap();
        let answer = json!({"fields": [{"label": "colour-4711"}]});
        let command = json!({"type": "answer", "request": request, "answer": answer});
        assert_eq!(desk.command(&id, "k2", command).json()["status"], "delivered");
        let answered = agent_api::read(call);
        assert_eq!(answered.matches("colour-4711").count(), 1, "{answered}");
        // The next run has begun, so that the agent does not end its turn before.
        let runs = |events: &[Value]| {
            events.iter().filter(|event| event["relay"] != Value::Null).count() == 2
        };
        desk.until(&id, runs);
        std::fs::write(cloud.path("go"), "\n").unwrap();
        let events = desk.until(&id, has("turn_ended"));
        let text: String = events
            .iter()
            .filter_map(|event| {
                event["text"]
                    .as_str()
                    .filter(|_| event["type"] == "block_delta" || event["type"] == "block")
            })
            .collect();
        assert_eq!(text, "I fill.Done.", "{events:?}");
        let ended = events.iter().find(|event| event["type"] == "turn_ended").unwrap();
        assert_eq!(ended["outcome"], "completed");
        assert!(has("artifact")(&desk.until(&id, has("artifact"))));
    }
}

#[test]
fn a_service_with_other_tools_than_those_of_the_contract_is_refused() {
    let service = service(Vec::new());
    let desk = desk(&service.address(), 1);
    let tools = json!([{"name": "askColour"}]);
    let body = json!({"agent": desk.agent, "prompt": "x", "tools": tools});
    let refused = desk.request("POST", "/v1/sessions", Some("k1"), Some(body));
    assert!(refused.status >= 400 && refused.text().contains("askColour"), "{}", refused.text());
}
