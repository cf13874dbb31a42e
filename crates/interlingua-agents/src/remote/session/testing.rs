//! Settings for tests.

use crate::api::failure::RetryPolicy;
use crate::api::http::Connection;
use crate::client_tool::ClientTool;
use crate::remote::{Access, Contract, RemoteSettings};

/// The settings of a session with the service at an address.
pub(in crate::remote) fn settings(url: &str) -> RemoteSettings {
    RemoteSettings {
        connection: Connection {
            base_url: url.to_owned(),
            key: String::new(),
            missing_key: None,
            headers: Vec::new(),
            certificates: Vec::new(),
            silence: std::time::Duration::from_secs(60),
        },
        contract: Contract::Relay,
        agent_type: None,
        snapshot: None,
        relay_hosts: Vec::new(),
        retries: RetryPolicy::default(),
        client_tools: ClientTool::form(),
        access: Access::default(),
        message: None,
    }
}
