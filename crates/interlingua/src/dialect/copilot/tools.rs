//! The tools of Copilot: what kind of work each does.

use crate::dialect::tools;
use crate::event::ToolKind;
use crate::json::Text;

/// What kind of work a tool does. `read_bash` and the like talk to a command that already runs: they
/// are no commands of their own.
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
