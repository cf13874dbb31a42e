//! The kinds of Copilot's tools.

use crate::dialect::tools;
use crate::event::ToolKind;
use crate::json::Text;

/// The kind of a tool. `read_bash` and similar tools are not commands: they use a running one.
pub(super) fn kind_of(name: &Text<'_>, mcp_server: Option<&Text<'_>>) -> ToolKind {
    if mcp_server.is_some() {
        return ToolKind::Mcp;
    }
    match name.body() {
        "powershell" => ToolKind::Execute,
        "view" | "show_file" => ToolKind::Read,
        "create" => ToolKind::Write,
        "edit" | "str_replace_editor" | "apply_patch" => ToolKind::Edit,
        "rg" => ToolKind::Search,
        "task" => ToolKind::Task,
        _ => tools::kind_of(name),
    }
}
