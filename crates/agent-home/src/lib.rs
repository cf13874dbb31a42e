//! Home folders in which tests run real agents: no account, no telemetry, no updates, and a scripted model
//! on loopback. It does not know how an agent is started.

use std::path::{Path, PathBuf};

use fake_model::{FakeModel, Script};

/// A home folder for an agent, and the model that it uses. Both end with it.
#[derive(Debug)]
pub struct AgentHome {
    /// The agent.
    pub agent: &'static str,
    /// The model.
    pub model: FakeModel,
    folder: tempfile::TempDir,
}

impl AgentHome {
    /// A home whose script may have paths below the working folder.
    ///
    /// # Errors
    /// If the folder cannot be created, or the model cannot be started.
    pub fn new(agent: &'static str, script: impl FnOnce(&Path) -> Script) -> std::io::Result<Self> {
        // Codex rejects a home below the folder for temporary files.
        let folder = tempfile::Builder::new().prefix("interlingua-").tempdir_in("/var/tmp")?;
        let model = FakeModel::start(script(&folder.path().join("work")))?;
        let home = Self { agent, model, folder };
        home.write_settings()?;
        Ok(home)
    }

    /// Everything is below this folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder in which the agent works.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn write_settings(&self) -> std::io::Result<()> {
        let (root, address) = (self.folder.path(), self.model.address());
        let folders = ["home/.gemini", "home/.qwen", "home/.copilot", "codex", "claude"];
        for folder in folders.iter().chain(&["work", "config/opencode", "tmp"]) {
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
    ///
    /// # Errors
    /// If a file exists and cannot be read.
    pub fn configuration(&self) -> std::io::Result<Vec<Option<String>>> {
        let read = |name: &&str| match std::fs::read_to_string(self.folder.path().join(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        self.configuration_files().iter().map(read).collect()
    }

    /// Adds to the user's configuration of the agent.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn add_configuration(&self, text: &str) -> std::io::Result<()> {
        let first = self.configuration_files().first().copied().unwrap_or_default();
        let path = self.folder.path().join(first);
        let before = std::fs::read_to_string(&path)?;
        std::fs::write(path, before + text)
    }

    /// The variables that the agent needs.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        let (root, address) = (self.folder.path(), self.model.address());
        let below = |name: &str| root.join(name).display().to_string();
        let mut all = vec![
            ("HOME", below("home")),
            ("XDG_CONFIG_HOME", below("config")),
            ("XDG_DATA_HOME", below("data")),
            ("XDG_CACHE_HOME", below("cache")),
            ("XDG_STATE_HOME", below("state")),
            // OpenCode leaves a library of several megabytes there with every start. Codex lets its
            // sandbox write to it, and its own home is not below it.
            ("TMPDIR", below("tmp")),
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
            "anthropic-api" => vec![
                ("ANTHROPIC_API_KEY", "dummy".to_owned()),
                ("ANTHROPIC_BASE_URL", address),
                ("ANTHROPIC_MODEL", "fake-model".to_owned()),
            ],
            "gemini-api" => vec![
                ("GEMINI_API_KEY", "dummy".to_owned()),
                ("GOOGLE_GEMINI_BASE_URL", address),
                ("GEMINI_MODEL", "fake-model".to_owned()),
            ],
            "qwen" | "openai-api" => vec![
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

    /// The live processes that were started in this home.
    #[must_use]
    pub fn live_processes(&self) -> Vec<String> {
        let stat = |process: PathBuf| std::fs::read_to_string(process.join("stat"));
        let here = self.processes().into_iter().filter_map(|process| stat(process).ok());
        here.filter(|stat| !stat.is_empty() && !stat.contains(") Z")).collect()
    }

    /// The ids of the live processes that were started in this home, in order.
    #[must_use]
    pub fn process_ids(&self) -> Vec<i32> {
        let id = |process: &PathBuf| process.file_name()?.to_str()?.parse().ok();
        let mut ids: Vec<_> = self.processes().iter().filter_map(id).collect();
        ids.sort_unstable();
        ids
    }

    /// Whether a process of this home has these words in its command line. Its id is of no use: an
    /// agent may be in a namespace with ids of its own.
    #[must_use]
    pub fn runs(&self, words: &str) -> bool {
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
