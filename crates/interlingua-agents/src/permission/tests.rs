//! What a policy decides: modes, rules, and whatever an attacker would try.

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

#[test]
fn a_chain_is_allowed_only_if_all_its_parts_are() {
    let scene = Scene::new();
    let git = policy(Mode::Ask, &["allow Bash git *"]);
    let allowed = [
        "git",
        "git push",
        "git push && git fetch",
        "git push; git fetch\ngit pull",
        "(git push)",
        "git push | git fetch",
        "git push &",
        "if git push; then git fetch; fi",
        "git push 2>&1",
        "git push >/dev/null 2>/dev/null",
        "git push < a",
        "git push && ls",
        "cd . && git push",
        "git commit -m 'a; rm b'",
        "git commit -F - <<'E'\n$(rm x)\nE",
        "git push # ; rm x",
        "bash -c 'git push; git fetch'",
        "! git push",
        "git commit -m \"it's\"",
        "{ git push; }",
    ];
    for line in allowed {
        assert_eq!(scene.run(&git, line), Word::Allow, "{line}");
    }
    let asked = [
        "git push; rm x",
        "git push\nrm x",
        "git push && rm x",
        "git push || rm x",
        "git push | rm x",
        "git push & rm x",
        "git push $(rm x)",
        "git push `rm x`",
        "git push \"$(rm x)\"",
        "git push <(rm x)",
        "git push > x",
        "git push >> x",
        "git push &> x",
        "git push >& x",
        "git push 3<> x",
        "> x git push",
        "git push < /etc/passwd",
        "git push < .env",
        "git push $x",
        "git push *",
        "git push ~/x",
        "git push {a,b}",
        "$x push",
        "g*t push",
        "git\tpush\r",
        "git push\0",
        "GIT_PAGER=rm git push",
        "x=1",
        "x=1; git push",
        "git() { rm x; }; git push",
        "alias git=rm\ngit push",
        "git -c alias.x='!rm' x",
        "git -C / push",
        "env git push",
        "command git push",
        "exec git push",
        "eval git push",
        "sudo git push",
        "time git push",
        "xargs git push",
        "bash -c 'git push; rm x'",
        "bash -c \"$x\"",
        "zsh -c 'git push'",
        "gitfoo",
        "./git push",
        "/tmp/git push",
        "'git push'",
        "'git /../x' y",
        "[[ -v 'a[$(rm x)]' ]]; git push",
        "coproc git push",
        "for x in a; do git push; done",
        "git push <<E\n$(rm x)\nE",
        "git push <<< $(rm x)",
        "git {PATH}>/dev/null push",
        "hash -p /x git; git push",
        "cd src && git push",
        "f() { git push; }",
        "git push $'\\'; rm x #'",
        "git push; # x\nrm x",
        "case $(rm x) in a) git push;; esac",
        "trap 'rm x' EXIT; git push",
        "git push \\\n; rm x",
        "select x in a; do git push; done",
        "git push ${x:-$(rm x)}",
        "((git push))",
        "git push 'a",
        "",
        "# nothing",
        "git push |& rm x",
        "git\u{a0}push",
    ];
    for line in asked {
        assert_eq!(scene.run(&git, line), Word::Ask, "{line}");
    }
}

#[test]
fn no_pattern_allows_a_command_that_runs_others() {
    let scene = Scene::new();
    let all = policy(Mode::Ask, &["allow Bash *"]);
    for line in
        ["env rm x", "sudo rm", "find . -delete", "python -c x", "x=1 rm", "bash x", "test -v x"]
    {
        assert_eq!(scene.run(&all, line), Word::Ask, "{line}");
    }
    assert_eq!(scene.run(&all, "rm x"), Word::Allow);
    // A rule without a pattern is about the tool, whatever it runs.
    let tool = policy(Mode::Ask, &["allow Bash"]);
    for line in ["env rm x", "$x > y", "a 'b", "x=1", "rm x > y"] {
        assert_eq!(scene.run(&tool, line), Word::Allow, "{line}");
    }
}

#[test]
fn deny_beats_ask_and_ask_beats_allow_in_any_order() {
    let scene = Scene::new();
    let rules = ["allow Bash git *", "ask Bash git push*", "deny Bash git push --force*"];
    let mut orders = vec![rules.to_vec(), rules.iter().rev().copied().collect()];
    orders.push(vec![rules[1], rules[2], rules[0]]);
    for order in orders {
        let policy = policy(Mode::Auto, &order);
        let lines = [
            ("git fetch", Word::Allow),
            ("git push", Word::Ask),
            ("git fetch && git push", Word::Ask),
            ("git push --force", Word::Deny),
            ("git fetch; git push --force x", Word::Deny),
            ("echo $(git push --force)", Word::Deny),
            ("/usr/bin/git push --force", Word::Deny),
        ];
        for (line, expected) in lines {
            assert_eq!(scene.run(&policy, line), expected, "{line}");
        }
    }
}

#[test]
fn what_is_not_known_counts_as_denied() {
    let scene = Scene::new();
    let unknown = [
        "$x y",
        "$(echo rm) x",
        "r* x",
        "python -c 'x'",
        "env rm x",
        "a 'b",
        "[[ a ]]",
        "x=1 git status",
        "find . -delete",
        "sh x.sh",
        "git -c a=b status",
        "f() { a; }",
        "git push $x",
        "r$x y",
    ];
    for line in unknown {
        assert_eq!(scene.run(&policy(Mode::Auto, &["deny Bash rm *"]), line), Word::Deny, "{line}");
        assert_eq!(
            scene.run(&policy(Mode::Ask, &["deny Bash rm *"]), line),
            Word::AskOnly,
            "{line}"
        );
        assert_eq!(scene.run(&policy(Mode::Deny, &["deny Bash rm *"]), line), Word::Deny, "{line}");
        // There is nothing that it could match.
        assert_eq!(scene.run(&policy(Mode::Auto, &[]), line), Word::Allow, "{line}");
        assert_eq!(
            scene.run(&policy(Mode::Auto, &["allow Bash git *"]), line),
            Word::Allow,
            "{line}"
        );
        assert_eq!(scene.run(&policy(Mode::Auto, &["ask Bash rm *"]), line), Word::Ask, "{line}");
    }
    let auto = policy(Mode::Auto, &["deny Bash rm *"]);
    // An unknown argument does not make it another command.
    for line in ["echo $x", "touch a b", "cargo test", "mkdir $x"] {
        assert_eq!(scene.run(&auto, line), Word::Allow, "{line}");
    }
    for line in ["rm", "rm x", "\\rm x", "/bin/rm x", "RM x", "\"r\"m x", "r\\\nm x", "a && (rm x)"]
    {
        assert_eq!(scene.run(&auto, line), Word::Deny, "{line}");
        assert_eq!(
            scene.run(&policy(Mode::Ask, &["deny Bash rm *", "allow Bash"]), line),
            Word::Deny,
            "{line}"
        );
    }
    assert_eq!(scene.run(&policy(Mode::Ask, &["deny Bash bash *"]), "bash -c ls"), Word::Deny);
}

#[test]
fn redirections_are_judged_as_files() {
    let scene = Scene::new();
    let rules = ["allow Bash git *", "allow write out/*", "deny read secret*"];
    let ask = policy(Mode::Ask, &rules);
    let lines = [
        ("git log > out/x", Word::Allow),
        ("git log > ./out/x", Word::Allow),
        ("git log > out/../x", Word::Ask),
        ("git log > x", Word::Ask),
        ("git log > $x", Word::Ask),
        ("git log < a", Word::Allow),
        ("git log < secret", Word::Deny),
        ("git log < ./secret", Word::Deny),
        ("git log < $x", Word::AskOnly),
        ("cd /; git log > out/x", Word::Ask),
    ];
    for (line, expected) in lines {
        assert_eq!(scene.run(&ask, line), expected, "{line}");
    }
    let deny = policy(Mode::Auto, &["deny edit a"]);
    assert_eq!(scene.run(&deny, "echo x > a"), Word::Deny);
    assert_eq!(scene.run(&deny, "echo x > b"), Word::Allow);
    assert_eq!(scene.run(&deny, "{ echo x; } > src/../a"), Word::Deny);
    let edits = policy(Mode::AcceptEdits, &[]);
    assert_eq!(scene.run(&edits, "echo x > b"), Word::Allow);
    assert_eq!(scene.run(&edits, "echo x > ../b"), Word::Ask);
    assert_eq!(scene.run(&edits, "echo x > .git/config"), Word::Ask);
}

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

#[cfg(unix)]
#[test]
fn a_rule_sees_where_a_path_leads() {
    let scene = Scene::new();
    let root = scene.folder.path();
    std::os::unix::fs::symlink("/etc", root.join("src/out")).unwrap();
    let rules = policy(Mode::Ask, &["allow Edit src/*", "deny Read /etc/*"]);
    let edit = |path: &str| scene.file(&rules, "Edit", ToolKind::Edit, path);
    assert_eq!(edit("src/main.rs"), Word::Allow);
    assert_eq!(edit(&root.join("src/main.rs").display().to_string()), Word::Allow);
    for path in ["src/../a", "src/out/passwd", "src/../../x"] {
        assert_eq!(edit(path), Word::Ask, "{path}");
    }
    assert_eq!(scene.file(&rules, "Read", ToolKind::Read, "src/out/passwd"), Word::Deny);
    assert_eq!(scene.run(&rules, "ls < src/out/passwd"), Word::Deny);
}

#[test]
fn a_request_without_its_files_may_be_any() {
    let scene = Scene::new();
    let judge = |policy: &Policy| {
        let input = serde_json::json!({ "patch": "x" });
        word(&policy.judge(&request(scene.folder.path(), "Edit", ToolKind::Edit, input)))
    };
    assert_eq!(judge(&policy(Mode::AcceptEdits, &[])), Word::Ask);
    assert_eq!(judge(&policy(Mode::AcceptEdits, &["allow Edit *"])), Word::Ask);
    assert_eq!(judge(&policy(Mode::AcceptEdits, &["allow Edit"])), Word::Allow);
    assert_eq!(judge(&policy(Mode::Auto, &["deny Edit *.lock"])), Word::Deny);
}

/// OpenCode names all files of a patch in one text, relative to the repository.
#[test]
fn each_file_of_a_patch_is_judged() {
    let scene = Scene::new();
    let root = scene.folder.path();
    let judge = |policy: &Policy, shown: &str, files: &[(&str, Option<&str>)]| {
        let file = |(path, to): &(&str, Option<&str>)| {
            let to = to.map(|to| root.join(to));
            serde_json::json!({"filePath": root.join(path), "relativePath": path, "movePath": to})
        };
        let files: Vec<_> = files.iter().map(file).collect();
        let input = serde_json::json!({"filepath": shown, "diff": "", "files": files});
        word(&policy.judge(&request(root, "edit", ToolKind::Edit, input)))
    };
    let accept = policy(Mode::AcceptEdits, &[]);
    assert_eq!(judge(&accept, "a, src/b", &[("a", None), ("src/b", None)]), Word::Allow);
    let hook = ".git/hooks/pre-commit";
    assert_eq!(judge(&accept, &format!("a, {hook}"), &[("a", None), (hook, None)]), Word::Ask);
    assert_eq!(judge(&accept, ".env, a", &[(".env", None), ("a", None)]), Word::Ask);
    assert_eq!(judge(&accept, "a", &[("a", Some(hook))]), Word::Ask);
    assert_eq!(judge(&accept, "a", &[("../a", None)]), Word::Ask);
    let deny = policy(Mode::Auto, &["deny edit *.lock"]);
    assert_eq!(judge(&deny, "x.lock, a", &[("x.lock", None), ("a", None)]), Word::Deny);
    assert_eq!(judge(&deny, "a", &[("a", Some("x.lock"))]), Word::Deny);
}

/// A file can be changed by each of these tools.
#[test]
fn a_rule_that_restricts_one_way_to_change_files_restricts_all() {
    let scene = Scene::new();
    let tools = [("Write", ToolKind::Write), ("Edit", ToolKind::Edit), ("patch", ToolKind::Edit)];
    for (effect, expected) in [("deny", Word::Deny), ("ask", Word::Ask)] {
        for name in ["edit", "write", "Edit", "Write"] {
            let policy = policy(Mode::Auto, &[&format!("{effect} {name} src/*")]);
            for (tool, kind) in &tools {
                let judged = |path: &str| scene.file(&policy, tool, kind.clone(), path);
                assert_eq!(judged("src/main.rs"), expected, "{effect} {name}: {tool}");
                assert_eq!(judged("a"), Word::Allow, "{effect} {name}: {tool}");
            }
            assert_eq!(scene.run(&policy, "ls > src/main.rs"), expected, "{effect} {name}");
        }
    }
    // A rule that allows is about its own tool.
    let allow = policy(Mode::Ask, &["allow Edit *"]);
    assert_eq!(scene.file(&allow, "Write", ToolKind::Write, "a"), Word::Ask);
    assert_eq!(scene.file(&allow, "Edit", ToolKind::Edit, "a"), Word::Allow);
}

/// `bash -c` runs its script, and is a command itself.
#[test]
fn a_rule_may_ask_about_the_shell_around_a_script() {
    let scene = Scene::new();
    let lines = ["bash -c 'touch x'", "/bin/bash -lc 'touch x'"];
    for line in lines {
        assert_eq!(scene.run(&policy(Mode::Auto, &["ask Bash bash *"]), line), Word::Ask, "{line}");
        assert_eq!(scene.run(&policy(Mode::Auto, &["deny Bash bash *"]), line), Word::Deny);
        // What the shell may run is known: it is the script.
        for rule in ["ask Bash rm *", "deny Bash rm *", "ask Bash sh *"] {
            assert_eq!(scene.run(&policy(Mode::Auto, &[rule]), line), Word::Allow, "{rule}");
        }
    }
}

/// What Codex would allow beyond a command is not a part of its rules.
#[test]
fn a_request_that_allows_more_than_its_command_is_asked() {
    let scene = Scene::new();
    let judge = |rules: &[&str], mode, more: serde_json::Value| {
        let mut input = serde_json::json!({"command": "/bin/bash -lc 'git fetch'"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let kind = ToolKind::Execute;
        let request = request(scene.folder.path(), "command_execution", kind, input);
        word(&policy(mode, rules).judge(&request))
    };
    let git = ["allow command_execution git *"];
    let network = serde_json::json!({"networkApprovalContext": {"host": "a", "protocol": "https"}});
    assert_eq!(judge(&git, Mode::Ask, serde_json::json!({})), Word::Allow);
    assert_eq!(judge(&git, Mode::Ask, network.clone()), Word::Ask);
    assert_eq!(judge(&git, Mode::Ask, serde_json::json!({"kind": "writeStdin"})), Word::Ask);
    assert_eq!(judge(&[], Mode::Auto, network.clone()), Word::Allow);
    assert_eq!(judge(&["deny command_execution git *"], Mode::Ask, network), Word::Deny);
}

/// The input of the call may name another folder.
#[test]
fn a_command_in_an_unknown_folder_does_not_only_read() {
    let scene = Scene::new();
    let judge = |rules: &[&str], line: &str| {
        let input = serde_json::json!({ "command": line });
        let request = request(scene.folder.path(), "bash", ToolKind::Execute, input);
        let request = PermissionRequest { may_lack_input: true, ..request };
        word(&policy(Mode::Ask, rules).judge(&request))
    };
    assert_eq!(judge(&[], "cat a"), Word::Ask);
    assert_eq!(judge(&["allow bash git *"], "git push"), Word::Allow);
    assert_eq!(judge(&["allow bash git *", "allow write *"], "git log > x"), Word::Ask);
    let folder = scene.folder.path().display().to_string();
    let named = serde_json::json!({ "command": "cat a", "workdir": folder });
    let request = request(scene.folder.path(), "bash", ToolKind::Execute, named);
    let request = PermissionRequest { may_lack_input: true, ..request };
    assert_eq!(word(&policy(Mode::Ask, &[]).judge(&request)), Word::Allow);
}

#[test]
fn a_folder_that_the_request_names_counts() {
    let scene = Scene::new();
    let run = |folder: &str| {
        let input = serde_json::json!({ "command": "cat main.rs", "cwd": folder });
        let request = request(scene.folder.path(), "shell", ToolKind::Execute, input);
        word(&policy(Mode::Ask, &[]).judge(&request))
    };
    assert_eq!((run("src"), run("/etc"), run("..")), (Word::Allow, Word::Ask, Word::Ask));
    let listed = |folder: &str| {
        let input = serde_json::json!({ "command": "ls", "cwd": folder });
        let request = request(scene.folder.path(), "shell", ToolKind::Execute, input);
        word(&policy(Mode::Ask, &[]).judge(&request))
    };
    assert_eq!((listed("src"), listed("/etc")), (Word::Allow, Word::Ask));
}

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

#[test]
fn an_additional_folder_counts_as_inside() {
    let (inside, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let read = |path: &Path| request(inside.path(), "Read", ToolKind::Read, file_path(path));
    let (file, secret) = (other.path().join("a.txt"), other.path().join(".env"));
    let policy = policy(Mode::Ask, &["allow Read x/*"]);
    assert_eq!(word(&policy.judge(&read(&file))), Word::Ask);
    let with_other = |path: &Path| PermissionRequest {
        additional_folders: vec![other.path().to_owned()],
        ..read(path)
    };
    assert_eq!(word(&policy.judge(&with_other(&file))), Word::Allow);
    assert_eq!(word(&policy.judge(&with_other(&secret))), Word::Ask);
    // A rule with a relative pattern is about the folder itself.
    assert_eq!(word(&policy.judge(&with_other(&other.path().join("x/.env")))), Word::Ask);
}

#[test]
fn a_search_that_skips_secrets_is_not_asked_because_of_one() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(".env"), "").unwrap();
    let search = |skips_secrets, path: &str| {
        let input = serde_json::json!({"pattern": "x", "path": path});
        let request = request(folder.path(), "Grep", ToolKind::Search, input);
        let request = PermissionRequest { skips_secrets, ..request };
        word(&policy(Mode::Ask, &[]).judge(&request))
    };
    assert_eq!(search(false, "."), Word::Ask);
    assert_eq!(search(true, "."), Word::Allow);
    assert_eq!(search(true, ".env"), Word::Ask);
    assert_eq!(search(true, ".."), Word::Ask);
}

fn file_path(path: &Path) -> serde_json::Value {
    serde_json::json!({ "file_path": path })
}
