//! What a turn of a model API used, and what it cost.

use std::io::{BufRead, BufReader, Read, Write};

use fake_model::{Cut, Reply, Script};
use interlingua::price::Prices;
use interlingua_agents::api::ApiKind;
use serde_json::{Value, json};

use super::Bench;
use super::resume::notices;
use crate::support::{turn_end, within};

const APIS: [ApiKind; 4] = [ApiKind::Anthropic, ApiKind::Responses, ApiKind::Chat, ApiKind::Gemini];

/// A price that no provider has: 1 of input, 2 of output, for any day.
pub(super) fn prices(model: &str) -> Prices {
    let table = format!(
        r#"{{"models": [{{"names": ["{model}"], "periods": [
            {{"rates": {{"input": 1, "output": 2, "cache_read": 0.5}}}}
        ]}}]}}"#
    );
    Prices::builtin().overridden_by(Prices::read(&table).unwrap())
}

/// A reply that calls a tool, so that another request follows.
fn call() -> Reply {
    Reply::call("TodoWrite", json!({"todos": []}))
}

#[tokio::test]
async fn the_cost_of_a_turn_is_that_of_all_its_requests() {
    for api in APIS {
        let replies = [call().usage(1_000, 100), Reply::text("Done.").usage(3_000, 200)];
        let mut bench = Bench::new(api, replies);
        bench.settings.prices = prices("fake-model");
        let (_, events) = bench.run("do it").await;
        let end = turn_end(&events);
        assert_eq!(end["usage"]["input"], 4_000, "{api:?}: {end}");
        assert_eq!(end["usage"]["output"], 300, "{api:?}: {end}");
        let usd = end["cost"]["usd"].as_f64().unwrap();
        assert!((usd - 0.0046).abs() < 1e-12, "{api:?}: {usd}");
        // A list price is not an invoice.
        assert_eq!(end["cost"]["estimated"], true, "{api:?}");
    }
}

#[tokio::test]
async fn an_unknown_model_has_no_cost() {
    let bench = Bench::new(ApiKind::Responses, [Reply::text("Done.").usage(1_000, 100)]);
    let (_, events) = bench.run("do it").await;
    let end = turn_end(&events);
    assert_eq!(end["usage"]["input"], 1_000, "{end}");
    assert_eq!(end.get("cost"), None, "{end}");
}

/// Prices change, and a program may be years old.
#[tokio::test]
async fn a_stale_price_is_used_and_reported() {
    let table = |last: &str| {
        let period = json!({"rates": {"input": 1, "output": 2},
                            "source_date": "2026-01-01", "stale_after": last});
        let table = json!({"models": [{"names": ["fake-model"], "periods": [period]}]});
        Prices::read(&table.to_string()).unwrap()
    };
    let outdated =
        "the price of fake-model was current until 2026-02-01 (its source is of 2026-01-01)";
    for (last, is_reported) in [("2026-02-01", true), ("9999-12-31", false)] {
        let mut bench = Bench::new(ApiKind::Chat, [Reply::text("Done.").usage(1_000_000, 0)]);
        bench.settings.prices = table(last);
        let (_, events) = bench.run("do it").await;
        let cost = &turn_end(&events)["cost"];
        assert_eq!((&cost["usd"], &cost["estimated"]), (&json!(1.0), &json!(true)), "{last}");
        assert_eq!(notices(&events).contains(outdated), is_reported, "{last}: {events:#?}");
    }
}

#[tokio::test]
async fn the_cost_of_another_model_may_have_a_notice_of_its_own() {
    let mut bench = Bench::new(ApiKind::Chat, [Reply::text("Done.")]);
    bench.settings.prices = prices("fake-model");
    bench.settings.limits.cost_usd = Some(0.5);
    let session = bench.open().await;
    session.handle.set_model("other-model").await.unwrap();
    session.handle.prompt("do it").await.unwrap();
    session.handle.finish().await.unwrap();
    let (_, events) = session.end().await;
    let notices = notices(&events);
    assert!(!notices.contains("the price of fake-model"), "{notices}");
    assert!(notices.contains("because the price of other-model is not known"), "{notices}");
}

#[tokio::test]
async fn a_limit_that_cannot_be_enforced_is_reported() {
    let mut bench = Bench::new(ApiKind::Responses, [Reply::text("Done.")]);
    bench.settings.limits.cost_usd = Some(0.5);
    let (_, events) = bench.run("do it").await;
    let is_it = |event: &&Value| {
        let text = event["text"].as_str().unwrap_or_default();
        event["type"] == "notice" && text.contains("limit of $0.5") && text.contains("fake-model")
    };
    assert_eq!(events.iter().filter(is_it).count(), 1, "{events:?}");
}

#[tokio::test]
async fn a_limit_of_the_cost_ends_a_turn() {
    let replies = [call().usage(1_000_000, 0), Reply::text("Too late.")];
    let mut bench = Bench::new(ApiKind::Chat, replies);
    bench.settings.prices = prices("fake-model");
    bench.settings.limits.cost_usd = Some(0.5);
    let (_, events) = bench.run("do it").await;
    let end = turn_end(&events);
    assert_eq!(end["outcome"], "limit_reached", "{end}");
    assert!(end["cause"].as_str().unwrap().contains("$1.0000"), "{end}");
}

#[tokio::test]
async fn what_a_provider_does_not_report_is_estimated() {
    for api in APIS {
        let text = "The quick brown fox jumps over the lazy dog.";
        let bench = Bench::new(api, [Reply::text(text).without_usage()]);
        let (_, events) = bench.run("Which animals are there?").await;
        let end = turn_end(&events);
        let usage = &end["usage"];
        assert_eq!(usage["estimated"], true, "{api:?}: {end}");
        assert_eq!(usage["output"], 10, "{api:?}: {end}");
        // The tools alone have hundreds of tokens.
        assert!(usage["input"].as_u64().unwrap() > 500, "{api:?}: {end}");
    }
}

#[tokio::test]
async fn counts_that_are_reported_are_not_estimated() {
    let bench = Bench::new(ApiKind::Chat, [Reply::text("Done.").usage(7, 3)]);
    let (_, events) = bench.run("do it").await;
    let usage = &turn_end(&events)["usage"];
    assert_eq!((&usage["input"], &usage["output"]), (&7.into(), &3.into()));
    assert_eq!(usage.get("estimated"), None, "{usage}");
}

#[tokio::test]
async fn an_interrupted_request_counts_as_well() {
    let reply = Reply::text("So far").then_gate("half way").then_text(" so good");
    let mut bench = Bench::new(ApiKind::Chat, [reply]);
    bench.settings.prices = prices("fake-model");
    let mut session = bench.open().await;
    session.handle.prompt("do it").await.unwrap();
    session.until(|event| event["type"] == "block_delta").await;
    within(session.handle.interrupt()).await.unwrap();
    session.handle.finish().await.unwrap();
    let (_, events) = session.end().await;
    bench.model.gate("half way").open();
    let end = turn_end(&events);
    assert_eq!(end["outcome"], "cancelled", "{end}");
    assert_eq!(end["usage"]["estimated"], true, "{end}");
    assert!(end["usage"]["input"].as_u64().unwrap() > 500, "{end}");
    assert!(end["cost"]["usd"].as_f64().unwrap() > 0.0, "{end}");
}

/// What the model wrote is paid for, whether its call could be run or not.
#[tokio::test]
async fn the_arguments_of_a_call_that_was_cut_off_count() {
    for api in [ApiKind::Anthropic, ApiKind::Responses, ApiKind::Chat] {
        let content = "one two three four five ".repeat(20);
        let write = Reply::call("Write", json!({"file_path": "out.txt", "content": content}));
        let bench = Bench::new(api, [write.cut(Cut::InCall), Reply::text("Done.").usage(10, 5)]);
        let (_, events) = bench.run("write").await;
        let output = turn_end(&events)["usage"]["output"].as_u64().unwrap();
        // The script cuts the arguments in the last of two pieces.
        assert!(output > 5 + 40, "{api:?}: {output}");
    }
}

#[tokio::test]
async fn the_arguments_of_a_call_count_once() {
    for api in APIS {
        let content = "one two three four five ".repeat(20);
        let write = Reply::call("Write", json!({"file_path": "out.txt", "content": content}));
        let bench = Bench::new(api, [write.without_usage(), Reply::text("Done.").usage(10, 0)]);
        let (_, events) = bench.run("write").await;
        let output = turn_end(&events)["usage"]["output"].as_u64().unwrap();
        assert!((100..130).contains(&output), "{api:?}: {output}");
    }
}

/// A router of requests reports what it charges.
#[tokio::test]
async fn a_reported_cost_is_no_estimate() {
    let chunk = |delta: &str, rest: &str| {
        format!(
            "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{{\"index\":0,\"delta\":{delta}}}]{rest}}}\n\n"
        )
    };
    let body = chunk(r#"{"role":"assistant","content":"Hi."}"#, "")
        + r#"data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,"cost":0.25}}"#
        + "\n\ndata: [DONE]\n\n";
    let reply = Reply::raw(200, &[("content-type", "text/event-stream")], &body);
    let bench = Bench::with_script(ApiKind::Chat, Script::new().reply(reply));
    let (_, events) = bench.run("hi").await;
    let cost = &turn_end(&events)["cost"];
    assert_eq!(cost["usd"], 0.25, "{events:#?}");
    assert_eq!(cost.get("estimated"), None, "{cost}");
}

/// A request that is interrupted was sent, so it is a step of the turn.
#[tokio::test]
async fn an_interrupted_request_is_a_step() {
    for api in APIS {
        let reply = Reply::text("So far").then_gate("half way").then_text(" so good");
        let bench = Bench::new(api, [call(), reply]);
        let mut session = bench.open().await;
        session.handle.prompt("do it").await.unwrap();
        session.until(|event| event["type"] == "block_delta").await;
        within(session.handle.interrupt()).await.unwrap();
        session.handle.finish().await.unwrap();
        let (_, events) = session.end().await;
        assert_eq!(turn_end(&events)["steps"], 2, "{api:?}");
    }
}

/// A server that sends one body per connection. An empty one closes the connection without an answer.
fn serve(bodies: Vec<String>) -> (String, std::thread::JoinHandle<()>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        for body in bodies {
            let (mut connection, _) = listener.accept().unwrap();
            read_request(&mut connection);
            if !body.is_empty() {
                let head =
                    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close";
                write!(connection, "{head}\r\n\r\n{body}").unwrap();
            }
        }
    });
    (address, server)
}

/// Reads a request to its end, so that closing the connection does not reset it.
fn read_request(connection: &mut std::net::TcpStream) {
    let mut reader = BufReader::new(connection);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink()).unwrap();
}

/// A request of which nothing arrives is not counted, although the response that it continues is.
#[tokio::test]
async fn a_continued_response_is_counted_once() {
    let chunk = |text: &str, rest: &str, usage: (u64, u64)| {
        let (input, output) = usage;
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"role\":\"model\",\"parts\":[{{\"text\":\"{text}\"}}]}},\"index\":0,{rest}}}],\"usageMetadata\":{{\"promptTokenCount\":{input},\"candidatesTokenCount\":{output},\"totalTokenCount\":{}}},\"modelVersion\":\"m\",\"responseId\":\"r\"}}\n\n",
            input + output
        )
    };
    let first = r#""continuationToken":"t","finishReason":"CONTINUATION""#;
    let bodies = vec![
        chunk("One ", first, (100, 10)),
        String::new(),
        chunk("two.", r#""finishReason":"STOP""#, (200, 5)),
    ];
    let (address, server) = serve(bodies);
    let mut bench = Bench::new(ApiKind::Gemini, []);
    bench.settings.connection.base_url = address;
    let (ended, events) = bench.run("count").await;
    assert_eq!(ended.code(), 0, "{events:#?}");
    server.join().unwrap();
    assert_eq!(super::of_kind(&events, "retry").len(), 1, "{events:#?}");
    let usage = &turn_end(&events)["usage"];
    assert_eq!((&usage["input"], &usage["output"]), (&300.into(), &15.into()), "{usage}");
    assert_eq!(usage.get("estimated"), None, "{usage}");
}
