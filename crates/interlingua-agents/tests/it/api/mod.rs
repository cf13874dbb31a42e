//! Model APIs as agents, with a scripted model.

mod asked;
mod client_tools;
mod compaction;
mod continuations;
mod conversation;
mod cuts;
mod failures;
mod final_errors;
mod forms;
mod golden;
mod limits;
mod mcp;
mod mcp_http;
mod models;
mod optional_fields;
mod resume;
mod resumed_client_tools;
mod resumed_history;
mod split;
mod storing;
mod tools;
mod usage;

use std::path::{Path, PathBuf};
use std::time::Duration;

use fake_model::{FakeModel, Reply, Script};
use interlingua::price::Prices;
use interlingua_agents::api::{
    ApiAgent, ApiKind, ApiSettings, Connection, Limits, RetryPolicy, system_prompt,
};
use interlingua_agents::permission::{Mode, Policy};
use interlingua_agents::{Ended, InputRequest, Options, tool};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::support::{Watched, options};

/// All APIs.
pub(crate) const APIS: [ApiKind; 4] =
    [ApiKind::Anthropic, ApiKind::Responses, ApiKind::Chat, ApiKind::Gemini];

/// The key, parts of which a provider quotes when it rejects it.
const KEY: &str = "sk-abcdefghijklmnopqrstuvwxyz";

/// A folder in which an agent works, and the model that it talks to.
pub(crate) struct Bench {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) model: FakeModel,
    pub(crate) api: ApiKind,
    pub(crate) settings: ApiSettings,
    /// How calls are judged.
    pub(crate) policy: Policy,
    /// The user, if there is one.
    pub(crate) user: Option<mpsc::UnboundedSender<InputRequest>>,
}

impl Bench {
    /// A bench with a strict script.
    pub(crate) fn new(api: ApiKind, replies: impl IntoIterator<Item = Reply>) -> Self {
        let script = replies.into_iter().fold(Script::new(), Script::reply);
        Self::with_script(api, script.strict())
    }

    pub(crate) fn with_script(api: ApiKind, script: Script) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model = FakeModel::start(script.key(KEY).without_side_requests()).unwrap();
        let settings = settings(api, &model.address(), folder.path());
        let policy = Policy { mode: Mode::Auto, ..Policy::default() };
        Self { folder, model, api, settings, policy, user: None }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Starts a session, without a prompt.
    pub(crate) async fn open(&self) -> Watched {
        let policy = self.policy.clone();
        let options = Options { policy, input_requests: self.user.clone(), ..options() };
        Watched::open(ApiAgent::new(self.settings.clone()), options).await
    }

    /// Runs a session with one prompt to its end.
    pub(crate) async fn run(&self, prompt: &str) -> (Ended, Vec<Value>) {
        let session = self.open().await;
        session.handle.prompt(prompt).await.unwrap();
        session.handle.finish().await.unwrap();
        session.end().await
    }

    /// Runs a session with one prompt, for a limited time.
    pub(crate) async fn run_within(&self, prompt: &str, limit: Duration) -> (Ended, Vec<Value>) {
        let mut options = Options { policy: self.policy.clone(), ..options() };
        options.deadlines.run = Some(limit);
        let session = Watched::open(ApiAgent::new(self.settings.clone()), options).await;
        session.handle.prompt(prompt).await.unwrap();
        session.handle.finish().await.unwrap();
        session.end().await
    }

    /// Checks that the model found nothing wrong, and keeps the requests for the check by the types
    /// of the providers' SDKs.
    pub(crate) fn check(&self, name: &str) {
        assert_eq!(self.model.findings(), [], "{:?}", self.api);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("api-requests");
        let name = format!("{}-{name}", self.api.dialect_name());
        self.model.record_requests(&folder, &name).unwrap();
    }
}

fn settings(api: ApiKind, address: &str, folder: &Path) -> ApiSettings {
    let base_url = match api {
        ApiKind::Anthropic | ApiKind::Gemini => address.to_owned(),
        ApiKind::Responses | ApiKind::Chat => format!("{address}/v1"),
    };
    let mut tools = tool::Settings::new(folder);
    tools.caches.clear();
    ApiSettings {
        name: api.dialect_name(),
        api,
        model: "fake-model".to_owned(),
        connection: Connection {
            base_url,
            key: KEY.to_owned(),
            missing_key: None,
            headers: Vec::new(),
            certificates: Vec::new(),
            silence: Duration::from_secs(60),
        },
        folder: folder.to_owned(),
        system: system_prompt(folder, None, None),
        effort: None,
        max_tokens: None,
        limits: Limits::default(),
        prices: Prices::builtin(),
        retries: RetryPolicy { first_delay: Duration::ZERO, ..RetryPolicy::default() },
        schema: None,
        compact: false,
        tools,
        mcp: Vec::new(),
        client_tools: Vec::new(),
        sessions: None,
        earlier: None,
    }
}

/// The events of a kind.
pub(crate) fn of_kind<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// The only event of a kind.
pub(crate) fn only<'e>(events: &'e [Value], kind: &str) -> &'e Value {
    let all = of_kind(events, kind);
    assert_eq!(all.len(), 1, "{kind}: {all:?}");
    all[0]
}

/// The text that the model streamed, without what was withdrawn.
pub(crate) fn text(events: &[Value]) -> String {
    let mut blocks: Vec<(u64, String)> = Vec::new();
    for event in events {
        match event["type"].as_str().unwrap() {
            "block_delta" | "block" if event["kind"] == "text" => {
                let number = event["block"].as_u64().unwrap();
                let piece = event["text"].as_str().unwrap();
                match blocks.iter_mut().find(|(block, _)| *block == number) {
                    Some((_, text)) => text.push_str(piece),
                    None => blocks.push((number, piece.to_owned())),
                }
            }
            "withdrawn" => {
                let withdrawn = event["blocks"].as_array().unwrap();
                blocks.retain(|(number, _)| !withdrawn.iter().any(|it| it["block"] == *number));
            }
            _ => {}
        }
    }
    blocks.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("|")
}
