//! The command line arguments for agents that are model APIs.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use serde_json::Value;

/// The arguments for agents that are model APIs: anthropic-api, openai-api, gemini-api.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Model APIs")]
pub(crate) struct ApiArguments {
    /// The address of the API, for compatible servers such as Ollama, vLLM or OpenRouter.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,
    /// Which of OpenAI's APIs is used. Compatible servers have `chat`.
    #[arg(long, value_name = "API")]
    pub(crate) api: Option<OpenAiApi>,
    /// The environment variable with the key.
    #[arg(long, value_name = "NAME", conflicts_with = "api_key_file")]
    pub(crate) api_key_env: Option<String>,
    /// The file with the key.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) api_key_file: Option<PathBuf>,
    /// A header for all requests, with its value from an environment variable; may be repeated.
    #[arg(long = "header-env", value_name = "HEADER=NAME")]
    pub(crate) headers: Vec<String>,
    /// A file with certificates of authorities to trust, in PEM, besides those of the system.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) ca_file: Option<PathBuf>,
    /// The system prompt, instead of the usual one. Instructions of the project follow it.
    #[arg(long, value_name = "TEXT", conflicts_with = "system_prompt_file")]
    pub(crate) system_prompt: Option<String>,
    /// A file with the system prompt.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) system_prompt_file: Option<PathBuf>,
    /// Text that is appended to the system prompt.
    #[arg(long, value_name = "TEXT")]
    pub(crate) append_system_prompt: Option<String>,
    /// The limit of requests to the model for a prompt.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_turns: Option<u64>,
    /// The limit of tokens for a prompt, of all its requests together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// The limit of tokens of one answer.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_answer_tokens: Option<u64>,
    /// The limit of the cost of a prompt, in US dollars.
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) max_cost: Option<f64>,
    /// How much the model should think, in the provider's words (low, medium, high …).
    #[arg(long, value_name = "EFFORT")]
    pub(crate) effort: Option<String>,
    /// A further folder that the tools may read and change; may be repeated.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) add_dir: Vec<PathBuf>,
    /// A further folder that sandboxed commands may write to, for a cache of a build tool; may be
    /// repeated.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cache_dir: Vec<PathBuf>,
    /// The tools that are offered, separated by commas; all but WebFetch by default.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) allowed_tools: Option<Vec<String>>,
    /// A file with MCP servers whose tools are offered too, in the form {"mcpServers": …}; may be
    /// repeated.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) mcp_config: Vec<PathBuf>,
    /// A file with prices that replace or complement the built-in ones.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) prices: Option<PathBuf>,
    /// Commands have no network, as far as the system can enforce it.
    #[arg(long)]
    pub(crate) no_network: bool,
    /// The final answer is an object that fits this JSON schema, or the one in @FILE.
    #[arg(long, value_name = "SCHEMA", value_parser = schema)]
    pub(crate) json_schema: Option<Value>,
    /// A file that is sent with the prompt: an image, a PDF, or text; may be repeated.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) attach: Vec<PathBuf>,
    /// Summarise older turns with a request of its own when the conversation exceeds the context
    /// window of the model.
    #[arg(long)]
    pub(crate) compact: bool,
    /// Begin with what was said and done in the session of any agent: a recording, or a session of
    /// Interlingua.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["resume", "continues"],
        value_hint = ValueHint::FilePath
    )]
    pub(crate) from_session: Option<PathBuf>,
}

/// The APIs of OpenAI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OpenAiApi {
    /// The Responses API.
    Responses,
    /// Chat Completions.
    Chat,
}

impl ApiArguments {
    /// The names of the arguments that were given, for an agent that cannot use them.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let given = [
            ("--base-url", self.base_url.is_some()),
            ("--api", self.api.is_some()),
            ("--api-key-env", self.api_key_env.is_some()),
            ("--api-key-file", self.api_key_file.is_some()),
            ("--header-env", !self.headers.is_empty()),
            ("--ca-file", self.ca_file.is_some()),
            ("--system-prompt", self.system_prompt.is_some()),
            ("--system-prompt-file", self.system_prompt_file.is_some()),
            ("--append-system-prompt", self.append_system_prompt.is_some()),
            ("--max-turns", self.max_turns.is_some()),
            ("--max-tokens", self.max_tokens.is_some()),
            ("--max-answer-tokens", self.max_answer_tokens.is_some()),
            ("--max-cost", self.max_cost.is_some()),
            ("--effort", self.effort.is_some()),
            ("--add-dir", !self.add_dir.is_empty()),
            ("--cache-dir", !self.cache_dir.is_empty()),
            ("--allowed-tools", self.allowed_tools.is_some()),
            ("--mcp-config", !self.mcp_config.is_empty()),
            ("--prices", self.prices.is_some()),
            ("--no-network", self.no_network),
            ("--json-schema", self.json_schema.is_some()),
            ("--attach", !self.attach.is_empty()),
            ("--compact", self.compact),
            ("--from-session", self.from_session.is_some()),
        ];
        given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(usd) if usd.is_finite() && usd > 0.0 => Ok(usd),
        _ => Err("this is not an amount of dollars above zero".to_owned()),
    }
}

fn schema(text: &str) -> Result<Value, String> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|it| format!("{path}: {it}"));
    let text = match text.strip_prefix('@') {
        Some(path) => read(path)?,
        None => text.to_owned(),
    };
    let schema: Value = serde_json::from_str(&text).map_err(|problem| problem.to_string())?;
    if schema.is_object() { Ok(schema) } else { Err("a schema is a JSON object".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_schemas_are_checked() {
        assert_eq!(dollars("$1.5"), Ok(1.5));
        for wrong in ["0", "-1", "x", "inf", "nan"] {
            assert!(dollars(wrong).is_err(), "{wrong}");
        }
        assert!(schema(r#"{"type":"object"}"#).is_ok());
        for wrong in ["7", "{", "@/no/such/file"] {
            assert!(schema(wrong).is_err(), "{wrong}");
        }
    }
}
