//! Prepares the agents of served sessions, as `run` would prepare them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::Parser;
use interlingua_agents::agent::{HostEnvironment, KnownAgent};
use interlingua_agents::api::ApiKind;
use interlingua_agents::api::provider::Provider;
use interlingua_agents::permission::{Mode, Policy};
use interlingua_agents::remote::{RelayAccess, RemoteService};
use interlingua_agents::{Agent, ClientToolOffer, ClientToolServer, Config, Options};
use interlingua_server::{Allowed, Seal};
use interlingua_sessions::host::{Launcher, Logs, Prepared, Received};
use interlingua_sessions::{SessionId, SessionRecord};
use serde_json::Value;

use crate::arguments::{Arguments, Command, SessionArguments};
use crate::arguments_of_apis::OpenAiApi;
use crate::{model_api, remote, run};

/// Prepares known agents, model APIs, and programs that a file describes.
#[derive(Debug)]
pub(crate) struct Agents {
    /// Rules, the default mode, and how long a person may take for an answer.
    config: Config,
    /// The files that describe programs. A caller names such an agent by its path.
    programs: Vec<PathBuf>,
    /// The API of `openai-api`, if it is not the usual one.
    api: Option<OpenAiApi>,
    /// Offers agents that are programs the tools of their clients.
    client_tools: ClientToolServer,
    /// What the callers of a server may request.
    allowed: Option<Allowed>,
    /// Seals the tokens of relays, which records keep.
    seal: Option<Seal>,
}

impl Agents {
    pub(crate) fn new(
        config: Config,
        programs: Vec<PathBuf>,
        api: Option<OpenAiApi>,
        client_tools: ClientToolServer,
    ) -> Self {
        Self { config, programs, api, client_tools, allowed: None, seal: None }
    }

    /// The same agents, of which those are started that a server permits.
    pub(crate) fn permitting(self, allowed: Allowed) -> Self {
        Self { allowed: Some(allowed), ..self }
    }

    /// The same agents, the tokens of whose relays are kept.
    pub(crate) fn sealing(self, seal: Seal) -> Self {
        Self { seal: Some(seal), ..self }
    }

    /// The service that runs the agent of a session elsewhere, if one does.
    fn service(&self, record: &SessionRecord) -> Result<Option<RemoteService>> {
        let is_permitted = self.programs.iter().any(|path| path.as_os_str() == &*record.agent);
        if is_permitted { remote::service(&record.agent) } else { Ok(None) }
    }

    /// Checks a stored session before its agent is started. It may come from a server that permits
    /// more, with a prompt that waits.
    fn check_stored(&self, record: &SessionRecord) -> Result<()> {
        if let Some(allowed) = &self.allowed {
            allowed
                .check_record(record)
                .map_err(|why| anyhow!("the prompt was not sent: {why}"))?;
        }
        if record.folder.is_none() {
            bail!(
                "the prompt was not sent: the folder of this session is not known; begin a new session in it"
            );
        }
        Ok(())
    }

    /// The arguments with which `run` would start the agent of a session.
    fn arguments(&self, record: &SessionRecord) -> Result<SessionArguments> {
        let is_program = self.programs.iter().any(|path| path.as_os_str() == &*record.agent);
        let is_known = KnownAgent::find(&record.agent).is_some();
        if !is_known && !is_program && Provider::find(&record.agent).is_none() {
            return Err(anyhow!("no agent is called `{}`", record.agent));
        }
        // Values are joined with their flags, so that none can be taken for a flag.
        let mut words = vec!["interlingua".to_owned(), "run".to_owned(), record.agent.clone()];
        let resumed = record.native_ids.last().filter(|_| is_known || is_program);
        // What a service reports of its model is no choice of ours.
        let is_remote = self.service(record)?.is_some();
        let values = [
            ("--model", record.model.as_ref().filter(|_| !is_remote)),
            ("--cwd", record.folder.as_ref()),
            ("--permission-mode", record.mode.as_ref()),
            ("--resume", resumed),
        ];
        let given = values.into_iter().filter_map(|(flag, value)| Some((flag, value?)));
        words.extend(given.map(|(flag, value)| format!("{flag}={value}")));
        match Arguments::try_parse_from(words)?.command {
            Command::Run(arguments) => {
                let mut session = arguments.session;
                let provider = Provider::find(&record.agent);
                if provider.is_some_and(|provider| provider.api == ApiKind::Responses) {
                    session.of_api.api = self.api;
                }
                Ok(session)
            }
            _ => Err(anyhow!("`{}` cannot be started", record.agent)),
        }
    }

    fn mode(&self, arguments: &SessionArguments) -> Mode {
        arguments.permission_mode.or(self.config.mode).unwrap_or_default()
    }

    fn agent(
        &self,
        record: &SessionRecord,
        arguments: &SessionArguments,
        logs: &Logs,
    ) -> Result<Box<dyn Agent>> {
        if let Some(provider) = Provider::find(&arguments.agent) {
            return Ok(Box::new(model_api::hosted(
                provider,
                arguments,
                record.tools.clone(),
                logs,
            )?));
        }
        if let Some(service) = self.service(record)? {
            return Ok(Box::new(remote::hosted(&service, record, logs, self.seal.as_ref())?));
        }
        let offer = self.offer(record)?;
        Ok(Box::new(run::process_agent(arguments, self.mode(arguments), offer)?))
    }

    /// Offers an agent the tools of its session's client.
    fn offer(&self, record: &SessionRecord) -> Result<Option<Arc<ClientToolOffer>>> {
        if record.tools.is_empty() {
            return Ok(None);
        }
        Ok(Some(Arc::new(self.client_tools.offer(record.tools.clone())?)))
    }
}

impl Launcher for Agents {
    fn check(&self, record: &SessionRecord) -> Result<(), String> {
        let checked = self
            .arguments(record)
            .and_then(|arguments| self.agent(record, &arguments, &Logs::default()));
        checked.map(drop).map_err(|problem| format!("{problem:#}"))
    }

    fn needs_log(&self, record: &SessionRecord) -> bool {
        // A service gets the last prompt once more with the results for which it waits.
        let is_remote = || matches!(self.service(record), Ok(Some(_)));
        Provider::find(&record.agent).is_some() || is_remote()
    }

    fn prepare(&self, record: &SessionRecord, logs: &Logs) -> Result<Prepared, String> {
        let checked = self.check_stored(record).and_then(|()| self.arguments(record));
        let prepared = checked.and_then(|arguments| {
            let agent = self.agent(record, &arguments, logs)?;
            let policy = Policy { mode: self.mode(&arguments), rules: self.config.rules.clone() };
            let mut options = Options { policy, ..Options::default() };
            // A session has no one at a terminal; how long a person may take is a setting.
            options.deadlines.answer = self.config.answer.unwrap_or(Duration::from_secs(3600));
            if let Some(time) = self.config.client_tool {
                options.deadlines.client_tool = time;
            }
            // Readers get every event soon, and what an agent costs here is shared by many of them.
            options.read_interval = Duration::from_millis(1);
            Ok(Prepared { agent, options })
        });
        prepared.map_err(|problem| format!("{problem:#}"))
    }

    fn remembers(&self, record: &SessionRecord) -> Option<bool> {
        let (agent, id) = KnownAgent::find(&record.agent).zip(record.native_ids.last())?;
        agent.remembers(&HostEnvironment::current(), id)
    }

    fn received(&self, record: &SessionRecord, prompt: &str, since: u64) -> Received {
        let host = HostEnvironment::current();
        let known = KnownAgent::find(&record.agent).zip(record.native_ids.last());
        match known.and_then(|(agent, id)| agent.has_received(&host, id, prompt, since)) {
            Some(true) => Received::Yes,
            Some(false) => Received::No,
            // A model API has no files, and our own log may lack what it began to do.
            None => Received::Unknown,
        }
    }

    fn keep_relay(&self, session: &SessionId, relay: &RelayAccess) -> Option<Value> {
        remote::keep_relay(self.seal.as_ref()?, session, relay)
    }
}
