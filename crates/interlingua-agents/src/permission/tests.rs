//! What a policy decides: modes, rules, and whatever an attacker would try.

mod always;
mod commands;
mod files;
mod modes;

use std::path::Path;

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

/// The verdict in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Allow,
    Ask,
    /// Asked, and only the user may allow it.
    AskOnly,
    Deny,
}

fn word(verdict: &Verdict) -> Word {
    match verdict {
        Verdict::Decided(Decision::Allow) => Word::Allow,
        Verdict::Decided(Decision::Deny(_)) => Word::Deny,
        Verdict::AskUser { may_be_denied: false, .. } => Word::Ask,
        Verdict::AskUser { may_be_denied: true, .. } => Word::AskOnly,
    }
}

fn request(
    folder: &Path,
    tool: &str,
    kind: ToolKind,
    input: serde_json::Value,
) -> PermissionRequest {
    PermissionRequest {
        id: "1".to_owned(),
        tool: tool.to_owned(),
        kind,
        input: Some(input.to_string()),
        description: None,
        call: Vec::new(),
        folder: folder.to_owned(),
        ..PermissionRequest::default()
    }
}

/// A policy with rules of the form `allow Bash git *`; the pattern may be missing.
fn policy(mode: Mode, rules: &[&str]) -> Policy {
    let rule = |text: &&str| {
        let mut parts = text.splitn(3, ' ');
        let effect = match parts.next().unwrap() {
            "allow" => Effect::Allow,
            "ask" => Effect::Ask,
            "deny" => Effect::Deny,
            other => panic!("{other}"),
        };
        Rule::new(parts.next().unwrap(), parts.next(), effect).unwrap()
    };
    Policy { mode, rules: Rules::new(rules.iter().map(rule).collect()) }
}

/// A folder to be judged in.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", ".env", "src/main.rs"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        Self { folder }
    }

    fn run(&self, policy: &Policy, line: &str) -> Word {
        let input = serde_json::json!({ "command": line });
        let request = request(self.folder.path(), "Bash", ToolKind::Execute, input);
        word(&policy.judge(&request))
    }

    fn file(&self, policy: &Policy, tool: &str, kind: ToolKind, path: &str) -> Word {
        let input = serde_json::json!({ "file_path": path });
        word(&policy.judge(&request(self.folder.path(), tool, kind, input)))
    }
}
