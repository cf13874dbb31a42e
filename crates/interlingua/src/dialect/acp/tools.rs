//! The tools of agents that speak ACP: their kinds in the protocol's words and in ours.

use crate::dialect::tools;
use crate::event::ToolKind;
use crate::json::Text;

/// What kind of work a call does: by the tool's name, or else by the protocol's word.
pub(super) fn kind_of(name: &Text<'_>, word: Option<&Text<'_>>) -> ToolKind {
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
    match word.map_or("other", Text::body) {
        "other" => ToolKind::Unspecified,
        "search" => ToolKind::Search,
        word => ToolKind::from(word),
    }
}

/// The protocol's word for a kind of work.
pub(super) fn word_of(kind: &ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Write | ToolKind::Edit => "edit",
        ToolKind::Execute => "execute",
        ToolKind::Search | ToolKind::Glob | ToolKind::List => "search",
        ToolKind::Fetch | ToolKind::WebSearch => "fetch",
        ToolKind::Plan | ToolKind::Task => "think",
        ToolKind::Other(word) => match &**word {
            "delete" => "delete",
            "move" => "move",
            "think" => "think",
            "switch_mode" => "switch_mode",
            _ => "other",
        },
        _ => "other",
    }
}
