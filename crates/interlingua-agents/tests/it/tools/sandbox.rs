//! The sandbox of commands. Without Landlock, these tests print that they were skipped.

use serde_json::json;

use super::{Bench, program};

/// A sandboxed bench, if the kernel has the version of Landlock that a test needs.
#[allow(clippy::print_stdout, reason = "a skipped test has to be noticed")]
fn sandboxed(
    version: u32,
    change: impl FnOnce(&mut interlingua_agents::tool::Settings),
) -> Option<Bench> {
    let bench = Bench::with(|settings| {
        program::protect(settings);
        change(settings);
    });
    let enforced = bench.tools.enforcement().join(" ");
    let known = enforced.split("(Landlock ").nth(1);
    let known = known.and_then(|rest| rest.split(')').next()?.parse::<u32>().ok());
    if known.is_some_and(|known| known >= version) {
        return Some(bench);
    }
    println!("skipped: it needs Landlock {version}, and this kernel has {known:?}");
    None
}

#[tokio::test]
async fn a_command_writes_only_where_it_may() {
    let (outside, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = outside.path().join("a");
    std::fs::write(&file, "old").unwrap();
    let Some(bench) = sandboxed(3, |settings| settings.caches.push(cache.path().to_owned())) else {
        return;
    };
    let run = async |command: String| bench.run("Bash", json!({"command": command})).await;
    let shown = outside.path().display();
    for command in [
        format!("echo new > {shown}/b"),
        format!("echo new > {shown}/a"),
        format!(": >> {shown}/a"),
        format!("truncate -s 0 {shown}/a"),
        format!("rm {shown}/a"),
        format!("mv {shown}/a ."),
        format!("mkdir {shown}/c"),
        format!("ln -s /etc/passwd {shown}/d"),
        format!("ln -s {shown} link && echo new > link/b"),
        "echo x > /tmp/interlingua-must-not-exist".to_owned(),
        "echo x > $TMPDIR/../outputs/x".to_owned(),
    ] {
        let output = run(command.clone()).await;
        assert_ne!(output.exit_code, Some(0), "{command}: {output:?}");
    }
    assert_eq!(super::names(outside.path()), ["a"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
    let allowed = format!(
        "cat {shown}/a && echo x > a && mkdir b && mv a b/ && rm -r b && echo x > $TMPDIR/a && \
         echo x > {}/a && echo x > /dev/null && mktemp > /dev/null",
        cache.path().display()
    );
    let output = run(allowed).await;
    assert_eq!((output.text().as_str(), output.exit_code), ("old", Some(0)), "{output:?}");
}

/// The variables that a command must not see are those of its parents, too.
#[tokio::test]
async fn the_environments_of_other_processes_are_hidden() {
    let Some(bench) = sandboxed(1, |settings| {
        settings.hidden_variables.push("PATH".to_owned());
        // In a namespace, processes outside have no id.
        settings.isolation = interlingua_agents::process::Isolation::Tree;
    }) else {
        return;
    };
    let test = std::process::id();
    let command = format!("(: < /proc/{test}/environ) && echo readable; echo done");
    let text = bench.run("Bash", json!({"command": command})).await.text();
    assert!(text.ends_with("done") && !text.contains("readable"), "{text}");
}

#[tokio::test]
async fn a_command_signals_no_process_outside() {
    let Some(bench) = sandboxed(6, |settings| {
        settings.isolation = interlingua_agents::process::Isolation::Tree;
    }) else {
        return;
    };
    let command = format!("kill -0 {} && echo reached", std::process::id());
    let output = bench.run("Bash", json!({"command": command})).await;
    assert!(!output.text().contains("reached"), "{output:?}");
}

#[tokio::test]
async fn without_a_network_there_is_no_tcp() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect =
        json!({"command": format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected")});
    let Some(bench) = sandboxed(4, |settings| settings.network = false) else { return };
    assert!(bench.tools.enforcement().join(" ").contains("Commands have no TCP"));
    let output = bench.run("Bash", connect.clone()).await;
    assert!(!output.text().contains("connected"), "{output:?}");
    let Some(bench) = sandboxed(4, |_| {}) else { return };
    assert_eq!(bench.done("Bash", connect).await, "connected");
}

#[test]
fn what_is_not_enforced_is_stated() {
    let bare = Bench::new().tools.enforcement().join(" ");
    assert!(bare.contains("not sandboxed") && bare.contains("may survive"), "{bare}");
    let Some(bench) = sandboxed(1, |_| {}) else { return };
    let sentences = bench.tools.enforcement().join(" ");
    assert!(sentences.contains("can read what the user can"), "{sentences}");
    assert!(!sentences.contains("may survive"), "{sentences}");
}

/// A build writes to the caches, and to nothing else of the home folder of a tool.
#[tokio::test]
async fn a_build_works_with_caches_elsewhere_and_cannot_replace_programs() {
    let cargo = std::process::Command::new("cargo").arg("--version").output();
    if !cargo.is_ok_and(|cargo| cargo.status.success()) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    for folder in ["registry", "git", "bin"] {
        std::fs::create_dir(home.path().join(folder)).unwrap();
    }
    let caches = ["registry", "git"].map(|name| home.path().join(name));
    let Some(bench) = sandboxed(3, |settings| settings.caches.extend(caches)) else { return };
    bench.write("Cargo.toml", "[package]\nname = \"empty\"\nedition = \"2021\"\n[workspace]\n");
    bench.write("src/lib.rs", "");
    let home = home.path().display();
    let command = format!(
        "export CARGO_HOME={home} CARGO_TARGET_DIR=$PWD/target; cargo build --offline && \
         echo x > {home}/registry/x && ! echo x > {home}/bin/cargo && echo built"
    );
    let output = bench.run("Bash", json!({"command": command})).await;
    assert!(output.text().contains("built"), "{}", output.text());
    assert!(bench.root().join("target/debug/libempty.rlib").exists());
}

#[tokio::test]
async fn terminals_of_other_programs_are_not_written_to() {
    let Some(bench) = sandboxed(1, |_| {}) else { return };
    // Opening a new terminal needs to write to it, like writing to one that is there.
    let command = "echo x > /dev/null && ! (exec 3<> /dev/ptmx) 2> /dev/null && echo refused";
    assert_eq!(bench.done("Bash", json!({"command": command})).await, "refused");
}

/// A command gives the name of a folder that the next one may write to, to a link that leads outside.
#[tokio::test]
async fn a_link_in_the_place_of_a_writable_folder_opens_nothing() {
    type Change = fn(&mut interlingua_agents::tool::Settings);
    let inner: Change = |settings| {
        std::fs::create_dir(settings.folder.join("inner")).unwrap();
        settings.additional_folders.push(settings.folder.join("inner"));
    };
    let cache: Change = |settings| {
        std::fs::create_dir(settings.folder.join("inner")).unwrap();
        settings.caches.push(settings.folder.join("inner"));
    };
    for change in [inner, cache] {
        let outside = tempfile::tempdir().unwrap();
        let Some(bench) = sandboxed(3, change) else { return };
        let swap = format!("mv inner old && ln -s {} inner", outside.path().display());
        bench.done("Bash", json!({"command": swap})).await;
        let write = "echo x > inner/a; echo x > old/a";
        let output = bench.run("Bash", json!({"command": write})).await;
        assert_eq!(super::names(outside.path()), [""; 0], "{output:?}");
        assert_eq!(bench.content("old/a"), "x\n", "{output:?}");
    }
}

#[tokio::test]
async fn in_the_place_of_the_working_folder_nothing_runs() {
    let (outer, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let work = outer.path().join("work");
    std::fs::create_dir(&work).unwrap();
    std::fs::write(outside.path().join("a"), "secret").unwrap();
    let Some(bench) = sandboxed(3, |settings| {
        settings.folder.clone_from(&work);
        settings.additional_folders.push(outer.path().to_owned());
    }) else {
        return;
    };
    let swap = format!("cd .. && mv work old && ln -s {} work", outside.path().display());
    bench.done("Bash", json!({"command": swap})).await;
    let output = bench.run("Bash", json!({"command": "cat a; echo x > b"})).await;
    let text = output.text();
    assert!(text.contains("nothing ran") && !text.contains("secret"), "{text}");
    assert_eq!(super::names(outside.path()), ["a"]);
}

/// Whoever replaced it: what is there now is not what the user let the session write to.
#[tokio::test]
async fn another_folder_in_the_place_of_a_writable_one_is_refused() {
    let (outer, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (folder, old) = (outer.path().join("folder"), outer.path().join("old"));
    std::fs::create_dir(&folder).unwrap();
    let add = |settings: &mut interlingua_agents::tool::Settings| {
        settings.additional_folders.push(folder.clone());
    };
    let Some(bench) = sandboxed(3, add) else { return };
    let run = async || {
        let command = format!("echo x > {}/a; echo ran", folder.display());
        bench.run("Bash", json!({"command": command})).await.text()
    };
    std::fs::rename(&folder, &old).unwrap();
    let text = run().await;
    assert!(text.ends_with("ran") && text.contains("No such file"), "{text}");
    std::os::unix::fs::symlink(outside.path(), &folder).unwrap();
    let text = run().await;
    assert!(text.contains("nothing ran") && text.contains("start a new session"), "{text}");
    std::fs::remove_file(&folder).unwrap();
    std::fs::rename(&old, &folder).unwrap();
    assert_eq!(run().await, "ran");
    assert_eq!(super::names(outside.path()), [""; 0]);
}

/// Temporary files may be below a folder that commands write to.
#[tokio::test]
async fn outputs_are_not_written_through_a_link() {
    let outside = tempfile::tempdir().unwrap();
    let add = |settings: &mut interlingua_agents::tool::Settings| {
        settings.additional_folders.push(std::env::temp_dir());
    };
    let Some(bench) = sandboxed(3, add) else { return };
    let shown = outside.path().display();
    let swap = format!("cd $TMPDIR/.. && mv outputs old && ln -s {shown} outputs && pwd");
    let scratch = bench.done("Bash", json!({"command": swap})).await;
    bench.done("Bash", json!({"command": "seq 20000"})).await;
    assert_eq!(super::names(outside.path()), [""; 0]);
    assert_eq!(super::names(&std::path::Path::new(&scratch).join("old")), ["command_2.txt"]);
}

/// The folder of the session can contain the program that applies the sandbox.
#[tokio::test]
async fn a_program_that_was_replaced_starts_nothing() {
    for replace in [
        "mv own old && printf '#!/bin/sh\\necho escaped' > own && chmod +x own",
        // The same file, with another content.
        "cp own old; printf '#!/bin/sh\\necho escaped' > new; cat new > own",
    ] {
        let Some(bench) = sandboxed(3, |settings| {
            let own = settings.folder.join("own");
            let sandbox = settings.sandbox.as_mut().unwrap();
            std::fs::copy(&sandbox.program, &own).unwrap();
            sandbox.program = own;
        }) else {
            return;
        };
        let enforced = bench.tools.enforcement().join(" ");
        assert!(enforced.contains("own, which starts them"), "{enforced}");
        bench.done("Bash", json!({"command": replace})).await;
        let text = bench.failed("Bash", json!({"command": "echo ran"})).await;
        assert!(text.contains("nothing ran") && !text.contains("escaped"), "{text}");
    }
}
