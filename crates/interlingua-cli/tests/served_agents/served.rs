//! A server with one agent, in a home folder of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agent_home::AgentHome;
use fake_model::Script;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::http::{Answer, TOKEN, send};
use crate::random::Random;
use crate::reader::Address;

/// How long something may take that is awaited.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// An agent, and the API that it uses if that is not its usual one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Agent {
    pub(crate) name: &'static str,
    api: Option<&'static str>,
}

/// All agents.
pub(crate) const AGENTS: [Agent; 10] = [
    Agent { name: "claude", api: None },
    Agent { name: "codex", api: None },
    Agent { name: "gemini", api: None },
    Agent { name: "copilot", api: None },
    Agent { name: "opencode", api: None },
    Agent { name: "qwen", api: None },
    Agent { name: "anthropic-api", api: None },
    Agent { name: "openai-api", api: None },
    Agent { name: "openai-api", api: Some("chat") },
    Agent { name: "gemini-api", api: None },
];

impl Agent {
    pub(crate) fn is_program(self) -> bool {
        !self.name.ends_with("-api")
    }

    /// Whether its program is in this folder, if it has one.
    pub(crate) fn is_in(self, programs: &Path) -> bool {
        !self.is_program() || programs.join(self.name).exists()
    }

    pub(crate) fn title(self) -> String {
        self.api.map_or(self.name.to_owned(), |api| format!("{}-{api}", self.name))
    }
}

/// The home of an agent, and a server that can be killed.
pub(crate) struct Served {
    pub(crate) agent: Agent,
    pub(crate) home: AgentHome,
    programs: String,
    pub(crate) address: Address,
    server: Option<Child>,
}

impl Served {
    /// A home, without a server.
    pub(crate) fn new(agent: Agent, programs: &Path, script: Script) -> Self {
        let home = AgentHome::new(agent.name, |_| script).unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let programs = format!("{}:{path}", programs.display());
        Self { agent, home, programs, address: Address::default(), server: None }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_interlingua"));
        command.args(words).current_dir(self.home.work());
        command.envs(self.home.environment()).env("PATH", &self.programs);
        command.args(self.agent.api.map(|api| format!("--api={api}")));
        command
    }

    /// Runs two prompts without a server; returns the events.
    pub(crate) fn run(&self, prompts: [&str; 2]) -> Vec<u8> {
        let words = ["chat", self.agent.name, "--to=events", "--permission-mode=auto"];
        let mut command = self.command(&words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut chat = command.spawn().unwrap();
        let mut stdin = chat.stdin.take().unwrap();
        let mut lines = BufReader::new(chat.stdout.take().unwrap()).lines();
        let mut printed = Vec::new();
        for prompt in prompts {
            writeln!(stdin, "{}", json!({"prompt": prompt})).unwrap();
            for line in lines.by_ref() {
                let line = line.unwrap();
                writeln!(printed, "{line}").unwrap();
                if line.contains(r#""type":"turn_ended""#) && !line.contains(r#""replay":true"#) {
                    break;
                }
            }
        }
        drop(stdin);
        lines.for_each(|line| writeln!(printed, "{}", line.unwrap()).unwrap());
        assert!(chat.wait().unwrap().success());
        printed
    }

    pub(crate) fn start(&mut self) {
        let store = self.home.path().join("sessions.db").display().to_string();
        let modes = ["--allow-mode=auto", "--allow-mode=default"];
        let words = ["serve", "--listen=127.0.0.1:0", modes[0], modes[1], "--store", &store];
        let mut command = self.command(&words);
        command.env("INTERLINGUA_TOKEN", TOKEN);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let Some((_, address)) = line.split_once("http://") else {
            panic!("the server did not start: {line}")
        };
        self.address.set(Some(address.to_owned()));
        // What else it reports is read, so that it is never blocked.
        std::thread::spawn(move || lines.for_each(drop));
        self.server = Some(server);
    }

    /// Kills the server without a warning, and waits until nothing of it and its agents is left.
    pub(crate) fn kill(&mut self) {
        self.end(Signal::KILL);
    }

    /// Asks the server to stop, and waits until nothing of it and its agents is left.
    pub(crate) fn stop(&mut self) {
        self.end(Signal::TERM);
    }

    /// Kills one process that is not the server: of the agent, or of its guard. A model API has none.
    pub(crate) fn kill_one_process(&self, random: &mut Random) {
        let server = self.server.as_ref().map(Pid::from_child);
        let ids = self.home.process_ids().into_iter().filter_map(Pid::from_raw);
        let others: Vec<_> = ids.filter(|id| Some(*id) != server).collect();
        if !others.is_empty() {
            let chosen = usize::try_from(random.below(others.len() as u64)).unwrap();
            // It may have ended in the meantime.
            let _ = kill_process(others[chosen], Signal::KILL);
        }
    }

    /// The processes that the server has started.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let server = self.server.as_ref().map(|server| server.id());
        let ids = self.home.process_ids().into_iter();
        ids.filter(|id| u32::try_from(*id).ok() != server).collect()
    }

    /// Their command lines, which every user of the machine can read.
    pub(crate) fn command_lines(&self) -> Vec<String> {
        let line = |id: i32| std::fs::read(format!("/proc/{id}/cmdline")).ok();
        let lines = self.processes().into_iter().filter_map(line);
        lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).collect()
    }

    pub(crate) fn session(&self, id: &str) -> Value {
        self.request("GET", &format!("/v1/sessions/{id}"), None, None).json()
    }

    fn end(&mut self, signal: Signal) {
        if let Some(mut server) = self.server.take() {
            kill_process(Pid::from_child(&server), signal).unwrap();
            server.wait().unwrap();
        }
        self.address.set(None);
        let begun = Instant::now();
        while !self.home.live_processes().is_empty() {
            assert!(begun.elapsed() < PATIENCE, "{:?}", self.home.live_processes());
            std::thread::yield_now();
        }
    }

    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: Option<Value>,
    ) -> Answer {
        let address = self.address.get().unwrap();
        loop {
            let response = send(&address, method, path, key, body.as_ref());
            let answer = response.and_then(crate::http::Response::complete).unwrap();
            if answer.status != 429 {
                return answer;
            }
            // Too many requests at once.
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    pub(crate) fn create(&self, prompt: &str, key: &str, mode: &str) -> String {
        self.create_with(key, json!({"prompt": prompt, "permissionMode": mode}))
    }

    pub(crate) fn create_with(&self, key: &str, mut body: Value) -> String {
        body["agent"] = self.agent.name.into();
        let created = self.request("POST", "/v1/sessions", Some(key), Some(body));
        assert_eq!(created.status, 201, "{}", created.text());
        created.json()["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn command_of(&self, id: &str, key: &str, command: Value) -> Answer {
        self.request("POST", &format!("/v1/sessions/{id}/commands"), Some(key), Some(command))
    }

    pub(crate) fn prompt(&self, id: &str, text: &str, key: &str) -> Answer {
        self.command_of(id, key, json!({"type": "prompt", "text": text}))
    }

    /// The log of a session in a dialect, and the number of its entries.
    pub(crate) fn log(&self, id: &str, dialect: &str) -> (Vec<Value>, u64) {
        let (mut records, mut next) = (Vec::new(), 0);
        loop {
            let path = format!("/v1/sessions/{id}/events?dialect={dialect}&offset={next:020}");
            let answer = self.request("GET", &path, None, None);
            assert_eq!(answer.status, 200, "{}", answer.text());
            match dialect {
                "text" => records.push(Value::from(answer.text())),
                _ => records.extend(serde_json::from_value::<Vec<Value>>(answer.json()).unwrap()),
            }
            let offset = answer.header("stream-next-offset").unwrap();
            next = offset.strip_suffix(".end").unwrap_or(offset).parse().unwrap();
            if answer.header("stream-up-to-date") == Some("true") {
                return (records, next);
            }
        }
    }

    /// Waits until the entries of a session satisfy a condition; returns them.
    pub(crate) fn until(&self, id: &str, done: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let begun = Instant::now();
        loop {
            let (events, next) = self.log(id, "events");
            if done(&events) {
                return events;
            }
            assert!(begun.elapsed() < PATIENCE, "{:#?}", crate::log::kinds(&events));
            let path = format!("/v1/sessions/{id}/events?live=long-poll&offset={next:020}");
            self.request("GET", &path, None, None);
        }
    }

    /// What `interlingua check` finds in the log of a session, which has not ended.
    pub(crate) fn findings(&self, id: &str) -> Vec<String> {
        let log: String = self.log(id, "events").0.iter().map(|it| format!("{it}\n")).collect();
        let mut command = Command::new(env!("CARGO_BIN_EXE_interlingua"));
        command.args(["check", "--as=events"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut check = command.spawn().unwrap();
        let mut stdin = check.stdin.take().unwrap();
        let writing = std::thread::spawn(move || stdin.write_all(log.as_bytes()).unwrap());
        let output = check.wait_with_output().unwrap();
        writing.join().unwrap();
        let found = String::from_utf8(output.stdout).unwrap();
        let concerns = |line: &&str| !line.contains("session-ends");
        found.lines().filter(concerns).map(str::to_owned).collect()
    }

    /// Translates events, without a server.
    pub(crate) fn translated(&self, events: &[u8], dialect: &str) -> Vec<u8> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_interlingua"));
        // Whoever runs an agent has ids of its own, as a server has.
        command.args(["translate", "--id-seed=1", "--from=events", &format!("--to={dialect}")]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut translate = command.spawn().unwrap();
        let mut stdin = translate.stdin.take().unwrap();
        let events = events.to_vec();
        let writing = std::thread::spawn(move || stdin.write_all(&events).unwrap());
        let output = translate.wait_with_output().unwrap();
        writing.join().unwrap();
        assert!(output.status.success());
        output.stdout
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}
