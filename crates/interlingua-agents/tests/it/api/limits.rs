//! The limits of a turn: requests, tokens and cost.

use fake_model::{Cut, FailureClass, Reply};
use interlingua::{Entry, dialect};
use interlingua_agents::api::{ApiKind, Limits};
use serde_json::{Value, json};

use super::golden::laws;
use super::usage::prices;
use super::{APIS, Bench, of_kind, only};

/// A limit that every response exceeds.
fn exhausted(name: &str) -> Limits {
    match name {
        "tokens" => Limits { tokens: Some(1), ..Limits::default() },
        "cost" => Limits { cost_usd: Some(1e-9), ..Limits::default() },
        _ => Limits { requests: Some(1), ..Limits::default() },
    }
}

fn bench(api: ApiKind, limit: &str, replies: [Reply; 2]) -> Bench {
    let mut bench = Bench::new(api, replies);
    bench.settings.prices = prices("fake-model");
    bench.settings.limits = exhausted(limit);
    bench
}

fn log(events: &[Value]) -> Vec<Entry> {
    events.iter().map(|event| serde_json::from_str(&event.to_string()).unwrap()).collect()
}

/// The result in a dialect with one record per line.
fn result(events: &[Value], to: &str) -> Value {
    let written = laws::write(dialect::find(to).unwrap(), &log(events), false);
    laws::records(&written).into_iter().find(|it| it["type"] == "result").unwrap()
}

#[tokio::test]
async fn a_limit_is_named_for_every_consumer() {
    let cases = [
        ("requests", "max_turns", "error_max_turns"),
        ("cost", "budget_exhausted", "error_max_budget_usd"),
    ];
    for api in APIS {
        for (limit, reason, subtype) in cases {
            let call = Reply::call("TodoWrite", json!({"todos": []}));
            let bench = bench(api, limit, [call, Reply::text("Too late.")]);
            let (ended, events) = bench.run("go on").await;
            assert_eq!(ended.code(), 1, "{api:?} {limit}");
            let end = only(&events, "turn_ended");
            assert_eq!(end["outcome"], "limit_reached", "{api:?} {limit}");
            assert_eq!(end["reason"], reason, "{api:?} {limit}");
            for to in ["claude", "yume"] {
                assert_eq!(result(&events, to)["subtype"], subtype, "{api:?} -> {to}");
            }
        }
    }
}

#[tokio::test]
async fn a_limit_of_tokens_ends_a_turn() {
    for api in APIS {
        let call = Reply::call("TodoWrite", json!({"todos": []})).usage(30, 12);
        let mut bench = bench(api, "tokens", [call, Reply::text("Too late.")]);
        bench.settings.limits.tokens = Some(42);
        let (_, events) = bench.run("go on").await;
        let end = only(&events, "turn_ended");
        assert_eq!(
            (&end["outcome"], &end["reason"]),
            (&json!("limit_reached"), &json!("max_tokens"))
        );
        assert!(end["cause"].as_str().unwrap().contains("used 42 tokens"), "{api:?}: {end}");
        assert_eq!(bench.model.main_requests().len(), 1, "{api:?}");
        // It is the limit of the turn, and not that of the last message, which is complete.
        let written = laws::write(dialect::find("claude").unwrap(), &log(&events), true);
        let stops: Vec<_> = laws::records(&written)
            .iter()
            .filter_map(|it| it.pointer("/event/delta/stop_reason").cloned())
            .collect();
        assert_eq!(stops, ["tool_use"], "{api:?}");
    }
}

/// A response that breaks off costs as much as any other.
#[tokio::test]
async fn a_request_is_not_repeated_beyond_a_limit() {
    for api in APIS {
        for limit in ["tokens", "cost"] {
            let cut = Reply::text("The answer is fo").then_text("rty").cut(Cut::InText);
            let bench = bench(api, limit, [cut, Reply::text("The answer is 42.")]);
            let (_, events) = bench.run("go on").await;
            let end = only(&events, "turn_ended");
            assert_eq!(end["outcome"], "limit_reached", "{api:?} {limit}: {events:#?}");
            assert!(of_kind(&events, "retry").is_empty(), "{api:?} {limit}");
            assert_eq!(bench.model.main_requests().len(), 1, "{api:?} {limit}");
        }
    }
}

/// What fails before it is answered costs nothing, and is no step of the turn.
#[tokio::test]
async fn a_failed_request_does_not_count() {
    for api in APIS {
        for limit in ["tokens", "cost", "requests"] {
            let failure = Reply::failure(FailureClass::Overloaded);
            let bench = bench(api, limit, [failure, Reply::text("Hello.")]);
            let (ended, events) = bench.run("hi").await;
            assert_eq!(ended.code(), 0, "{api:?} {limit}: {events:#?}");
            assert_eq!(only(&events, "turn_ended")["steps"], 1, "{api:?} {limit}");
        }
    }
}
