//! Permissions: a mode, rules that take precedence over it, and decisions.

mod rules;
mod visible;

use interlingua::event::ToolKind;

pub use rules::{BadRule, Effect, Rule, Rules};
pub use visible::visible;

/// How a permission request is decided if no rule matches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// The user is asked.
    #[default]
    Ask,
    /// Reading and changing files is allowed; for everything else, the user is asked.
    AcceptEdits,
    /// Every request is allowed.
    Auto,
    /// Every request is denied.
    Deny,
    /// The agent only makes a plan, if it has such a mode; every request is denied.
    Plan,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 5] = [Self::Ask, Self::AcceptEdits, Self::Auto, Self::Deny, Self::Plan];

    /// The name of the mode on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "default",
            Self::AcceptEdits => "accept-edits",
            Self::Auto => "auto",
            Self::Deny => "deny",
            Self::Plan => "plan",
        }
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.as_str())
    }
}

/// A request of an agent to use a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionRequest {
    /// The id of the request, which the answer must carry.
    pub id: String,
    /// The agent's name for the tool.
    pub tool: String,
    /// The kind of work that the tool does.
    pub kind: ToolKind,
    /// The input of the tool, as JSON.
    pub input: Option<String>,
    /// The agent's description of the request, for the user.
    pub description: Option<String>,
}

/// The decision about a permission request.
///
/// Its JSON form is `{"decision":"allow"}` or `{"decision":"deny","reason":"…"}`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "decision", content = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decision {
    /// The request is allowed.
    Allow,
    /// The request is denied; the agent receives this reason.
    Deny(String),
}

/// The result of applying a policy to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The policy decides the request.
    Decided(Decision),
    /// The user has to decide it.
    AskUser,
}

/// A mode, and the rules that take precedence over it.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// The mode that applies if no rule matches.
    pub mode: Mode,
    /// The rules.
    pub rules: Rules,
}

impl Policy {
    /// Applies the policy to a request.
    pub fn judge(&self, request: &PermissionRequest) -> Verdict {
        match self.rules.judge(request) {
            Some(Effect::Allow) => return Verdict::Decided(Decision::Allow),
            Some(Effect::Deny) => {
                let why = format!("a permission rule denies {}", request.tool);
                return Verdict::Decided(Decision::Deny(why));
            }
            Some(Effect::Ask) => return Verdict::AskUser,
            None => {}
        }
        let edits = matches!(request.kind, ToolKind::Read | ToolKind::Write | ToolKind::Edit);
        match self.mode {
            Mode::Auto => Verdict::Decided(Decision::Allow),
            Mode::AcceptEdits if edits => Verdict::Decided(Decision::Allow),
            Mode::Ask | Mode::AcceptEdits => Verdict::AskUser,
            Mode::Deny => Verdict::Decided(Decision::Deny(
                "the permission mode `deny` denies every request".to_owned(),
            )),
            Mode::Plan => Verdict::Decided(Decision::Deny(
                "the permission mode `plan` allows no changes".to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_has_a_stable_form() {
        let forms = [
            (Decision::Allow, r#"{"decision":"allow"}"#),
            (Decision::Deny("no".into()), r#"{"decision":"deny","reason":"no"}"#),
        ];
        for (decision, form) in forms {
            assert_eq!(serde_json::to_string(&decision).unwrap(), form);
            assert_eq!(serde_json::from_str::<Decision>(form).unwrap(), decision);
        }
    }

    fn request(tool: &str, kind: ToolKind) -> PermissionRequest {
        let (id, tool) = ("1".to_owned(), tool.to_owned());
        PermissionRequest { id, tool, kind, input: None, description: None }
    }

    #[test]
    fn each_mode_decides_as_documented() {
        let (edit, shell) = (request("Edit", ToolKind::Edit), request("Bash", ToolKind::Execute));
        let judge = |mode, request| Policy { mode, rules: Rules::default() }.judge(request);
        let allowed = Verdict::Decided(Decision::Allow);
        assert_eq!(judge(Mode::Ask, &edit), Verdict::AskUser);
        assert_eq!(judge(Mode::AcceptEdits, &edit), allowed);
        assert_eq!(judge(Mode::AcceptEdits, &shell), Verdict::AskUser);
        assert_eq!(judge(Mode::Auto, &shell), allowed);
        for mode in [Mode::Deny, Mode::Plan] {
            assert!(matches!(judge(mode, &edit), Verdict::Decided(Decision::Deny(_))), "{mode}");
        }
    }

    #[test]
    fn a_rule_takes_precedence_over_the_mode() {
        let rules = Rules::new(vec![
            Rule::new("Bash", Some("git *"), Effect::Allow).unwrap(),
            Rule::new("Bash", None, Effect::Deny).unwrap(),
        ]);
        let policy = Policy { mode: Mode::Ask, rules };
        let mut git = request("Bash", ToolKind::Execute);
        git.input = Some(r#"{"command":"git status"}"#.to_owned());
        assert_eq!(policy.judge(&git), Verdict::Decided(Decision::Allow));
        let denied = policy.judge(&request("Bash", ToolKind::Execute));
        assert_eq!(
            denied,
            Verdict::Decided(Decision::Deny("a permission rule denies Bash".into()))
        );
        assert_eq!(policy.judge(&request("Edit", ToolKind::Edit)), Verdict::AskUser);
    }
}
