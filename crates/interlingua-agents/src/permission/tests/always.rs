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

/// The path of the folder below itself is empty, and so is the input of some tools.
#[test]
fn always_allows_what_has_an_empty_subject() {
    let scene = Scene::new();
    let root = scene.folder.path();
    let search = |path: &str| {
        let input = serde_json::json!({ "pattern": "x", "path": path });
        request(root, "Grep", ToolKind::Search, input)
    };
    let mut policy = Policy::default();
    assert_eq!(word(&policy.judge(&search("."))), Word::Ask);
    policy.allow_always(&search("."), &Always::Same).unwrap();
    assert_eq!(word(&policy.judge(&search("."))), Word::Allow);
    assert_eq!(word(&policy.judge(&search("/etc"))), Word::Ask);

    let edit = |path: &str| {
        request(root, "Edit", ToolKind::Edit, serde_json::json!({ "file_path": path }))
    };
    policy.allow_always(&edit("a"), &Always::Same).unwrap();
    assert_eq!(word(&policy.judge(&edit("a"))), Word::Allow);
    assert_eq!(word(&policy.judge(&edit("b"))), Word::Ask);

    let call = |input: Option<&str>| PermissionRequest {
        input: input.map(str::to_owned),
        ..request(root, "mcp__a__b", ToolKind::default(), serde_json::json!({}))
    };
    for empty in [None, Some(""), Some("{}")] {
        let mut policy = Policy::default();
        policy.allow_always(&call(empty), &Always::Same).unwrap();
        assert_eq!(word(&policy.judge(&call(empty))), Word::Allow, "{empty:?}");
        for other in [r#"{"x":1}"#, r#"{"url":"","x":1}"#] {
            assert_eq!(word(&policy.judge(&call(Some(other)))), Word::Ask, "{other}");
        }
    }
}

/// The rule for `rm` would be about the folder of the session.
#[test]
fn always_is_refused_for_a_line_that_changes_the_folder() {
    let scene = Scene::new();
    let bash = |line: &str| {
        let input = serde_json::json!({ "command": line });
        request(scene.folder.path(), "Bash", ToolKind::Execute, input)
    };
    let mut policy = Policy::default();
    for line in ["cd /tmp && rm -rf src", "rm -rf src; cd ..", "pushd src; make"] {
        policy.allow_always(&bash(line), &Always::Same).unwrap_err();
    }
    assert_eq!(word(&policy.judge(&bash("rm -rf src"))), Word::Ask);
    policy.allow_always(&bash("cd . && make"), &Always::Same).unwrap();
    assert_eq!(word(&policy.judge(&bash("make"))), Word::Allow);
}

/// What a tool does may depend on each of its fields.
#[test]
fn always_allows_another_tool_with_the_same_input_only() {
    let scene = Scene::new();
    let call = |input: serde_json::Value| {
        request(scene.folder.path(), "mcp__http__request", ToolKind::Mcp, input)
    };
    let get = || call(serde_json::json!({"url": "https://a/b", "method": "GET"}));
    let mut policy = Policy::default();
    policy.allow_always(&get(), &Always::Same).unwrap();
    assert_eq!(word(&policy.judge(&get())), Word::Allow);
    let delete = call(serde_json::json!({"url": "https://a/b", "method": "DELETE"}));
    assert_eq!(word(&policy.judge(&delete)), Word::Ask);
}

/// A field that is added must neither allow a call nor hide it from a rule that denies it.
#[test]
fn a_pattern_is_compared_with_every_field_that_is_named() {
    let scene = Scene::new();
    let judge = |rule: &str, input: serde_json::Value| {
        let asked = request(scene.folder.path(), "WebFetch", ToolKind::Fetch, input);
        word(&policy(Mode::Ask, &[rule]).judge(&asked))
    };
    let good = serde_json::json!({"url": "https://docs.rs/a"});
    let hidden = serde_json::json!({"path": "https://docs.rs/a", "url": "https://evil/"});
    let allow = "allow WebFetch https://docs.rs/*";
    assert_eq!((judge(allow, good), judge(allow, hidden.clone())), (Word::Allow, Word::Ask));
    assert_eq!(judge("deny WebFetch https://evil/*", hidden), Word::Deny);
}
