//! The keys that an agent was given appear nowhere in what is emitted and recorded.

use interlingua_agents::driver::{ClaudeDriver, CopilotDriver};
use interlingua_agents::permission::{Mode, Policy};
use interlingua_agents::process::Input;
use interlingua_agents::{Options, Recorder};
use serde_json::Value;

use crate::support::*;

const KEY: &str = "sk-test-0123456789abcdef";

/// The same agent, with a key in its environment.
fn with_key(mut launch: interlingua_agents::agent::Launch) -> interlingua_agents::agent::Launch {
    launch.command.environment.push(("OPENAI_API_KEY".to_owned(), KEY.to_owned()));
    launch
}

fn notices(events: &[Value]) -> Vec<&str> {
    let notices = events.iter().filter(|event| event["type"] == "notice");
    notices.map(|event| event["text"].as_str().unwrap()).collect()
}

fn message(text: &str) -> String {
    MESSAGE.replace("hello", &format!("'\"{text}\"'"))
}

#[tokio::test]
async fn a_printed_key_is_redacted_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.jsonl");
    let says = message("the key is $OPENAI_API_KEY.");
    let fails = "echo \"invalid: $OPENAI_API_KEY\" >&2; exit 3";
    let launch = with_key(script(&[BEGINS, &says, fails]));
    let record = Some(Recorder::create(&path).unwrap());
    let (ended, events) = run(launch, Options { record, ..options() }).await;
    assert_eq!(text(&events), "the key is [redacted].");
    assert_eq!(ended.exit.stderr.as_deref(), Some("invalid: [redacted]\n"));
    assert_eq!(notices(&events), ["2 occurrences of the value of OPENAI_API_KEY were redacted"]);
    assert_eq!(ended.redacted.len(), 1);
    assert_eq!((ended.redacted[0].variable, ended.redacted[0].occurrences), ("OPENAI_API_KEY", 2));
    let recorded = std::fs::read_to_string(&path).unwrap();
    assert!(recorded.contains("the key is [redacted]."), "{recorded}");
    let shown = format!("{events:?} {ended:?} {recorded}");
    assert!(!shown.contains("0123456789"), "{shown}");
}

/// The driver and the reader receive the output in chunks, which end anywhere.
#[tokio::test]
async fn a_key_that_is_printed_in_two_chunks_is_redacted() {
    let (before, after) = MESSAGE.split_once("hello").unwrap();
    let before = before.replace("echo", "printf %s");
    let seen = Fifo::new();
    let lines = [
        BEGINS,
        &format!("{before}one sk-test-'"),
        &seen.wait_command(),
        &format!("echo '0123456789abcdef two{after}"),
        COMPLETES,
        "printf sk-test",
    ];
    let mut run = Watched::start(with_key(script(&lines)), options()).await;
    run.until(|event| event["type"] == "turn_started").await;
    seen.release();
    let (ended, events) = run.end().await;
    assert_eq!((ended.code(), text(&events).as_str()), (0, "one [redacted] two"), "{events:?}");
    // What only looked like a key is still read.
    assert!(format!("{events:?}").contains("sk-test"), "{events:?}");
}

/// What a turn redacted is reported at its end.
#[tokio::test]
async fn a_turn_reports_what_was_redacted() {
    let lines = [BEGINS, &message("$OPENAI_API_KEY"), COMPLETES];
    let (_, events) = run(with_key(script(&lines)), options()).await;
    let ended = kinds(&events).iter().position(|kind| *kind == "turn_ended").unwrap();
    let notice = &events[ended + 1];
    assert_eq!(notice["text"], "1 occurrence of the value of OPENAI_API_KEY was redacted");
    // The end of the session does not repeat it.
    assert_eq!(notices(&events).len(), 1);
}

#[tokio::test]
async fn a_key_in_a_sidecar_file_is_redacted() {
    let folder = tempfile::tempdir().unwrap();
    let counts = folder.path().join("usage.json");
    let write = format!(
        r#"echo '{{"modelMetrics":{{"'$OPENAI_API_KEY'":{{"usage":{{"inputTokens":320,"outputTokens":70}}}}}}}}' > {}"#,
        counts.display()
    );
    let lines = [
        r#"echo '{"type":"user.message","data":{"content":"do it"},"id":"1","timestamp":"2026-11-16T08:00:00.000Z"}'"#,
        write.as_str(),
        r#"echo '{"type":"result","timestamp":"2026-11-16T08:00:01.000Z","sessionId":"s","exitCode":0,"usage":{}}'"#,
    ];
    let driver = Box::new(CopilotDriver::new(counts, false));
    let launch = with_key(with_driver(&lines, "copilot", Input::Closed, driver));
    let (_, events) = run(launch, options()).await;
    assert_eq!(turn_end(&events)["by_model"][0]["model"], "[redacted]", "{events:?}");
}

/// Claude runs the input that comes back with a permission, so that must not be redacted.
#[tokio::test]
async fn an_agent_gets_its_own_input_back() {
    let folder = tempfile::tempdir().unwrap();
    let (path, answered) = (folder.path().join("record.jsonl"), folder.path().join("answer"));
    let asks = r#"echo '{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"curl -H '$OPENAI_API_KEY'"},"tool_use_id":"t1"}}'"#;
    let waits = format!(
        "while read -r line; do case $line in *r1*) echo \"$line\" > {}; exit;; esac; done",
        answered.display()
    );
    let driver = Box::<ClaudeDriver>::default();
    let launch = with_key(with_driver(&[asks, &waits], "claude", Input::Open, driver));
    let policy = Policy { mode: Mode::Auto, ..Policy::default() };
    let record = Some(Recorder::create(&path).unwrap());
    let (_, events) = run(launch, Options { policy, record, ..options() }).await;
    let answer = std::fs::read_to_string(answered).unwrap();
    assert!(answer.contains(&format!("curl -H {KEY}")), "{answer}");
    let times = std::fs::read_to_string(folder.path().join("record.jsonl.times.jsonl")).unwrap();
    assert!(times.contains("curl -H [redacted]"), "{times}");
    let recorded = std::fs::read_to_string(path).unwrap();
    let shown = format!("{events:?} {recorded} {times}");
    assert!(shown.contains("[redacted]") && !shown.contains("0123456789"), "{shown}");
}

#[tokio::test]
async fn a_screen_is_not_redacted_and_says_so() {
    let program = "command = '/bin/sh'\narguments = ['-c', 'echo hello']\nscreen = true\n\
                   [environment]\nOPENAI_API_KEY = 'sk-test-0123456789abcdef'";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("screen.toml");
    std::fs::write(&path, program).unwrap();
    let program = interlingua_agents::agent::program::Program::read(&path).unwrap();
    let launch = program.launch(&interlingua_agents::Request::default()).unwrap();
    let (_, events) = run(launch, options()).await;
    assert!(notices(&events).iter().any(|text| text.contains("not redacted")), "{events:?}");
}
