//! The user's own provider of models, as the environment configures it.
//!
//! Outside the headless mode, Copilot reads these variables itself. In it, the client has to pass
//! them on; it does so through the protocol, so that no key is an argument.

use serde_json::{Map, Value, json};

/// A provider of models, with its key.
#[derive(Clone, PartialEq)]
pub struct Provider(Value);

/// The variables, and the fields of the protocol for them.
const TEXTS: [(&str, &str); 9] = [
    ("COPILOT_PROVIDER_BASE_URL", "baseUrl"),
    ("COPILOT_PROVIDER_TYPE", "type"),
    ("COPILOT_PROVIDER_API_KEY", "apiKey"),
    ("COPILOT_PROVIDER_API_KEY_COMMAND", "apiKeyCommand"),
    ("COPILOT_PROVIDER_BEARER_TOKEN", "bearerToken"),
    ("COPILOT_PROVIDER_WIRE_API", "wireApi"),
    ("COPILOT_PROVIDER_TRANSPORT", "transport"),
    ("COPILOT_PROVIDER_MODEL_ID", "modelId"),
    ("COPILOT_PROVIDER_WIRE_MODEL", "wireModel"),
];

const NUMBERS: [(&str, &str); 2] = [
    ("COPILOT_PROVIDER_MAX_PROMPT_TOKENS", "maxPromptTokens"),
    ("COPILOT_PROVIDER_MAX_OUTPUT_TOKENS", "maxOutputTokens"),
];

impl Provider {
    /// The provider that the environment configures, if it names the address of one.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        variable("COPILOT_PROVIDER_BASE_URL")?;
        let mut fields = Map::new();
        for (name, field) in TEXTS {
            fields.extend(variable(name).map(|value| (field.to_owned(), Value::from(value))));
        }
        for (name, field) in NUMBERS {
            let number = variable(name).and_then(|value| value.trim().parse::<u64>().ok());
            fields.extend(number.map(|number| (field.to_owned(), Value::from(number))));
        }
        if let Some(version) = variable("COPILOT_PROVIDER_AZURE_API_VERSION") {
            fields.insert("azure".to_owned(), json!({"apiVersion": version}));
        }
        if let Some(lines) = variable("COPILOT_PROVIDER_HEADERS") {
            let headers = lines.lines().filter_map(|line| line.split_once(':'));
            let headers =
                headers.map(|(name, value)| (name.trim().to_owned(), value.trim().into()));
            fields.insert("headers".to_owned(), Value::Object(headers.collect()));
        }
        Some(Self(Value::Object(fields)))
    }

    pub(super) fn to_json(&self) -> Value {
        self.0.clone()
    }
}

/// Keys are not shown, and an address or a header may contain one.
impl std::fmt::Debug for Provider {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Provider([secret])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::KEY_VARIABLES;

    /// Otherwise they are not redacted where an agent prints them.
    #[test]
    fn the_secrets_of_a_provider_are_known_keys() {
        let secret = |(_, field): &&(&str, &str)| ["apiKey", "bearerToken"].contains(field);
        let names: Vec<_> = TEXTS.iter().filter(secret).map(|(name, _)| *name).collect();
        assert_eq!(names, ["COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BEARER_TOKEN"]);
        assert!(names.iter().all(|name| KEY_VARIABLES.contains(name)), "{names:?}");
    }

    fn provider(variables: &[(&str, &str)]) -> Option<Provider> {
        Provider::from_environment(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn every_variable_reaches_the_protocol() {
        let provider = provider(&[
            ("COPILOT_PROVIDER_BASE_URL", "http://127.0.0.1:1/v1"),
            ("COPILOT_PROVIDER_API_KEY", "sk-1"),
            ("COPILOT_PROVIDER_WIRE_API", ""),
            ("COPILOT_PROVIDER_MAX_OUTPUT_TOKENS", "100"),
            ("COPILOT_PROVIDER_AZURE_API_VERSION", "v2"),
            ("COPILOT_PROVIDER_HEADERS", "X-Key: a:b\nX-Tenant: c"),
        ]);
        let expected = json!({
            "baseUrl": "http://127.0.0.1:1/v1", "apiKey": "sk-1", "maxOutputTokens": 100,
            "azure": {"apiVersion": "v2"}, "headers": {"X-Key": "a:b", "X-Tenant": "c"},
        });
        assert_eq!(provider.unwrap().to_json(), expected);
    }

    #[test]
    fn without_an_address_there_is_no_provider() {
        assert_eq!(provider(&[("COPILOT_PROVIDER_API_KEY", "sk-1")]), None);
        assert_eq!(provider(&[("COPILOT_PROVIDER_BASE_URL", "")]), None);
    }

    #[test]
    fn a_key_is_not_shown() {
        let variables = [
            ("COPILOT_PROVIDER_BASE_URL", "http://u:sk-1@x"),
            ("COPILOT_PROVIDER_API_KEY", "sk-1"),
        ];
        assert!(!format!("{:?}", provider(&variables)).contains("sk-1"));
    }
}
