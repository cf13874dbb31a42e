//! The rules by which OpenCode asks before it acts.
//!
//! A rule has a permission, a pattern and an action, and the last rule that matches applies. The
//! rules of the session follow those of its agent, which are configured, so a repository cannot
//! loosen them. The session of a sub-agent, however, inherits only denials and the rules for other
//! folders (seen in opencode 1.18.33). What else a sub-agent may do is configured, so it is compared
//! with our rules here.

use serde::Deserialize;
use serde_json::{Value, json};

/// The rules of the session: what is not listed is governed by the configuration.
const RULES: [(&str, &str); 13] = [
    // The tools of MCP servers have the name of the server before an underscore.
    (MCP_TOOLS, "ask"),
    ("plan_enter", "deny"),
    ("plan_exit", "deny"),
    ("read", "ask"),
    ("grep", "ask"),
    ("glob", "ask"),
    ("list", "ask"),
    ("edit", "ask"),
    ("bash", "ask"),
    ("webfetch", "ask"),
    ("websearch", "ask"),
    ("codesearch", "ask"),
    ("external_directory", "ask"),
];

const MCP_TOOLS: &str = "*_*";

/// The permissions of OpenCode itself that have an underscore.
const NOT_OF_MCP: [&str; 4] = ["plan_enter", "plan_exit", "external_directory", "doom_loop"];

/// The same rules in the form of the configuration, for sub-agents.
pub(crate) fn permission_setting() -> String {
    let rules: Vec<_> =
        RULES.iter().map(|(name, action)| format!(r#""{name}":"{action}""#)).collect();
    format!("{{{}}}", rules.join(","))
}

/// The rules of the session, with or without sub-agents.
pub(super) fn session_rules(has_sub_agents: bool) -> Value {
    let without = [("task", "deny")];
    let rules = RULES.iter().chain(without.iter().filter(|_| !has_sub_agents));
    let rule = |(name, action): &(&str, &str)| json!({"permission": name, "pattern": "*", "action": action});
    rules.map(rule).collect()
}

#[derive(Deserialize)]
struct Agent {
    name: String,
    permission: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    permission: String,
    pattern: String,
    action: String,
}

/// The names of the agents whose configuration allows what our rules ask about; `None` if the list
/// of agents cannot be read.
pub(super) fn loose_agents(list: &str) -> Option<Vec<String>> {
    let agents: Vec<Agent> = serde_json::from_str(list).ok()?;
    let loose = agents.into_iter().filter(|agent| is_loose(&agent.permission));
    Some(loose.map(|agent| agent.name).collect())
}

fn is_loose(rules: &[Rule]) -> bool {
    let inherited = |name: &str, action: &str| action == "deny" || name == "external_directory";
    let mut asked = RULES.iter().filter(|(name, action)| !inherited(name, action));
    asked.any(|(name, _)| allows(rules, name))
}

/// Whether any use of a permission may be allowed without asking. Wildcards are assumed to match.
fn allows(rules: &[Rule], name: &str) -> bool {
    for rule in rules.iter().rev() {
        if rule.action == "allow" {
            if may_match(&rule.permission, name) {
                return true;
            }
        } else if rule.pattern == "*" && (rule.permission == name || rule.permission == "*") {
            return false;
        }
    }
    // OpenCode asks if no rule matches.
    false
}

fn may_match(permission: &str, name: &str) -> bool {
    let is_of_mcp = || permission.contains('_') && !NOT_OF_MCP.contains(&permission);
    permission == name || permission.contains(['*', '?']) || name == MCP_TOOLS && is_of_mcp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules of `general` in opencode 1.18.33, shortened, with some in the configuration of a
    /// repository, and what it adds for the agent.
    fn general(configured: &str, added: &str) -> String {
        let rule = |(name, action): &(&str, &str)| {
            format!(r#"{{"permission":"{name}","pattern":"*","action":"{action}"}}"#)
        };
        let ours: Vec<_> = RULES.iter().map(rule).collect();
        let ours = ours.join(",");
        format!(
            r#"[{{"name":"general","mode":"subagent","permission":[
            {{"permission":"*","pattern":"*","action":"allow"}},
            {{"permission":"todowrite","pattern":"*","action":"deny"}}{configured},{ours}{added},
            {{"permission":"external_directory","pattern":"/data/tool-output/*","action":"allow"}}]}}]"#
        )
    }

    #[test]
    fn our_rules_are_strict_wherever_nothing_follows_them() {
        let configured = r#",{"permission":"bash","pattern":"*","action":"allow"}"#;
        for list in [general("", ""), general(configured, "")] {
            assert_eq!(loose_agents(&list), Some(vec![]), "{list}");
        }
        let stricter = r#",{"permission":"bash","pattern":"rm *","action":"deny"}"#;
        assert_eq!(loose_agents(&general("", stricter)), Some(vec![]));
    }

    #[test]
    fn an_agent_that_allows_more_is_found() {
        for (permission, pattern) in [
            ("bash", "*"),
            ("bash", "touch *"),
            ("*", "*"),
            ("b*h", "*"),
            ("edit", "src/*"),
            ("files_write", "*"),
        ] {
            let rule = json!({"permission": permission, "pattern": pattern, "action": "allow"});
            let list = general("", &format!(",{rule}"));
            assert_eq!(loose_agents(&list), Some(vec!["general".to_owned()]), "{rule}");
        }
    }

    #[test]
    fn a_list_that_cannot_be_read_is_not_trusted() {
        for list in ["", "{}", r#"[{"name":"general"}]"#] {
            assert_eq!(loose_agents(list), None, "{list}");
        }
    }

    #[test]
    fn sub_agents_can_be_denied() {
        let denied = json!({"permission": "task", "pattern": "*", "action": "deny"});
        assert_eq!(session_rules(false).as_array().unwrap().last(), Some(&denied));
        assert!(!session_rules(true).as_array().unwrap().contains(&denied));
    }
}
