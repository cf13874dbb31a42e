//! An agent in a home folder of its own, and how situations run it.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_home::AgentHome;
use fake_model::Script;
use interlingua_agents::agent::KnownAgent;
use interlingua_agents::agent::program::Program;
use interlingua_agents::permission::{Decision, Mode};
use interlingua_agents::process::Guard;
use interlingua_agents::{
    Agent, Ended, Entries, Handle, InputRequest, Options, ProcessAgent, Recorder, Request, Session,
    Wanted,
};
use serde_json::Value;
use tokio::sync::mpsc;

/// The agents to run; Codex also with its protocol for unattended runs.
pub(crate) const AGENTS: [&str; 7] =
    ["codex", "codex-exec", "claude", "gemini", "copilot", "opencode", "qwen"];

/// Other agents with their protocols for unattended runs, which take one prompt per process.
pub(crate) const UNATTENDED: [&str; 4] =
    ["gemini-exec", "copilot-exec", "opencode-exec", "qwen-exec"];

/// The program of one of these, and whether to use its protocol for unattended runs.
pub(crate) fn program(agent: &'static str) -> (&'static str, bool) {
    agent.strip_suffix("-exec").map_or((agent, false), |program| (program, true))
}

/// The first argument of a guard.
pub(crate) const GUARD: &str = "interlingua-guard";

/// The guard of a session: this program, started once more, as `interlingua` does it.
pub(crate) fn guard() -> Option<Guard> {
    let program = std::env::current_exe().ok()?;
    Some(Guard { program, arguments: vec![GUARD.into()] })
}

/// The prompt of a run, unless a situation has its own.
pub(crate) const PROMPT: &str = "Do as the script says.";

/// The time limit of a session.
pub(crate) const RUN_TIMEOUT: Duration = Duration::from_secs(90);

/// An agent in its own home folder, and the model that it uses.
pub(crate) struct Home {
    home: AgentHome,
    exec: bool,
    program: PathBuf,
}

impl Deref for Home {
    type Target = AgentHome;

    fn deref(&self) -> &AgentHome {
        &self.home
    }
}

/// The result of a run, and its events.
pub(crate) struct RunReport {
    pub(crate) ended: Ended,
    pub(crate) events: Vec<Value>,
}

impl Home {
    pub(crate) fn new(
        agent: &'static str,
        program: PathBuf,
        script: Script,
    ) -> Result<Self, String> {
        Self::scripted(agent, program, |_| script)
    }

    /// A home whose script has paths below the working folder.
    pub(crate) fn scripted(
        agent: &'static str,
        program: PathBuf,
        script: impl FnOnce(&Path) -> Script,
    ) -> Result<Self, String> {
        let (agent, exec) = self::program(agent);
        let home = AgentHome::new(agent, script).map_err(|error| error.to_string())?;
        Ok(Self { home, exec, program })
    }

    /// Makes the working folder a git repository, which Copilot trusts. Agents look for the settings
    /// of a project up to the root of its repository.
    pub(crate) fn be_repository(&self) -> Result<(), String> {
        let mut git = std::process::Command::new("git");
        let made = git.args(["init", "--quiet"]).arg(self.work()).status();
        let made = made.map_err(|error| error.to_string())?;
        if !made.success() {
            return Err("git init failed".to_owned());
        }
        let trusted = serde_json::json!({"trusted_folders": [self.work()]}).to_string();
        let config = self.path().join("home/.copilot/config.json");
        std::fs::write(config, trusted).map_err(|error| error.to_string())
    }

    /// A model that is not the agent's first one.
    pub(crate) fn another_model(&self) -> &'static str {
        match self.agent {
            "codex" => "gpt-5.4",
            "claude" => "claude-haiku-4-5",
            "gemini" => "gemini-2.5-flash",
            "opencode" => "fake/other-model",
            _ => "other-model",
        }
    }

    pub(crate) fn request(&self, mode: Mode) -> Request {
        Request {
            folder: self.work(),
            mode,
            environment: self.environment(),
            program: Some(self.program.clone()),
            exec: self.exec,
            guard: guard(),
            ..Request::default()
        }
    }

    /// Runs the agent to its end, with one prompt.
    pub(crate) async fn run(&self, request: &Request) -> Result<RunReport, String> {
        self.watched(request, |_, _| {}).await
    }

    /// Runs the agent to its end, with a prompt of its own.
    pub(crate) async fn prompted(
        &self,
        request: &Request,
        prompt: &str,
    ) -> Result<RunReport, String> {
        let live = self.open(request, None).await?;
        live.prompt(prompt).await?;
        live.finish(|_, _| {}).await
    }

    /// Runs the agent to its end, and records its bytes.
    pub(crate) async fn recorded(
        &self,
        request: &Request,
        record: &Path,
    ) -> Result<RunReport, String> {
        let recorder = Recorder::create(record).map_err(|error| error.to_string())?;
        let live = self.open(request, Some(recorder)).await?;
        live.prompt(PROMPT).await?;
        live.finish(|_, _| {}).await
    }

    /// Runs the agent to its end, and passes every event to a callback that may control the session.
    pub(crate) async fn watched(
        &self,
        request: &Request,
        watch: impl FnMut(&Value, &Handle),
    ) -> Result<RunReport, String> {
        let live = self.open(request, None).await?;
        live.prompt(PROMPT).await?;
        live.finish(watch).await
    }

    /// Starts a session, without a prompt. Permissions are allowed, and questions wait.
    pub(crate) async fn open(
        &self,
        request: &Request,
        record: Option<Recorder>,
    ) -> Result<Live<'_>, String> {
        let (requests, asked) = mpsc::unbounded_channel();
        let options = Options { record, input_requests: Some(requests), ..Options::default() };
        self.start(request, options, asked).await
    }

    /// Starts a session in which no user can be asked, without a prompt.
    pub(crate) async fn open_without_user(&self, request: &Request) -> Result<Live<'_>, String> {
        let (_, asked) = mpsc::unbounded_channel();
        self.start(request, Options::default(), asked).await
    }

    /// Starts a session with an agent that a file describes, without a prompt.
    pub(crate) async fn open_described(
        &self,
        description: &Path,
        request: &Request,
    ) -> Result<Live<'_>, String> {
        let (requests, asked) = mpsc::unbounded_channel();
        let options = Options { input_requests: Some(requests), ..Options::default() };
        let program = Program::read(description).map_err(|refused| refused.to_string())?;
        let agent = program.prepare(request).map_err(|refused| refused.to_string())?;
        self.start_prepared(agent, request, options, asked).await
    }

    async fn start(
        &self,
        request: &Request,
        options: Options,
        asked: mpsc::UnboundedReceiver<InputRequest>,
    ) -> Result<Live<'_>, String> {
        let agent = KnownAgent::find(self.agent).ok_or("no such agent")?;
        let agent = agent.prepare(request).map_err(|refused| refused.to_string())?;
        self.start_prepared(agent, request, options, asked).await
    }

    async fn start_prepared(
        &self,
        agent: ProcessAgent,
        request: &Request,
        mut options: Options,
        asked: mpsc::UnboundedReceiver<InputRequest>,
    ) -> Result<Live<'_>, String> {
        options.policy.mode = request.mode;
        options.deadlines.run = Some(RUN_TIMEOUT);
        let started = Box::new(agent).start(options).await;
        let Session { handle, entries, .. } = started.map_err(|refused| refused.to_string())?;
        Ok(Live { home: self, handle, entries, asked, questions: Vec::new(), events: Vec::new() })
    }
}

/// A session that a situation drives.
pub(crate) struct Live<'h> {
    home: &'h Home,
    pub(crate) handle: Handle,
    entries: Entries,
    asked: mpsc::UnboundedReceiver<InputRequest>,
    /// The questions of the agent, which wait for an answer.
    pub(crate) questions: Vec<InputRequest>,
    pub(crate) events: Vec<Value>,
}

impl Live<'_> {
    pub(crate) async fn prompt(&self, prompt: &str) -> Result<(), String> {
        self.handle.prompt(prompt).await.map_err(|refused| refused.to_string())
    }

    /// Takes the next entries, or allows what the agent requests. Returns `false` at the end.
    pub(crate) async fn step(&mut self, watch: &mut impl FnMut(&Value, &Handle)) -> bool {
        tokio::select! {
            batch = self.entries.next() => {
                let Some(batch) = batch else { return false };
                for entry in &batch {
                    let event = serde_json::to_value(entry).unwrap_or_default();
                    watch(&event, &self.handle);
                    self.events.push(event);
                }
            }
            Some(request) = self.asked.recv() => match request.wanted {
                Wanted::Permission(_) => {
                    let _ = self.handle.decide(request.id(), Decision::Allow).await;
                }
                _ => self.questions.push(request),
            }
        }
        true
    }

    /// Waits until this many live turns have ended.
    pub(crate) async fn until_turns(&mut self, count: usize) -> Result<(), String> {
        let ended = |event: &&Value| event["type"] == "turn_ended" && event["replay"] != true;
        while self.events.iter().filter(ended).count() < count {
            if !self.step(&mut |_, _| {}).await {
                return Err(format!("the session ended before turn {count}: {:?}", self.events));
            }
        }
        Ok(())
    }

    /// Waits for a question of the agent.
    pub(crate) async fn next_question(&mut self) -> Result<InputRequest, String> {
        while self.questions.is_empty() {
            if !self.step(&mut |_, _| {}).await {
                return Err(format!("the session ended without a question: {:?}", self.events));
            }
        }
        Ok(self.questions.remove(0))
    }

    /// Waits for an event.
    pub(crate) async fn until(
        &mut self,
        what: &str,
        is_it: impl Fn(&Value) -> bool,
    ) -> Result<(), String> {
        while !self.events.iter().any(&is_it) {
            if !self.step(&mut |_, _| {}).await {
                return Err(format!("the session ended before {what}: {:?}", self.events));
            }
        }
        Ok(())
    }

    /// Ends the session when all prompts have had their turn.
    pub(crate) async fn finish(
        self,
        watch: impl FnMut(&Value, &Handle),
    ) -> Result<RunReport, String> {
        // The session may have ended already.
        let _ = self.handle.finish().await;
        self.rest(watch).await
    }

    /// Waits for the end of the session.
    pub(crate) async fn rest(
        mut self,
        mut watch: impl FnMut(&Value, &Handle),
    ) -> Result<RunReport, String> {
        while self.step(&mut watch).await {}
        let Self { home, entries, events, .. } = self;
        let ended = entries.end().await.ok_or("the session was aborted")?;
        let left = home.live_processes();
        if !left.is_empty() {
            return Err(format!("processes survived: {left:?}"));
        }
        Ok(RunReport { ended, events })
    }
}

impl RunReport {
    /// The live text; some agents replay the history of a resumed session.
    pub(crate) fn text(&self) -> String {
        let (mut text, mut past) = (String::new(), false);
        for event in &self.events {
            match event["type"].as_str() {
                Some("turn_started") => past = event["replay"] == true,
                Some("block" | "block_delta") if !past && event["kind"] == "text" => {
                    text += event["text"].as_str().unwrap_or_default();
                }
                _ => {}
            }
        }
        text
    }

    pub(crate) fn of(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["type"] == kind).collect()
    }

    pub(crate) fn outcome(&self) -> &str {
        let ends = self.of("turn_ended");
        ends.last().and_then(|end| end["outcome"].as_str()).unwrap_or("no end")
    }

    /// The session, by the agent's own id.
    pub(crate) fn session(&self) -> Option<&str> {
        let about = |event: &&Value| {
            event["type"].as_str().is_some_and(|kind| kind.starts_with("session_"))
        };
        self.events.iter().filter(about).filter_map(|event| event["id"].as_str()).next_back()
    }

    /// The outputs of the tools.
    pub(crate) fn outputs(&self) -> String {
        self.of("tool_ended")
            .iter()
            .map(|ended| ended["output"].to_string() + &ended["structured"].to_string())
            .collect()
    }

    /// The input of a call.
    pub(crate) fn input_of(&self, call: &Value) -> String {
        let known = self.events.iter().filter(|event| event["call"] == *call);
        let inputs = known.map(|event| &event["input"]).filter(|input| !input.is_null());
        inputs.map(ToString::to_string).collect()
    }

    /// Checks the laws: every turn ends once, every call is answered once, and the sequence has no
    /// gaps.
    pub(crate) fn lawful(&self) -> Result<(), String> {
        let count = |kind| self.of(kind).len();
        if count("turn_started") != count("turn_ended") {
            return Err(format!("turns: {:?}", self.kinds()));
        }
        if count("tool_started") != count("tool_ended") {
            return Err(format!("calls: {:?}", self.kinds()));
        }
        let gaps =
            self.events.iter().enumerate().find(|(at, event)| event["sequence"] != *at as u64);
        gaps.map_or(Ok(()), |(at, _)| Err(format!("a gap at {at}")))
    }

    pub(crate) fn kinds(&self) -> Vec<String> {
        let short = |event: &Value| {
            let text = event.to_string();
            text.chars().take(300).collect()
        };
        self.events.iter().map(short).collect()
    }
}

pub(crate) fn exists(path: &Path) -> bool {
    path.exists()
}
