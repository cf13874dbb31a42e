//! Remote agents: services that a file describes, as agents of a session.

use std::path::Path;

use anyhow::{Result, bail};
use interlingua_agents::ClientTool;
use interlingua_agents::agent::Described;
use interlingua_agents::remote::{Access, RelayAccess, RemoteAgent, RemoteService, RemoteSettings};
use interlingua_server::Seal;
use interlingua_sessions::host::{Logs, RELAY};
use interlingua_sessions::{SessionId, SessionRecord};
use serde_json::{Value, json};

use crate::arguments::SessionArguments;
use crate::client_tools;

/// The service that an agent's name describes, if it is the path of such a file.
pub(crate) fn service(name: &str) -> Result<Option<RemoteService>> {
    if !Described::is_path(name) {
        return Ok(None);
    }
    match Described::read(Path::new(name))? {
        Described::Service(service) => Ok(Some(*service)),
        _ => Ok(None),
    }
}

/// The agent of a session at a terminal, or in a pipe.
pub(crate) fn agent(service: &RemoteService, arguments: &SessionArguments) -> Result<RemoteAgent> {
    let given = [
        ("--model", arguments.model.is_some()),
        ("--program", arguments.program.is_some()),
        ("--env", !arguments.env.is_empty()),
        ("--exec", arguments.exec),
        ("--screen", arguments.screen),
    ];
    if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
        bail!("{flag} is for agents that run here; {} describes a service", arguments.agent);
    }
    let settings = settings(service, client_tools::read(arguments)?)?;
    let access = Access { session: arguments.resume.clone(), ..Access::default() };
    Ok(RemoteAgent::new(RemoteSettings { access, ..settings }))
}

/// The agent of a session that a host stores.
pub(crate) fn hosted(
    service: &RemoteService,
    record: &SessionRecord,
    logs: &Logs,
    seal: Option<&Seal>,
) -> Result<RemoteAgent> {
    let settings = settings(service, record.tools.clone())?;
    let fact = |name: &str| record.host.get(name).and_then(Value::as_str).map(str::to_owned);
    let access = Access {
        session: record.native_ids.last().cloned(),
        sandbox: fact("sandboxId"),
        relay: seal.and_then(|seal| kept_relay(record, seal)),
    };
    Ok(RemoteAgent::new(RemoteSettings { access, message: logs.last_prompt(), ..settings }))
}

fn settings(service: &RemoteService, tools: Vec<ClientTool>) -> Result<RemoteSettings> {
    Ok(service.settings(|name| std::env::var(name).ok(), tools)?)
}

/// What a record keeps of a relay: its token is sealed.
pub(crate) fn keep_relay(seal: &Seal, session: &SessionId, relay: &RelayAccess) -> Option<Value> {
    let RelayAccess { session: at_relay, token, url } = relay;
    let token = seal.seal(session, token)?;
    Some(json!({"session": at_relay, "token": token, "url": url}))
}

fn kept_relay(record: &SessionRecord, seal: &Seal) -> Option<RelayAccess> {
    let kept = record.host.get(RELAY)?;
    let text = |name: &str| kept.get(name).and_then(Value::as_str);
    Some(RelayAccess {
        session: text("session")?.to_owned(),
        token: seal.open(&record.id, text("token")?)?,
        url: text("url")?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_keeps_a_relay_without_its_token() {
        let seal = Seal::from_secret("the secret of the operator");
        let id = SessionId::new("one").unwrap();
        let relay = RelayAccess {
            session: "s".to_owned(),
            token: "secret-token".to_owned(),
            url: "http://h/relay".to_owned(),
        };
        let kept = keep_relay(&seal, &id, &relay).unwrap();
        assert!(!kept.to_string().contains("secret-token"));
        let mut record = SessionRecord::new(id, "cloud.toml", 0);
        record.host.insert(RELAY.to_owned(), kept);
        assert_eq!(kept_relay(&record, &seal), Some(relay));
        assert_eq!(kept_relay(&record, &Seal::from_secret("another")), None);
    }
}
