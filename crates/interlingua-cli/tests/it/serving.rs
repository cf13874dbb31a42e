//! `serve`: sessions outlive the server, also if it is killed. A shell script plays Claude Code.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::command;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Reacts to words of its prompt, and otherwise repeats it: `wait` (until it is interrupted), `touch`
/// (asks for a permission), `run` (a command runs). It notes every prompt.
const TALKER: &str = r#"#!/bin/sh
say() { echo '{"type":"assistant","message":{"id":"m'$n'","role":"assistant","content":[{"type":"text","text":"'"$1"'"}]},"session_id":"s1","uuid":"u'$n'"}'; }
end() { echo '{"type":"result","subtype":"'$1'","is_error":'$2',"terminal_reason":"'$3'","result":"","session_id":"s1","uuid":"r'$n'"}'; }
n=0
while read -r line; do
  case $line in
    *'"subtype":"interrupt"'*) end error_during_execution true aborted_streaming; continue;;
    *'"control_response"'*)
      case $line in *'"behavior":"allow"'*) say allowed;; *) say denied;; esac
      end success false completed; continue;;
    *'"type":"user"'*) ;;
    *) continue;;
  esac
  n=$((n+1))
  text=${line#*content\":\"}; text=${text%%\"*}
  echo "$text" >> received
  echo '{"type":"system","subtype":"init","session_id":"s1","model":"m","cwd":"/w","tools":[],"uuid":"i'$n'"}'
  case $text in
    *wait*) say begins;;
    *run*) echo '{"type":"assistant","message":{"id":"c'$n'","role":"assistant","content":[{"type":"tool_use","id":"call'$n'","name":"Bash","input":{"command":"sleep 1000"}}]},"session_id":"s1","uuid":"c'$n'"}'
      sleep 1000.4711;;
    *touch*) echo '{"type":"control_request","request_id":"q'$n'","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"touch x"},"tool_use_id":"t'$n'"}}';;
    *) say "$text"; end success false completed;;
  esac
done
"#;

/// A working folder, an agent, a store, and a server that can be killed.
struct Desk {
    folder: tempfile::TempDir,
    server: Option<(Child, String)>,
}

/// A response: its status and its body.
struct Answer {
    status: u16,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("talker");
        std::fs::write(&script, TALKER).unwrap();
        let description = format!(
            "command = \"/bin/sh\"\narguments = [{:?}]\ndialect = \"claude\"\nprompt = \"protocol\"\n",
            script.display().to_string()
        );
        std::fs::write(folder.path().join("talker.toml"), description).unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let mut desk = Self { folder, server: None };
        desk.start();
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn agent(&self) -> String {
        self.path("talker.toml").display().to_string()
    }

    fn start(&mut self) {
        let (store, agent) = (self.path("sessions.db"), self.agent());
        let store = store.display().to_string();
        let mut command = command(&["serve", "--listen", "127.0.0.1:0", "--store", &store]);
        command.args(["--allow-agent", &agent]).current_dir(self.path("work"));
        command.env("INTERLINGUA_TOKEN", TOKEN).env("HOME", self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let (_, address) = line.split_once("http://").unwrap();
        self.server = Some((server, address.to_owned()));
    }

    /// Kills the server without a warning.
    fn kill(&mut self) {
        if let Some((mut server, _)) = self.server.take() {
            server.kill().unwrap();
            server.wait().unwrap();
        }
    }

    fn request(&self, method: &str, path: &str, key: Option<&str>, body: Option<Value>) -> Answer {
        let (_, address) = self.server.as_ref().unwrap();
        let mut connection = TcpStream::connect(address).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let key = key.map(|key| format!("idempotency-key: {key}\r\n")).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {TOKEN}\r\n{key}\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        connection.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut response = Vec::new();
        connection.read_to_end(&mut response).unwrap();
        answer(&response)
    }

    fn create(&self, prompt: &str, key: &str) -> String {
        let body = json!({"agent": self.agent(), "prompt": prompt});
        let created = self.request("POST", "/v1/sessions", Some(key), Some(body));
        assert_eq!(created.status, 201, "{}", String::from_utf8_lossy(&created.body));
        created.json()["id"].as_str().unwrap().to_owned()
    }

    fn prompt(&self, id: &str, text: &str, key: &str) -> Answer {
        let path = format!("/v1/sessions/{id}/commands");
        self.request("POST", &path, Some(key), Some(json!({"type": "prompt", "text": text})))
    }

    fn session(&self, id: &str) -> Value {
        self.request("GET", &format!("/v1/sessions/{id}"), None, None).json()
    }

    fn events(&self, id: &str) -> Vec<Value> {
        let path = format!("/v1/sessions/{id}/events?dialect=events");
        serde_json::from_value(self.request("GET", &path, None, None).json()).unwrap()
    }

    /// Waits until the entries of a session satisfy a condition; returns them.
    fn until(&self, id: &str, done: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let begun = Instant::now();
        loop {
            let events = self.events(id);
            if done(&events) {
                return events;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{events:?}");
            let offset = format!("{:020}", events.len());
            let path = format!("/v1/sessions/{id}/events?live=long-poll&offset={offset}");
            self.request("GET", &path, None, None);
        }
    }

    /// How often the agent received a text.
    fn times(&self, text: &str) -> usize {
        let received = std::fs::read_to_string(self.path("work/received")).unwrap_or_default();
        received.lines().filter(|line| *line == text).count()
    }

    /// The processes that work in the folder of the agent.
    fn processes(&self) -> Vec<PathBuf> {
        let work = self.path("work").canonicalize().unwrap();
        let processes = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
        let works =
            |path: &PathBuf| std::fs::read_link(path.join("cwd")).is_ok_and(|it| it == work);
        let own = self.server.as_ref().map(|(server, _)| server.id().to_string());
        let is_server = |path: &Path| {
            path.file_name().is_some_and(|name| Some(name.to_string_lossy().into_owned()) == own)
        };
        processes.filter(|path| works(path) && !is_server(path)).collect()
    }

    /// Waits until no process of the agent is left.
    fn until_no_process(&self) {
        let begun = Instant::now();
        while !self.processes().is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", self.processes());
            std::thread::yield_now();
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.kill();
    }
}

fn answer(response: &[u8]) -> Answer {
    let at = response.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&response[..at]).to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut body = response[at + 4..].to_vec();
    if head.contains("transfer-encoding: chunked") {
        body = dechunked(&body);
    }
    Answer { status, body }
}

fn dechunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(at) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..at]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        body.extend_from_slice(&rest[at + 2..at + 2 + size]);
        rest = &rest[at + 4 + size..];
    }
    body
}

fn of_kind<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

fn outcomes(events: &[Value]) -> Vec<&str> {
    of_kind(events, "turn_ended").iter().map(|end| end["outcome"].as_str().unwrap()).collect()
}

fn has(kind: &'static str) -> impl Fn(&[Value]) -> bool {
    move |events| !of_kind(events, kind).is_empty()
}

/// No entry has disappeared, changed, or moved.
fn assert_continues(before: &[Value], after: &[Value]) {
    assert!(after.starts_with(before), "{before:#?}\n{after:#?}");
    let numbers = after.iter().map(|event| event["sequence"].as_u64().unwrap());
    assert!(numbers.eq(0..after.len() as u64));
}

#[test]
fn a_killed_server_closes_the_turn_and_goes_on() {
    let phases: [(&str, &str); 3] =
        [("wait", "block"), ("run it", "tool_started"), ("touch it", "permission_requested")];
    for (prompt, kind) in phases {
        let mut desk = Desk::new();
        let id = desk.create(prompt, "k1");
        let kind: &'static str = kind;
        let before = desk.until(&id, has(kind));
        desk.kill();
        desk.until_no_process();
        desk.start();
        let after = desk.events(&id);
        assert_continues(&before, &after);
        assert_eq!(outcomes(&after), ["failed"], "{prompt}");
        let cause = of_kind(&after, "turn_ended")[0]["cause"].as_str().unwrap();
        assert!(cause.contains("ended in the middle of the turn"), "{cause}");
        let calls = (of_kind(&after, "tool_started").len(), of_kind(&after, "tool_ended").len());
        assert_eq!(calls.0, calls.1, "{prompt}: every call is answered");
        assert_eq!(desk.session(&id)["state"], "idle");
        // The same command again is the same one, and runs nothing.
        assert_eq!(desk.create(prompt, "k1"), id);
        desk.prompt(&id, "and now", "k2");
        let end = desk.until(&id, |events| outcomes(events).len() == 2);
        assert_continues(&after, &end);
        assert_eq!(outcomes(&end), ["failed", "completed"], "{prompt}");
        assert_eq!((desk.times(prompt), desk.times("and now")), (1, 1));
    }
}

/// Kills the server at random times, while prompts are sent, and looks for anything that was lost,
/// repeated, reordered, run twice or left behind.
#[test]
fn random_kills_lose_nothing_and_run_no_prompt_twice() {
    let seed = std::env::var("INTERLINGUA_FAULT_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random: u64 = seed.unwrap_or(0x5eed);
    let faults = std::env::var("INTERLINGUA_FAULTS").ok().and_then(|it| it.parse().ok());
    let faults: usize = faults.unwrap_or(20);
    println!("{faults} faults, INTERLINGUA_FAULT_SEED={random}");
    let mut next = |below: u64| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut desk = Desk::new();
    let id = desk.create("first", "first");
    let mut prompts = vec!["first".to_owned()];
    let mut seen = Vec::new();
    for fault in 0..faults {
        for number in 0..=next(2) {
            let words = ["hello", "wait", "touch"][usize::try_from(next(3)).unwrap()];
            let text = format!("{words} {fault}.{number}");
            let sent = desk.prompt(&id, &text, &format!("k{fault}.{number}"));
            assert_eq!(sent.status, 202, "{}", String::from_utf8_lossy(&sent.body));
            prompts.push(text);
        }
        if next(2) == 0 {
            let path = format!("/v1/sessions/{id}/commands");
            let body = json!({"type": "interrupt"});
            desk.request("POST", &path, Some(&format!("i{fault}")), Some(body));
        }
        // The moment of a fault is random, and no event of ours.
        std::thread::sleep(Duration::from_millis(next(60)));
        let events = desk.events(&id);
        assert_continues(&seen, &events);
        seen = events;
        desk.kill();
        desk.until_no_process();
        desk.start();
        let events = desk.events(&id);
        assert_continues(&seen, &events);
        seen = events;
    }
    let body = json!({"type": "close"});
    let closed =
        desk.request("POST", &format!("/v1/sessions/{id}/commands"), Some("c"), Some(body));
    assert_eq!(closed.status, 202, "{}", String::from_utf8_lossy(&closed.body));
    let events = desk.events(&id);
    assert_continues(&seen, &events);
    assert_eq!(of_kind(&events, "turn_started").len(), of_kind(&events, "turn_ended").len());
    assert_eq!(events.last().unwrap()["type"], "session_ended");
    for text in &prompts {
        assert!(desk.times(text) <= 1, "{text} ran {} times", desk.times(text));
    }
    assert!(desk.times("first") == 1);
    desk.until_no_process();
}

#[test]
fn a_server_that_is_stopped_ends_its_agents() {
    let mut desk = Desk::new();
    let id = desk.create("wait", "k1");
    desk.until(&id, has("block"));
    let (mut server, _) = desk.server.take().unwrap();
    let pid = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
    desk.until_no_process();
    desk.start();
    let events = desk.events(&id);
    assert_eq!(outcomes(&events), ["cancelled"]);
    assert_eq!(desk.session(&id)["state"], "idle");
}

#[test]
fn one_server_uses_a_store_and_needs_a_token() {
    let desk = Desk::new();
    let store = desk.path("sessions.db").display().to_string();
    let second = command(&["serve", "--listen", "127.0.0.1:0", "--store", &store])
        .env("INTERLINGUA_TOKEN", TOKEN)
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(2));
    let problem = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(problem.contains("in use by another process"), "{problem}");
    let short = command(&["serve", "--listen", "127.0.0.1:0", "--memory"])
        .env("INTERLINGUA_TOKEN", "short")
        .output()
        .unwrap();
    let problem = String::from_utf8_lossy(&short.stderr).into_owned();
    assert!(problem.contains("at least 16"), "{problem}");
    let public = command(&["serve", "--listen", "0.0.0.0:0", "--memory"])
        .env("INTERLINGUA_TOKEN", TOKEN)
        .output()
        .unwrap();
    let problem = String::from_utf8_lossy(&public.stderr).into_owned();
    assert!(problem.contains("--public"), "{problem}");
    let body = json!({"agent": "codex"});
    let refused = desk.request("POST", "/v1/sessions", None, Some(body));
    assert_eq!(refused.status, 403, "only the agents that were named are allowed");
}
