//! Prepares an agent that is a model API from the arguments: its address, key, prompt, tools and
//! history.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use interlingua::price::Prices;
use interlingua_agents::ClientTool;
use interlingua_agents::api::mcp::{self, McpServer};
use interlingua_agents::api::provider::Provider;
use interlingua_agents::api::{
    ApiAgent, ApiKind, ApiSettings, Connection, Earlier, Limits, RetryPolicy, system_prompt,
};
use interlingua_agents::tool::{self, Sandbox};
use interlingua_sessions::SessionId;
use interlingua_sessions::host::Logs;

use crate::SANDBOX;
use crate::arguments::SessionArguments;
use crate::arguments_of_apis::OpenAiApi;
use crate::client_tools;
use crate::sessions::local;

/// How long a response may be silent, unless the limit for silence is shorter.
const SILENCE: Duration = Duration::from_secs(300);

/// The limit of requests for a prompt, unless another one is given.
const MAX_REQUESTS: u64 = 200;

/// The agent for a provider, and whether its session is stored on this machine.
pub(crate) fn agent(
    provider: &'static Provider,
    arguments: &SessionArguments,
) -> Result<(ApiAgent, bool)> {
    check(provider, arguments)?;
    let (resumed, earlier) = earlier(arguments)?;
    let mut settings = settings(provider, arguments, earlier, arguments.resume.is_some())?;
    // A session that cannot send anything is not worth storing.
    if settings.connection.missing_key.is_none() {
        settings.sessions = local::runs(resumed)?;
    }
    let is_stored = settings.sessions.is_some();
    Ok((ApiAgent::new(settings), is_stored))
}

/// The agent for a provider, for a session whose host stores its log.
pub(crate) fn hosted(
    provider: &'static Provider,
    arguments: &SessionArguments,
    client_tools: Vec<ClientTool>,
    logs: &Logs,
) -> Result<ApiAgent> {
    check(provider, arguments)?;
    let mut earlier = Earlier::read(&logs.own)?;
    if earlier.is_empty() {
        // What another session knows becomes a part of this one.
        earlier = Earlier::read(&logs.earlier)?.forked();
    }
    let earlier = Some(earlier).filter(|earlier| !earlier.is_empty());
    let settings = settings(provider, arguments, earlier, true)?;
    Ok(ApiAgent::new(ApiSettings { client_tools, ..settings }))
}

/// The settings of an agent. `is_same` means that it continues the earlier session, and does not begin
/// another one with its history.
fn settings(
    provider: &'static Provider,
    arguments: &SessionArguments,
    earlier: Option<Earlier>,
    is_same: bool,
) -> Result<ApiSettings> {
    let api = api(provider, arguments)?;
    let kept = earlier.as_ref().filter(|it| is_same && it.api() == Some(api));
    let model = model(provider, arguments, kept);
    let of_api = &arguments.of_api;
    let system = match &of_api.system_prompt_file {
        Some(path) => Some(read_text(path)?),
        None => of_api.system_prompt.clone(),
    };
    let appended = of_api.append_system_prompt.as_deref();
    let limits = Limits {
        requests: Some(of_api.max_turns.unwrap_or(MAX_REQUESTS)),
        tokens: of_api.max_tokens,
        cost_usd: of_api.max_cost,
    };
    Ok(ApiSettings {
        name: provider.name,
        api,
        model,
        sessions: None,
        connection: connection(provider, arguments)?,
        folder: arguments.cwd.clone(),
        system: system_prompt(&arguments.cwd, system.as_deref(), appended),
        effort: of_api.effort.clone(),
        max_tokens: of_api.max_answer_tokens,
        limits,
        prices: prices(arguments)?,
        retries: RetryPolicy::default(),
        schema: of_api.json_schema.clone(),
        compact: of_api.compact,
        tools: tools(arguments),
        mcp: mcp_servers(arguments)?,
        client_tools: client_tools::read(arguments)?,
        earlier,
    })
}

/// Rejects arguments that only make sense for a program.
fn check(provider: &Provider, arguments: &SessionArguments) -> Result<()> {
    let of_programs = [
        ("--program", arguments.program.is_some()),
        ("--exec", arguments.exec),
        ("--screen", arguments.screen),
        ("flags after `--`", !arguments.flags.is_empty()),
    ];
    if let Some((name, _)) = of_programs.into_iter().find(|(_, given)| *given) {
        bail!("{} is a model API and not a program, so it cannot use {name}", provider.name);
    }
    for name in key_variables(provider, arguments) {
        let given = arguments.env.iter().find(|(given, _)| given == name);
        // `--env NAME` repeats what is set here.
        if given.is_some_and(|(_, value)| std::env::var(name).ok().as_ref() != Some(value)) {
            bail!(
                "a key is not taken from an argument, which every user of this machine can read: set {name} in the \
                 environment, or use --api-key-file"
            );
        }
    }
    if !arguments.cwd.is_dir() {
        bail!(
            "there is no folder {}: create it, or name another one with --cwd",
            arguments.cwd.display()
        );
    }
    Ok(())
}

fn api(provider: &Provider, arguments: &SessionArguments) -> Result<ApiKind> {
    Ok(match (provider.api, arguments.of_api.api) {
        (api, None) => api,
        (ApiKind::Responses, Some(OpenAiApi::Responses)) => ApiKind::Responses,
        (ApiKind::Responses, Some(OpenAiApi::Chat)) => ApiKind::Chat,
        _ => bail!("--api is for openai-api; {} has only one API", provider.name),
    })
}

fn model(provider: &Provider, arguments: &SessionArguments, earlier: Option<&Earlier>) -> String {
    let given = arguments.model.clone().or_else(|| variable(arguments, provider.model_variable));
    let kept = || earlier?.model().map(str::to_owned);
    given.or_else(kept).unwrap_or_else(|| provider.model.to_owned())
}

fn connection(provider: &Provider, arguments: &SessionArguments) -> Result<Connection> {
    let of_api = &arguments.of_api;
    let from_variable =
        || provider.base_url_variables.iter().find_map(|name| variable(arguments, name));
    let given = of_api.base_url.clone().or_else(from_variable);
    let is_other = given.is_some();
    let headers = of_api.headers.iter().map(|header| {
        let form = "the form of --header-env is HEADER=NAME, where NAME is an environment variable";
        let (header, name) = header.split_once('=').context(form)?;
        let value = secret(name).with_context(|| {
            format!("there is no environment variable {name} for the header {header}")
        })?;
        Ok((header.to_owned(), value))
    });
    let certificates = of_api.ca_file.as_deref().map(certificates);
    let key = key(provider, arguments, is_other)?;
    Ok(Connection {
        base_url: given.unwrap_or_else(|| provider.base_url.to_owned()),
        missing_key: key.as_ref().err().cloned(),
        key: key.unwrap_or_default(),
        headers: headers.collect::<Result<_>>()?,
        certificates: certificates.transpose()?.unwrap_or_default(),
        silence: arguments.idle_timeout.map_or(SILENCE, |limit| limit.min(SILENCE)),
    })
}

/// The file of `--ca-file`.
fn certificates(path: &Path) -> Result<Vec<u8>> {
    let pem = std::fs::read(path).with_context(|| path.display().to_string())?;
    // A connection without any bytes would be one without the option.
    if pem.is_empty() {
        bail!("{}: the file is empty, so it has no certificate in the form of PEM", path.display());
    }
    Ok(pem)
}

/// The key, or why there is none. Only the provider itself needs one for certain.
fn key(
    provider: &Provider,
    arguments: &SessionArguments,
    is_other_server: bool,
) -> Result<Result<String, String>> {
    if let Some(path) = &arguments.of_api.api_key_file {
        return Ok(Ok(read_text(path)?.trim().to_owned()));
    }
    if let Some(name) = &arguments.of_api.api_key_env {
        let why = || format!("the environment variable {name} has no key");
        return Ok(secret(name).ok_or_else(why));
    }
    let found = provider.key_variables.iter().find_map(|name| secret(name));
    Ok(match found {
        Some(key) => Ok(key),
        None if is_other_server => Ok(String::new()),
        None => Err(format!(
            "there is no key for the {}: {}, or name another variable with --api-key-env",
            provider.title,
            provider.how_to_sign_in()
        )),
    })
}

/// The value of a variable of our own environment. Secrets are not taken from arguments, which every
/// user of the machine can read.
fn secret(name: &str) -> Option<String> {
    let value = std::env::var(name).ok()?.trim().to_owned();
    Some(value).filter(|value| !value.is_empty())
}

/// The variables from which keys are taken.
fn key_variables<'a>(
    provider: &'a Provider,
    arguments: &'a SessionArguments,
) -> impl Iterator<Item = &'a str> {
    let headers = arguments.of_api.headers.iter();
    let of_headers = headers.filter_map(|header| header.split_once('=').map(|(_, name)| name));
    let chosen = arguments.of_api.api_key_env.as_deref();
    provider.key_variables.iter().copied().chain(chosen).chain(of_headers)
}

/// An environment variable, as it is set for the agent.
fn variable(arguments: &SessionArguments, name: &str) -> Option<String> {
    let set = arguments.env.iter().rev().find(|(set, _)| set == name);
    let value = set.map(|(_, value)| value.clone()).or_else(|| std::env::var(name).ok());
    value.filter(|value| !value.trim().is_empty())
}

fn tools(arguments: &SessionArguments) -> tool::Settings {
    let of_api = &arguments.of_api;
    let mut settings = tool::Settings::new(&arguments.cwd);
    settings.additional_folders.clone_from(&of_api.add_dir);
    // Commands run in another folder than this program.
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    settings.caches.extend(of_api.cache_dir.iter().map(absolute));
    settings.web_fetch =
        of_api.allowed_tools.as_ref().is_some_and(|tools| tools.iter().any(|it| it == "WebFetch"));
    settings.tools.clone_from(&of_api.allowed_tools);
    settings.network = !of_api.no_network;
    settings.guard = crate::guard::guard();
    settings.isolation = arguments.isolation;
    let program = std::env::current_exe().ok();
    settings.sandbox = program.map(|program| Sandbox { program, arguments: vec![SANDBOX.into()] });
    settings.hidden_variables.extend(of_api.api_key_env.clone());
    settings.hidden_variables.extend(
        of_api
            .headers
            .iter()
            .filter_map(|header| header.split_once('=').map(|(_, name)| name.to_owned())),
    );
    settings
}

/// The MCP servers of the configuration files.
fn mcp_servers(arguments: &SessionArguments) -> Result<Vec<McpServer>> {
    let configs = arguments.of_api.mcp_config.iter().map(|path| Ok(mcp::read_config(path)?));
    let servers: Vec<_> = configs.collect::<Result<Vec<_>>>()?;
    Ok(servers.into_iter().flatten().collect())
}

/// The prices, with those of the user.
fn prices(arguments: &SessionArguments) -> Result<Prices> {
    let builtin = Prices::builtin();
    let Some(path) = &arguments.of_api.prices else { return Ok(builtin) };
    let own = Prices::read(&read_text(path)?).with_context(|| path.display().to_string())?;
    Ok(builtin.overridden_by(own))
}

/// The session that is continued, if one is; and its id, if it stays the same one.
fn earlier(arguments: &SessionArguments) -> Result<(Option<SessionId>, Option<Earlier>)> {
    let (id, name, bytes) = match (&arguments.resume, &arguments.of_api.from_session) {
        (Some(id), _) => {
            let (id, log) = local::log(id)?;
            let name = format!("the session {id}");
            (Some(id), name, log)
        }
        (None, Some(path)) => {
            let name = path.display().to_string();
            let bytes = std::fs::read(path).with_context(|| name.clone())?;
            (None, name, bytes)
        }
        (None, None) => return Ok((None, None)),
    };
    let earlier = Earlier::read(&bytes)?;
    if earlier.is_empty() {
        bail!("{name} contains no conversation that could be continued");
    }
    let earlier = if id.is_some() { earlier } else { earlier.forked() };
    Ok((id, Some(earlier)))
}

fn read_text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}
