//! What an agent may do: a mode, rules that go before it, and what is decided.

mod rules;

use interlingua::event::ToolKind;

pub use rules::{BadRule, Effect, Rule, Rules};

/// What happens when an agent asks whether it may, and no rule says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// The user is asked.
    #[default]
    Ask,
    /// Files may be read and changed; for the rest the user is asked.
    AcceptEdits,
    /// It may.
    Auto,
    /// It may not.
    Deny,
    /// It only makes a plan, where the agent has such a mode.
    Plan,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 5] = [Self::Ask, Self::AcceptEdits, Self::Auto, Self::Deny, Self::Plan];

    /// The word for it on the command line.
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

/// What an agent wants to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    /// The request's id: what the answer must name.
    pub request: String,
    /// The tool, as the agent calls it.
    pub tool: String,
    /// What kind of work it does.
    pub kind: ToolKind,
    /// What the tool would be given, as JSON.
    pub input: Option<String>,
    /// What the agent says to the user about it.
    pub description: Option<String>,
}

/// What was decided about a wish.
///
/// Its JSON form is `{"decision":"allow"}` or `{"decision":"deny","reason":"…"}`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "decision", content = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decision {
    /// It may.
    Allow,
    /// It may not, and this is what the agent is told.
    Deny(String),
}

/// What a policy says of a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is decided.
    Decided(Decision),
    /// The user has to say.
    AskUser,
}

/// A mode, and the rules that go before it.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// What happens where no rule applies.
    pub mode: Mode,
    /// The rules.
    pub rules: Rules,
}

impl Policy {
    /// What is to become of a wish.
    pub fn judge(&self, wish: &Wish) -> Verdict {
        match self.rules.judge(wish) {
            Some(Effect::Allow) => return Verdict::Decided(Decision::Allow),
            Some(Effect::Deny) => {
                let why = format!("a rule does not allow {}", wish.tool);
                return Verdict::Decided(Decision::Deny(why));
            }
            Some(Effect::Ask) => return Verdict::AskUser,
            None => {}
        }
        let edits = matches!(wish.kind, ToolKind::Read | ToolKind::Write | ToolKind::Edit);
        match self.mode {
            Mode::Auto => Verdict::Decided(Decision::Allow),
            Mode::AcceptEdits if edits => Verdict::Decided(Decision::Allow),
            Mode::Ask | Mode::AcceptEdits => Verdict::AskUser,
            Mode::Deny => Verdict::Decided(Decision::Deny(
                "this run allows nothing that needs a permission".to_owned(),
            )),
            Mode::Plan => Verdict::Decided(Decision::Deny(
                "this run only makes a plan: nothing is to be changed".to_owned(),
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

    fn wish(tool: &str, kind: ToolKind) -> Wish {
        let (request, tool) = ("1".to_owned(), tool.to_owned());
        Wish { request, tool, kind, input: None, description: None }
    }

    #[test]
    fn each_mode_decides_as_it_says() {
        let (edit, shell) = (wish("Edit", ToolKind::Edit), wish("Bash", ToolKind::Execute));
        let judge = |mode, wish| Policy { mode, rules: Rules::default() }.judge(wish);
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
    fn a_rule_goes_before_the_mode() {
        let rules = Rules::new(vec![
            Rule::new("Bash", Some("git *"), Effect::Allow).unwrap(),
            Rule::new("Bash", None, Effect::Deny).unwrap(),
        ]);
        let policy = Policy { mode: Mode::Ask, rules };
        let mut git = wish("Bash", ToolKind::Execute);
        git.input = Some(r#"{"command":"git status"}"#.to_owned());
        assert_eq!(policy.judge(&git), Verdict::Decided(Decision::Allow));
        let denied = policy.judge(&wish("Bash", ToolKind::Execute));
        assert_eq!(denied, Verdict::Decided(Decision::Deny("a rule does not allow Bash".into())));
        assert_eq!(policy.judge(&wish("Edit", ToolKind::Edit)), Verdict::AskUser);
    }
}
