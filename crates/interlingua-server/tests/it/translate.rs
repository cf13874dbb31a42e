//! Translations, while they are sent.

use std::path::Path;

use interlingua::{Exit, Options, Source, Translator, dialect};
use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{ADMIN, Answer, serve, serve_with, written};

fn input(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../transcripts").join(name);
    std::fs::read(folder.join("input.jsonl")).unwrap()
}

#[tokio::test]
async fn every_dialect_is_translated_as_by_the_library() {
    let server = serve().await;
    let input = input("codex/tool-parallel");
    for to in written() {
        for from in ["", "&from=codex"] {
            let request =
                server.request(Method::POST, &format!("/v1/translate?to={}{from}", to.name));
            let answer = Answer::of(request.body(input.clone()).send().await.unwrap()).await;
            assert_eq!(answer.status, 200);
            let mut translator =
                Translator::new(Source::named("codex").unwrap(), to, Options::default()).unwrap();
            let mut expected = translator.push(&input, None).to_vec();
            expected.extend(translator.finish(&Exit::default(), None).bytes);
            assert_eq!(answer.text(), String::from_utf8(expected).unwrap(), "{}", to.name);
        }
    }
}

#[tokio::test]
async fn records_arrive_while_the_body_is_sent() {
    let server = serve().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /v1/translate?from=codex&to=ai-sdk HTTP/1.1\r\nhost: localhost\r\n\
         authorization: Bearer {ADMIN}\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let line = "{\"type\":\"thread.started\",\"thread_id\":\"t1\"}\n";
    stream.write_all(format!("{:x}\r\n{line}\r\n", line.len()).as_bytes()).await.unwrap();
    let mut answer = String::new();
    while !answer.contains("stream-start") {
        let mut chunk = [0; 4096];
        let length = stream.read(&mut chunk).await.unwrap();
        assert!(length > 0, "{answer}");
        answer.push_str(std::str::from_utf8(&chunk[..length]).unwrap());
    }
    assert!(answer.contains("application/x-ndjson"));
}

#[tokio::test]
async fn wrong_translations_are_rejected() {
    let server = serve_with(|settings| settings.limits.translate_bytes = 1000).await;
    for query in ["", "?to=klingon", "?to=codex", "?to=text&from=klingon", "?to=text&from=text"] {
        let request = server.request(Method::POST, &format!("/v1/translate{query}")).body("x");
        let answer = Answer::of(request.send().await.unwrap()).await;
        assert_eq!(answer.error(), (400, "unknown_dialect".to_owned()), "{query}");
    }
    let request = server.request(Method::POST, "/v1/translate?to=text").body("x".repeat(1001));
    let answer = Answer::of(request.send().await.unwrap()).await;
    assert_eq!(answer.error(), (413, "body_too_large".to_owned()));
    assert!(dialect::find("codex").unwrap().encoder.is_none());
}

/// A translation whose input stays away is cut off, so that it does not look complete.
#[tokio::test]
async fn an_input_that_is_silent_for_too_long_is_cut_off() {
    // The passing of time is what is tested.
    let silence = std::time::Duration::from_millis(50);
    let server = serve_with(|settings| settings.limits.translate_silence = silence).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /v1/translate?from=codex&to=ai-sdk HTTP/1.1\r\nhost: localhost\r\n\
         authorization: Bearer {ADMIN}\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    let line = "{\"type\":\"thread.started\",\"thread_id\":\"t1\"}\n";
    let begin = format!("{head}{:x}\r\n{line}\r\n", line.len());
    stream.write_all(begin.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    let read = tokio::time::timeout(std::time::Duration::from_secs(30), read).await;
    // The connection may be closed or reset.
    let _ = read.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.contains("stream-start"), "{answer}");
    assert!(!answer.ends_with("0\r\n\r\n"), "the last chunk would complete it: {answer}");
}
