//! A working folder, an agent, a store, and a server that can be killed.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::script::TALKER;
use crate::http::{Answer, TOKEN, send};
use crate::log::{assert_continues, kinds};
use crate::reader::{Address, Mode, Reader};
use crate::support::command;

/// How long something may take that is awaited.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Desk {
    pub(super) folder: tempfile::TempDir,
    pub(super) address: Address,
    pub(super) server: Option<Child>,
    /// What starts the server, if it is not started directly: a program and its arguments.
    pub(super) within: Vec<String>,
    /// The file of the store.
    pub(super) store: PathBuf,
    /// The agent that sessions use.
    pub(super) agent: String,
    /// Further arguments of the server.
    pub(super) arguments: Vec<String>,
    /// Further variables of the server. One that is empty is removed.
    pub(super) environment: Vec<(&'static str, String)>,
}

impl Desk {
    /// A desk with a server.
    pub(super) fn new() -> Self {
        let mut desk = Self::prepared();
        desk.start();
        desk
    }

    /// A desk whose server was not started yet.
    pub(super) fn prepared() -> Self {
        Self::with_agent(TALKER, "claude")
    }

    /// A desk with an agent that is a script and speaks a dialect. Its server was not started yet.
    pub(super) fn with_agent(script: &str, dialect: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent");
        std::fs::write(&path, script).unwrap();
        let description = format!(
            "command = \"/bin/sh\"\narguments = [{:?}]\ndialect = {dialect:?}\nprompt = \"protocol\"\n",
            path.display().to_string()
        );
        let agent = folder.path().join("agent.toml");
        std::fs::write(&agent, description).unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Self {
            store: folder.path().join("sessions.db"),
            agent: agent.display().to_string(),
            folder,
            address: Address::default(),
            server: None,
            within: Vec::new(),
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// A desk with a script that is found as `qwen`, so that its own files are known.
    pub(super) fn of_qwen(script: &str) -> Self {
        let mut desk = Self::with_agent(script, "acp");
        std::fs::create_dir(desk.path("bin")).unwrap();
        let program = desk.path("bin/qwen");
        std::fs::copy(desk.path("agent"), &program).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        desk.agent = "qwen".to_owned();
        desk
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn start(&mut self) {
        // What it reports is read, so that it is never blocked.
        drop(self.start_with_log());
    }

    /// Starts the server; the thread returns what it reports after its address.
    pub(super) fn start_with_log(&mut self) -> std::thread::JoinHandle<Vec<String>> {
        let store = self.store.display().to_string();
        let serve = command(&["serve", "--listen", "127.0.0.1:0", "--store", &store]);
        let mut command = match &self.within[..] {
            [] => serve,
            [program, arguments @ ..] => {
                let mut outer = Command::new(program);
                outer.args(arguments).arg(serve.get_program()).args(serve.get_args());
                outer
            }
        };
        command.args(["--allow-agent", &self.agent]).args(&self.arguments);
        command.current_dir(self.path("work"));
        command.env("INTERLINGUA_TOKEN", TOKEN).env("HOME", self.folder.path());
        for (name, value) in &self.environment {
            match value.is_empty() {
                true => command.env_remove(name),
                false => command.env(name, value),
            };
        }
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.path("bin").display()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let Some((_, address)) = line.split_once("http://") else {
            panic!("the server did not start: {line}")
        };
        self.address.set(Some(address.to_owned()));
        self.server = Some(server);
        std::thread::spawn(move || lines.map_while(Result::ok).collect())
    }

    /// Kills the server without a warning.
    pub(super) fn kill(&mut self) {
        self.address.set(None);
        if let Some(mut server) = self.server.take() {
            server.kill().unwrap();
            server.wait().unwrap();
        }
    }

    /// Asks the server to stop, and waits until it has.
    pub(super) fn stop(&mut self) {
        let mut server = self.server.take().unwrap();
        kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
        assert!(server.wait().unwrap().success());
        self.address.set(None);
    }

    pub(super) fn request(
        &self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: Option<Value>,
    ) -> Answer {
        let address = self.address.get().unwrap();
        let response = send(&address, method, path, key, body.as_ref());
        response.and_then(crate::http::Response::complete).unwrap()
    }

    pub(super) fn create(&self, prompt: &str, key: &str) -> String {
        self.create_with(key, json!({"agent": self.agent, "prompt": prompt}))
    }

    pub(super) fn create_with(&self, key: &str, body: Value) -> String {
        let created = self.request("POST", "/v1/sessions", Some(key), Some(body));
        assert_eq!(created.status, 201, "{}", created.text());
        created.json()["id"].as_str().unwrap().to_owned()
    }

    pub(super) fn command(&self, id: &str, key: &str, command: Value) -> Answer {
        self.request("POST", &format!("/v1/sessions/{id}/commands"), Some(key), Some(command))
    }

    pub(super) fn prompt(&self, id: &str, text: &str, key: &str) -> Answer {
        self.command(id, key, json!({"type": "prompt", "text": text}))
    }

    pub(super) fn session(&self, id: &str) -> Value {
        self.request("GET", &format!("/v1/sessions/{id}"), None, None).json()
    }

    /// The entries of a session, read page by page.
    pub(super) fn events(&self, id: &str) -> Vec<Value> {
        let mut events: Vec<Value> = Vec::new();
        loop {
            let path = format!("/v1/sessions/{id}/events?offset={:020}", events.len());
            let answer = self.request("GET", &path, None, None);
            assert_eq!(answer.status, 200, "{}", answer.text());
            events.extend(serde_json::from_value::<Vec<Value>>(answer.json()).unwrap());
            if answer.header("stream-up-to-date") == Some("true") {
                return events;
            }
        }
    }

    /// Waits until the entries of a session satisfy a condition; returns them.
    pub(super) fn until(&self, id: &str, done: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let begun = Instant::now();
        loop {
            let events = self.events(id);
            if done(&events) {
                return events;
            }
            assert!(begun.elapsed() < PATIENCE, "{:#?}", kinds(&events));
            self.until_more(id, &events);
        }
    }

    /// Waits for more entries than these, as long as the server lets a reader wait.
    pub(super) fn until_more(&self, id: &str, events: &[Value]) {
        let offset = format!("{:020}", events.len());
        let path = format!("/v1/sessions/{id}/events?live=long-poll&offset={offset}");
        self.request("GET", &path, None, None);
    }

    /// Restarts a server that has ended; checks that the log goes on where it was.
    pub(super) fn restart(&mut self, id: &str, seen: &[Value]) -> Vec<Value> {
        self.until_no_process();
        self.start();
        let events = self.events(id);
        assert_continues(seen, &events);
        events
    }

    /// Readers of a log, from its beginning.
    pub(super) fn readers(&self, id: &str) -> Vec<Reader> {
        let modes = [Mode::LongPoll, Mode::Sse, Mode::Reconnecting];
        modes.map(|mode| Reader::new(&self.address, id, "events", mode, 0)).into()
    }

    /// How often the agent received a text.
    pub(super) fn times(&self, text: &str) -> usize {
        let received = std::fs::read_to_string(self.path("work/received")).unwrap_or_default();
        received.lines().filter(|line| *line == text).count()
    }

    /// The processes that work in the folder of the agent, except for the server.
    pub(super) fn processes(&self) -> Vec<PathBuf> {
        let work = self.path("work").canonicalize().unwrap();
        let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let works =
            |path: &PathBuf| std::fs::read_link(path.join("cwd")).is_ok_and(|it| it == work);
        let own = self.server.as_ref().map(|server| server.id().to_string());
        let is_server = |path: &Path| {
            path.file_name().is_some_and(|name| Some(name.to_string_lossy().into_owned()) == own)
        };
        processes.filter(|path| works(path) && !is_server(path)).collect()
    }

    /// Kills the agent without a warning. Returns whether there was one.
    pub(super) fn kill_agent(&self) -> bool {
        let script = self.path("agent").display().to_string();
        let is_agent = |path: &PathBuf| {
            let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
            line == format!("/bin/sh\0{script}\0").as_bytes()
        };
        let agents: Vec<_> = self.processes().into_iter().filter(is_agent).collect();
        let number = |path: &PathBuf| path.file_name()?.to_str()?.parse().ok();
        let pids = agents.iter().filter_map(number).filter_map(Pid::from_raw);
        for pid in pids {
            // It may end at this moment.
            let _ = kill_process(pid, Signal::KILL);
        }
        !agents.is_empty()
    }

    /// Waits until no process of the agent is left.
    pub(super) fn until_no_process(&self) {
        let begun = Instant::now();
        while !self.processes().is_empty() {
            assert!(begun.elapsed() < PATIENCE, "{:?}", self.processes());
            std::thread::yield_now();
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.kill();
    }
}
