//! HTTP in the forms that agents use.

use std::io::Write;

use fake_model::{Kind, Outcome, Reply};
use serde_json::{Value, json};

use crate::support::{self, Client, Entry, Wire, ask, found, model, parsed_answer, request, soon};

fn body() -> String {
    request(Wire::Chat, &[Entry::User("Hello")]).1.to_string()
}

fn head(more: &str) -> String {
    format!("POST /v1/chat/completions HTTP/1.1\r\nauthorization: Bearer dummy\r\n{more}\r\n\r\n")
}

#[test]
fn a_connection_carries_many_requests() {
    for wire in Wire::ALL {
        let model = model([Reply::text("one"), Reply::error(429, "no"), Reply::text("two")]);
        let (path, body) = request(wire, &[Entry::User("Hello")]);
        let mut client = Client::new(&model);
        assert_eq!(parsed_answer(wire, &client.post(&path, &body)).text, "one");
        assert_eq!(client.post(&path, &body).status, 429);
        assert_eq!(parsed_answer(wire, &client.post(&path, &body)).text, "two");
    }
}

#[test]
fn a_body_in_chunks_is_read_completely() {
    let model = model([Reply::text("ok"), Reply::text("again")]);
    let mut client = Client::new(&model);
    let body = body();
    let (first, second) = body.split_at(30);
    client.write(&head("transfer-encoding: chunked"));
    for part in [first, second] {
        client.write(&format!("{:x};note=1\r\n{part}\r\n", part.len()));
    }
    client.write("0\r\ntrailer: x\r\n\r\n");
    assert_eq!(parsed_answer(Wire::Chat, &client.read()).text, "ok");
    assert_eq!(model.requests()[0].body, serde_json::from_str::<Value>(&body).unwrap());
    client.write(&format!("{}{body}", head(&format!("content-length: {}", body.len()))));
    assert_eq!(parsed_answer(Wire::Chat, &client.read()).text, "again");
}

#[test]
fn a_head_may_arrive_byte_by_byte() {
    let model = model([Reply::text("ok")]);
    let mut client = Client::new(&model);
    let body = body();
    for byte in format!("{}{body}", head(&format!("content-length: {}", body.len()))).chars() {
        client.write(&byte.to_string());
    }
    assert_eq!(parsed_answer(Wire::Chat, &client.read()).text, "ok");
}

#[test]
fn a_client_that_waits_for_continue_gets_it() {
    let model = model([Reply::text("ok")]);
    let mut client = Client::new(&model);
    let body = body();
    let more = format!("expect: 100-continue\r\ncontent-length: {}", body.len());
    client.write(&head(&more));
    let interim = client.read_head();
    assert!(interim.starts_with("HTTP/1.1 100 "));
    client.write(&body);
    assert_eq!(parsed_answer(Wire::Chat, &client.read()).text, "ok");
}

#[test]
fn compressed_bodies_are_read_or_refused_with_a_reason() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(body().as_bytes()).unwrap();
    let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    deflate.write_all(body().as_bytes()).unwrap();
    for (encoding, bytes, status) in [
        ("gzip", gzip.finish().unwrap(), 200),
        ("deflate", deflate.finish().unwrap(), 200),
        ("gzip", b"not gzip".to_vec(), 415),
        ("zstd", b"any".to_vec(), 415),
    ] {
        let model = model([Reply::text("ok")]);
        let mut client = Client::new(&model);
        let length = bytes.len();
        let more = format!("content-encoding: {encoding}\r\ncontent-length: {length}");
        client.write(&head(&more));
        client.stream.write_all(&bytes).unwrap();
        let response = client.read();
        assert_eq!(response.status, status, "{encoding}");
        if status == 415 {
            assert!(response.body.contains(encoding), "{}", response.body);
            assert_eq!(found(&model), ["body-unreadable"]);
        }
    }
}

#[test]
fn an_unknown_path_is_refused_and_recorded() {
    let model = model([]);
    let mut client = Client::new(&model);
    client.write("GET /api/hello?key=dummy HTTP/1.1\r\nx-note: n\r\n\r\n");
    let response = client.read();
    assert_eq!(response.status, 404);
    assert!(response.json()["error"]["message"].as_str().unwrap().contains("/api/hello"));
    let request = &model.requests()[0];
    assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/api/hello"));
    assert_eq!(request.headers, [("x-note".to_owned(), "n".to_owned())]);
    assert_eq!((&request.kind, request.protocol), (&Kind::Unknown, None));
    assert_eq!(found(&model), Vec::<&str>::new());
}

/// Claude checks with HEAD whether the server is reachable.
#[test]
fn an_answer_to_head_has_no_body() {
    let model = model([Reply::text("ok")]);
    let mut client = Client::new(&model);
    client.write("HEAD /api/hello HTTP/1.1\r\n\r\n");
    assert!(client.read_head().starts_with("HTTP/1.1 404 "));
    let (path, body) = request(Wire::Chat, &[Entry::User("Hello")]);
    assert_eq!(parsed_answer(Wire::Chat, &client.post(&path, &body)).text, "ok");
}

#[test]
fn models_are_listed_in_the_form_of_the_path() {
    let model = model([]);
    let mut client = Client::new(&model);
    client.write("GET /v1/models HTTP/1.1\r\nauthorization: Bearer dummy\r\n\r\n");
    assert_eq!(client.read().json()["data"][0]["id"], json!("fake-model"));
    client.write("GET /v1beta/models?key=dummy HTTP/1.1\r\n\r\n");
    assert_eq!(client.read().json()["models"][0]["name"], json!("models/fake-model"));
    assert_eq!(found(&model), Vec::<&str>::new());
}

#[test]
fn tokens_are_counted() {
    let model = model([]);
    let mut client = Client::new(&model);
    let messages = client.post("/v1/messages/count_tokens", &json!({"messages": []})).json();
    assert!(messages["input_tokens"].is_u64());
    let gemini = client.post("/v1beta/models/m:countTokens", &json!({"contents": []})).json();
    assert!(gemini["totalTokens"].is_u64());
    assert!(model.requests().iter().all(|request| request.kind == Kind::CountTokens));
}

#[test]
fn any_prefix_of_the_path_is_accepted() {
    for wire in Wire::ALL {
        let model = model([Reply::text("ok")]);
        let (path, body) = request(wire, &[Entry::User("Hello")]);
        let response = support::post(&model, &format!("/s/run~1{path}"), &body);
        assert_eq!(parsed_answer(wire, &response).text, "ok", "{wire:?}");
    }
}

#[test]
fn agents_may_connect_concurrently() {
    let script = (0..8).fold(fake_model::Script::new(), |script, _| {
        script.reply(Reply::text("ok").then_gate("all").then_text("!"))
    });
    let model = support::start(script);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| ask(&model, Wire::Messages))).collect();
        assert!(model.wait_for_request(7, soon()).is_some());
        model.gate("all").open();
        for thread in threads {
            assert_eq!(parsed_answer(Wire::Messages, &thread.join().unwrap()).text, "ok!");
        }
    });
    assert_eq!(model.wait_for_outcome(7, soon()), Some(Outcome::Sent));
}

#[test]
fn an_invalid_request_closes_only_its_connection() {
    let model = model([Reply::text("ok")]);
    let mut client = Client::new(&model);
    client.write("\x16\x03\x01 this is not HTTP\r\n\r\n");
    assert_eq!(client.read().status, 0);
    assert_eq!(parsed_answer(Wire::Chat, &ask(&model, Wire::Chat)).text, "ok");
}
