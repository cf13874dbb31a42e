//! Remote agents: services that run an agent elsewhere, behind the HTTP contract of the Giselle API.
//!
//! A prompt is a *run*: a request whose response streams what the agent does, in the dialect `giselle`. What the
//! service wants from a form of the client becomes a call of a tool of the client. With version 1 of the contract, the
//! result is sent to the relay of the service, and the response goes on; with version 3, the response has ended,
//! and the results are sent with another run.
//!
//! What the service does with files, commands and permissions is its own affair, which the start of a session
//! states. This module knows the contract; how its stream is read is known to the core.

mod access;
mod contract;
pub(crate) mod description;
mod session;

use std::sync::Arc;

pub use access::{Access, RelayAccess};
pub use contract::Contract;
pub use description::RemoteService;

use crate::api::failure::RetryPolicy;
use crate::api::http::Connection;
use crate::client_tool::ClientTool;
use crate::session::{Agent, Options, Starting};
use session::Live;

/// The settings of a session with a remote agent.
#[derive(Debug, Clone)]
pub struct RemoteSettings {
    /// How the service is reached. The path of the contract is appended to its address.
    pub connection: Connection,
    /// The version of the contract.
    pub contract: Contract,
    /// Which of its agents the service runs.
    pub agent_type: Option<String>,
    /// The snapshot from which the service begins.
    pub snapshot: Option<String>,
    /// The hosts to which results may be sent, besides that of the service: those of its relay.
    pub relay_hosts: Vec<String>,
    /// When requests are repeated that the service has not begun to handle.
    pub retries: RetryPolicy,
    /// The tools that the client of the session runs. The contract has those of [`ClientTool::form`].
    pub client_tools: Vec<ClientTool>,
    /// What is known of the session at the service, if it is continued.
    pub access: Access,
    /// The prompt of the turn that is continued. The contract repeats it with results.
    pub message: Option<String>,
}

/// An agent that a service runs.
#[derive(Debug)]
pub struct RemoteAgent {
    settings: Arc<RemoteSettings>,
}

impl RemoteAgent {
    /// An agent with these settings.
    pub fn new(settings: RemoteSettings) -> Self {
        Self { settings: Arc::new(settings) }
    }
}

impl RemoteSettings {
    /// Checks where results are sent. The service names the address, and it must not be able to let this program
    /// send requests to any other place.
    fn check_relay(&self, relay: &str) -> Result<(), String> {
        let (relay, service) =
            (reqwest::Url::parse(relay), reqwest::Url::parse(&self.connection.base_url));
        let (Ok(relay), Ok(service)) = (relay, service) else {
            return Err("the address of its relay is not valid".to_owned());
        };
        let host = relay.host_str().unwrap_or_default();
        let is_named = self.relay_hosts.iter().any(|named| named == host);
        let is_same = relay.host_str() == service.host_str()
            && relay.port_or_known_default() == service.port_or_known_default();
        // A result is not sent unencrypted because the service says so.
        let is_as_safe = match relay.scheme() {
            "https" => true,
            "http" => service.scheme() == "http",
            _ => false,
        };
        if !is_as_safe {
            return Err(format!(
                "its relay at {host:?} does not use HTTPS, as the service itself does"
            ));
        }
        if is_named || is_same {
            return Ok(());
        }
        Err(format!(
            "its relay is at {host:?}, which is another place; if that is right, name it in `relay-hosts`"
        ))
    }
}

impl Agent for RemoteAgent {
    fn start(self: Box<Self>, options: Options) -> Starting {
        Box::pin(async move {
            let (live, session) = Live::new(self.settings, options)?;
            tokio::spawn(live.run());
            Ok(session)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::session::testing::settings;
    use super::*;

    /// A service could let this program send requests to any address that it reaches.
    #[test]
    fn results_are_sent_only_to_the_service_and_to_the_hosts_that_are_named() {
        let relay_hosts = vec!["relay.example.com".to_owned()];
        let settings =
            RemoteSettings { relay_hosts, ..settings("https://cloud.example.com/agent-api") };
        for relay in [
            "https://cloud.example.com/relay",
            "https://cloud.example.com:443/",
            "https://relay.example.com/x",
        ] {
            assert_eq!(settings.check_relay(relay), Ok(()), "{relay}");
        }
        for relay in [
            "http://cloud.example.com/relay",
            "http://relay.example.com/x",
            "https://cloud.example.com:8443/relay",
            "http://169.254.169.254/latest",
            "https://cloud.example.com@evil.example.com/",
            "file:///etc/passwd",
            "relay",
        ] {
            assert!(settings.check_relay(relay).is_err(), "{relay}");
        }
    }
}
