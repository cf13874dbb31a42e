//! Files: where a path leads, patches, further folders, secrets.

use super::*;

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

/// The result of a tool of the client, in a file that the agent was given by its path.
#[test]
fn a_readable_file_may_be_read_and_nothing_beside_it() {
    let (inside, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = |name: &str| other.path().join(name);
    for name in ["result.txt", "other.txt"] {
        std::fs::write(path(name), "x").unwrap();
    }
    let judge = |mode, tool: &str, kind: ToolKind, input| {
        let request = PermissionRequest {
            readable_files: vec![path("result.txt")],
            ..request(inside.path(), tool, kind, input)
        };
        word(&policy(mode, &[]).judge(&request))
    };
    let read = |mode, name| judge(mode, "Read", ToolKind::Read, file_path(&path(name)));
    let run = |command: &str, name| {
        let command = format!("{command} {}", path(name).display());
        judge(Mode::Ask, "Bash", ToolKind::Execute, serde_json::json!({"command": command}))
    };
    for mode in [Mode::Ask, Mode::AcceptEdits, Mode::Plan] {
        assert_eq!(read(mode, "result.txt"), Word::Allow, "{mode}");
    }
    assert_eq!(read(Mode::Ask, "other.txt"), Word::Ask);
    assert_eq!(read(Mode::Ask, "."), Word::Ask);
    assert_eq!(read(Mode::Interactive, "result.txt"), Word::Ask);
    for command in ["cat", "head -c 100", "grep x", "wc <"] {
        assert_eq!(run(command, "result.txt"), Word::Allow, "{command}");
        assert_eq!(run(command, "other.txt"), Word::Ask, "{command}");
    }
    assert_eq!(run("rm", "result.txt"), Word::Ask);
    let write = judge(Mode::AcceptEdits, "Write", ToolKind::Write, file_path(&path("result.txt")));
    assert_eq!(write, Word::Ask);
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
    // What a tool takes for a secret depends on its path, which it does not know below `.git`.
    std::fs::create_dir_all(folder.path().join(".git/refs")).unwrap();
    assert_eq!(search(true, "."), Word::Allow);
    assert_eq!(search(true, ".git"), Word::Ask);
    assert_eq!(search(true, ".git/refs"), Word::Ask);
}

/// `Grep {path: ".git"}` was allowed, and printed the addresses in the configuration.
#[test]
fn a_search_in_the_data_of_a_repository_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join(".git")).unwrap();
    std::fs::write(folder.path().join(".git/config"), "").unwrap();
    let search = |input| {
        let request = request(folder.path(), "Grep", ToolKind::Search, input);
        word(&policy(Mode::Ask, &[]).judge(&request))
    };
    assert_eq!(search(serde_json::json!({"pattern": "x"})), Word::Allow);
    assert_eq!(search(serde_json::json!({"pattern": "x", "path": ".git"})), Word::Ask);
    assert_eq!(search(serde_json::json!({"pattern": "x", "glob": "**"})), Word::Ask);
}

fn file_path(path: &Path) -> serde_json::Value {
    serde_json::json!({ "file_path": path })
}

/// A command can put a link in the place of a folder, if another folder contains it.
#[test]
#[cfg(unix)]
fn a_link_in_the_place_of_a_folder_does_not_lead_inside() {
    let (outer, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let outer = outer.path().canonicalize().unwrap();
    let folder = outer.join("folder");
    std::os::unix::fs::symlink(outside.path(), &folder).unwrap();
    for (of_session, additional) in [(&folder, Vec::new()), (&outer, vec![folder.clone()])] {
        let path = folder.join("a").display().to_string();
        let request = PermissionRequest {
            additional_folders: additional,
            folders_are_resolved: true,
            ..request(of_session, "Read", ToolKind::Read, serde_json::json!({"file_path": path}))
        };
        let verdict = policy(Mode::Ask, &[]).judge(&request);
        assert!(matches!(verdict, Verdict::AskUser { .. }), "{verdict:?}");
        let unresolved = PermissionRequest { folders_are_resolved: false, ..request };
        let verdict = policy(Mode::Ask, &[]).judge(&unresolved);
        assert_eq!(verdict, Verdict::Decided(Decision::Allow));
    }
}
