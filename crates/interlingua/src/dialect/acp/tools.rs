//! Converts between the kinds of tools of the protocol and those of events.

use crate::dialect::tools;
use crate::event::ToolKind;
use crate::json::Text;

/// The kind of a tool, by its name or else by the kind that the protocol states.
pub(super) fn kind_of(name: &Text<'_>, stated: Option<&Text<'_>>) -> ToolKind {
    let by_name = match &*name.to_plain() {
        // OpenCode's names.
        "read" => ToolKind::Read,
        "write" => ToolKind::Write,
        "edit" | "patch" => ToolKind::Edit,
        "list" => ToolKind::List,
        "webfetch" => ToolKind::Fetch,
        "todowrite" | "todoread" => ToolKind::Plan,
        "task" => ToolKind::Task,
        // Copilot's names.
        "view" => ToolKind::Read,
        "create" => ToolKind::Write,
        _ => tools::kind_of(name),
    };
    if by_name != ToolKind::Unspecified {
        return by_name;
    }
    match stated.map_or("other", Text::body) {
        "other" => ToolKind::Unspecified,
        "search" => ToolKind::Search,
        kind => ToolKind::from(kind),
    }
}

/// The protocol's kind for a kind of tool.
pub(super) fn protocol_kind(kind: &ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Write | ToolKind::Edit => "edit",
        ToolKind::Execute => "execute",
        ToolKind::Search | ToolKind::Glob | ToolKind::List => "search",
        ToolKind::Fetch | ToolKind::WebSearch => "fetch",
        ToolKind::Plan | ToolKind::Task => "think",
        ToolKind::Other(name) => match &**name {
            "delete" => "delete",
            "move" => "move",
            "think" => "think",
            "switch_mode" => "switch_mode",
            _ => "other",
        },
        _ => "other",
    }
}
