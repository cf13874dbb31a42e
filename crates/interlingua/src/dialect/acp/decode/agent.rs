//! The peculiarities of single agents: their names, models, modes and tools.

use crate::dialect::acp::wire::{CopilotInput, Update};
use crate::json::Text;
use crate::json::read;

/// An agent whose peculiarities are known, or any other one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agent {
    Gemini,
    Copilot,
    OpenCode,
    Qwen,
    #[default]
    Other,
}

impl Agent {
    /// The agent with this name, and the name of its own dialect.
    pub(super) fn named(name: Text<'_>) -> (Self, Text<'_>) {
        let (agent, ours) = match name.body() {
            "gemini-cli" => (Self::Gemini, "gemini"),
            "Copilot" => (Self::Copilot, "copilot"),
            "OpenCode" => (Self::OpenCode, "opencode"),
            "qwen-code" => (Self::Qwen, "qwen"),
            // Adapters: `@zed-industries/claude-code-acp`, `codex-acp`.
            other if other.ends_with("acp") && other.contains("claude") => (Self::Other, "claude"),
            other if other.ends_with("codex-acp") => (Self::Other, "codex"),
            _ => return (Self::Other, name),
        };
        (agent, Text::plain(ours))
    }

    /// The name of the model alone. Qwen writes the provider around it:
    /// `$runtime|openai|fake-model(openai)`.
    pub(super) fn model<'a>(self, id: Text<'a>) -> Text<'a> {
        if self != Self::Qwen {
            return id;
        }
        let plain = id.to_plain();
        let model = plain.strip_prefix("$runtime|").and_then(|rest| rest.split_once('|'));
        let model = model.map_or(&*plain, |(_, model)| model);
        let without_provider = model.strip_suffix(')').and_then(|open| open.rsplit_once('('));
        let model = without_provider.map_or(model, |(model, _)| model);
        Text::from(model.to_owned())
    }
}

/// The name of the mode alone. Copilot's modes are URLs that end with `#` and the name.
pub(super) fn mode<'a>(id: Text<'a>) -> Text<'a> {
    let plain = id.to_plain();
    let name = plain.rsplit_once('#').filter(|(url, _)| url.contains("://"));
    match name {
        Some((_, name)) => Text::from(name.to_owned()),
        None => id,
    }
}

/// The tool that Copilot calls, which only the fields of its input show.
pub(super) fn copilot_tool(update: &Update<'_>) -> Option<&'static str> {
    let input = update.raw_input.as_ref().and_then(read::record_of::<CopilotInput<'_>>)?;
    if input.file_text.is_some() {
        Some("create")
    } else if input.old_str.is_some() {
        Some("edit")
    } else if input.command.is_some() {
        Some("bash")
    } else if input.query.is_some() {
        Some("sql")
    } else {
        let reads = update.tool_kind.as_ref().is_some_and(|kind| *kind == "read");
        (reads && input.path.is_some()).then_some("view")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_have_the_names_of_their_dialects() {
        let ours = |name: &'static str| Agent::named(Text::plain(name)).1.to_string();
        assert_eq!(ours("gemini-cli"), "gemini");
        assert_eq!(ours("Copilot"), "copilot");
        assert_eq!(ours("OpenCode"), "opencode");
        assert_eq!(ours("qwen-code"), "qwen");
        assert_eq!(ours("@zed-industries/claude-code-acp"), "claude");
        assert_eq!(ours("codex-acp"), "codex");
        assert_eq!(ours("somebody"), "somebody");
    }

    #[test]
    fn providers_and_urls_are_removed_from_models_and_modes() {
        let model = |id: &'static str| Agent::Qwen.model(Text::plain(id)).to_string();
        assert_eq!(model("$runtime|openai|fake-model(openai)"), "fake-model");
        assert_eq!(model("qwen3-coder-plus(qwen-oauth)"), "qwen3-coder-plus");
        assert_eq!(model("plain"), "plain");
        assert_eq!(Agent::Other.model(Text::plain("a(b)")), "a(b)");
        assert_eq!(mode(Text::plain("https://a.b/c#plan")), "plan");
        assert_eq!(mode(Text::plain("yolo")), "yolo");
    }
}
