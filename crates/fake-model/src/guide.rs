//! Instructions for people on how to point each agent at the server.

/// The environment and configuration of each agent for a server at `address` and the key `key`.
///
/// These are the settings with which the agents were really run; each agent also needs a home
/// folder of its own and an empty standard input.
#[must_use]
pub fn guide(address: &str, key: &str) -> String {
    GUIDE.replace("ADDRESS", address).replace("THE_KEY", key)
}

const GUIDE: &str = r#"Give each agent a home folder of its own (HOME=…) and no input (</dev/null).

codex: CODEX_HOME=FOLDER FAKE_KEY=THE_KEY codex exec --json --skip-git-repo-check "…"
  with FOLDER (not below the folder for temporary files) holding this config.toml:
    model = "gpt-5.5"
    model_provider = "fake"
    approval_policy = "never"
    sandbox_mode = "danger-full-access"
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

claude: ANTHROPIC_BASE_URL=ADDRESS ANTHROPIC_API_KEY=THE_KEY CLAUDE_CONFIG_DIR=FOLDER
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_TELEMETRY=1 DISABLE_AUTOUPDATER=1
  DISABLE_ERROR_REPORTING=1 CLAUDE_CODE_MAX_RETRIES=2 (and IS_SANDBOX=1 for root)
  claude -p "…" --output-format stream-json --verbose --dangerously-skip-permissions

gemini: GOOGLE_GEMINI_BASE_URL=ADDRESS GEMINI_API_KEY=THE_KEY GEMINI_CLI_TRUST_WORKSPACE=true
  GEMINI_CLI_NO_RELAUNCH=true gemini -p "…" -o stream-json --yolo
  with HOME/.gemini/settings.json:
    {"security": {"auth": {"selectedType": "gemini-api-key"}},
     "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
     "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}}

copilot: COPILOT_OFFLINE=true COPILOT_PROVIDER_BASE_URL=ADDRESS/v1
  COPILOT_PROVIDER_API_KEY=THE_KEY COPILOT_MODEL=fake-model COPILOT_AUTO_UPDATE=false
  copilot -p "…" --output-format json --yolo
  (other protocols: COPILOT_PROVIDER_TYPE=anthropic, or COPILOT_PROVIDER_WIRE_API=responses)

opencode: OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1
  OPENCODE_DISABLE_DEFAULT_PLUGINS=1 OPENCODE_DISABLE_LSP_DOWNLOAD=1
  opencode run --format json "…"
  with opencode.json in the project:
    {"autoupdate": false, "share": "disabled",
     "model": "fake/fake-model", "small_model": "fake/fake-model",
     "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "name": "Fake",
      "options": {"baseURL": "ADDRESS/v1", "apiKey": "THE_KEY"},
      "models": {"fake-model": {"name": "Fake", "tool_call": true,
       "limit": {"context": 200000, "output": 8192}}}}}}

qwen: OPENAI_BASE_URL=ADDRESS/v1 OPENAI_API_KEY=THE_KEY OPENAI_MODEL=fake-model
  qwen "…" --output-format stream-json --yolo
  with HOME/.qwen/settings.json:
    {"security": {"auth": {"selectedType": "openai"}}, "general": {"enableAutoUpdate": false},
     "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
     "memory": {"enableManagedAutoMemory": false}, "ui": {"enableFollowupSuggestions": false}}
"#;
