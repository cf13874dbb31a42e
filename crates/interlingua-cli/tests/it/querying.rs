//! `agents`: programs are queried for their versions at the same time, and nothing of them survives.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use interlingua_agents::agent::ALL;
use serde_json::Value;

/// A folder with a program for each of these agents, which runs a script.
fn agents(names: &[&str], script: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for pipe in ["alive", "arrived", "go"] {
        assert!(Command::new("mkfifo").arg(folder.path().join(pipe)).status().unwrap().success());
    }
    for name in names {
        let program = folder.path().join(name);
        let script = format!("#!/bin/sh\ncd {}\n{script}\n", folder.path().display());
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    }
    folder
}

/// Lists the agents of a folder, as JSON.
fn list(folder: &Path) -> Vec<Value> {
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_interlingua"));
    let listed = command.args(["agents", "--json"]).env("PATH", path).output();
    let Output { status, stdout, .. } = listed.unwrap();
    assert!(status.success());
    let stdout = String::from_utf8(stdout).unwrap();
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// No program answers before all of them have been started.
#[test]
fn all_agents_are_queried_at_the_same_time() {
    let names: Vec<_> = ALL.iter().map(|agent| agent.program).collect();
    let folder = agents(&names, "echo > arrived; read line < go; echo version 1.2.3");
    // Both ends are open, so that no program waits for the other one.
    let open = |name: &str| File::options().read(true).write(true).open(folder.path().join(name));
    let (mut arrived, mut go) = (open("arrived").unwrap(), open("go").unwrap());
    let count = names.len();
    std::thread::spawn(move || {
        arrived.read_exact(&mut vec![0; count]).unwrap();
        go.write_all(&vec![b'\n'; count]).unwrap();
        // The pipe keeps the lines until all programs have read them.
        arrived.read_exact(&mut [0]).unwrap();
    });
    let listed = list(folder.path());
    for agent in ALL {
        let found = listed.iter().find(|found| found["name"] == agent.name).unwrap();
        assert_eq!(found["version"], "version 1.2.3", "{found}");
    }
    fs::write(folder.path().join("arrived"), "\n").unwrap();
}

/// Only the program itself was killed. The time limit of the query has to pass here.
#[test]
fn nothing_survives_a_query_that_hangs() {
    let folder = agents(&["codex"], "exec 3> alive; sleep 1000 & echo > arrived; wait");
    let _arrived = File::options().read(true).write(true).open(folder.path().join("arrived"));
    let alive = folder.path().join("alive");
    let ends = std::thread::spawn(move || fs::read(alive).unwrap());
    let listed = list(folder.path());
    let codex = listed.iter().find(|found| found["name"] == "codex").unwrap();
    assert_eq!((&codex["installed"], &codex["version"]), (&true.into(), &Value::Null));
    // This ends when the last process that holds the pipe has ended.
    assert!(ends.join().unwrap().is_empty());
}

#[test]
fn the_isolation_is_part_of_the_list() {
    let listed = list(tempfile::tempdir().unwrap().path());
    let isolation = listed.last().unwrap()["isolation"].as_str().unwrap();
    assert!(["namespace", "cgroup", "tree"].contains(&isolation), "{listed:?}");
}
