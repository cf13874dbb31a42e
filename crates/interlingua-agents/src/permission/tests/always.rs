//! Decisions for the rest of a session.

use super::*;

/// A request to run a command in a folder that exists.
fn bash(command: &str) -> PermissionRequest {
    request(
        &std::env::temp_dir(),
        "Bash",
        ToolKind::Execute,
        serde_json::json!({"command": command}),
    )
}

/// "Always" is a rule of ours for the session; an agent's own would cover other commands.
#[test]
fn always_allows_the_same_request_and_no_other() {
    let allowed =
        |policy: &Policy, command: &str| word(&policy.judge(&bash(command))) == Word::Allow;
    let mut policy = Policy::default();
    policy.allow_always(&bash("touch 'a b'; touch c > out.txt"), &Always::Same).unwrap();
    for same in ["touch 'a b'", "touch c", "touch c && touch 'a b'", "touch c > out.txt"] {
        assert!(allowed(&policy, same), "{same}");
    }
    for other in ["touch a b", "touch d", "touch c > other.txt", "touch 'a b'; rm x", "touch *"] {
        assert!(!allowed(&policy, other), "{other}");
    }
    let mut policy = Policy::default();
    policy.allow_always(&bash("git push"), &Always::Matching("git *".to_owned())).unwrap();
    assert!(allowed(&policy, "git commit") && !allowed(&policy, "git commit; rm x"));
}

/// A pattern never allows what runs other commands; the tool as such does.
#[test]
fn always_may_allow_the_tool_but_never_what_a_rule_denies() {
    let judged = |policy: &Policy, command: &str| word(&policy.judge(&bash(command)));
    let mut policy = Policy::default();
    policy.allow_always(&bash("rm $x"), &Always::Tool).unwrap();
    for command in ["env rm x", "python -c 1", "touch a > /etc/x"] {
        assert_eq!(judged(&policy, command), Word::Allow, "{command}");
    }
    let deny = Rule::new("Bash", Some("rm *"), Effect::Deny).unwrap();
    let mut policy = Policy { rules: Rules::new(vec![deny]), ..Policy::default() };
    policy.allow_always(&bash("touch x"), &Always::Tool).unwrap();
    assert_eq!(judged(&policy, "rm x"), Word::Deny);
}

#[test]
fn always_is_refused_where_a_rule_cannot_allow() {
    let mut policy = Policy::default();
    let refused = policy.allow_always(&bash("rm $x"), &Always::Same).unwrap_err();
    assert!(refused.contains("not literal"), "{refused}");
    let refused = policy
        .allow_always(&bash("git push; rm x"), &Always::Matching("git *".to_owned()))
        .unwrap_err();
    assert!(refused.contains("`git *` would not allow"), "{refused}");
    assert!(policy.allow_always(&bash("ls -R /"), &Always::Matching(" ".to_owned())).is_err());
    let ask = Rule::new("Bash", Some("git *"), Effect::Ask).unwrap();
    let mut policy = Policy { rules: Rules::new(vec![ask]), ..Policy::default() };
    assert!(policy.allow_always(&bash("git push"), &Always::Same).is_err());
}
