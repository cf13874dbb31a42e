//! Special cases of reading ACP: replayed history, errors as text, responses without an agent's
//! name.

use serde_json::Value;

use crate::support::translate_lines;

const COPILOT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"Copilot","version":"1"}}}"#;
const GEMINI: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"gemini-cli","version":"1"}}}"#;
const OTHER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"x","version":"1"}}}"#;
const NEW: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}"#;
const LOADED: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"modes":{"currentModeId":"default","availableModes":[]}}}"#;
const COMMANDS: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}}"#;
const END: &str = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#;
const COUNTED: &str = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":10,"outputTokens":2,"totalTokens":12}}}"#;

fn update(update: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
    )
}

fn chunk(kind: &str, text: &str) -> String {
    let text = Value::from(text);
    update(&format!(r#"{{"sessionUpdate":"{kind}","content":{{"type":"text","text":{text}}}}}"#))
}

fn text_record(text: &str) -> String {
    chunk("agent_message_chunk", text)
}

fn events(lines: &[&str]) -> Vec<Value> {
    translate_lines("acp", "events", lines).records()
}

/// The turns of a stream: the text of the user and the agent, whether it is replayed, and its
/// outcome.
fn turns(lines: &[&str]) -> Vec<(String, bool, String)> {
    let mut turns = Vec::new();
    let mut texts = String::new();
    for event in events(lines) {
        match event["type"].as_str().unwrap() {
            "user_message" => texts += &format!("<{}>", event["text"].as_str().unwrap()),
            "block_delta" => texts += event["text"].as_str().unwrap(),
            "turn_ended" => {
                let outcome = event["outcome"].as_str().unwrap().to_owned();
                turns.push((std::mem::take(&mut texts), event["replay"] == true, outcome));
            }
            _ => {}
        }
    }
    turns
}

fn turn(text: &str, replayed: bool, outcome: &str) -> (String, bool, String) {
    (text.to_owned(), replayed, outcome.to_owned())
}

#[test]
fn updates_before_the_session_is_open_are_replayed_history() {
    let (user, answer, live) =
        (chunk("user_message_chunk", "q"), text_record("old"), text_record("new"));
    let lines = [OTHER, &user, &answer, LOADED, &live, END];
    let expected = [turn("<q>old", true, "completed"), turn("new", false, "completed")];
    assert_eq!(turns(&lines), expected);
    // A stream may begin anywhere: without a handshake, nothing is replayed history.
    assert_eq!(turns(&[&answer, END]), [turn("old", false, "completed")]);
    // An empty response ends the history too.
    let empty = r#"{"jsonrpc":"2.0","id":2,"result":null}"#;
    assert_eq!(turns(&[OTHER, &user, &answer, empty, &live, END]), expected);
}

#[test]
fn gemini_replays_history_after_its_response() {
    let (user, answer, live) =
        (chunk("user_message_chunk", "q"), text_record("old"), text_record("new"));
    let lines = [GEMINI, &user, LOADED, &answer, &user, &answer, COMMANDS, &live, END];
    assert_eq!(
        turns(&lines),
        [
            turn("<q>old", true, "completed"),
            turn("<q>old", true, "completed"),
            turn("new", false, "completed")
        ]
    );
}

#[test]
fn with_the_requests_of_the_client_updates_outside_a_prompt_are_history() {
    let load = r#"{"jsonrpc":"2.0","id":2,"method":"session/load","params":{"sessionId":"s","cwd":"/w","mcpServers":[]}}"#;
    let prompt = r#"{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"go"}]}}"#;
    let (user, answer, live) =
        (chunk("user_message_chunk", "q"), text_record("old"), text_record("new"));
    let echo = chunk("user_message_chunk", "go");
    // The same applies to updates after the response, and the prompt is emitted once.
    let lines = [GEMINI, load, &user, LOADED, &answer, prompt, &echo, &live, END];
    assert_eq!(
        turns(&lines),
        [turn("<q>old", true, "completed"), turn("<go>new", false, "completed")]
    );
}

#[test]
fn text_outside_a_prompt_is_no_failure() {
    let new =
        r#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}"#;
    let unasked = text_record("by the way");
    assert_eq!(turns(&[OTHER, new, NEW, &unasked]), [turn("by the way", false, "completed")]);
}

#[test]
fn an_error_that_copilot_writes_as_text_fails_the_turn() {
    let failed = text_record("Error: Authentication failed (HTTP 401).\n  Check your key.");
    let ended = events(&[COPILOT, NEW, &failed, END]);
    let ended = ended.iter().find(|event| event["type"] == "turn_ended").unwrap();
    assert_eq!(ended["outcome"], "failed");
    assert_eq!((&ended["class"], &ended["http_status"]), (&"authentication".into(), &401.into()));
    // This holds even if an earlier request was counted.
    assert_eq!(turns(&[COPILOT, NEW, &failed, COUNTED]), [turn("", false, "failed")]);
    // An answer that begins with the same word is an answer.
    let answer = text_record("Error: is what the log says.");
    assert_eq!(turns(&[COPILOT, NEW, &answer, COUNTED])[0].2, "completed");
    assert_eq!(
        turns(&[COPILOT, NEW, &answer, &text_record(" And more."), END]),
        [turn("Error: is what the log says. And more.", false, "completed")]
    );
    // For other agents it is text.
    assert_eq!(turns(&[OTHER, NEW, &failed, END])[0].2, "completed");
}

#[test]
fn notices_of_copilot_are_no_text() {
    let lines = [
        COPILOT,
        NEW,
        &text_record("Info: a thing"),
        &text_record("Info: no. Retrying..."),
        &text_record("Hi"),
        END,
    ];
    assert_eq!(turns(&lines), [turn("Hi", false, "completed")]);
    let kinds: Vec<_> = events(&lines).iter().map(|event| event["type"].to_string()).collect();
    assert!(kinds.contains(&"\"notice\"".to_owned()) && kinds.contains(&"\"retry\"".to_owned()));
    // In the middle of an answer it is text.
    let lines = [COPILOT, NEW, &text_record("So: "), &text_record("Info: a thing"), END];
    assert_eq!(turns(&lines), [turn("So: Info: a thing", false, "completed")]);
}

#[test]
fn failures_are_classified_by_their_codes() {
    let failure = |code: i64, message: &str| {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":3,"error":{{"code":{code},"message":"{message}"}}}}"#
        );
        let emitted = events(&[OTHER, NEW, &line]);
        let ended = emitted.iter().find(|event| event["type"] == "turn_ended").unwrap();
        (
            ended["outcome"].as_str().unwrap().to_owned(),
            ended["class"].as_str().unwrap_or_default().to_owned(),
            ended["http_status"].as_u64(),
        )
    };
    let ended = |outcome: &str, class: &str, status| (outcome.to_owned(), class.to_owned(), status);
    assert_eq!(failure(429, "slow down"), ended("failed", "rate_limit", Some(429)));
    assert_eq!(failure(-32000, "log in"), ended("failed", "authentication", None));
    assert_eq!(failure(-32002, "gone"), ended("failed", "not_found", None));
    assert_eq!(failure(-32800, "stopped"), ended("cancelled", "", None));
    assert_eq!(failure(-32603, "503 try later"), ended("failed", "overloaded", Some(503)));
    assert_eq!(failure(-32603, "boom"), ended("failed", "", None));
}

#[test]
fn a_request_that_was_not_understood_is_no_failed_turn() {
    let line = r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32601,"message":"no such method"}}"#;
    assert_eq!(turns(&[OTHER, NEW, line, &text_record("a"), END]), [turn("a", false, "completed")]);
    // Without a session, nothing else can follow.
    assert_eq!(turns(&[OTHER, line])[0].2, "failed");
}

#[test]
fn repeated_output_is_not_appended() {
    let call = r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","kind":"execute","status":"in_progress","rawInput":{"command":"x"}}"#;
    let shows = |text: &str| {
        let text = Value::from(text);
        update(&format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[{{"type":"content","content":{{"type":"text","text":{text}}}}}]}}"#
        ))
    };
    let ended = r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","content":[{"type":"content","content":{"type":"text","text":"a\nb\n"}}]}"#;
    let lines = [
        OTHER,
        NEW,
        &update(call),
        &shows("a\n"),
        &shows("a\n"),
        &shows("a\nb\n"),
        &update(ended),
        END,
    ];
    let emitted = events(&lines);
    let deltas: Vec<_> = emitted
        .iter()
        .filter(|event| event["type"] == "tool_progress" && event.get("output").is_some())
        .map(|event| event["output"].as_str().unwrap())
        .collect();
    assert_eq!(deltas, ["a\n", "b\n"]);
    let ended = emitted.iter().find(|event| event["type"] == "tool_ended").unwrap();
    assert_eq!(ended["output"], "a\nb\n");
}

#[test]
fn the_total_decides_whether_input_includes_cached_tokens() {
    let usage = |counts: &str| {
        let end = format!(
            r#"{{"jsonrpc":"2.0","id":3,"result":{{"stopReason":"end_turn","usage":{{{counts}}}}}}}"#
        );
        let emitted = events(&[OTHER, NEW, &text_record("a"), &end]);
        let ended = emitted.iter().find(|event| event["type"] == "turn_ended").unwrap().clone();
        let count = |name: &str| ended["usage"][name].as_u64();
        (count("input"), count("cache_read"), count("output"), count("reasoning"))
    };
    let cached = r#""inputTokens":100,"outputTokens":10,"cachedReadTokens":40,"thoughtTokens":5"#;
    let of = |total: u64| usage(&format!(r#"{cached},"totalTokens":{total}"#));
    let some = |input, output| (Some(input), Some(40), Some(output), Some(5));
    assert_eq!(of(110), some(60, 10));
    assert_eq!(of(115), some(60, 15));
    assert_eq!(of(150), some(100, 10));
    assert_eq!(of(155), some(100, 15));
    assert_eq!(usage(cached), some(100, 15));
    assert_eq!(
        usage(r#""inputTokens":0,"outputTokens":0,"totalTokens":0"#),
        (None, None, None, None)
    );
}

#[test]
fn the_mode_of_gemini_is_no_text() {
    let lines = [GEMINI, NEW, &text_record("[MODE_UPDATE] yolo"), &text_record("a"), END];
    assert_eq!(turns(&lines), [turn("a", false, "completed")]);
    let emitted = events(&lines);
    let update = emitted.iter().find(|event| event["type"] == "session_updated").unwrap();
    assert_eq!(update["permission_mode"], "yolo");
}
