//! A home folder for an agent: no account, no telemetry, no updates, and the model on loopback.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fake_model::{FakeModel, Script};
use interlingua_agents::agent::KnownAgent;
use interlingua_agents::permission::{Decision, Mode};
use interlingua_agents::process::Guard;
use interlingua_agents::{
    Agent, Ended, Entries, Handle, InputRequest, Options, Recorder, Request, Session, Wanted,
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
    pub(crate) agent: &'static str,
    exec: bool,
    program: PathBuf,
    pub(crate) model: FakeModel,
    folder: tempfile::TempDir,
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
        // Codex rejects a home below the folder for temporary files.
        let folder = tempfile::Builder::new().prefix("interlingua-").tempdir_in("/var/tmp");
        let folder = folder.map_err(|error| error.to_string())?;
        let script = script(&folder.path().join("work"));
        let model = FakeModel::start(script).map_err(|error| error.to_string())?;
        let (agent, exec) = self::program(agent);
        let home = Self { agent, exec, program, model, folder };
        home.write_settings().map_err(|error| error.to_string())?;
        Ok(home)
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
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
        let config = self.folder.path().join("home/.copilot/config.json");
        std::fs::write(config, trusted).map_err(|error| error.to_string())
    }

    fn write_settings(&self) -> std::io::Result<()> {
        let (root, address) = (self.folder.path(), self.model.address());
        let folders = ["home/.gemini", "home/.qwen", "home/.copilot", "codex", "claude"];
        for folder in folders.iter().chain(&["work", "config/opencode"]) {
            std::fs::create_dir_all(root.join(folder))?;
        }
        let write = |path: &str, text: String| std::fs::write(root.join(path), text);
        match self.agent {
            "codex" => write("codex/config.toml", CODEX.replace("ADDRESS", &address)),
            "claude" => write("claude/settings.json", CLAUDE.to_owned()),
            "copilot" => write("home/.copilot/mcp-config.json", COPILOT.to_owned()),
            "gemini" => write("home/.gemini/settings.json", GEMINI.to_owned()),
            "opencode" => {
                write("config/opencode/opencode.json", OPENCODE.replace("ADDRESS", &address))
            }
            "qwen" => write("home/.qwen/settings.json", QWEN.to_owned()),
            _ => Ok(()),
        }
    }

    /// The file with the user's configuration of the agent, and others in which agents keep what the
    /// user has decided.
    fn configuration_files(&self) -> &'static [&'static str] {
        match self.agent {
            "codex" => &["codex/config.toml", "codex/rules/default.rules"],
            "claude" => &["claude/settings.json", "work/.claude/settings.local.json"],
            "gemini" => &["home/.gemini/settings.json", "home/.gemini/trustedFolders.json"],
            "copilot" => &["home/.copilot/mcp-config.json"],
            "opencode" => &["config/opencode/opencode.json"],
            _ => &["home/.qwen/settings.json", "work/.qwen/settings.json"],
        }
    }

    /// The user's configuration of the agent.
    pub(crate) fn configuration(&self) -> std::io::Result<Vec<Option<String>>> {
        let read = |name: &&str| match std::fs::read_to_string(self.folder.path().join(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        self.configuration_files().iter().map(read).collect()
    }

    /// Adds to the user's configuration of the agent.
    pub(crate) fn add_configuration(&self, text: &str) -> std::io::Result<()> {
        let path = self.folder.path().join(self.configuration_files()[0]);
        let before = std::fs::read_to_string(&path)?;
        std::fs::write(path, before + text)
    }

    fn environment(&self) -> Vec<(String, String)> {
        let (root, address) = (self.folder.path(), self.model.address());
        let below = |name: &str| root.join(name).display().to_string();
        let mut all = vec![
            ("HOME", below("home")),
            ("XDG_CONFIG_HOME", below("config")),
            ("XDG_DATA_HOME", below("data")),
            ("XDG_CACHE_HOME", below("cache")),
            ("XDG_STATE_HOME", below("state")),
        ];
        let on = |name: &'static str| (name, "1".to_owned());
        all.extend(match self.agent {
            "codex" => vec![("CODEX_HOME", below("codex")), ("FAKE_KEY", "dummy".to_owned())],
            "claude" => vec![
                ("CLAUDE_CONFIG_DIR", below("claude")),
                ("ANTHROPIC_BASE_URL", address),
                ("ANTHROPIC_API_KEY", "dummy".to_owned()),
                on("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"),
                on("DISABLE_TELEMETRY"),
                on("DISABLE_AUTOUPDATER"),
                on("DISABLE_ERROR_REPORTING"),
                ("CLAUDE_CODE_MAX_RETRIES", "2".to_owned()),
            ],
            "gemini" => vec![
                ("GEMINI_API_KEY", "dummy".to_owned()),
                ("GOOGLE_GEMINI_BASE_URL", address),
                ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()),
            ],
            "copilot" => vec![
                ("COPILOT_OFFLINE", "true".to_owned()),
                ("COPILOT_PROVIDER_BASE_URL", format!("{address}/v1")),
                ("COPILOT_PROVIDER_API_KEY", "dummy".to_owned()),
                ("COPILOT_MODEL", "fake-model".to_owned()),
                ("COPILOT_AUTO_UPDATE", "false".to_owned()),
            ],
            "qwen" => vec![
                ("OPENAI_API_KEY", "dummy".to_owned()),
                ("OPENAI_BASE_URL", format!("{address}/v1")),
                ("OPENAI_MODEL", "fake-model".to_owned()),
            ],
            _ => vec![
                on("OPENCODE_DISABLE_AUTOUPDATE"),
                on("OPENCODE_DISABLE_MODELS_FETCH"),
                on("OPENCODE_DISABLE_DEFAULT_PLUGINS"),
                on("OPENCODE_DISABLE_LSP_DOWNLOAD"),
            ],
        });
        all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
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

    async fn start(
        &self,
        request: &Request,
        mut options: Options,
        asked: mpsc::UnboundedReceiver<InputRequest>,
    ) -> Result<Live<'_>, String> {
        let agent = KnownAgent::find(self.agent).ok_or("no such agent")?;
        let agent = agent.prepare(request).map_err(|refused| refused.to_string())?;
        options.policy.mode = request.mode;
        options.deadlines.run = Some(RUN_TIMEOUT);
        let started = Box::new(agent).start(options).await;
        let Session { handle, entries, .. } = started.map_err(|refused| refused.to_string())?;
        Ok(Live { home: self, handle, entries, asked, questions: Vec::new(), events: Vec::new() })
    }

    /// The live processes that were started in this home.
    pub(crate) fn live_processes(&self) -> Vec<String> {
        let stat = |process: PathBuf| std::fs::read_to_string(process.join("stat"));
        let here = self.processes().into_iter().filter_map(|process| stat(process).ok());
        here.filter(|stat| !stat.is_empty() && !stat.contains(") Z")).collect()
    }

    /// Whether a process of this home has these words in its command line. Its id is of no use: an
    /// agent may be in a namespace with ids of its own.
    pub(crate) fn runs(&self, words: &str) -> bool {
        let has_words = |process: PathBuf| {
            let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ").contains(words)
        };
        self.processes().into_iter().any(has_words)
    }

    /// The processes whose environment names this home.
    fn processes(&self) -> Vec<PathBuf> {
        let path = self.folder.path().as_os_str().as_encoded_bytes();
        let lives_here = |process: &PathBuf| {
            let environment = std::fs::read(process.join("environ")).unwrap_or_default();
            environment.windows(path.len()).any(|window| window == path)
        };
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        processes.map(|process| process.path()).filter(lives_here).collect()
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

const CODEX: &str = r#"
model = "gpt-5.5"
model_provider = "fake"
check_for_update_on_startup = false
[analytics]
enabled = false
[feedback]
enabled = false
[features]
plugins = false
[model_providers.fake]
name = "fake"
base_url = "ADDRESS/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
request_max_retries = 2
stream_max_retries = 2
"#;

const CLAUDE: &str = "{\"cleanupPeriodDays\": 30}\n";

const COPILOT: &str = "{\"mcpServers\": {}}\n";

const GEMINI: &str = r#"{"security":{"auth":{"selectedType":"gemini-api-key"}},"general":{"enableAutoUpdate":false,"enableAutoUpdateNotification":false},"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false}}"#;

/// With the field that OpenCode would add to the file.
const OPENCODE: &str = r#"{"$schema":"https://opencode.ai/config.json","autoupdate":false,"share":"disabled","model":"fake/fake-model","small_model":"fake/fake-model","provider":{"fake":{"npm":"@ai-sdk/openai-compatible","name":"Fake","options":{"baseURL":"ADDRESS/v1","apiKey":"dummy"},"models":{"fake-model":{"name":"Fake","tool_call":true,"limit":{"context":200000,"output":8192}},"other-model":{"name":"Other","tool_call":true,"limit":{"context":200000,"output":8192}}}}}}"#;

/// Disables its additional requests: memory extraction and follow-up suggestions. With the version
/// that Qwen would add to the file.
const QWEN: &str = r#"{"$version":4,"security":{"auth":{"selectedType":"openai"}},"general":{"enableAutoUpdate":false},"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},"memory":{"enableManagedAutoMemory":false},"ui":{"enableFollowupSuggestions":false}}"#;
