//! The agents that have ways of their own, and what their words are in ours.

use crate::dialect::acp::wire::{CopilotInput, Update};
use crate::json::Text;
use crate::json::read;

/// An agent, as far as it is told apart.
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
    /// The agent that has a name, and what it is called in its own dialect.
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

    /// The model's own name. Qwen writes how the model is reached around it:
    /// `$runtime|openai|fake-model(openai)`.
    pub(super) fn model<'a>(self, id: Text<'a>) -> Text<'a> {
        if self != Self::Qwen {
            return id;
        }
        let plain = id.to_plain();
        let model = plain.strip_prefix("$runtime|").and_then(|rest| rest.split_once('|'));
        let model = model.map_or(&*plain, |(_, model)| model);
        let before = model.strip_suffix(')').and_then(|open| open.rsplit_once('('));
        let model = before.map_or(model, |(model, _)| model);
        Text::from(model.to_owned())
    }
}

/// A mode's own name: Copilot's are addresses that end with it, behind a `#`.
pub(super) fn mode<'a>(id: Text<'a>) -> Text<'a> {
    let plain = id.to_plain();
    let name = plain.rsplit_once('#').filter(|(before, _)| before.contains("://"));
    match name {
        Some((_, name)) => Text::from(name.to_owned()),
        None => id,
    }
}

/// The tool that Copilot calls, which only its input tells.
pub(super) fn tool_of_copilot(update: &Update<'_>) -> Option<&'static str> {
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
    fn agents_have_one_name() {
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
    fn models_and_modes_have_their_own_names() {
        let model = |id: &'static str| Agent::Qwen.model(Text::plain(id)).to_string();
        assert_eq!(model("$runtime|openai|fake-model(openai)"), "fake-model");
        assert_eq!(model("qwen3-coder-plus(qwen-oauth)"), "qwen3-coder-plus");
        assert_eq!(model("plain"), "plain");
        assert_eq!(Agent::Other.model(Text::plain("a(b)")), "a(b)");
        assert_eq!(mode(Text::plain("https://a.b/c#plan")), "plan");
        assert_eq!(mode(Text::plain("yolo")), "yolo");
    }
}
