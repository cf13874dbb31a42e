//! Facts in the files that agents write in addition to their stream are emitted, and marked.

use interlingua_agents::driver::{CopilotDriver, GeminiDriver};
use interlingua_agents::process::Input;
use serde_json::Value;

use crate::support::{options, run, turn_end, with_driver};

fn of<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// Copilot writes its token counts to a file, before the last line of its stream.
#[tokio::test]
async fn the_counts_of_copilot_are_those_of_the_turn() {
    let folder = tempfile::tempdir().unwrap();
    let counts = folder.path().join("usage.json");
    let write = format!(
        r#"echo '{{"modelMetrics":{{"m":{{"usage":{{"inputTokens":320,"outputTokens":70,"cacheReadTokens":100}}}}}}}}' > {}"#,
        counts.display()
    );
    let lines = [
        r#"echo '{"type":"user.message","data":{"content":"do it"},"id":"1","timestamp":"2026-11-16T08:00:00.000Z"}'"#,
        write.as_str(),
        r#"echo '{"type":"result","timestamp":"2026-11-16T08:00:01.000Z","sessionId":"s","exitCode":0,"usage":{}}'"#,
    ];
    let driver = Box::new(CopilotDriver::new(counts, false));
    let launch = with_driver(&lines, "copilot", Input::Closed, driver);
    let (_, events) = run(launch, options()).await;
    let usage = of(&events, "usage")[0];
    assert_eq!((&usage["synthetic"], &usage["model"]), (&"elsewhere".into(), &"m".into()));
    let end = turn_end(&events);
    assert_eq!(end["outcome"], "completed");
    assert_eq!(end["usage"]["input"], 220);
    assert_eq!(end["usage"]["cache_read"], 100);
    assert_eq!(end["by_model"][0]["model"], "m");
}

/// Gemini's log may be written after the line that it completes.
#[tokio::test]
async fn a_line_of_gemini_waits_for_its_log_record() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("project/chats/session-2026-11-16T08-00-0123abcd.jsonl");
    let write = format!(
        r#"mkdir -p {}; echo '{{"id":"m1","timestamp":"2026-11-16T08:00:01.000Z","type":"gemini","thoughts":[{{"subject":"","description":"Hm."}}],"tokens":{{"input":5,"output":2,"total":7}},"toolCalls":[{{"id":"read_1","name":"read_file","result":[{{"functionResponse":{{"response":{{"output":"hello"}}}}}}]}}]}}' > {}"#,
        log.parent().unwrap().display(),
        log.display()
    );
    let lines = [
        r#"echo '{"type":"init","timestamp":"2026-11-16T08:00:00.000Z","session_id":"0123abcd-1","model":"auto"}'"#,
        r#"echo '{"type":"tool_use","timestamp":"2026-11-16T08:00:00.000Z","tool_name":"read_file","tool_id":"read_1","parameters":{}}'"#,
        r#"echo '{"type":"tool_result","timestamp":"2026-11-16T08:00:01.000Z","tool_id":"read_1","status":"success","output":""}'"#,
        write.as_str(),
        r#"echo '{"type":"result","timestamp":"2026-11-16T08:00:02.000Z","status":"success","stats":{"total_tokens":7}}'"#,
    ];
    let driver = Box::new(GeminiDriver::stream(folder.path().to_owned()));
    let launch = with_driver(&lines, "gemini", Input::Closed, driver);
    let (_, events) = run(launch, options()).await;
    let answers = of(&events, "tool_ended");
    assert_eq!(answers.len(), 1, "{events:?}");
    assert_eq!(
        (&answers[0]["output"], &answers[0]["synthetic"]),
        (&"hello".into(), &"elsewhere".into())
    );
    let thought = events.iter().find(|event| event["kind"] == "reasoning").unwrap();
    assert_eq!((&thought["text"], &thought["synthetic"]), (&"Hm.".into(), &"elsewhere".into()));
    assert_eq!(turn_end(&events)["outcome"], "completed");
}
