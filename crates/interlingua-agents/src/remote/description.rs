//! The description of a service, in a small file:
//!
//! ```toml
//! url = "https://cloud.example.com/agent-api"
//! contract = 1                                  # or 3
//! token-variable = "GISELLE_AGENT_API_KEY"      # the environment variable with the bearer token
//! agent = "codex"                               # which agent the service runs (`agent_type`)
//! snapshot = "snap_1"                           # the snapshot from which it begins (`snapshot_id`)
//! relay-hosts = ["relay.example.com"]           # where results may be sent, besides the host of `url`
//! ca-file = "ca.pem"                            # an authority of your own, in PEM
//!
//! [headers]                                     # sent with every run
//! x-team = "blue"
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::{Access, Contract, RemoteSettings};
use crate::api::failure::RetryPolicy;
use crate::api::http::Connection;
use crate::client_tool::ClientTool;
use crate::error::Error;

/// How long a response may be silent. The agent works meanwhile, so the limits of the session decide.
const SILENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// A service that runs agents.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RemoteService {
    url: String,
    #[serde(default, deserialize_with = "version")]
    contract: Contract,
    token_variable: Option<String>,
    agent: Option<String>,
    snapshot: Option<String>,
    #[serde(default)]
    relay_hosts: Vec<String>,
    ca_file: Option<PathBuf>,
    #[serde(default, deserialize_with = "texts")]
    headers: BTreeMap<String, String>,
}

/// Headers may be secrets, so they are not shown.
impl std::fmt::Debug for RemoteService {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let url = crate::api::http::without_secrets(&self.url);
        out.debug_struct("RemoteService").field("url", &url).finish_non_exhaustive()
    }
}

/// What to do about a description that cannot be read.
const ADVICE: &str = "Correct the file: it has the keys url, contract, token-variable, agent, snapshot, relay-hosts, ca-file and headers.";

/// What is wrong in a file, and where, without the line itself.
pub(crate) fn problem(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(1, |before| before.matches('\n').count() + 1);
    format!("line {line}: {}", error.message())
}

/// Reads headers. The error of another type would quote the value.
fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let values = BTreeMap::<String, toml::Value>::deserialize(from)?;
    let text = |(name, value)| match value {
        toml::Value::String(value) => Ok((name, value)),
        _ => Err(D::Error::custom(format!("the header `{name}` is no text: put it in quotes"))),
    };
    values.into_iter().map(text).collect()
}

/// Checks the version while it is read, so that an error has its line.
fn version<'de, D: Deserializer<'de>>(from: D) -> Result<Contract, D::Error> {
    match i64::deserialize(from)? {
        1 => Ok(Contract::Relay),
        3 => Ok(Contract::Results),
        other => Err(D::Error::custom(format!("there is no version {other}; write 1 or 3"))),
    }
}

impl RemoteService {
    /// Reads the description of a service. An error does not quote the line, which may have a secret header.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| format!("{}. {ADVICE}", problem(text, &error)))
    }

    /// The settings of a session with the service.
    pub fn settings(
        &self,
        variable: impl Fn(&str) -> Option<String>,
        client_tools: Vec<ClientTool>,
    ) -> Result<RemoteSettings, Error> {
        let form = ClientTool::form();
        let is_known = |tool: &&ClientTool| form.iter().any(|known| known.name == tool.name);
        if let Some(unknown) = client_tools.iter().find(|tool| !is_known(tool)) {
            let known: Vec<_> = form.iter().map(|tool| &*tool.name).collect();
            let name = &unknown.name;
            let problem = format!(
                "a remote agent cannot call `{name}`, since its contract only has {}",
                known.join(" and ")
            );
            return Err(Error::InvalidClientTools { problem });
        }
        Ok(RemoteSettings {
            connection: self.connection(variable)?,
            contract: self.contract,
            agent_type: self.agent.clone(),
            snapshot: self.snapshot.clone(),
            relay_hosts: self.relay_hosts.clone(),
            retries: RetryPolicy::default(),
            client_tools,
            access: Access::default(),
            message: None,
        })
    }

    fn connection(&self, variable: impl Fn(&str) -> Option<String>) -> Result<Connection, Error> {
        let name = self.token_variable.as_deref();
        let key = name.and_then(variable).map(|key| key.trim().to_owned()).unwrap_or_default();
        let missing_key = name
            .filter(|_| key.is_empty())
            .map(|name| format!("the token of the service is missing: set {name}"));
        let certificates = match &self.ca_file {
            Some(path) => std::fs::read(path).map_err(|error| Error::InvalidFile {
                path: path.display().to_string(),
                problem: error.to_string(),
            })?,
            None => Vec::new(),
        };
        Ok(Connection {
            base_url: self.url.clone(),
            key,
            missing_key,
            headers: self.headers.clone().into_iter().collect(),
            certificates,
            silence: SILENCE,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_read_or_the_problem_is_named() {
        let service = RemoteService::parse(
            "url = 'https://me:pass@h/agent-api'\ncontract = 3\ntoken-variable = 'KEY'\nagent = 'codex'\n[headers]\nx-a = 'secret'\n",
        )
        .unwrap();
        let settings =
            service.settings(|name| Some(format!(" value of {name}\n")), ClientTool::form());
        let settings = settings.unwrap();
        assert_eq!(
            (settings.contract, settings.agent_type.as_deref()),
            (Contract::Results, Some("codex"))
        );
        assert_eq!(settings.connection.key, "value of KEY");
        let shown = format!("{service:?} {settings:?}");
        assert!(
            !shown.contains("secret") && !shown.contains("pass") && !shown.contains("value of"),
            "{shown}"
        );
        let without = service.settings(|_| None, Vec::new()).unwrap();
        let missing = without.connection.missing_key.unwrap();
        assert!(missing.contains("set KEY"), "{missing}");
        let wrong = |text| RemoteService::parse(text).unwrap_err();
        assert!(wrong("url = 'x'\ncontract = 2").contains("write 1 or 3"));
        assert!(wrong("url = 'x'\nkey = 'y'").contains("token-variable"));
        let header = wrong("url = 'x'\n[headers]\nx-key = 1234567890123");
        assert!(header.contains("`x-key`") && !header.contains("123456"), "{header}");
    }

    #[test]
    fn only_the_tools_of_the_contract_are_offered() {
        let service = RemoteService::parse("url = 'http://h'").unwrap();
        let mut tools = ClientTool::form();
        tools[0].name = "askColour".to_owned();
        let problem = service.settings(|_| None, tools).unwrap_err().to_string();
        assert!(
            problem.contains("`askColour`") && problem.contains("executeFormActions"),
            "{problem}"
        );
    }
}
