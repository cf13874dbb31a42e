//! What Claude Code calls that which an agent may do without asking.

/// Its own words.
const MODES: &[&str] = &["default", "acceptEdits", "bypassPermissions", "plan", "dontAsk", "auto"];

/// The word for what an agent calls by another name; `None` where there is none that surely means the
/// same. The mode is then told as the usual one: a permission that nobody gave is not claimed.
pub(in crate::dialect) fn permission_mode(told: &str) -> Option<&'static str> {
    match told {
        "manual" => Some("default"),
        "yolo" => Some("bypassPermissions"),
        "auto-edit" | "auto_edit" | "autoEdit" => Some("acceptEdits"),
        told => MODES.iter().find(|own| **own == told).copied(),
    }
}
