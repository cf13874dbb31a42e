//! Model APIs as agents, beside the real ones.

use std::path::Path;
use std::time::Duration;

use fake_model::{FakeModel, Script};
use interlingua::Writer;
use interlingua::dialect::{self, EncodeOptions};
use interlingua::price::Prices;
use interlingua_agents::api::{
    ApiAgent, ApiKind, ApiSettings, Connection, Limits, RetryPolicy, system_prompt,
};
use interlingua_agents::permission::{Mode, Policy};
use interlingua_agents::{Agent, Options, Session, tool};

/// All APIs.
pub(crate) const APIS: [ApiKind; 4] =
    [ApiKind::Anthropic, ApiKind::Responses, ApiKind::Chat, ApiKind::Gemini];

/// Runs one prompt; returns the session as our own events.
pub(crate) async fn run(api: ApiKind, script: Script) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let model =
        FakeModel::start(script.without_side_requests()).map_err(|error| error.to_string())?;
    let agent = ApiAgent::new(settings(api, &model.address(), folder.path()));
    let options =
        Options { policy: Policy { mode: Mode::Auto, ..Policy::default() }, ..Options::default() };
    let started = Box::new(agent).start(options).await.map_err(|error| error.to_string())?;
    let Session { handle, mut entries, id_seed } = started;
    let refused = |error: interlingua_agents::Refused| error.to_string();
    handle.prompt("go").await.map_err(refused)?;
    handle.finish().await.map_err(refused)?;
    let encode = EncodeOptions { id_seed: Some(id_seed), ..EncodeOptions::default() };
    let own = dialect::named("events").map_err(|error| error.to_string())?;
    let mut writer = Writer::new(own, &encode).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    while let Some(batch) = entries.next().await {
        batch.for_each(|entry| writer.write(entry, &mut bytes));
    }
    writer.finish(&mut bytes);
    match model.findings().as_slice() {
        [] => Ok(bytes),
        findings => Err(format!("{findings:?}")),
    }
}

fn settings(api: ApiKind, address: &str, folder: &Path) -> ApiSettings {
    let base_url = match api {
        ApiKind::Anthropic | ApiKind::Gemini => address.to_owned(),
        ApiKind::Responses | ApiKind::Chat => format!("{address}/v1"),
    };
    ApiSettings {
        name: api.dialect_name(),
        api,
        model: "fake-model".to_owned(),
        connection: Connection {
            base_url,
            key: "dummy".to_owned(),
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
        retries: RetryPolicy::default(),
        schema: None,
        compact: false,
        tools: tool::Settings::new(folder),
        mcp: Vec::new(),
        client_tools: Vec::new(),
        sessions: None,
        earlier: None,
    }
}
