//! `interlingua serve`: keeps sessions, and serves them over HTTP.

mod launcher;
pub(crate) mod log;
mod tokens;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use interlingua_agents::agent::ALL;
use interlingua_agents::api::provider;
use interlingua_agents::process::adopt_orphans;
use interlingua_agents::{ClientToolServer, Config};
use interlingua_server::{AgentApi, Allowed, Seal, Server, Settings};
use interlingua_sessions::host::HostLimits;
use interlingua_sessions::{Durability, Host, MemoryStore, ServerLock, Store};
use tokio::net::TcpListener;

use crate::arguments_of_serve::ServeArguments;
use crate::sessions::local;
use crate::{SUCCESS, report};
pub(crate) use launcher::Agents;

/// Runs the command; returns its exit code.
pub(crate) fn run(arguments: &ServeArguments) -> Result<u8> {
    log::begin(arguments.log);
    let (settings, seal) = settings(arguments)?;
    let config = match &arguments.config {
        Some(path) => Config::read(path)?,
        None => Config::default(),
    };
    check_mode(arguments, &config)?;
    let (store, _lock) = open_store(arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(arguments, (settings, seal), config, store))?;
    Ok(SUCCESS)
}

async fn serve(
    arguments: &ServeArguments,
    (settings, seal): (Settings, Option<Seal>),
    config: Config,
    store: Arc<dyn Store>,
) -> Result<()> {
    adopt_orphans();
    let listener = TcpListener::bind(arguments.listen)
        .await
        .with_context(|| format!("the address {} cannot be used", arguments.listen))?;
    let address = listener.local_addr()?;
    let tools = ClientToolServer::start().context("the tools of clients cannot be offered")?;
    let agents = Agents::new(config, arguments.programs(), arguments.api, tools);
    let agents = agents.permitting(settings.allowed.clone());
    let agents = Arc::new(match seal {
        Some(seal) => agents.sealing(seal),
        None => agents,
    });
    let limits = HostLimits {
        live: arguments.live,
        idle: arguments.idle,
        ttl: arguments.ttl,
        ..HostLimits::default()
    };
    let host = Host::open(store, agents, limits).await?;
    let server = Server::new(Arc::new(host.clone()), settings);
    // Who reads the address may send a signal at once.
    let stopped = stopped();
    report::print_line(&format!("interlingua: serving on http://{address}"));
    server.run(listener, stopped).await;
    host.shutdown().await;
    Ok(())
}

/// The settings of a server, and what seals the secrets of its records.
fn settings(arguments: &ServeArguments) -> Result<(Settings, Option<Seal>)> {
    if !arguments.listen.ip().is_loopback() && !arguments.public {
        bail!(
            "{} can be reached from other machines, and the connection is not encrypted: put a server with TLS in \
             front of it, and confirm with --public",
            arguments.listen
        );
    }
    let tokens = tokens::read(arguments)?;
    if let Some(token) = tokens.generated {
        report::print_line(&format!("interlingua: the token of this server, shown once: {token}"));
    }
    let mut settings = Settings::default();
    settings.tokens = tokens.all;
    settings.token_key = tokens.key;
    settings.allowed = allowed(arguments)?;
    settings.agent_api = AgentApi {
        agent: arguments.agent_api_agent.clone(),
        mode: Some(arguments.agent_api_mode.to_string()),
        relay_url: arguments.relay_url.clone(),
    };
    settings.hosts.clone_from(&arguments.hosts);
    settings.origins.clone_from(&arguments.origins);
    settings.session_ttl = arguments.ttl;
    check_agent_api(arguments, &settings)?;
    Ok((settings, tokens.seal))
}

/// Checks what each run of the agent API needs, so that none fails after its session was created.
fn check_agent_api(arguments: &ServeArguments, settings: &Settings) -> Result<()> {
    if arguments.agent_api.is_none() {
        return Ok(());
    }
    if settings.token_key.is_none() {
        bail!(
            "--agent-api signs the tokens of its relay with the token of an administrator, and there is none: add a \
             line with `admin` to the file of --tokens, or set {}",
            tokens::VARIABLE
        );
    }
    if !arguments.modes.contains(&arguments.agent_api_mode) {
        bail!(
            "the sessions of --agent-api have the permission mode `{mode}`, which is not allowed: permit it with \
             --allow-mode {mode}, or set another one with --agent-api-mode",
            mode = arguments.agent_api_mode
        );
    }
    Ok(())
}

/// Checks the mode of sessions that name none: it is that of the configuration, and callers may not get more
/// by naming none.
fn check_mode(arguments: &ServeArguments, config: &Config) -> Result<()> {
    let (Some(mode), Some(path)) = (config.mode, &arguments.config) else { return Ok(()) };
    if arguments.modes.contains(&mode) {
        return Ok(());
    }
    bail!(
        "{} sets the permission mode `{mode}` for sessions that name none, and callers may not request it: permit it \
         with --allow-mode {mode}, or set another mode",
        path.display()
    );
}

/// What callers may request.
fn allowed(arguments: &ServeArguments) -> Result<Allowed> {
    let known = ALL.iter().map(|agent| agent.name).chain(provider::ALL.iter().map(|it| it.name));
    let agents = match &arguments.agents[..] {
        [] => known.map(str::to_owned).collect(),
        agents => agents.to_vec(),
    };
    let folders = match &arguments.folders[..] {
        [] => vec![PathBuf::from(".")],
        folders => folders.to_vec(),
    };
    let absolute = |folder: PathBuf| {
        folder.canonicalize().with_context(|| format!("the folder {}", folder.display()))
    };
    Ok(Allowed {
        agents,
        folders: folders.into_iter().map(absolute).collect::<Result<_>>()?,
        modes: arguments.modes.iter().map(ToString::to_string).collect(),
        sandboxes: arguments.agent_api.as_ref().map(std::path::absolute).transpose()?,
    })
}

/// Opens the store, of which there is one server.
fn open_store(arguments: &ServeArguments) -> Result<(Arc<dyn Store>, Option<ServerLock>)> {
    if arguments.memory {
        return Ok((Arc::new(MemoryStore::default()), None));
    }
    let path = arguments.store.clone().or_else(local::path);
    let path = path.context("no home folder is set: name a file with --store")?;
    let lock = ServerLock::acquire(&path)?;
    let sync = if arguments.sync { Durability::Always } else { Durability::default() };
    let store = local::open(arguments.store.as_ref(), sync)?;
    Ok((Arc::new(store), Some(lock)))
}

/// Takes signals to stop from now on, and waits for one.
fn stopped() -> impl Future<Output = ()> {
    #[cfg(unix)]
    let signals = {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::terminate()).ok().zip(signal(SignalKind::interrupt()).ok())
    };
    async move {
        #[cfg(unix)]
        if let Some((mut terminated, mut interrupted)) = signals {
            tokio::select! {
                _ = terminated.recv() => {}
                _ = interrupted.recv() => {}
            }
            return;
        }
        let _ = tokio::signal::ctrl_c().await;
    }
}

impl ServeArguments {
    /// The files of programs that callers may start.
    fn programs(&self) -> Vec<PathBuf> {
        let is_file = |agent: &&String| agent.ends_with(".toml");
        self.agents.iter().filter(is_file).map(PathBuf::from).collect()
    }
}

/// The address on which a server listens unless another one is given.
pub(crate) const ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4717);
