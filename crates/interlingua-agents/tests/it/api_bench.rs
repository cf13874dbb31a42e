//! A session with a scripted model API, for the tests of what surrounds the loop.

use std::path::Path;
use std::time::Duration;

use fake_model::{FakeModel, Reply, Script};
use interlingua::price::Prices;
use interlingua_agents::api::{ApiAgent, ApiKind, ApiSettings, Connection, Limits, RetryPolicy};
use interlingua_agents::permission::{Mode, Policy};
use interlingua_agents::{Agent, Ended, Session, tool};
use serde_json::Value;

use crate::support::{Watched, options};

/// A folder in which the agent works, and the model that it talks to.
pub(crate) struct ApiBench {
    _folder: tempfile::TempDir,
    pub(crate) model: FakeModel,
    pub(crate) settings: ApiSettings,
    /// How calls are judged.
    pub(crate) policy: Policy,
}

impl ApiBench {
    pub(crate) fn new(api: ApiKind, replies: impl IntoIterator<Item = Reply>) -> Self {
        let script = replies.into_iter().fold(Script::new(), Script::reply);
        let model = FakeModel::start(script.strict().without_side_requests()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let policy = Policy { mode: Mode::Auto, ..Policy::default() };
        let settings = settings(api, &model.address(), folder.path());
        Self { _folder: folder, model, settings, policy }
    }

    /// Starts a session, without a prompt.
    pub(crate) async fn open(&self) -> Watched {
        let mut options = options();
        options.policy = self.policy.clone();
        let agent = Box::new(ApiAgent::new(self.settings.clone()));
        let Session { handle, entries, .. } = agent.start(options).await.unwrap();
        Watched { handle, entries, events: Vec::new() }
    }

    /// Runs a session with one prompt to its end.
    pub(crate) async fn run(&self, prompt: &str) -> (Ended, Vec<Value>) {
        let session = self.open().await;
        session.handle.prompt(prompt).await.unwrap();
        session.handle.finish().await.unwrap();
        session.end().await
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
            key: "dummy".to_owned(),
            headers: Vec::new(),
            certificates: Vec::new(),
            silence: Duration::from_secs(60),
        },
        folder: folder.to_owned(),
        system: "You are a test.".to_owned(),
        effort: None,
        max_tokens: None,
        limits: Limits::default(),
        prices: Prices::builtin(),
        retries: RetryPolicy { first_delay: Duration::ZERO, ..RetryPolicy::default() },
        schema: None,
        tools,
        mcp: Vec::new(),
        sessions: None,
        earlier: None,
    }
}
