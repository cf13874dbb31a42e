//! Command lines: chains, what runs other commands, what is not known, redirections.

use super::*;

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
    assert_eq!(judge(&["allow bash git *"], "git push"), Word::Ask);
    assert_eq!(judge(&["allow bash"], "git push"), Word::Allow);
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

/// In zsh, any `}` ends a group, `>! file` overwrites the file, and `<1-5>` is a pattern. Agents may run
/// commands in the shell of the user.
#[test]
fn lines_that_zsh_reads_differently_are_asked() {
    let scene = Scene::new();
    let edits = policy(Mode::AcceptEdits, &["allow Bash git *", "allow Bash [{]*"]);
    let differently = [
        "{ echo } always { touch x; }",
        "{ git push } always { touch x; }",
        "{ ls} always { touch x; }",
        "{ ls; } always { touch x; }",
        "echo }",
        "echo a} b",
        "echo 'a'} b",
        "echo {} }",
        "echo }{ b",
        "git push {",
        "{git push}",
        "{git push",
        "echo a >! src/main.rs",
        "echo a >!src/main.rs",
        "echo a >>! src/main.rs",
        "echo a &>! src/main.rs",
        "echo a >&! src/main.rs",
        "{ echo a; } >! src/main.rs",
        "cat a<1-5>/dev/null",
        "cat a<->/dev/null",
    ];
    for line in differently {
        assert_eq!(scene.run(&edits, line), Word::Ask, "{line}");
        let denies = policy(Mode::Auto, &["deny Bash rm *"]);
        assert_eq!(scene.run(&denies, line), Word::Deny, "{line}");
    }
    let alike = [
        "echo '}' \"{\" \\} \\{",
        "git show HEAD@{1}",
        "git show stash@{'1'}",
        "echo {} a{b}c",
        "{ git push; }",
        "{ echo a; } > b",
        "echo a > '!'",
        "echo ! a",
        "cat < a-1",
    ];
    for line in alike {
        assert_eq!(scene.run(&edits, line), Word::Allow, "{line}");
    }
}

/// A rule for `make` is about the Makefile of the session's folder: `make -C /tmp` and `cd /tmp && make`
/// are asked, and a folder in the request means the same.
#[test]
fn a_pattern_allows_commands_only_in_the_folder_of_the_session() {
    let scene = Scene::new();
    let run = |policy: &Policy, folder: serde_json::Value| {
        let input = serde_json::json!({ "command": "make all", "workdir": folder });
        word(&policy.judge(&request(scene.folder.path(), "Bash", ToolKind::Execute, input)))
    };
    let root = scene.folder.path().display().to_string();
    let by_pattern = policy(Mode::Ask, &["allow Bash make *"]);
    let by_tool = policy(Mode::Ask, &["allow Bash"]);
    let mut once = Policy::default();
    let input = serde_json::json!({ "command": "make all" });
    let asked = request(scene.folder.path(), "Bash", ToolKind::Execute, input);
    once.allow_always(&asked, &Always::Same).unwrap();
    for folder in [".", "src/..", &root] {
        assert_eq!(run(&by_pattern, folder.into()), Word::Allow, "{folder}");
        assert_eq!(run(&once, folder.into()), Word::Allow, "{folder}");
    }
    for folder in ["src", "..", "/etc", "missing", "/"].map(serde_json::Value::from) {
        assert_eq!(run(&by_pattern, folder.clone()), Word::Ask, "{folder}");
        assert_eq!(run(&once, folder.clone()), Word::Ask, "{folder}");
        assert_eq!(run(&by_tool, folder.clone()), Word::Allow, "{folder}");
        let denies = policy(Mode::Auto, &["deny Bash make *"]);
        assert_eq!(run(&denies, folder.clone()), Word::Deny, "{folder}");
    }
    assert_eq!(run(&by_pattern, 7.into()), Word::Ask);
    // A rule for `cd` is the user's decision.
    let moves = policy(Mode::Ask, &["allow Bash cd *", "allow Bash make *"]);
    assert_eq!(scene.run(&moves, "cd src && make all"), Word::Allow);
}

#[test]
fn always_is_refused_for_a_command_in_another_folder() {
    let scene = Scene::new();
    let input = serde_json::json!({ "command": "make", "cwd": "src" });
    let asked = request(scene.folder.path(), "Bash", ToolKind::Execute, input);
    let refused = Policy::default().allow_always(&asked, &Always::Same).unwrap_err();
    assert!(refused.contains("another folder"), "{refused}");
}

/// A server of MCP tools may run the command elsewhere, or ignore it and do something else.
#[test]
fn the_command_of_another_tool_is_not_free() {
    let scene = Scene::new();
    let root = scene.folder.path();
    let call = |kind: ToolKind, input: serde_json::Value| {
        request(root, "mcp__github__delete_repo", kind, input)
    };
    let input = || serde_json::json!({"repo": "x", "command": "true"});
    for kind in [ToolKind::Mcp, ToolKind::default(), ToolKind::Fetch, ToolKind::Task] {
        for mode in [Mode::Ask, Mode::AcceptEdits] {
            assert_eq!(word(&policy(mode, &[]).judge(&call(kind.clone(), input()))), Word::Ask);
        }
        for mode in [Mode::Plan, Mode::Deny] {
            let verdict = policy(mode, &[]).judge(&call(kind.clone(), input()));
            assert_ne!(word(&verdict), Word::Allow, "{mode:?}");
        }
        let allows = policy(Mode::Ask, &["allow mcp__github__delete_repo true"]);
        assert_eq!(word(&allows.judge(&call(kind.clone(), input()))), Word::Ask);
        let allows = policy(Mode::Ask, &["allow mcp__github__delete_repo"]);
        assert_eq!(word(&allows.judge(&call(kind.clone(), input()))), Word::Allow);
        let denies = policy(Mode::Auto, &["deny mcp__github__delete_repo true"]);
        assert_eq!(word(&denies.judge(&call(kind, input()))), Word::Deny);
    }
}

/// Claude may ask before its stream has shown the call.
#[test]
fn the_tool_for_commands_is_known_by_its_name() {
    let scene = Scene::new();
    let input = || serde_json::json!({"command": "cat a"});
    let judge = |tool: &str| {
        let asked = request(scene.folder.path(), tool, ToolKind::default(), input());
        word(&Policy::default().judge(&asked))
    };
    assert_eq!(
        (judge("Bash"), judge("mcp__x__Bash"), judge("Run")),
        (Word::Allow, Word::Ask, Word::Ask)
    );
}

/// An agent would use one of them, and this could judge another.
#[test]
fn a_command_with_two_folders_does_not_only_read() {
    let scene = Scene::new();
    let judge = |input: serde_json::Value| {
        let asked = request(scene.folder.path(), "Bash", ToolKind::Execute, input);
        word(&Policy::default().judge(&asked))
    };
    let same = serde_json::json!({"command": "cat a", "cwd": ".", "directory": "."});
    assert_eq!(judge(same), Word::Allow);
    let other = serde_json::json!({"command": "cat a", "cwd": ".", "directory": "/etc"});
    assert_eq!(judge(other), Word::Ask);
}

#[test]
fn git_and_others_run_no_command_of_their_arguments_unasked() {
    let scene = Scene::new();
    let rules = ["git *", "split *", "install *", "npm *", "rustup *", "cmake *", "m4 *", "gcc *"];
    let rules: Vec<_> = rules.iter().map(|rule| format!("allow Bash {rule}")).collect();
    let allowing = policy(Mode::Ask, &rules.iter().map(String::as_str).collect::<Vec<_>>());
    for line in [
        "git remote-ext o 'touch x' <<< 'connect git-upload-pack'",
        "git remote-https a b",
        "git submodule--helper foreach 'touch x'",
        "split --filter='touch x' a",
        "split --filt='touch x' a",
        "install -s --strip-program=./x a b",
        "npm explore a -- touch x",
        "rustup run stable touch x",
        "cmake -E env touch x",
        "m4 a",
        "gcc -wrapper ./x a.c",
    ] {
        assert_eq!(scene.run(&allowing, line), Word::Ask, "{line}");
    }
    for line in ["git remote add a b", "split a", "install a b", "npm test", "gcc -o a a.c"] {
        assert_eq!(scene.run(&allowing, line), Word::Allow, "{line}");
    }
}
