//! What a test reads of the requests: bodies and headers, and files for their validation.

use std::path::Path;

use fake_model::Reply;
use serde_json::{Value, json};

use crate::support::{Client, Entry, Wire, ask, model, post, request};

#[test]
fn a_request_is_recorded_with_its_headers_and_without_its_key() {
    for (wire, api) in [
        (Wire::Responses, "openai-responses"),
        (Wire::Chat, "openai-chat"),
        (Wire::Messages, "anthropic"),
        (Wire::Gemini, "gemini"),
    ] {
        let model = model([Reply::text("Hi")]);
        let (path, body) = request(wire, &[Entry::User("Hello")]);
        post(&model, &path, &body);
        let recorded = &model.requests()[0];
        assert_eq!(recorded.header("anthropic-version"), Some("2026-10-21"));
        assert_eq!(recorded.header("authorization"), None);
        assert_eq!(recorded.recorded(), Some(json!({"api": api, "body": body})));
    }
}

#[test]
fn requests_for_an_answer_are_written_to_files() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recorded_requests");
    let _ = std::fs::remove_dir_all(&folder);
    // The second model does not overwrite what the first one received.
    for _ in 0..2 {
        let model = model([Reply::text("Hi"), Reply::text("Hi")]);
        ask(&model, Wire::Messages);
        let mut client = Client::new(&model);
        client.write("GET /v1/models HTTP/1.1\r\nx-api-key: dummy\r\n\r\n");
        client.read();
        ask(&model, Wire::Gemini);
        assert_eq!(model.record_requests(&folder, "both").unwrap(), 2);
    }
    let files = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    let mut apis: Vec<_> = files
        .map(|path| {
            let recorded: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            assert!(recorded["body"].is_object());
            recorded["api"].as_str().unwrap().to_owned()
        })
        .collect();
    apis.sort();
    assert_eq!(apis, ["anthropic", "anthropic", "gemini", "gemini"]);
}
