//! Turns, calls and counts, as every model API reports them.

use fake_model::Reply;
use interlingua_agents::Prompt;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{APIS, Bench, of_kind, only, text};
use crate::support::within;

#[tokio::test]
async fn a_text_is_streamed() {
    for api in APIS {
        let reply = Reply::new().then_reasoning("Let me see.").then_text("Hel").then_text("lo");
        let bench = Bench::new(api, [reply.usage(120, 30).cached(100).reasoning_tokens(8)]);
        let (ended, events) = bench.run("hi").await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert_eq!(text(&events), "Hello");
        let end = only(&events, "turn_ended");
        assert_eq!(end["outcome"], "completed");
        let usage = &end["usage"];
        assert_eq!(
            (&usage["input"], &usage["cache_read"], &usage["output"]),
            (&json!(20), &json!(100), &json!(30))
        );
        assert_eq!(end["by_model"][0]["model"], "fake-model");
        assert_eq!(only(&events, "user_message")["text"], "hi");
        let started = only(&events, "session_started");
        assert_eq!(started["agent"], api.dialect_name());
        assert!(started["tools"].as_array().unwrap().contains(&json!("Read")));
        bench.check("text");
    }
}

#[tokio::test]
async fn a_call_is_run_and_its_result_is_sent_back() {
    for api in APIS {
        let calls = Reply::new()
            .then_reasoning("I look.")
            .then_text("I look.")
            .then_call("Read", json!({"file_path": "note.txt"}));
        let bench = Bench::new(api, [calls.usage(10, 5), Reply::text("It is done.").usage(20, 7)]);
        bench.write("note.txt", "the secret word is plum\n");
        let (ended, events) = bench.run("read it").await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert_eq!(text(&events), "I look.|It is done.");
        assert_eq!(only(&events, "tool_started")["name"], "Read");
        assert_eq!(only(&events, "tool_started")["executor"], "agent");
        let result = only(&events, "tool_ended");
        assert_eq!(result["status"], "completed");
        assert!(result["output"].as_str().unwrap().contains("plum"));
        assert!(bench.model.tool_results()[0].text.as_deref().unwrap().contains("plum"));
        let end = only(&events, "turn_ended");
        assert_eq!((&end["usage"]["output"], &end["steps"]), (&json!(12), &json!(2)));
        bench.check("call");
    }
}

#[tokio::test]
async fn parallel_calls_have_one_result_each() {
    for api in APIS {
        let call = |name: &str| json!({"file_path": name});
        let calls = Reply::call("Read", call("a.txt")).then_call("Read", call("b.txt"));
        let calls = calls.then_call("Write", json!({"file_path": "c.txt", "content": "new"}));
        let calls = calls.then_call("Read", call("c.txt"));
        let bench = Bench::new(api, [calls, Reply::text("Done.")]);
        bench.write("a.txt", "apple");
        bench.write("b.txt", "birch");
        let (ended, events) = bench.run("go").await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        let outputs: Vec<_> = bench.model.tool_results();
        let texts: Vec<_> = outputs.iter().map(|result| result.text.clone().unwrap()).collect();
        // The last one sees what the one before it wrote.
        for (text, word) in texts.iter().zip(["apple", "birch", "c.txt", "new"]) {
            assert!(text.contains(word), "{api:?}: {texts:?}");
        }
        assert_eq!(of_kind(&events, "tool_ended").len(), 4);
        let change = &only(&events, "files_changed")["changes"][0];
        assert!(change["diff"].as_str().unwrap().contains("+new"), "{change}");
        bench.check("parallel");
    }
}

/// A server that answers as soon as two requests have arrived, and waits for the second one otherwise.
async fn answers_in_pairs() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut waiting = Vec::new();
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let _ = stream.read(&mut request).await.unwrap();
            waiting.push(stream);
        }
        for mut stream in waiting {
            let response = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nboth are here";
            stream.write_all(response).await.unwrap();
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn calls_that_only_read_run_at_the_same_time() {
    for api in APIS {
        let address = answers_in_pairs().await;
        let page = |name: &str| json!({"url": format!("{address}/{name}"), "prompt": "Read it."});
        let calls = Reply::call("WebFetch", page("a")).then_call("WebFetch", page("b"));
        let mut bench = Bench::new(api, [calls, Reply::text("Done.")]);
        let tools = &mut bench.settings.tools;
        (tools.web_fetch, tools.private_addresses) = (true, true);
        let (ended, events) = within(bench.run("fetch")).await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        let outputs = of_kind(&events, "tool_ended");
        assert_eq!(outputs.len(), 2, "{api:?}");
        for output in outputs {
            assert!(output["output"].as_str().unwrap().contains("both are here"), "{output}");
        }
        bench.check("at-the-same-time");
    }
}

#[tokio::test]
async fn calls_that_change_something_run_in_their_order() {
    for api in APIS {
        let write = |text: &str| json!({"file_path": "a.txt", "content": text});
        let append = json!({"command": "echo three >> a.txt"});
        let calls = Reply::call("Write", write("one\n")).then_call("Write", write("two\n"));
        let calls = calls.then_call("Bash", append);
        let calls = calls.then_call("Read", json!({"file_path": "a.txt"}));
        let bench = Bench::new(api, [calls, Reply::text("Done.")]);
        let (ended, events) = bench.run("write").await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert_eq!(std::fs::read_to_string(bench.path("a.txt")).unwrap(), "two\nthree\n");
        let read = bench.model.tool_results()[3].text.clone().unwrap();
        assert!(read.contains("two") && read.contains("three"), "{api:?}: {read}");
        bench.check("in-order");
    }
}

/// What a tool reads may be more than text.
#[tokio::test]
async fn images_and_documents_that_a_tool_reads_reach_the_model() {
    for api in APIS {
        let read = |name: &str| json!({"file_path": name});
        let calls = Reply::call("Read", read("dot.png")).then_call("Read", read("paper.pdf"));
        let calls = calls.then_call("Read", read("note.txt"));
        let bench = Bench::new(api, [calls, Reply::text("A dot."), Reply::text("A paper.")]);
        std::fs::write(bench.path("dot.png"), b"\x89PNG\r\n\x1a\n0000").unwrap();
        std::fs::write(bench.path("paper.pdf"), b"%PDF-1.7\n0000").unwrap();
        bench.write("note.txt", "the secret word is plum\n");
        let session = bench.open().await;
        session.handle.prompt("what is it?").await.unwrap();
        session.handle.prompt("and the other one?").await.unwrap();
        session.handle.finish().await.unwrap();
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        let ends = of_kind(&events, "tool_ended");
        assert!(ends.iter().all(|end| end["status"] == "completed"), "{api:?}: {ends:#?}");
        for request in &bench.model.main_requests()[1..] {
            let sent = request.body.to_string();
            for part in ["iVBORw0KGgowMDAw", "JVBERi0xLjcKMDAwMA==", "secret word is plum"] {
                assert!(sent.contains(part), "{api:?} {part}: {sent}");
            }
        }
        bench.check("read-files");
    }
}

/// Some servers answer with one JSON value, although a stream was requested.
#[tokio::test]
async fn a_call_in_a_response_that_is_not_streamed_is_run() {
    for api in APIS {
        let write = |name: &str| json!({"file_path": name, "content": "new"});
        let calls = Reply::text("I write.").then_call("Write", write("a.txt"));
        let calls = calls.then_call("Write", write("b.txt")).whole_json();
        let bench = Bench::new(api, [calls, Reply::text("Done.").whole_json()]);
        let (ended, events) = bench.run("write").await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert!(bench.path("a.txt").exists() && bench.path("b.txt").exists(), "{api:?}");
        assert_eq!(text(&events), "I write.|Done.");
        bench.check("whole-call");
    }
}

#[tokio::test]
async fn the_next_prompt_continues_the_conversation() {
    for api in APIS {
        let first = Reply::new().then_reasoning("Hm.").then_call("LS", json!({"path": "."}));
        let replies =
            [first, Reply::text("Empty."), Reply::new().then_reasoning("Ha.").then_text("Still.")];
        let bench = Bench::new(api, replies);
        let session = bench.open().await;
        session.handle.prompt("look").await.unwrap();
        session.handle.prompt("again").await.unwrap();
        session.handle.finish().await.unwrap();
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert_eq!(text(&events), "Empty.|Still.");
        assert_eq!(of_kind(&events, "turn_ended").len(), 2);
        bench.check("two-prompts");
    }
}

#[tokio::test]
async fn a_prompt_can_contain_files() {
    for api in APIS {
        let bench = Bench::new(api, [Reply::text("A dot.")]);
        bench.write("dot.png", "");
        std::fs::write(bench.path("dot.png"), b"\x89PNG\r\n\x1a\n0000").unwrap();
        bench.write("note.txt", "Look closely.");
        bench.write("paper.pdf", "%PDF-1.7\n0000");
        let session = bench.open().await;
        let missing = Prompt::new("look").with_files(vec![bench.path("missing.png")]);
        let refused = session.handle.prompt(missing).await.unwrap_err().to_string();
        assert!(refused.contains("missing.png"), "{refused}");
        let files = ["dot.png", "note.txt", "paper.pdf"].map(|name| bench.path(name)).into();
        session.handle.prompt(Prompt::new("what is it?").with_files(files)).await.unwrap();
        session.handle.finish().await.unwrap();
        let (ended, _) = session.end().await;
        assert_eq!(ended.code(), 0, "{api:?}");
        let sent = bench.model.requests()[0].body.to_string();
        for part in ["iVBORw0KGgowMDAw", "Look closely.", "JVBERi0xLjcKMDAwMA=="] {
            assert!(sent.contains(part), "{api:?} {part}: {sent}");
        }
        bench.check("files");
    }
}

#[tokio::test]
async fn a_structured_answer_fits_its_schema() {
    for api in APIS {
        let wrong = Reply::call("StructuredOutput", json!({"count": "three"}));
        let right = Reply::call("StructuredOutput", json!({"count": 3}));
        // The model forgets to give the answer, gives a wrong one, and then the right one.
        let mut bench = Bench::new(api, [Reply::text("Three."), wrong, right]);
        bench.settings.schema = Some(json!({
            "type": "object",
            "properties": {"count": {"type": "integer"}},
            "required": ["count"],
            "additionalProperties": false,
        }));
        let (ended, events) = bench.run("count").await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert_eq!(only(&events, "turn_ended")["structured"], json!({"count": 3}));
        bench.check("structured");
    }
}

#[tokio::test]
async fn a_limit_ends_the_turn() {
    for api in APIS {
        let call = Reply::call("LS", json!({"path": "."}));
        let mut bench = Bench::new(api, [call.clone(), call]);
        bench.settings.limits.requests = Some(2);
        let (ended, events) = bench.run("go on").await;
        assert_eq!(ended.code(), 1);
        let end = only(&events, "turn_ended");
        assert_eq!(end["outcome"], "limit_reached", "{api:?}");
        assert!(end["cause"].as_str().unwrap().contains("more than 2 requests"));
        bench.check("limit");
    }
}
