//! The peculiarities of single agents: their names, models, modes and tools.

use super::output::content_block;
use crate::dialect::acp::wire::{CopilotInput, Update};
use crate::json::Text;
use crate::json::read::{self, Shaped};

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

/// The folder in which a command of Gemini runs, which a permission request states in a text before
/// the model's own description. The model chooses the folder too, so it can imitate the text around
/// it: a text that could be read in two ways is not taken apart.
pub(super) fn gemini_folder(update: &Update<'_>, cwd: Option<&Text<'_>>) -> Option<Text<'static>> {
    let Shaped::List(parts) = &update.content else { return None };
    let block = parts.iter().find_map(content_block)?;
    let details = block.text?;
    let details = details.to_plain();
    if let Some(rest) = details.strip_prefix("[current working directory ")
        && let Some(cwd) = cwd.map(Text::to_plain)
        && rest.strip_prefix(&*cwd).is_some_and(|rest| rest.starts_with(']'))
    {
        return Some(Text::from(cwd.into_owned()));
    }
    let rest = details.strip_prefix("[current working directory ");
    let (folder, description) = rest.or_else(|| details.strip_prefix("[in "))?.split_once(']')?;
    let description = description.strip_suffix(" [background]").unwrap_or(description);
    let is_clear = !description.contains(']');
    Some(Text::from(if is_clear { folder.to_owned() } else { details.into_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;

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

    #[test]
    fn the_folder_of_a_command_is_taken_only_from_a_clear_text() {
        let folder = |details: &str, cwd: Option<&str>| {
            let text = Json::from(&Text::plain(details));
            let update = format!(
                r#"{{"content":[{{"type":"content","content":{{"type":"text","text":{}}}}}]}}"#,
                text.get()
            );
            let update = Json::from_text(update).unwrap();
            let update = read::record_of::<Update<'_>>(&update).unwrap();
            let cwd = cwd.map(Text::plain);
            gemini_folder(&update, cwd.as_ref()).map(|folder| folder.to_string())
        };
        let is = |folder: &str| Some(folder.to_owned());
        assert_eq!(folder("[current working directory /w] (list)", None), is("/w"));
        assert_eq!(
            folder("[current working directory /w/a]b] (list)", Some("/w/a]b")),
            is("/w/a]b")
        );
        assert_eq!(folder("[in sub] (list) [background]", None), is("sub"));
        let imitated = "[in safe] (list) [x] (list)";
        assert_eq!(folder(imitated, None), is(imitated));
        assert_eq!(folder("words of the model", None), None);
    }
}
