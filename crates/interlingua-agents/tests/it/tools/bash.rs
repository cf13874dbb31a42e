//! Commands in the foreground: output, exit codes, time limits, and no survivors.

use std::time::{Duration, Instant};

use interlingua::event::ToolStatus;
use interlingua_agents::process::Isolation;
use serde_json::json;

use super::{Bench, call, names, program};
use crate::support::{Fifo, is_alive, within};

fn guarded() -> Bench {
    Bench::with(program::protect)
}

/// Benches with every mechanism that is available here, whose commands may write to a pipe.
fn all(fifo: &Fifo) -> Vec<(&'static str, Bench)> {
    let protected = Bench::with(|settings| {
        program::protect(settings);
        settings.caches.push(fifo.folder());
    });
    let tree = Bench::with(|settings| {
        settings.guard = Some(program::guard());
        settings.isolation = Isolation::Tree;
    });
    vec![("protected", protected), ("tree", tree), ("bare", Bench::new())]
}

#[tokio::test]
async fn output_and_exit_codes_are_returned() {
    for (kind, bench) in all(&Fifo::new()) {
        let run = async |command: &str| bench.run("Bash", json!({"command": command})).await;
        let output = run("echo a; echo b >&2; echo c; pwd").await;
        let expected = format!("a\nb\nc\n{}", bench.root().display());
        assert_eq!((output.text(), output.exit_code), (expected, Some(0)), "{kind}");
        let output = run("echo problem; exit 3").await;
        assert_eq!(output.text(), "Exit code 3\nproblem", "{kind}");
        assert_eq!((output.status, output.exit_code), (ToolStatus::Failed, Some(3)), "{kind}");
        let output = run("true").await;
        assert_eq!(output.text(), "(no output)", "{kind}");
        let output = run("kill -9 $$").await;
        assert_eq!(output.text(), "The command was killed by signal 9\n(no output)", "{kind}");
        assert_eq!(output.exit_code, Some(137), "{kind}");
        // Standard input is closed, and both outputs can be opened again.
        let output = run("cat; echo x > /dev/stderr; echo y > /dev/stdout").await;
        assert_eq!(output.text(), "x\ny", "{kind}");
    }
}

#[tokio::test]
async fn a_changed_folder_does_not_persist() {
    let bench = guarded();
    bench.write("sub/a", "");
    bench.done("Bash", json!({"command": "cd sub; export X=1"})).await;
    assert_eq!(bench.done("Bash", json!({"command": "ls; echo $X"})).await, "sub");
}

#[tokio::test]
async fn output_is_streamed_as_plain_text() {
    let (bench, fifo) = (guarded(), Fifo::new());
    let command =
        format!(r"printf '\033[31mred\033[0m \377\n'; {}; printf 'end\r\n'", fifo.wait_command());
    let bash = call("Bash", json!({"command": command}));
    let mut streamed = String::new();
    let mut released = false;
    let mut progress = |text: &str| {
        streamed.push_str(text);
        if !released && streamed.contains('\n') {
            released = true;
            fifo.release();
        }
    };
    let output = within(bench.tools.run(&bash, &mut progress)).await;
    assert_eq!(output.text(), "red \u{fffd}\nend");
    assert_eq!(streamed, "red \u{fffd}\nend\n");
}

#[tokio::test]
async fn of_a_long_output_the_rest_is_in_a_file_that_can_be_read() {
    let bench = guarded();
    let output = bench.run("Bash", json!({"command": "seq 1 20000"})).await;
    let text = output.text();
    assert!(text.starts_with("1\n2\n") && text.ends_with("\n19999\n20000"), "{text}");
    assert!(text.len() < 31_000);
    let path = output.structured.unwrap()["output_file"].as_str().unwrap().to_owned();
    assert!(text.contains(&format!("the whole output is in {path}")), "{text}");
    let read = json!({"file_path": path, "offset": 10_000, "limit": 1});
    assert!(bench.done("Read", read).await.starts_with(" 10000→10000"));
    // It can be read without a question, and not be changed.
    let folders = bench.tools.additional_folders();
    assert!(folders.iter().any(|folder| std::path::Path::new(&path).starts_with(folder)));
    let text = bench.failed("Write", json!({"file_path": path, "content": "x"})).await;
    assert!(text.contains("cannot be changed"), "{text}");
}

#[tokio::test]
async fn keys_are_not_in_the_environment() {
    // The variable is one that every environment has.
    for (kind, mut settings) in [("protected", true), ("bare", false)] {
        let bench = Bench::with(|all| {
            if std::mem::take(&mut settings) {
                program::protect(all);
            }
            all.hidden_variables.push("PATH".to_owned());
        });
        let command = "/usr/bin/env | /usr/bin/grep -c ^PATH= ; /usr/bin/env | /usr/bin/grep -E '^(TERM|NO_COLOR)=' | /usr/bin/sort";
        let text = bench.run("Bash", json!({"command": command})).await.text();
        assert_eq!(text, "0\nNO_COLOR=1\nTERM=dumb", "{kind}");
    }
}

#[tokio::test]
async fn a_command_is_ended_when_its_time_is_over() {
    for (kind, bench) in all(&Fifo::new()) {
        let pid = bench.root().join("pid");
        let command = format!("trap '' TERM; echo started; echo $$ > {}; sleep 600", pid.display());
        let begun = Instant::now();
        let output = within(bench.run("Bash", json!({"command": command, "timeout": 500}))).await;
        assert_eq!(output.status, ToolStatus::TimedOut, "{kind}: {output:?}");
        let expected =
            "The command timed out after 500 ms, and was ended with all its processes.\nstarted";
        assert_eq!(output.text(), expected, "{kind}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{kind}");
    }
}

/// A process writes its own id as seen from outside of a namespace.
const WRITE_PID: &str = r"read pid rest < /proc/self/stat";

#[tokio::test]
async fn no_process_survives_its_command() {
    let fifo = Fifo::new();
    let (_, bench) = all(&fifo).remove(0);
    // The lock is held as long as any of them is alive.
    let script = format!("exec 9> lock; flock 9; {}; sleep 600", fifo.signal_command());
    bench.write("hold.sh", script);
    for start in [
        "sh hold.sh &",
        "setsid sh hold.sh &",
        "env -i setsid sh hold.sh > /dev/null 2>&1 < /dev/null &",
        "(env -i setsid sh hold.sh &) &",
    ] {
        let command = format!("{start} {}; echo done", fifo.wait_command());
        let output = within(bench.run("Bash", json!({"command": command}))).await;
        assert!(output.text().starts_with("done"), "{start}: {output:?}");
        let free = std::process::Command::new("flock")
            .args(["--nonblock", "lock", "true"])
            .current_dir(bench.root())
            .status()
            .unwrap();
        assert!(free.success(), "{start}: a process survived");
    }
}

#[tokio::test]
async fn without_a_guard_ordinary_background_processes_end_too() {
    let (bench, fifo) = (Bench::new(), Fifo::new());
    let command = format!(
        "(sh -c '{WRITE_PID}; echo $pid > pid; {}; sleep 600' &) ; {}",
        fifo.signal_command(),
        fifo.wait_command()
    );
    let output = within(bench.run("Bash", json!({"command": command}))).await;
    assert!(output.text().contains("were ended; use `run_in_background`"), "{output:?}");
    assert!(!is_alive(bench.content("pid").trim()));
}

#[tokio::test]
async fn a_cancelled_call_ends_its_processes() {
    let fifo = Fifo::new();
    for (kind, bench) in all(&fifo) {
        let command = format!("exec 9> lock; flock 9; {}; sleep 600", fifo.signal_command());
        let bash = call("Bash", json!({"command": command}));
        {
            let mut progress = |_: &str| {};
            let run = bench.tools.run(&bash, &mut progress);
            tokio::select! {
                output = run => panic!("{kind}: {output:?}"),
                () = within(fifo.signalled()) => {}
            }
        }
        within(bench.tools.close()).await;
        let free = std::process::Command::new("flock")
            .args(["--wait", "10", "lock", "true"])
            .current_dir(bench.root())
            .status()
            .unwrap();
        assert!(free.success(), "{kind}: a process survived");
    }
}

/// 2^7 shells, each of which starts two more and waits.
#[tokio::test]
async fn a_bounded_fork_bomb_does_not_hang_the_call() {
    for (kind, bench) in all(&Fifo::new()) {
        let command =
            "f() { if [ $1 -gt 0 ]; then f $(($1 - 1)) & f $(($1 - 1)) & fi; sleep 600; }; f 6";
        let output = within(bench.run("Bash", json!({"command": command, "timeout": 1000}))).await;
        assert_eq!(output.status, ToolStatus::TimedOut, "{kind}: {output:?}");
    }
}

/// `yes` prints gigabytes within a second.
#[tokio::test]
async fn a_command_that_prints_without_end_costs_a_bounded_amount() {
    let bench = guarded();
    let output = within(bench.run("Bash", json!({"command": "yes", "timeout": 1000}))).await;
    assert_eq!(output.status, ToolStatus::TimedOut);
    assert!(output.text().len() < 31_000);
    let path = output.structured.unwrap()["output_file"].as_str().unwrap().to_owned();
    assert!(std::fs::metadata(path).unwrap().len() <= 64 << 20);
}

#[tokio::test]
async fn the_private_folder_is_removed_at_the_end() {
    let bench = guarded();
    let command = "echo x > $TMPDIR/a; dirname $TMPDIR";
    let folder = bench.done("Bash", json!({"command": command})).await;
    assert_eq!(names(std::path::Path::new(&folder)), ["outputs", "tmp"]);
    drop(bench);
    assert!(!std::path::Path::new(&folder).exists());
}
