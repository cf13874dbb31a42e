//! The providers of model APIs: one line each.

use super::model::ApiKind;

/// A provider of a model API.
#[derive(Debug, Clone, Copy)]
pub struct Provider {
    /// The name of the agent on the command line.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// Its API.
    pub api: ApiKind,
    /// The address of the API.
    pub base_url: &'static str,
    /// The environment variables that may have another address, the first one that is set counts.
    pub base_url_variables: &'static [&'static str],
    /// The environment variables that may have the key; the first one that is set counts.
    pub key_variables: &'static [&'static str],
    /// The environment variable that may have the model.
    pub model_variable: &'static str,
    /// The model that is used unless another one is named.
    pub model: &'static str,
}

/// All providers.
pub const ALL: [Provider; 3] = [
    Provider {
        name: "anthropic-api",
        title: "Anthropic API",
        api: ApiKind::Anthropic,
        base_url: "https://api.anthropic.com",
        base_url_variables: &["ANTHROPIC_BASE_URL"],
        key_variables: &["ANTHROPIC_API_KEY"],
        model_variable: "ANTHROPIC_MODEL",
        model: "claude-sonnet-5-5",
    },
    Provider {
        name: "openai-api",
        title: "OpenAI API",
        api: ApiKind::Responses,
        base_url: "https://api.openai.com/v1",
        base_url_variables: &["OPENAI_BASE_URL"],
        key_variables: &["OPENAI_API_KEY"],
        model_variable: "OPENAI_MODEL",
        model: "gpt-6.1-sol",
    },
    Provider {
        name: "gemini-api",
        title: "Gemini API",
        api: ApiKind::Gemini,
        base_url: "https://generativelanguage.googleapis.com",
        base_url_variables: &["GOOGLE_GEMINI_BASE_URL"],
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        model_variable: "GEMINI_MODEL",
        model: "gemini-3.8-flash",
    },
];

impl Provider {
    /// The provider with this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|provider| provider.name == name)
    }

    /// How a user signs in.
    pub fn how_to_sign_in(&self) -> String {
        format!("set {}", self.key_variables.join(" or "))
    }
}

/// The environment variables with keys, which no tool may see.
pub(super) const KEY_VARIABLES: [&str; 5] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tool_sees_a_key() {
        for provider in &ALL {
            for name in provider.key_variables {
                assert!(KEY_VARIABLES.contains(name), "{name}");
            }
        }
    }
}
