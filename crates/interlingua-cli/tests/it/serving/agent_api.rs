//! The agent API with a host: a script plays an agent with the dialect of Claude Code, and the test calls the tools in its place.

use std::io::{Read, Write};
use std::net::TcpStream;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use super::desk::Desk;
use crate::http::{Response, send};
use crate::log::intents;

/// Notes where it finds the tools of the client. To the prompt `fill`, it waits at the pipe `go`, leaves a file and says
/// `Done.`; what it gets instead when it is started again, it repeats in part. With a pipe `held`, it waits
/// there before it begins.
const FILLER: &str = r#"#!/bin/sh
[ -p "$HOME/held" ] && read -r _ < "$HOME/held"
echo "$INTERLINGUA_MCP_URL $INTERLINGUA_MCP_TOKEN" > "$HOME/tools"
say() { echo '{"type":"assistant","message":{"id":"m'$$'","role":"assistant","content":[{"type":"text","text":"'"$1"'"}]},"session_id":"s1","uuid":"u'$$'"}'; }
end() { echo '{"type":"result","subtype":"success","is_error":false,"terminal_reason":"completed","result":"","session_id":"s1","uuid":"r'$$'"}'; }
while read -r line; do
  case $line in *'"type":"user"'*) ;; *) continue;; esac
  echo '{"type":"system","subtype":"init","session_id":"s1","model":"m","cwd":"/w","tools":[],"uuid":"i'$$'"}'
  case $line in
    *colour-4711*) say 'It knows.'; end;;
    *) say 'I fill.'; read -r _ < "$HOME/go"; mkdir -p artifacts; printf hi > artifacts/note.txt; say 'Done.'; end;;
  esac
done
"#;

pub(super) fn desk() -> Desk {
    let mut desk = Desk::with_agent(FILLER, "claude");
    mknodat(CWD, desk.path("go"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    // Claude Code calls the tools over its control channel; a described agent does so over a connection.
    let mut description = std::fs::read_to_string(&desk.agent).unwrap();
    description +=
        "[client-tools]\narguments = [\"--mcp-config\", \"{file}\"]\nfile = \"{servers}\"\n";
    std::fs::write(&desk.agent, description).unwrap();
    desk.arguments = vec!["--agent-api".to_owned(), desk.path("sandboxes").display().to_string()];
    desk.start();
    desk
}

/// A run whose records are read as they arrive.
struct Run {
    response: Response,
    buffer: String,
}

impl Run {
    fn new(desk: &Desk, results: Value) -> Self {
        Self::of(desk, &chat(desk, "fill", results))
    }

    fn of(desk: &Desk, body: &Value) -> Self {
        let address = desk.address.get().unwrap();
        let response = send(&address, "POST", "/agent-api/run", None, Some(body)).unwrap();
        assert_eq!(response.status, 200);
        Self { response, buffer: String::new() }
    }

    fn next(&mut self) -> Option<Value> {
        while !self.buffer.contains('\n') {
            self.buffer += &String::from_utf8(self.response.chunk().unwrap()?).unwrap();
        }
        let (line, rest) = self.buffer.split_once('\n').unwrap();
        let record = serde_json::from_str(line).unwrap();
        self.buffer = rest.to_owned();
        Some(record)
    }

    fn until(&mut self, kind: &str) -> Value {
        loop {
            let record = self.next().expect("the run has ended");
            if record["type"] == kind {
                return record;
            }
        }
    }

    fn rest(mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

fn chat(desk: &Desk, message: &str, results: Value) -> Value {
    json!({"type": "agent.run", "chat_id": "c", "message": message, "agent_type": desk.agent,
           "snapshot_id": "any", "tool_results": results})
}

/// The agent's side of the tools of the client: an MCP client that does as little as it may.
pub(super) struct Tools {
    address: String,
    path: String,
    authorization: String,
    session: String,
}

impl Tools {
    pub(super) fn connect(desk: &Desk) -> Self {
        let access = std::fs::read_to_string(desk.path("tools")).unwrap();
        let (url, token) = access.trim().split_once(' ').unwrap();
        let url = url.strip_prefix("http://").unwrap();
        let (address, path) = url.split_once('/').unwrap();
        let authorization = format!("Bearer {token}");
        let (address, path) = (address.to_owned(), format!("/{path}"));
        let mut tools = Self { address, path, authorization, session: String::new() };
        let begun = tools.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        }}));
        let begun = read(begun);
        let named = begun.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
        });
        tools.session = format!("mcp-session-id: {}\r\n", named.expect("no session"));
        read(tools.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})));
        tools
    }

    /// Sends a message; the response is read later.
    fn send(&self, message: &Value) -> TcpStream {
        let Self { address, path, authorization, session } = self;
        let mut connection = TcpStream::connect(address).unwrap();
        let body = message.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: {authorization}\r\n{session}\
             accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        connection.write_all(head.as_bytes()).unwrap();
        connection
    }

    pub(super) fn call(&self) -> TcpStream {
        self.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "getFormSnapshot", "arguments": {"instruction": "all"},
        }}))
    }
}

/// A whole response.
pub(super) fn read(mut connection: TcpStream) -> String {
    let mut response = String::new();
    connection.read_to_string(&mut response).unwrap();
    response
}

/// The request that a run has ended with.
fn paused(desk: &Desk) -> (TcpStream, String) {
    paused_in(desk, Run::new(desk, json!([])))
}

fn paused_in(desk: &Desk, mut run: Run) -> (TcpStream, String) {
    // The prompt may be repeated before the agent has begun.
    while run.until("message")["role"] != "assistant" {}
    let call = Tools::connect(desk).call();
    let request = run.until("snapshot_request");
    assert_eq!(request["instruction"], "all");
    assert_eq!(run.rest(), [Value::Null; 0], "the request is the end");
    (call, request["requestId"].as_str().unwrap().to_owned())
}

fn results(id: &str) -> Value {
    let output = json!({"type": "json", "value": {"fields": [{"label": "colour-4711"}]}});
    json!([{"toolCallId": id, "toolName": "getFormSnapshot", "output": output}])
}

#[test]
fn seed_001_round_trip() {
    let desk = desk();
    let (call, id) = paused(&desk);
    let run = Run::new(&desk, results(&id));
    let answered = read(call);
    assert_eq!(answered.matches("colour-4711").count(), 1, "{answered}");
    std::fs::write(desk.path("go"), "\n").unwrap();
    let records = run.rest();
    let kinds: Vec<_> = records.iter().map(|record| record["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["relay.session", "sandbox", "message", "result", "artifact"]);
    assert_eq!(records[2]["content"], "Done.");
    assert_eq!(records[4]["path"], "./artifacts/note.txt");
    let path = "/agent-api/files?chat_id=c&path=./artifacts/note.txt";
    assert_eq!(desk.request("GET", path, None, None).text(), "hi");
}

#[test]
fn a_server_that_is_killed_during_a_pause_resumes_the_agent() {
    let mut desk = desk();
    let (_call, id) = paused(&desk);
    desk.kill();
    desk.until_no_process();
    desk.start();
    let records = Run::new(&desk, results(&id)).rest();
    let last: Vec<_> = records.iter().rev().take(2).collect();
    assert_eq!((&last[0]["type"], &last[0]["status"]), (&json!("result"), &json!("success")));
    assert_eq!(last[1]["content"], "It knows.");
}

/// A client of version 1 answers at the relay, where a late answer is acknowledged at once, and sends its
/// message again. The agent got the prompt a second time after the resumed turn.
#[test]
fn a_client_of_version_1_resumes_after_the_server_was_killed() {
    let mut desk = desk();
    let mut run = Run::of(&desk, &json!({"type": "agent.run", "message": "fill"}));
    let relay = run.until("relay.session");
    let (_call, id) = paused_in(&desk, run);
    desk.kill();
    desk.until_no_process();
    mknodat(CWD, desk.path("held"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    desk.start();
    let response =
        json!({"type": "snapshot_response", "requestId": id, "fields": [{"label": "colour-4711"}]});
    let respond = json!({"type": "relay.respond", "sessionId": relay["sessionId"], "token": relay["token"],
                         "response": response});
    let answered = desk.request("POST", "/agent-api/relay", None, Some(respond));
    assert_eq!(answered.status, 200, "{}", answered.text());
    let again = json!({"type": "agent.run", "message": "fill", "session_id": relay["sessionId"]});
    let mut run = Run::of(&desk, &again);
    std::fs::write(desk.path("held"), "\n").unwrap();
    // The answer may be repeated before the agent speaks.
    let said = std::iter::repeat_with(|| run.until("message")).find(|it| it["role"] == "assistant");
    assert_eq!(said.unwrap()["content"], "It knows.", "the resumed turn");
    assert_eq!(run.until("result")["status"], "success");
    let prompts = desk.events(relay["sessionId"].as_str().unwrap());
    assert_eq!(intents(&prompts).len(), 2, "the prompt, and the answer");
    let metrics = desk.request("GET", "/metrics", None, None);
    assert!(metrics.text().contains("interlingua_waiting_prompts 0"), "{}", metrics.text());
}

/// The next server has another mode, and another folder for new sessions. The call that waits could not be answered
/// any more.
#[test]
fn a_chat_goes_on_after_a_restart_with_other_settings() {
    let mut desk = desk();
    let (_call, id) = paused(&desk);
    desk.kill();
    desk.until_no_process();
    desk.arguments.extend(["--agent-api-mode", "default"].map(str::to_owned));
    desk.start();
    let records = Run::new(&desk, results(&id)).rest();
    assert_eq!(records.last().unwrap()["status"], "success", "{records:?}");
    desk.stop();
    desk.arguments[1] = desk.path("moved").display().to_string();
    desk.start();
    let refused =
        desk.request("POST", "/agent-api/run", None, Some(chat(&desk, "next", json!([]))));
    assert_eq!(refused.status, 403, "the agent may not work there: {}", refused.text());
}
