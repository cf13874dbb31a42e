//! The arguments of `run` and `chat` for model APIs, each with what it changes.

use std::io::{Read, Write};
use std::net::TcpListener;

use fake_model::{FailureClass, Reply};
use serde_json::{Value, json};

use crate::model_apis::{Desk, KEY, of_type, records};
use crate::support::ran;

/// A path as an argument.
fn argument(desk: &Desk, name: &str) -> String {
    desk.path(name).display().to_string()
}

fn read(path: &str) -> Reply {
    Reply::call("Read", json!({"file_path": path}))
}

/// The statuses of all calls.
fn statuses(records: &[Value]) -> Vec<&str> {
    let ends = records.iter().filter(|it| it["type"] == "tool_ended");
    ends.map(|it| it["status"].as_str().unwrap()).collect()
}

#[test]
fn the_system_prompt_is_replaced() {
    let desk = Desk::new([Reply::text("Arr.")]);
    let ran = desk.ask("hi", &["--system-prompt", "Be a pirate."]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let system = desk.model.main_requests()[0].body["system"].to_string();
    assert!(system.contains("Be a pirate.") && !system.contains("coding agent"), "{system}");
}

#[test]
fn prices_and_a_limit_of_the_cost_end_the_turn() {
    let prices = json!({"models": [{"names": ["some-model"], "periods": [
        {"rates": {"input": 1, "output": 2}}
    ]}]});
    let desk = Desk::new([
        Reply::call("LS", json!({"path": "."})).usage(1_000_000, 0),
        Reply::text("Too late."),
    ]);
    std::fs::write(desk.path("prices.json"), prices.to_string()).unwrap();
    let prices = argument(&desk, "prices.json");
    let ran = desk.ask(
        "go",
        &["--prices", &prices, "--max-cost", "0.5", "--model", "some-model", "--to", "claude"],
    );
    let records = records(&ran);
    let result = of_type(&records, "result");
    assert_eq!(result["subtype"], "error_max_budget_usd", "{result}");
    assert_eq!(result["total_cost_usd"], 1.0, "{result}");
    assert_eq!(desk.model.main_requests().len(), 1);
}

#[test]
fn a_limit_of_tokens_ends_the_turn() {
    let desk = Desk::new([Reply::call("LS", json!({"path": "."})), Reply::text("Too late.")]);
    let ran = desk.ask("go", &["--max-tokens", "100"]);
    let records = records(&ran);
    let end = of_type(&records, "turn_ended");
    assert_eq!((&end["outcome"], &end["reason"]), (&json!("limit_reached"), &json!("max_tokens")));
}

#[test]
fn a_further_folder_may_be_read() {
    let desk = Desk::new([]);
    std::fs::create_dir(desk.path("other")).unwrap();
    std::fs::write(desk.path("other/note.txt"), "plum\n").unwrap();
    let (folder, note) = (argument(&desk, "other"), argument(&desk, "other/note.txt"));
    for (arguments, expected) in [(&[][..], "denied"), (&["--add-dir", &folder], "completed")] {
        let desk = desk.with_replies([read(&note), Reply::text("Done.")]);
        let ran = desk.ask("read", arguments);
        assert_eq!(statuses(&records(&ran)), [expected], "{arguments:?}: {}", ran.stderr);
    }
}

/// Commands once resolved the folder from the folder of the session, and file tools from ours.
#[test]
fn a_relative_folder_means_the_same_for_commands_and_for_files() {
    let desk = Desk::new([]);
    for folder in ["deep/work", "shared", "deep/shared"] {
        std::fs::create_dir_all(desk.path(folder)).unwrap();
    }
    let (right, wrong) = (argument(&desk, "shared"), argument(&desk, "deep/shared"));
    let run = |command: String| Reply::call("Bash", json!({"command": command}));
    let is_sandboxed = || {
        let probed = ran(desk.command(&["sandbox", "--probe"]).output().unwrap());
        !matches!(probed.stdout.trim(), "" | "0")
    };
    let desk = desk.with_replies([
        run(format!("echo x > {right}/a")),
        Reply::call("Write", json!({"file_path": format!("{right}/b"), "content": "x"})),
        run(format!("echo x > {wrong}/a")),
        Reply::text("Done."),
    ]);
    let cwd = argument(&desk, "deep/work");
    let arguments = ["--cwd", &cwd, "--add-dir", "../shared", "--permission-mode", "auto"];
    let outcome = desk.ask("write", &arguments);
    let records = records(&outcome);
    let expected = ["completed", "completed", if is_sandboxed() { "failed" } else { "completed" }];
    assert_eq!(statuses(&records), expected, "{} {}", outcome.stdout, outcome.stderr);
}

#[test]
fn a_file_is_attached() {
    let desk = Desk::new([Reply::text("A dot.")]);
    std::fs::write(desk.path("dot.png"), b"\x89PNG\r\n\x1a\n0000").unwrap();
    let ran = desk.ask("what is it?", &["--attach", &argument(&desk, "dot.png")]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let body = desk.model.main_requests()[0].body.to_string();
    assert!(body.contains("iVBORw0KGgowMDAw"), "{body}");
}

#[test]
fn a_long_turn_is_compacted() {
    let overflow = || Reply::failure(FailureClass::ContextOverflow);
    let calls = || [read("a.txt"), read("b.txt"), overflow()];
    let desk = Desk::new(calls());
    for name in ["a.txt", "b.txt"] {
        std::fs::write(desk.path("work").join(name), "plum\n").unwrap();
    }
    let ran = desk.ask("read both", &[]);
    assert_eq!(of_type(&records(&ran), "turn_ended")["class"], "context_overflow");
    let rest = [Reply::text("They read a.txt."), Reply::text("Done.")];
    let desk = desk.with_replies(calls().into_iter().chain(rest));
    let ran = desk.ask("read both", &["--compact"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(of_type(&records(&ran), "compacted")["details"]["summary"], "They read a.txt.");
}

/// What is enforced depends on the kernel, and is stated in any case.
#[test]
fn the_network_and_the_caches_of_commands_are_stated_or_enforced() {
    let desk = Desk::new([]);
    std::fs::create_dir(desk.path("cache")).unwrap();
    let cache = argument(&desk, "cache");
    let write = || Reply::call("Bash", json!({"command": format!("echo x > {cache}/x")}));
    let mode = ["--permission-mode", "auto"];
    let stated = [&[][..], &["--no-network"]].map(|network| {
        let arguments = [&mode[..], &["--cache-dir", &cache], network].concat();
        let desk = desk.with_replies([write(), Reply::text("Done.")]);
        let ran = desk.ask("write", &arguments);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let records = records(&ran);
        assert_eq!(statuses(&records), ["completed"], "{}", ran.stdout);
        std::fs::remove_file(desk.path("cache/x")).unwrap();
        let notices = records.iter().filter(|it| it["type"] == "notice");
        notices.map(|it| it["text"].to_string()).collect::<Vec<_>>()
    });
    let [with, without] = stated;
    let added = without.iter().find(|text| !with.contains(text)).unwrap();
    assert!(added.contains("TCP") || added.contains("network"), "{added}");
}

#[test]
fn a_file_with_servers_that_cannot_be_read_is_reported() {
    let desk = Desk::new([]);
    std::fs::write(desk.path("mcp.json"), r#"{"mcpServers": {"a": {}}}"#).unwrap();
    for name in ["mcp.json", "missing.json"] {
        let ran = desk.ask("go", &["--mcp-config", &argument(&desk, name)]);
        assert_eq!(ran.code, Some(2), "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains(name), "{}", ran.stderr);
    }
    assert_eq!(desk.model.requests().len(), 0);
}

/// A server that does not start costs only its tools.
#[test]
fn the_servers_of_a_file_are_started() {
    let desk = Desk::new([Reply::text("Hello.")]);
    let config = json!({"mcpServers": {"absent": {"command": argument(&desk, "no-such-program")}}});
    std::fs::write(desk.path("mcp.json"), config.to_string()).unwrap();
    let ran = desk.ask("go", &["--mcp-config", &argument(&desk, "mcp.json")]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("the MCP server `absent` is not available"), "{}", ran.stdout);
}

#[test]
fn certificates_that_cannot_be_read_are_reported() {
    let desk = Desk::new([]);
    let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for (name, content) in
        [("other.pem", "no certificate"), ("empty.pem", ""), ("damaged.pem", damaged)]
    {
        std::fs::write(desk.path(name), content).unwrap();
    }
    for (name, problem) in [
        ("other.pem", "--ca-file has none in the form of PEM"),
        ("empty.pem", "empty.pem: the file is empty"),
        ("damaged.pem", "certificate"),
        ("missing.pem", "missing.pem"),
    ] {
        let ran = desk.ask("go", &["--ca-file", &argument(&desk, name)]);
        assert_eq!(ran.code, Some(2), "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains(problem), "{name}: {}", ran.stderr);
    }
    assert_eq!(desk.model.requests().len(), 0);
}

/// A proxy receives the whole address, and answers in place of the server.
#[test]
fn requests_go_through_the_proxy_of_the_environment() {
    let desk = Desk::new([]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = vec![0; 1 << 16];
        let length = stream.read(&mut request).unwrap();
        let body =
            r#"{"type":"error","error":{"type":"permission_error","message":"the proxy says no"}}"#;
        let head = "HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\nconnection: close";
        let length_of = body.len();
        write!(stream, "{head}\r\ncontent-length: {length_of}\r\n\r\n{body}").unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let mut command =
        desk.command(&["run", "anthropic-api", "--base-url", "http://models.example", "hi"]);
    for name in ["http_proxy", "HTTP_PROXY"] {
        command.env(name, &proxy);
    }
    for name in ["no_proxy", "NO_PROXY"] {
        command.env_remove(name);
    }
    let ran = ran(command.output().unwrap());
    assert!(ran.stdout.contains("the proxy says no"), "{} {}", ran.stdout, ran.stderr);
    let request = server.join().unwrap();
    assert!(request.starts_with("POST http://models.example/v1/messages "), "{request}");
    assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY));
}

#[test]
fn a_chat_with_a_model_api_has_several_turns() {
    let think = |text: &str| Reply::new().then_reasoning("Hm.").then_text(text);
    let desk = Desk::new([think("One."), think("Two.")]);
    let address = desk.model.address();
    let mut command = desk.command(&["chat", "anthropic-api", "--base-url", &address]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"prompt\":\"count\"}\n{\"prompt\":\"go on\"}\n").unwrap();
    drop(stdin);
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let records = records(&ran);
    let outcomes = records.iter().filter(|it| it["type"] == "turn_ended");
    let outcomes: Vec<_> = outcomes.map(|it| it["outcome"].clone()).collect();
    assert_eq!(outcomes, ["completed", "completed"]);
    assert!(ran.stdout.contains("One.") && ran.stdout.contains("Two."), "{}", ran.stdout);
    assert_eq!(desk.model.findings(), []);
}

/// A server on loopback that answers one request with a stream of Chat Completions. Returns its
/// address, and the head of the request.
fn chat_server() -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        while !request.windows(4).any(|end| end == b"\r\n\r\n") {
            let mut piece = [0; 4096];
            let length = stream.read(&mut piece).unwrap();
            assert_ne!(length, 0, "the request has no end");
            request.extend_from_slice(&piece[..length]);
        }
        let delta = json!({"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}]});
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        write!(stream, "{head}data: {delta}\n\ndata: [DONE]\n\n").unwrap();
        // Whatever of the request is still on its way would reset the connection.
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
        let head = request.split(|byte| *byte == b'{').next().unwrap();
        String::from_utf8_lossy(head).to_ascii_lowercase()
    });
    (address, server)
}

/// Ollama and others need no key, and some reject an empty one.
#[test]
fn a_server_without_a_key_gets_none() {
    let desk = Desk::new([]);
    let (address, server) = chat_server();
    let arguments = ["run", "openai-api", "--api", "chat", "--base-url", &address, "hi"];
    let ran = ran(desk.command(&arguments).env_remove("OPENAI_API_KEY").output().unwrap());
    assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
    assert_eq!(of_type(&records(&ran), "turn_ended")["outcome"], "completed");
    let request = server.join().unwrap();
    assert!(request.starts_with("post /v1/chat/completions "), "{request}");
    assert!(!request.contains("authorization"), "{request}");
}

#[test]
fn the_address_the_key_and_the_model_come_from_variables() {
    for (provider, address_variable, path, key_variable, model_variable) in [
        ("anthropic-api", "ANTHROPIC_BASE_URL", "", "ANTHROPIC_API_KEY", "ANTHROPIC_MODEL"),
        ("openai-api", "OPENAI_BASE_URL", "/v1", "OPENAI_API_KEY", "OPENAI_MODEL"),
        ("gemini-api", "GOOGLE_GEMINI_BASE_URL", "", "GOOGLE_API_KEY", "GEMINI_MODEL"),
    ] {
        let desk = Desk::new([Reply::text("Hello.")]);
        let mut command = desk.command(&["run", provider, "hi"]);
        for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"] {
            command.env_remove(name);
        }
        command.env(address_variable, format!("{}{path}", desk.model.address()));
        command.env(key_variable, KEY).env(model_variable, "model-of-a-variable");
        let ran = ran(command.output().unwrap());
        assert_eq!(ran.code, Some(0), "{provider}: {} {}", ran.stdout, ran.stderr);
        let request = &desk.model.main_requests()[0];
        let sent = format!("{} {}", request.path, request.body);
        assert!(sent.contains("model-of-a-variable"), "{provider}: {sent}");
        assert_eq!(desk.model.findings(), [], "{provider}");
    }
}

#[test]
fn the_schema_of_an_answer_is_read_from_a_file() {
    let desk = Desk::new([Reply::call("StructuredOutput", json!({"count": 3}))]);
    let schema = json!({"type": "object", "properties": {"count": {"type": "integer"}}});
    std::fs::write(desk.path("schema.json"), schema.to_string()).unwrap();
    let ran =
        desk.ask("count", &["--json-schema", &format!("@{}", argument(&desk, "schema.json"))]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(of_type(&records(&ran), "turn_ended")["structured"], json!({"count": 3}));
    let offered = desk.model.main_requests()[0].body["tools"].to_string();
    assert!(offered.contains("StructuredOutput") && offered.contains("count"), "{offered}");
}

#[test]
fn a_prompt_in_a_pipe_can_have_files() {
    let desk = Desk::new([Reply::text("A dot.")]);
    std::fs::write(desk.path("dot.png"), b"\x89PNG\r\n\x1a\n0000").unwrap();
    let address = desk.model.address();
    let mut command = desk.command(&["chat", "anthropic-api", "--base-url", &address]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let line = json!({"prompt": "what is it?", "files": [argument(&desk, "dot.png")]});
    writeln!(child.stdin.take().unwrap(), "{line}").unwrap();
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let body = desk.model.main_requests()[0].body.to_string();
    assert!(body.contains("iVBORw0KGgowMDAw") && body.contains("what is it?"), "{body}");
}

/// The proxy is asked for a tunnel. It sees the name of the server, and neither the request nor the key.
#[test]
fn an_encrypted_connection_goes_through_the_proxy_of_the_environment() {
    let desk = Desk::new([]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = vec![0; 1 << 16];
        let length = stream.read(&mut request).unwrap();
        write!(stream, "HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n").unwrap();
        // Every attempt is refused in the same way.
        drop((stream, listener));
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let arguments =
        ["run", "anthropic-api", "--base-url", "https://models.example", "--timeout", "3", "hi"];
    let mut command = desk.command(&arguments);
    for name in ["https_proxy", "HTTPS_PROXY"] {
        command.env(name, &proxy);
    }
    for name in ["no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env_remove(name);
    }
    let ran = ran(command.output().unwrap());
    assert!(server.is_finished(), "the proxy was not used: {}", ran.stderr);
    let request = server.join().unwrap();
    assert!(request.starts_with("CONNECT models.example:443 "), "{request}");
    assert!(!request.contains(KEY), "{request}");
    assert_ne!(ran.code, Some(0), "{}", ran.stdout);
}

/// A server of three lines of shell.
#[cfg(unix)]
#[test]
fn a_tool_of_a_server_of_a_file_is_called() {
    let script = r#"while read -r line; do
id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
case $line in
*'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"words","version":"1"}}' ;;
*'"tools/list"'*) result='{"tools":[{"name":"word","description":"Returns the word.","inputSchema":{"type":"object"}}]}' ;;
*'"tools/call"'*) result='{"content":[{"type":"text","text":"plum"}]}' ;;
*) continue ;;
esac
printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done"#;
    let desk = Desk::new([Reply::call("mcp__words__word", json!({})), Reply::text("Done.")]);
    let config = json!({"mcpServers": {"words": {"command": "/bin/sh", "args": ["-c", script]}}});
    std::fs::write(desk.path("mcp.json"), config.to_string()).unwrap();
    let arguments = ["--mcp-config", &argument(&desk, "mcp.json"), "--permission-mode", "auto"];
    let ran = desk.ask("which word?", &arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(of_type(&records(&ran), "tool_ended")["output"], "plum", "{}", ran.stdout);
    assert_eq!(desk.model.findings(), []);
}

/// A server that does not start has a token all the same.
#[cfg(unix)]
#[test]
fn the_token_of_a_server_is_hidden() {
    const TOKEN: &str = "token-0123456789abcdef";
    const WORD: &str = "word-0123456789abcdef";
    let print =
        Reply::call("Bash", json!({"command": "echo \"[$TICKETS_TOKEN|$WORD_KEY]\"; cat notes"}));
    let desk = Desk::new([print, Reply::text("Done.")]);
    let config = json!({"mcpServers": {
        "tickets": {
            "type": "http",
            "url": "http://127.0.0.1:9/mcp",
            "headers": {"Authorization": "Bearer ${TICKETS_TOKEN}"},
        },
        "words": {"command": "/no/such/program", "env": {"API_KEY": "${WORD_KEY}"}},
    }});
    std::fs::write(desk.path("mcp.json"), config.to_string()).unwrap();
    std::fs::write(desk.path("work/notes"), format!("{TOKEN} {WORD}\n")).unwrap();
    let (address, config) = (desk.model.address(), argument(&desk, "mcp.json"));
    let start = ["run", "anthropic-api", "--base-url", &address, "--mcp-config", &config];
    let mut command = desk.command(&[&start[..], &["--permission-mode", "auto", "go"]].concat());
    command.env("TICKETS_TOKEN", TOKEN).env("WORD_KEY", WORD);
    let ran = ran(command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let output = of_type(&records(&ran), "tool_ended")["output"].as_str().unwrap().to_owned();
    assert_eq!(output, "[|]\n[redacted] [redacted]", "{}", ran.stdout);
    assert!(!ran.stdout.contains(TOKEN), "{}", ran.stdout);
}
