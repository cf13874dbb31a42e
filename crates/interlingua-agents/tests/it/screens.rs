//! Programs that have only a screen, at a pseudoterminal.

use interlingua_agents::agent::program::Program;
use interlingua_agents::{Recorder, Request, Stop};

use crate::support::*;

/// A shell script at a terminal.
fn at_terminal(lines: &[&str], prompt: &str) -> interlingua_agents::agent::Launch {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program.toml");
    let script = lines.join("\n");
    let text = format!(
        "command = '/bin/sh'\narguments = ['-c', '''{script}''']\nscreen = true\nprompt = '{prompt}'"
    );
    std::fs::write(&path, text).unwrap();
    Program::read(&path).unwrap().launch(&Request::default()).unwrap()
}

#[tokio::test]
async fn the_final_screen_is_text() {
    let lines = [
        "test -t 0 && test -t 1 && echo 'a terminal'",
        r"printf 'loading 1%%\rloading 2%%\r'",
        r"printf '\033[2K\033[32mdone\033[0m\n'",
        "stty size",
    ];
    let (ended, events) = run(at_terminal(&lines, "argument"), options()).await;
    assert_eq!((ended.code(), text(&events).as_str()), (0, "a terminal\ndone\n300 200\n"));
    let mut notices = events.iter().filter(|event| event["type"] == "notice");
    let is_guess = |notice: &serde_json::Value| notice["text"].as_str().unwrap().contains("guess");
    assert!(notices.any(is_guess), "{events:?}");
    assert_eq!(turn_end(&events)["outcome"], "completed");
}

#[tokio::test]
async fn scrolled_rows_are_not_lost() {
    let (ended, events) = run(at_terminal(&["seq 1 5000"], "argument"), options()).await;
    let expected: String = (1..=5000).map(|number| format!("{number}\n")).collect();
    assert_eq!((ended.code(), text(&events)), (0, expected));
}

#[tokio::test]
async fn a_prompt_is_typed() {
    let lines = ["stty -echo; read line", "echo \"heard $line\"", "exit 3"];
    let (ended, events) = run(at_terminal(&lines, "stdin"), options()).await;
    assert_eq!(ended.code(), 1);
    assert!(text(&events).ends_with("heard do it\n"), "{}", text(&events));
    let end = turn_end(&events);
    assert_eq!((&end["outcome"], &end["synthetic"]), (&"failed".into(), &"process_ended".into()));
}

#[tokio::test]
async fn the_alternate_screen_is_emitted() {
    let lines = [
        r"printf '\033[?1049h\033[2;3Hin the middle'",
        // The terminal answers a cursor position request.
        r"stty raw -echo; printf '\033[6n'; dd bs=1 count=7 2>/dev/null | tail -c 5 > answer",
        r"printf '\033[?1049l'; stty sane; cat answer",
    ];
    let folder = tempfile::tempdir().unwrap();
    let mut launch = at_terminal(&lines, "argument");
    launch.command.folder = folder.path().to_owned();
    let (_, events) = run(launch, options()).await;
    assert!(text(&events).contains("  in the middle\n"), "{}", text(&events));
    assert!(text(&events).ends_with("2;16R\n"), "{}", text(&events));
}

/// There is one process: of two that the same key ends, the second one may be found dying, as one that was left
/// behind.
#[tokio::test]
async fn an_interrupt_reaches_a_program_at_the_terminal() {
    let mut run =
        Watched::start(at_terminal(&["echo begins; exec sleep 1000"], "argument"), options()).await;
    run.until(|event| event["type"] == "notice").await;
    run.handle.stop(Stop::Interrupted).await.unwrap();
    let (ended, events) = run.end().await;
    assert_eq!((ended.code(), ended.orphans), (130, 0));
    assert_eq!(turn_end(&events)["outcome"], "cancelled");
}

/// A program that exits with 0 because it was stopped has not completed its turn.
#[tokio::test]
async fn a_stopped_program_has_not_succeeded_whatever_its_exit_code() {
    let ready = Fifo::new();
    let lines = ["trap \"exit 0\" INT TERM", &ready.signal_command(), "sleep 1000 & wait"];
    let run = Watched::start(at_terminal(&lines, "argument"), options()).await;
    within(ready.signalled()).await;
    run.handle.stop(Stop::Interrupted).await.unwrap();
    let (ended, events) = run.end().await;
    assert_eq!((ended.code(), ended.exit.code), (130, Some(0)));
    assert_eq!(turn_end(&events)["outcome"], "cancelled");
}

/// The recording of a screen can be translated, and the drawn bytes are kept in a file next to it.
#[tokio::test]
async fn a_screen_can_be_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record");
    let mut options = options();
    options.record = Some(Recorder::create(&path).unwrap());
    run(at_terminal(&[r"printf 'no\ryes\n'"], "argument"), options).await;
    let recorded = std::fs::read_to_string(&path).unwrap();
    let events: Vec<serde_json::Value> =
        recorded.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(text(&events), "yes\n");
    assert_eq!(kinds(&events).last(), Some(&"session_ended"));
    let drawn = std::fs::read(folder.path().join("record.screen")).unwrap();
    assert_eq!(drawn, b"no\ryes\r\n");
}
