//! `run` and `agents`, with a shell script as the agent that a file describes.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
#[cfg(target_os = "linux")]
use std::{fs::File, process::Command, sync::mpsc, time::Duration};

use crate::support::{command, run};

const BEGINS: &str =
    r#"echo '{"type":"thread.started","thread_id":"t"}'; echo '{"type":"turn.started"}'"#;
const MESSAGE: &str =
    r#"echo '{"type":"item.completed","item":{"id":"0","type":"agent_message","text":"Hello."}}'"#;
const ENDS: &str = r#"echo '{"type":"turn.completed","usage":{"input_tokens":5,"cached_input_tokens":0,"output_tokens":2}}'"#;

/// The description of a shell script that plays an agent.
fn described(name: &str, lines: &[&str]) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let script = folder.join(format!("{name}.sh"));
    std::fs::write(&script, lines.join("\n")).unwrap();
    let path = folder.join(format!("{name}.toml"));
    let text = format!(
        "command = \"/bin/sh\"\narguments = [{:?}]\ndialect = \"codex\"\n",
        script.display().to_string()
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn an_agent_is_run_and_translated() {
    let agent = described("plain", &["cat > /dev/null", BEGINS, MESSAGE, ENDS]);
    let ran = run(&["run", &agent, "do it", "--to", "text"], b"");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("Hello."), "{}", ran.stdout);
    let ran = run(&["run", &agent, "do it"], b"");
    assert!(
        ran.stdout.starts_with("{\"interlingua\":1,"),
        "in a pipe, the default is events: {}",
        ran.stdout
    );
}

#[test]
fn the_prompt_reaches_the_agent_whatever_it_looks_like() {
    let agent = described("prompt", &["read prompt; echo \"[$prompt]\" >&2", BEGINS, "exit 1"]);
    let ran = run(&["run", &agent, "--prompt=--help me"], b"");
    assert!(ran.stdout.contains("[--help me]"), "{}", ran.stdout);
    let ran = run(&["run", &agent, "-"], b"from a pipe\n");
    assert!(ran.stdout.contains("[from a pipe]"), "{}", ran.stdout);
}

/// The flags were once taken for the prompt.
#[test]
fn flags_after_two_dashes_reach_the_agent() {
    let agent = described("flags", &["read prompt; echo \"[$prompt $*]\" >&2", BEGINS, "exit 1"]);
    for arguments in [
        &["run", &agent, "do it", "--", "--effort", "high"][..],
        &["run", "--to", "events", &agent, "do it", "--", "--effort", "high"],
    ] {
        let ran = run(arguments, b"");
        assert!(ran.stdout.contains("[do it --effort high]"), "{} {}", ran.stdout, ran.stderr);
    }
}

#[test]
fn the_exit_code_reports_the_outcome() {
    let failed = described("failed", &[BEGINS, "exit 0"]);
    assert_eq!(run(&["run", &failed, "do it"], b"").code, Some(1));
    let slow = described("slow", &[BEGINS, "sleep 1000"]);
    let ran = run(&["run", &slow, "do it", "--timeout", "0.3"], b"");
    assert_eq!(ran.code, Some(124));
    assert!(ran.stderr.contains("the run took longer than 300 ms"), "{}", ran.stderr);
}

#[test]
fn the_standard_error_of_a_silent_agent_is_shown() {
    let mute = described("mute", &["echo 'please sign in first' >&2; exit 41"]);
    let ran = run(&["run", &mute, "do it", "--to", "giselle"], b"");
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("please sign in first"), "{}", ran.stderr);
}

#[test]
fn invalid_arguments_are_reported_before_anything_is_started() {
    let rejects = |arguments: &[&str], words: &str| {
        let ran = run(arguments, b"");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    };
    rejects(
        &["run", "unknown", "do it"],
        "no agent is called `unknown`. The agents are claude, codex",
    );
    rejects(&["run", "./none.toml", "do it"], "none.toml");
    rejects(
        &["run", "codex", "do it", "--cwd", "/no/such/folder"],
        "there is no folder /no/such/folder",
    );
    rejects(&["run", "codex", " "], "the prompt is empty");
    rejects(
        &["run", "codex", "do it", "--program", "/no/such/codex"],
        "npm install --global @openai/codex",
    );
    rejects(&["run", "codex", "do it", "--permission-mode", "yolo"], "accept-edits");
    rejects(&["run", "codex", "do it", "--timeout", "soon"], "number of seconds");
    rejects(&["run", "codex", "do it", "--env", "NO_SUCH"], "there is no variable NO_SUCH here");
    rejects(&["run", "codex", "do it", "--env", "=value"], "NAME=VALUE");
    rejects(&["run", "codex", "do it", "--resume=-x"], "cannot be the name of a session");
}

#[test]
fn a_recording_can_be_translated() {
    let agent = described("recorded", &[BEGINS, MESSAGE, ENDS]);
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("recorded.jsonl");
    let file = file.display().to_string();
    let ran = run(&["run", &agent, "do it", "--record", &file, "--force"], b"");
    let again = run(&["translate", "--to", "text", &file], b"");
    assert_eq!((ran.code, again.code), (Some(0), Some(0)));
    assert!(again.stdout.contains("Hello."), "{}", again.stdout);
    let times = std::fs::read_to_string(format!("{file}.times.jsonl")).unwrap();
    assert!(times.lines().all(|line| line.contains("\"ms\":")), "{times}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_closed_output_ends_the_agent() {
    let pid = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("left.pid");
    let prints_pid = format!("echo $$ > {}", pid.display());
    let agent = described("left", &[&prints_pid, BEGINS, MESSAGE, "exec sleep 1000"]);
    // In a PID namespace the agent would have another process id than here.
    let arguments = ["run", &agent, "do it", "--isolation", "tree"];
    let mut child = command(&arguments).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    // The agent has written its process id before its message.
    assert!(out.any(|line| line.unwrap().contains("Hello")));
    drop(out);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let pid = std::fs::read_to_string(pid).unwrap();
    assert!(!PathBuf::from(format!("/proc/{}", pid.trim())).exists());
}

#[test]
fn a_permission_is_requested_and_answered_in_records() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let script = folder.join("asks.sh");
    let lines = [
        "read prompt",
        r#"echo '{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"touch x"},"tool_use_id":"t1"}}'"#,
        "read answer",
        r#"case $answer in *'"allow"'*) word=yes;; *) word=no;; esac"#,
        r#"echo '{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"'$word'"}]},"session_id":"s","uuid":"u"}'"#,
        r#"echo '{"type":"result","subtype":"success","is_error":false,"result":"'$word'","session_id":"s","uuid":"v"}'"#,
        "cat > /dev/null",
    ];
    std::fs::write(&script, lines.join("\n")).unwrap();
    let path = folder.join("asks.toml");
    let text = format!(
        "command = \"/bin/sh\"\narguments = [{:?}]\ndialect = \"claude\"\nprompt = \"protocol\"\n",
        script.display().to_string()
    );
    std::fs::write(&path, text).unwrap();
    for (answer, word) in [("allow", "yes"), ("deny", "no")] {
        let mut child = command(&["run", &path.display().to_string(), "do it"]).spawn().unwrap();
        let (mut stdin, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut out = BufReader::new(out);
        let mut output = String::new();
        while !output.contains("permission_requested") {
            output.clear();
            assert_ne!(out.read_line(&mut output).unwrap(), 0);
        }
        writeln!(stdin, "{{\"request\":\"r1\",\"decision\":\"{answer}\"}}").unwrap();
        out.read_to_string(&mut output).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert!(output.contains(&format!("\"text\":\"{word}\"")), "{output}");
        assert!(output.contains("permission_resolved"), "{output}");
    }
    let ran = run(&["run", &path.display().to_string(), "do it"], b"");
    assert!(
        ran.stdout.contains("\"text\":\"no\""),
        "the end of the input denies the request: {}",
        ran.stdout
    );
}

#[test]
fn agents_are_listed_with_how_to_install_them() {
    let output = command(&["agents"]).env("PATH", "").output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.contains("Claude Code: not installed"), "{out}");
    assert!(out.contains("npm install --global @openai/codex"), "{out}");
}

/// A program that hangs costs the others nothing.
#[cfg(unix)]
#[test]
fn agents_are_queried_concurrently_and_listed_as_json() {
    use std::os::unix::fs::PermissionsExt;
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("queried");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, script) in [("claude", "exec sleep 1000"), ("codex", "echo codex-cli 1.2.3")] {
        let program = folder.join(name);
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/bin:/usr/bin", folder.display());
    let output = command(&["agents", "--json"]).env("PATH", path).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let agents: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let agent = |name: &str| agents.iter().find(|agent| agent["name"] == name).unwrap();
    assert_eq!(agent("claude")["installed"], true);
    assert_eq!(agent("claude")["version"], serde_json::Value::Null);
    assert_eq!(agent("codex")["version"], "codex-cli 1.2.3");
    assert_eq!(agent("codex")["program"], folder.join("codex").to_str().unwrap());
}

/// A killed process cannot clean up: the guard does, even for processes in another session.
#[cfg(target_os = "linux")]
#[test]
fn no_process_survives_a_killed_command() {
    let alive = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("killed.fifo");
    let _ = std::fs::remove_file(&alive);
    assert!(Command::new("mkfifo").arg(&alive).status().unwrap().success());
    // Both hold the pipe open for as long as they live, so its end means that both have ended.
    let holds = format!("exec 3> {}", alive.display());
    let moves_away = "setsid sh -c 'echo away >&3; exec sleep 1000' &";
    let agent =
        described("killed", &[&holds, BEGINS, moves_away, "echo here >&3", MESSAGE, "wait"]);
    let mut running = command(&["run", &agent, "do it"]).spawn().unwrap();
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(File::open(alive).unwrap()).lines() {
            sender.send(line.unwrap()).unwrap();
        }
    });
    let next = || lines.recv_timeout(Duration::from_secs(30));
    let mut both = [next().unwrap(), next().unwrap()];
    both.sort();
    assert_eq!(both, ["away", "here"]);
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(next(), Err(mpsc::RecvTimeoutError::Disconnected), "both have ended");
}
