//! The permission modes of Claude Code, and the names that other agents have for them.

/// The modes of Claude Code.
const MODES: &[&str] = &["default", "acceptEdits", "bypassPermissions", "plan", "dontAsk", "auto"];

/// The mode of Claude Code that an agent's mode corresponds to; `None` if no mode certainly means
/// the same. An encoder then writes the default mode, so that it claims no permission that was not
/// given.
pub(in crate::dialect) fn permission_mode(mode: &str) -> Option<&'static str> {
    match mode {
        "manual" => Some("default"),
        "yolo" => Some("bypassPermissions"),
        "accept-edits" | "auto-edit" | "auto_edit" | "autoEdit" => Some("acceptEdits"),
        mode => MODES.iter().find(|own| **own == mode).copied(),
    }
}
