//! The tools of Codex, with the names of the dialect `codex`.

use crate::dialect::tools;
use crate::event::{Executor, ToolKind};
use crate::json::Text;

use super::wire::Item;

/// The tool of an item: its name, its kind, and its executor. `None` if the item is not a call.
pub(super) fn tool_of<'a>(item: &Item<'a>) -> Option<(Text<'a>, ToolKind, Executor)> {
    let (name, kind, executor) = match item.kind.as_ref().map_or("", Text::body) {
        "commandExecution" => ("command_execution", ToolKind::Execute, Executor::Agent),
        "fileChange" => ("file_change", ToolKind::Edit, Executor::Agent),
        // The provider of the model searches the web and generates pictures, not the agent.
        "webSearch" => ("web_search", ToolKind::WebSearch, Executor::Provider),
        "imageGeneration" => ("image_generation", ToolKind::Unspecified, Executor::Provider),
        "imageView" => ("view_image", ToolKind::Read, Executor::Agent),
        "sleep" => ("sleep", ToolKind::Unspecified, Executor::Agent),
        "mcpToolCall" => {
            let server = item.server.as_ref().map(Text::to_plain).unwrap_or_default();
            let tool = item.tool.as_ref().map(Text::to_plain).unwrap_or_default();
            let name = Text::from(format!("mcp__{server}__{tool}"));
            return Some((name, ToolKind::Mcp, Executor::Agent));
        }
        "dynamicToolCall" | "functionCallOutput" => {
            let name = client_tool_name(item);
            let kind = tools::kind_of(&name);
            return Some((name, kind, Executor::Client));
        }
        "collabAgentToolCall" => (agent_tool_name(item), ToolKind::Task, Executor::Agent),
        _ => return None,
    };
    Some((Text::plain(name), kind, executor))
}

/// The name of a tool of the client, with its namespace.
fn client_tool_name<'a>(item: &Item<'a>) -> Text<'a> {
    let tool = item.tool.clone().unwrap_or_default();
    match &item.namespace {
        Some(namespace) => Text::from(format!("{namespace}__{tool}")),
        None => tool,
    }
}

/// The name of a tool that controls sub-agents, which this protocol spells differently.
fn agent_tool_name(item: &Item<'_>) -> &'static str {
    match item.tool.as_ref().map_or("", Text::body) {
        "spawnAgent" => "spawn_agent",
        "sendInput" => "send_input",
        "resumeAgent" => "resume_agent",
        "closeAgent" => "close_agent",
        "wait" => "wait",
        _ => "collab_tool_call",
    }
}
