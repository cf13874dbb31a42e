//! `interlingua mcp`, and the agents that start it. A shell script plays an agent that is described in a
//! file, and speaks MCP without a library.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Ran, command, ran, run};

/// An agent that starts the server, lists the tools, calls one, and writes to files what it has
/// received. Its first argument is the program that is the server.
const AGENT: &str = r#"
say() { printf '%s\n' "$1" >&3; }
hear() { while read -r line <&4; do case $line in *'"id":'$1[,}]*) printf '%s\n' "$line" >"$2"; return;; esac; done; }
echo '{"type":"thread.started","thread_id":"t1"}'; echo '{"type":"turn.started"}'
if [ -p proxy ]; then echo "$INTERLINGUA_MCP_URL" >owner; read -r INTERLINGUA_MCP_URL <proxy; fi
mkfifo in out
"$1" mcp <in >out 2>errors & server=$!
exec 3>in 4<out
say '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"sh","version":"1"}}}'
hear 1 initialized
say '{"jsonrpc":"2.0","method":"notifications/initialized"}'
say '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
hear 2 listed
say '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"askColour","arguments":{"why":"paint"},"_meta":{"progressToken":1}}}'
hear 3 answered
exec 3>&-
cat <&4 >rest
wait $server; echo $? >code
echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Done."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'
"#;

/// A run of that agent.
struct Session {
    folder: TempDir,
    child: Child,
    commands: ChildStdin,
    events: BufReader<ChildStdout>,
    seen: Vec<Value>,
}

impl Session {
    /// Prepares a folder for it, and starts it.
    fn start(prepare: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        fs::write(at("agent.sh"), AGENT).unwrap();
        let described = "command = 'sh'\narguments = ['agent.sh']\ndialect = 'codex'\n\
             [client-tools]\narguments = ['{interlingua}']\n";
        fs::write(at("agent.toml"), described).unwrap();
        let tools = r#"[{"name": "askColour", "description": "Asks.", "readOnly": true}]"#;
        fs::write(at("tools.json"), tools).unwrap();
        prepare(folder.path());
        let (agent, tools, record) = (at("agent.toml"), at("tools.json"), at("record"));
        let cwd = at("");
        let arguments = [
            "run",
            &agent,
            "--prompt=go",
            "--client-tools",
            &tools,
            "--cwd",
            &cwd,
            "--record",
            &record,
            "--timeout",
            "120",
        ];
        let mut child = command(&arguments).stderr(Stdio::inherit()).spawn().unwrap();
        let commands = child.stdin.take().unwrap();
        let events = BufReader::new(child.stdout.take().unwrap());
        Self { folder, child, commands, events, seen: Vec::new() }
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    /// What the agent has received.
    fn message(&self, name: &str) -> Value {
        serde_json::from_str(&self.file(name)).unwrap()
    }

    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.events.read_line(&mut line).unwrap();
        let event: Value = serde_json::from_str(&line).ok()?;
        self.seen.push(event.clone());
        Some(event)
    }

    /// Waits until the client is asked; returns the id of the call.
    fn suspended(&mut self) -> String {
        loop {
            let event = self.next().unwrap();
            if event["type"] == "suspended" {
                return event["calls"][0].as_str().unwrap().to_owned();
            }
        }
    }

    fn answer(&mut self, call: &str, answer: &Value) {
        writeln!(self.commands, "{}", json!({"request": call, "answer": answer})).unwrap();
    }

    /// Waits for the end. The client was asked once, and the agent has one result.
    fn end(mut self) -> Self {
        while self.next().is_some() {}
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{:?}", self.seen);
        for kind in ["suspended", "tool_started", "tool_ended"] {
            let count = self.seen.iter().filter(|event| event["type"] == kind).count();
            assert_eq!(count, 1, "{kind}: {:?}", self.seen);
        }
        assert_eq!(
            (&*self.file("rest"), &*self.file("errors"), &*self.file("code")),
            ("", "", "0\n")
        );
        self
    }

    /// The text of the result that the agent has received.
    fn result(&self) -> String {
        let answered = self.message("answered");
        assert!(!answered["result"]["isError"].as_bool().unwrap_or_default());
        answered["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_described_program_calls_tools_of_the_client() {
    let mut session = Session::start(|_| {});
    let call = session.suspended();
    session.answer(&call, &json!("Blue"));
    let session = session.end();
    assert_eq!(session.result(), "Blue");
    let tool = &session.message("listed")["result"]["tools"][0];
    assert_eq!(
        (&tool["name"], &tool["inputSchema"]["type"]),
        (&json!("askColour"), &json!("object"))
    );
    let named = session.message("initialized")["result"]["serverInfo"]["name"].clone();
    assert_eq!(named, "interlingua");
}

#[test]
fn a_large_result_reaches_a_described_program() {
    let mut session = Session::start(|_| {});
    let call = session.suspended();
    let large = "Blue, blue. ".repeat(5 << 20 >> 3);
    session.answer(&call, &json!(large));
    let session = session.end();
    let ended = session.seen.iter().find(|event| event["type"] == "tool_ended").unwrap();
    assert!(ended["output"].to_string().len() > 5 << 20);
    // The rest is in a file.
    let received = session.result();
    assert!(received.contains(&large.len().to_string()) && received.contains("Blue, blue."));
}

/// The token is in no argument, no output and no recording.
#[test]
fn the_token_of_a_session_is_not_shown() {
    let mut session = Session::start(|folder| {
        let script = format!(
            "echo \"$INTERLINGUA_MCP_TOKEN\" >token\necho \"$*\" >arguments\n\
             echo '{{\"type\":\"error\",\"message\":\"'$INTERLINGUA_MCP_TOKEN'\"}}'\n{AGENT}"
        );
        fs::write(folder.join("agent.sh"), script).unwrap();
    });
    let call = session.suspended();
    session.answer(&call, &json!("Blue"));
    let session = session.end();
    let token = session.file("token").trim().to_owned();
    assert_eq!(token.len(), 64);
    assert!(!session.file("arguments").contains(&token));
    assert!(!session.file("record").contains(&token));
    let shown = json!(session.seen).to_string();
    assert!(!shown.contains(&token) && shown.contains("[redacted]"), "{shown}");
}

/// An agent may run `interlingua` itself, for a session without tools.
#[test]
fn the_variables_of_another_session_are_not_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    let described = folder.path().join("agent.toml");
    let script = "env >variables; echo \"{\\\"type\\\":\\\"turn.started\\\"}\"";
    let text = format!("command = 'sh'\narguments = ['-c', '{script}']\ndialect = 'codex'\n");
    fs::write(&described, text).unwrap();
    let (described, cwd) = (described.to_str().unwrap(), folder.path().to_str().unwrap());
    let mut command = command(&["run", described, "--prompt=go", "--cwd", cwd]);
    command.env("INTERLINGUA_MCP_URL", "u").env("INTERLINGUA_MCP_TOKEN", "t");
    command.stdin(Stdio::null()).output().unwrap();
    let variables = fs::read_to_string(folder.path().join("variables")).unwrap();
    assert!(variables.contains("PWD=") && !variables.contains("INTERLINGUA_MCP"), "{variables}");
}

/// A connection that a test can cut.
struct Proxy {
    owner: Arc<Mutex<Option<SocketAddr>>>,
    connections: Arc<Mutex<Vec<TcpStream>>>,
    accepted: Receiver<()>,
    address: SocketAddr,
}

impl Proxy {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, (tell, accepted)) = (listener.local_addr().unwrap(), channel());
        let owner = Arc::<Mutex<Option<SocketAddr>>>::default();
        let connections = Arc::<Mutex<Vec<TcpStream>>>::default();
        let (to, all) = (Arc::clone(&owner), Arc::clone(&connections));
        std::thread::spawn(move || accept(&listener, &to, &all, &tell));
        Self { owner, connections, accepted, address }
    }

    /// Closes all connections, and further ones until the owner is set. Waits for one of these.
    fn cut(&self) {
        *self.owner.lock().unwrap() = None;
        let cut: Vec<_> = self.connections.lock().unwrap().drain(..).collect();
        while self.accepted.try_recv().is_ok() {}
        for connection in cut {
            // It may be closed already.
            let _ = connection.shutdown(Shutdown::Both);
        }
        self.accepted.recv().unwrap();
    }
}

fn accept(
    listener: &TcpListener,
    owner: &Mutex<Option<SocketAddr>>,
    all: &Mutex<Vec<TcpStream>>,
    tell: &Sender<()>,
) {
    for server in listener.incoming() {
        let server = server.unwrap();
        let to = *owner.lock().unwrap();
        if let Some(to) = to {
            let owner = TcpStream::connect(to).unwrap();
            all.lock().unwrap().extend([server.try_clone().unwrap(), owner.try_clone().unwrap()]);
            for (from, to) in [(&server, &owner), (&owner, &server)] {
                let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                std::thread::spawn(move || {
                    // It ends when it is cut.
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        }
        if tell.send(()).is_err() {
            return;
        }
    }
}

/// A session whose server reaches it through a proxy.
fn through(proxy: &Proxy) -> Session {
    let session = Session::start(|folder| {
        for name in ["owner", "proxy"] {
            let made = std::process::Command::new("mkfifo").arg(folder.join(name)).status();
            assert!(made.unwrap().success());
        }
    });
    let url = session.file("owner");
    let address = url.trim().trim_start_matches("http://").trim_end_matches("/mcp");
    *proxy.owner.lock().unwrap() = Some(address.parse().unwrap());
    let url = format!("http://{}/mcp\n", proxy.address);
    fs::write(session.folder.path().join("proxy"), url).unwrap();
    session
}

/// The client is asked once, and the agent has one result, also if it is given meanwhile.
#[test]
fn a_call_survives_a_lost_connection() {
    for meanwhile in [false, true] {
        let proxy = Proxy::new();
        let mut session = through(&proxy);
        let call = session.suspended();
        let owner = *proxy.owner.lock().unwrap();
        proxy.cut();
        if meanwhile {
            session.answer(&call, &json!("Blue"));
            while session.next().unwrap()["type"] != "tool_ended" {}
        }
        *proxy.owner.lock().unwrap() = owner;
        if !meanwhile {
            proxy.cut();
            *proxy.owner.lock().unwrap() = owner;
            session.answer(&call, &json!("Blue"));
        }
        assert_eq!(session.end().result(), "Blue", "{meanwhile}");
    }
}

#[test]
fn a_server_without_a_session_states_what_is_missing() {
    let missing = run(&["mcp"], b"");
    assert_eq!((missing.code, &*missing.stdout), (Some(2), ""));
    assert!(missing.stderr.contains("INTERLINGUA_MCP_URL is missing"), "{}", missing.stderr);
    let with = |url: &str, token: &str| -> Ran {
        let mut command = command(&["mcp"]);
        command.env("INTERLINGUA_MCP_URL", url).env("INTERLINGUA_MCP_TOKEN", token);
        ran(command.stdin(Stdio::null()).output().unwrap())
    };
    let remote = with("http://secret.example:80/mcp", "t");
    assert_eq!((remote.code, remote.stderr.contains("secret")), (Some(2), false));
    assert!(remote.stderr.contains("http://127.0.0.1:"), "{}", remote.stderr);
    let without = with("http://127.0.0.1:4000/mcp", "");
    assert_eq!(without.code, Some(2));
    assert!(without.stderr.contains("INTERLINGUA_MCP_TOKEN is missing"), "{}", without.stderr);
}

/// Its owner is not there, which does not matter. A process that did not end would keep the test
/// waiting.
#[test]
fn the_end_of_standard_input_or_a_signal_ends_the_server() {
    for by_signal in [false, true] {
        let unused = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", unused.local_addr().unwrap());
        drop(unused);
        let mut command = command(&["mcp"]);
        command.env("INTERLINGUA_MCP_URL", url).env("INTERLINGUA_MCP_TOKEN", "t");
        let mut server = command.spawn().unwrap();
        let mut input = server.stdin.take().unwrap();
        let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}"#;
        writeln!(input, "{hello}\n{call}").unwrap();
        let mut output = BufReader::new(server.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert!(line.contains("protocolVersion"), "{line}");
        if by_signal {
            let process = rustix::process::Pid::from_child(&server);
            rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
        } else {
            drop(input);
        }
        assert_eq!(server.wait().unwrap().code(), Some(0), "{by_signal}");
        let mut rest = String::new();
        server.stderr.take().unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
    }
}
