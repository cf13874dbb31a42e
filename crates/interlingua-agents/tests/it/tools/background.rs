//! Commands in the background.

use serde_json::json;

use super::{Bench, program};
use crate::support::{Fifo, within};

/// Asks for output until some text is there. Returns all of it.
async fn until(bench: &Bench, id: &str, expected: &str) -> String {
    let mut all = String::new();
    within(async {
        while !all.contains(expected) {
            all += &bench.done("BashOutput", json!({"bash_id": id})).await;
            tokio::task::yield_now().await;
        }
    })
    .await;
    all
}

#[tokio::test]
async fn a_background_command_outlives_its_call_and_no_more() {
    let (bench, fifo) = (Bench::with(program::protect), Fifo::new());
    let command =
        format!("exec 9> lock; flock 9; echo one; {}; echo two; sleep 600", fifo.wait_command());
    let input = json!({"command": command, "run_in_background": true});
    let text = within(bench.done("Bash", input)).await;
    assert!(text.contains("in the background as bash_1"), "{text}");
    let first = until(&bench, "bash_1", "one").await;
    assert!(first.contains("(bash_1 is still running)") && !first.contains("two"), "{first}");
    fifo.release();
    let second = until(&bench, "bash_1", "two").await;
    assert!(!second.contains("one"), "{second}");
    let text = within(bench.done("KillShell", json!({"shell_id": "bash_1"}))).await;
    assert_eq!(text, "bash_1 was ended, with all its processes.");
    let free = std::process::Command::new("flock")
        .args(["--nonblock", "lock", "true"])
        .current_dir(bench.root())
        .status()
        .unwrap();
    assert!(free.success(), "a process survived");
    let output = bench.run("BashOutput", json!({"bash_id": "bash_1"})).await;
    assert!(output.text().contains("(bash_1 has ended: it was killed)"), "{output:?}");
    bench.failed("KillShell", json!({"shell_id": "bash_1"})).await;
    let text = bench.failed("BashOutput", json!({"bash_id": "bash_7"})).await;
    assert!(text.contains("there are: bash_1"), "{text}");
}

#[tokio::test]
async fn the_end_of_a_background_command_is_reported() {
    let bench = Bench::with(program::protect);
    let command = "for i in 1 2 3; do echo line $i; done; exit 4";
    let input = json!({"command": command, "run_in_background": true});
    within(bench.done("Bash", input)).await;
    let mut text = String::new();
    within(async {
        while !text.contains("has ended") {
            let input = json!({"bash_id": "bash_1", "filter": "[13]$"});
            text += &bench.done("BashOutput", input).await;
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(text.contains("line 1") && text.contains("line 3"), "{text}");
    assert!(!text.contains("line 2") && text.contains("Exit code 4"), "{text}");
}

#[tokio::test]
async fn closing_ends_all_background_commands() {
    let fifo = Fifo::new();
    let bench = Bench::with(|settings| {
        program::protect(settings);
        settings.caches.push(fifo.folder());
    });
    let command = format!("exec 9> lock; flock 9; {}; sleep 600", fifo.signal_command());
    bench.done("Bash", json!({"command": command, "run_in_background": true})).await;
    within(fifo.signalled()).await;
    within(bench.tools.close()).await;
    let free = std::process::Command::new("flock")
        .args(["--nonblock", "lock", "true"])
        .current_dir(bench.root())
        .status()
        .unwrap();
    assert!(free.success(), "a process survived");
}

/// The file was named when the command started, and removed at its end if the output was short.
#[tokio::test]
async fn the_file_with_the_output_stays() {
    let bench = Bench::new();
    let input = json!({"command": "echo short", "run_in_background": true});
    let output = bench.run("Bash", input).await;
    let path = output.structured.unwrap()["output_file"].as_str().unwrap().to_owned();
    loop {
        let output = bench.run("BashOutput", json!({"bash_id": "bash_1"})).await;
        if output.structured.unwrap()["status"] == "completed" {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.done("Read", json!({"file_path": path})).await, "     1→short");
}

#[tokio::test]
async fn the_number_of_background_commands_is_limited() {
    let bench = Bench::new();
    let input = json!({"command": "exec sleep 600", "run_in_background": true});
    for _ in 0..16 {
        bench.done("Bash", input.clone()).await;
    }
    let text = bench.failed("Bash", input.clone()).await;
    assert!(text.contains("16 background commands are running"), "{text}");
    within(bench.done("KillShell", json!({"shell_id": "bash_7"}))).await;
    let text = bench.done("Bash", input).await;
    assert!(text.contains("in the background as bash_17"), "{text}");
    within(bench.tools.close()).await;
}
