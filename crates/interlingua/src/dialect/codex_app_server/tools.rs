//! The tools of Codex, under the names that its other stream gives them.

use crate::dialect::tools;
use crate::event::{Executor, ToolKind};
use crate::json::Text;

use super::wire::Item;

/// The tool of an item: its name, the kind of its work, and who runs it. `None` for an item that is
/// no call.
pub(super) fn of_item<'a>(item: &Item<'a>) -> Option<(Text<'a>, ToolKind, Executor)> {
    let (name, kind, executor) = match item.kind.as_ref().map_or("", Text::body) {
        "commandExecution" => ("command_execution", ToolKind::Execute, Executor::Agent),
        "fileChange" => ("file_change", ToolKind::Edit, Executor::Agent),
        // The model's provider searches the web and draws, not the agent.
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
            let name = of_client(item);
            let kind = tools::kind_of(&name);
            return Some((name, kind, Executor::Client));
        }
        "collabAgentToolCall" => (of_agents(item), ToolKind::Task, Executor::Agent),
        _ => return None,
    };
    Some((Text::plain(name), kind, executor))
}

/// A tool that the client gave the agent, with the space that the name is of.
fn of_client<'a>(item: &Item<'a>) -> Text<'a> {
    let tool = item.tool.clone().unwrap_or_default();
    match &item.namespace {
        Some(space) => Text::from(format!("{space}__{tool}")),
        None => tool,
    }
}

/// A tool that drives other agents; this protocol writes their names in another way.
fn of_agents(item: &Item<'_>) -> &'static str {
    match item.tool.as_ref().map_or("", Text::body) {
        "spawnAgent" => "spawn_agent",
        "sendInput" => "send_input",
        "resumeAgent" => "resume_agent",
        "closeAgent" => "close_agent",
        "wait" => "wait",
        _ => "collab_tool_call",
    }
}
