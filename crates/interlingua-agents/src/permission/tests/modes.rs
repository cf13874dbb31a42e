//! What each mode decides.

use super::*;

#[test]
fn each_mode_decides_as_documented() {
    let scene = Scene::new();
    use Word::{Allow, Ask, Deny};
    //                     default, accept-edits, auto, deny, plan
    let modes = [Mode::Ask, Mode::AcceptEdits, Mode::Auto, Mode::Deny, Mode::Plan];
    let commands = [
        ("ls", [Allow, Allow, Allow, Deny, Allow]),
        ("git status && cat a", [Allow, Allow, Allow, Deny, Allow]),
        ("cat .env", [Ask, Ask, Allow, Deny, Deny]),
        ("cat /etc/passwd", [Ask, Ask, Allow, Deny, Deny]),
        ("rm a", [Ask, Ask, Allow, Deny, Deny]),
        ("touch a", [Ask, Ask, Allow, Deny, Deny]),
        ("ls > b", [Ask, Allow, Allow, Deny, Deny]),
        // What it writes may decide what git or rg does.
        ("git diff > b", [Ask, Allow, Allow, Deny, Deny]),
        ("echo a > b; git status", [Ask, Ask, Allow, Deny, Deny]),
        ("rg x src | cat > b", [Ask, Ask, Allow, Deny, Deny]),
        ("echo '!.git' > .ignore", [Ask, Ask, Allow, Deny, Deny]),
        ("echo 'ref: x' > HEAD", [Ask, Ask, Allow, Deny, Deny]),
        ("ls $x", [Ask, Ask, Allow, Deny, Deny]),
    ];
    for (line, expected) in commands {
        let found = modes.map(|mode| scene.run(&policy(mode, &[]), line));
        assert_eq!(found, expected, "{line}");
    }
    let files = [
        (ToolKind::Read, "a", [Allow, Allow, Allow, Deny, Allow]),
        (ToolKind::Read, ".env", [Ask, Ask, Allow, Deny, Deny]),
        (ToolKind::Read, "../x", [Ask, Ask, Allow, Deny, Deny]),
        (ToolKind::List, ".", [Allow, Allow, Allow, Deny, Allow]),
        (ToolKind::Search, "src", [Allow, Allow, Allow, Deny, Allow]),
        (ToolKind::Search, ".", [Ask, Ask, Allow, Deny, Deny]),
        (ToolKind::Edit, "a", [Ask, Allow, Allow, Deny, Deny]),
        (ToolKind::Write, "new/file", [Ask, Allow, Allow, Deny, Deny]),
        (ToolKind::Write, "/etc/x", [Ask, Ask, Allow, Deny, Deny]),
        (ToolKind::Edit, ".env", [Ask, Ask, Allow, Deny, Deny]),
        (ToolKind::Edit, ".git/hooks/x", [Ask, Ask, Allow, Deny, Deny]),
        (ToolKind::Fetch, "x", [Ask, Ask, Allow, Deny, Deny]),
    ];
    for (kind, path, expected) in files {
        let found = modes.map(|mode| scene.file(&policy(mode, &[]), "Tool", kind.clone(), path));
        assert_eq!(found, expected, "{kind:?} {path}");
    }
}

#[test]
fn in_the_mode_interactive_only_a_rule_allows() {
    let scene = Scene::new();
    let interactive = policy(Mode::Interactive, &["allow Bash git *", "deny Bash rm *"]);
    for (line, expected) in
        [("ls", Word::Ask), ("cat a", Word::Ask), ("git status", Word::Allow), ("rm a", Word::Deny)]
    {
        assert_eq!(scene.run(&interactive, line), expected, "{line}");
    }
    for kind in [ToolKind::Read, ToolKind::List, ToolKind::Edit] {
        assert_eq!(scene.file(&interactive, "Tool", kind.clone(), "a"), Word::Ask, "{kind:?}");
    }
}

#[test]
fn a_plan_changes_nothing_whatever_rules_allow() {
    let scene = Scene::new();
    let plan = policy(Mode::Plan, &["allow *", "deny Read a"]);
    assert_eq!(scene.run(&plan, "rm a"), Word::Deny);
    assert_eq!(scene.file(&plan, "Edit", ToolKind::Edit, "a"), Word::Deny);
    assert_eq!(scene.file(&plan, "Read", ToolKind::Read, "/etc/passwd"), Word::Allow);
    assert_eq!(scene.file(&plan, "Read", ToolKind::Read, "a"), Word::Deny);
    assert_eq!(scene.file(&plan, "WebFetch", ToolKind::Fetch, "x"), Word::Allow);
}

/// Otherwise the plan of Qwen, which asks for a permission, could never be approved.
#[test]
fn only_the_user_approves_a_plan() {
    let kind = ToolKind::from("switch_mode");
    let ask = |tool: &str, kind: ToolKind, mode, rules: &[&str]| {
        let input = serde_json::json!({"plan": "# Plan"});
        word(&policy(mode, rules).judge(&request(&std::env::temp_dir(), tool, kind, input)))
    };
    let exit = |mode, rules: &[&str]| ask("exit_plan_mode", kind.clone(), mode, rules);
    assert_eq!(exit(Mode::Plan, &[]), Word::Ask);
    assert_eq!(exit(Mode::Plan, &["allow exit_plan_mode"]), Word::Ask);
    assert_eq!(exit(Mode::Plan, &["deny exit_plan_mode"]), Word::Deny);
    assert_eq!(exit(Mode::Deny, &[]), Word::Deny);
    assert_eq!(ask("exit_plan_mode", "other".into(), Mode::Plan, &[]), Word::Deny);
    assert_eq!(ask("enter_plan_mode", kind.clone(), Mode::Plan, &[]), Word::Deny);
}
