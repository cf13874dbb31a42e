//! The compliance list of the seed on protocol normalization, one test for each item: whichever
//! agent is read, the output for Yume keeps the flat contract.

use interlingua::Exit;
use interlingua::check::{Checker, Finding};
use interlingua::framing::Limits;
use serde_json::{Value, json};

use crate::support::records::{of_type, types};
use crate::support::{dialect, translate_chunks};

/// Translates a stream for Yume, checks the output, and returns its records.
fn written(from: &str, input: &str, exit: &Exit) -> Vec<Value> {
    let (from, to) = (Some(dialect(from)), dialect("yume"));
    let written = translate_chunks(from, to, [input.as_bytes()], exit);
    assert_eq!(findings(&written.bytes), []);
    for line in written.bytes.split(|byte| *byte == b'\n') {
        assert!(line.len() < 100_000, "a line has {} bytes", line.len());
    }
    written.records()
}

fn findings(bytes: &[u8]) -> Vec<Finding> {
    let mut checker = Checker::new(dialect("yume"), Limits { frame: 99_999 });
    checker.push(bytes);
    checker.finish(&Exit::default())
}

fn from_codex(input: &str) -> Vec<Value> {
    written("codex", input, &Exit::default())
}

const CODEX_START: &str = concat!(
    r#"{"type":"thread.started","thread_id":"thread-1"}"#,
    "\n",
    r#"{"type":"turn.started"}"#,
    "\n",
);
const CODEX_END: &str = concat!(
    r#"{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":20}}"#,
    "\n",
);

fn codex(items: &str) -> String {
    format!("{CODEX_START}{items}\n{CODEX_END}")
}

const CLAUDE_INIT: &str = concat!(
    r#"{"type":"system","subtype":"init","cwd":"/repo","session_id":"s1","tools":["Bash","Read"],"#,
    r#""model":"claude-x","permissionMode":"plan","uuid":"u1"}"#,
    "\n",
);

#[test]
fn plain_text_response() {
    let records = from_codex(&codex(
        r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Hello \"you\"\n"}}"#,
    ));
    let usage = json!({
        "input_tokens": 60, "output_tokens": 20, "cache_read_input_tokens": 40,
    });
    assert_eq!(
        records[..3],
        [
            json!({
                "type": "system", "subtype": "init", "session_id": "thread-1", "model": "unknown",
                "cwd": "", "permissionMode": "default", "tools": [],
            }),
            json!({ "type": "text", "content": "Hello \"you\"\n", "id": records[1]["id"] }),
            json!({
                "type": "usage",
                "input_tokens": 60, "output_tokens": 20, "cache_read_input_tokens": 40,
            }),
        ]
    );
    let result = &records[3];
    assert_eq!(result["is_error"], json!(false));
    assert_eq!(result["subtype"], json!("success"));
    assert_eq!(result["result"], json!("Hello \"you\"\n"));
    assert_eq!(result["session_id"], json!("thread-1"));
    assert_eq!(result["usage"], usage);
    assert_eq!(records[4], json!({ "type": "message_stop" }));
    assert_eq!(records.len(), 5);
}

#[test]
fn single_tool_call() {
    let input = concat!(
        r#"{"type":"init","timestamp":"t","session_id":"g1","model":"gemini-2.5-pro"}"#,
        "\n",
        r#"{"type":"tool_use","timestamp":"t","tool_name":"read_file","tool_id":"call_1","parameters":{"absolute_path":"/a.txt"}}"#,
        "\n",
        r#"{"type":"tool_result","timestamp":"t","tool_id":"call_1","status":"success","output":"hello"}"#,
        "\n",
        r#"{"type":"result","timestamp":"t","status":"success","stats":{"total_tokens":9,"input_tokens":5,"output_tokens":4,"cached":0,"input":5,"duration_ms":7}}"#,
        "\n",
    );
    let records = written("gemini", input, &Exit::default());
    assert_eq!(
        records[1..3],
        [
            json!({
                "type": "tool_use", "id": "call_1", "name": "Read",
                "input": { "file_path": "/a.txt" },
            }),
            json!({ "type": "tool_result", "tool_use_id": "call_1", "content": "hello" }),
        ]
    );
}

#[test]
fn multiple_tool_calls() {
    // Three commands at once, which end in another order, and text in between.
    let start = |id: &str| {
        format!(
            r#"{{"type":"item.started","item":{{"id":"{id}","type":"command_execution","command":"echo {id}","aggregated_output":"","exit_code":null,"status":"in_progress"}}}}"#
        )
    };
    let end = |id: &str| {
        format!(
            r#"{{"type":"item.completed","item":{{"id":"{id}","type":"command_execution","command":"echo {id}","aggregated_output":"{id}\n","exit_code":0,"status":"completed"}}}}"#
        )
    };
    let text =
        r#"{"type":"item.completed","item":{"id":"m","type":"agent_message","text":"meanwhile"}}"#;
    let items = [start("a"), start("b"), end("b"), text.to_owned(), start("c"), end("c"), end("a")];
    let records = from_codex(&codex(&items.join("\n")));
    let order: Vec<String> = records[1..8]
        .iter()
        .map(|record| match record["type"].as_str().unwrap() {
            "tool_use" => format!("{}?", record["id"].as_str().unwrap()),
            "tool_result" => format!("{}!", record["tool_use_id"].as_str().unwrap()),
            other => other.to_owned(),
        })
        .collect();
    assert_eq!(order, ["a?", "a!", "b?", "b!", "text", "c?", "c!"]);
}

#[test]
fn records_of_a_sub_agent_wait_for_the_call_that_started_it() {
    let call = |id: &str, parent: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"m{id}","role":"assistant","content":[{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"ls"}}}}]}},"parent_tool_use_id":{parent},"session_id":"s1","uuid":"u{id}"}}"#
        )
    };
    let answer = |id: &str, parent: &str| {
        format!(
            r#"{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"{id}","type":"tool_result","content":"ok"}}]}},"parent_tool_use_id":{parent},"session_id":"s1","uuid":"r{id}"}}"#
        )
    };
    let lines = [
        CLAUDE_INIT.trim_end().to_owned(),
        call("task", "null"),
        call("inner", "\"task\""),
        answer("inner", "\"task\""),
        answer("task", "null"),
        r#"{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"s1"}"#
            .to_owned(),
    ];
    let records = written("claude", &lines.join("\n"), &Exit::default());
    let ids: Vec<_> = of_type(&records, "tool_use").iter().map(|call| call["id"].clone()).collect();
    assert_eq!(ids, [json!("task"), json!("inner")]);
}

#[test]
fn tool_error() {
    let records = from_codex(&codex(concat!(
        r#"{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"false","aggregated_output":"no\n","exit_code":1,"status":"failed"}}"#,
        "\n",
        r#"{"type":"item.completed","item":{"id":"item_1","type":"mcp_tool_call","server":"s","tool":"t","arguments":{},"result":null,"error":{"message":"refused"},"status":"failed"}}"#,
    )));
    assert_eq!(
        of_type(&records, "tool_result"),
        [
            &json!({
                "type": "tool_result", "tool_use_id": "item_0", "content": "Exit code 1\nno\n",
                "is_error": true,
            }),
            &json!({
                "type": "tool_result", "tool_use_id": "item_1", "content": "refused",
                "is_error": true,
            }),
        ]
    );
    assert_eq!(of_type(&records, "result")[0]["is_error"], json!(false));
}

#[test]
fn interrupt_mid_stream() {
    let input = format!(
        "{CODEX_START}{}\n",
        r#"{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"sleep 30","aggregated_output":"","exit_code":null,"status":"in_progress"}}"#
    );
    let killed = Exit { signal: Some(2), ..Exit::default() };
    let records = written("codex", &input, &killed);
    assert_eq!(
        types(&records),
        ["system", "tool_use", "tool_result", "interrupt", "usage", "result", "message_stop"]
    );
    assert_eq!(records[2]["is_error"], json!(true));
    let result = &records[5];
    // Yume forgets the session of a failed turn.
    assert_eq!((&result["is_error"], &result["subtype"]), (&json!(false), &json!("cancelled")));
    assert_eq!(
        result["errors"],
        json!(["the agent was ended by signal 2 before its turn was over"])
    );
    // Codex counts a turn only at its end.
    assert_eq!(result["usage_estimated"], json!(true));
}

#[test]
fn an_interrupt_that_the_agent_reports_is_written_once() {
    let input = format!(
        "{CLAUDE_INIT}{}\n{}\n",
        r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]},"parent_tool_use_id":null,"session_id":"s1","uuid":"u2"}"#,
        r#"{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming","session_id":"s1","uuid":"u3","errors":[]}"#
    );
    let records = written("claude", &input, &Exit::default());
    assert_eq!(types(&records), ["system", "interrupt", "usage", "result", "message_stop"]);
}

#[test]
fn auth_failure_is_a_system_error() {
    let message = "unexpected status 401 Unauthorized: Incorrect API key provided";
    let input = format!(
        "{CODEX_START}{{\"type\":\"error\",\"message\":\"{message}\"}}\n\
         {{\"type\":\"turn.failed\",\"error\":{{\"message\":\"{message}\"}}}}\n"
    );
    let records = from_codex(&input);
    assert_eq!(types(&records), ["system", "system", "result", "message_stop"]);
    assert_eq!(records[1]["subtype"], json!("error"));
    assert_eq!(records[1]["message"], json!(message));
    assert_eq!(records[2]["errors"], json!([message]));
}

#[test]
fn an_auth_failure_that_is_also_a_message_is_a_system_error() {
    let message = r#"{"type":"assistant","error":"authentication_failed","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"Not logged in"}]},"parent_tool_use_id":null,"session_id":"s1","uuid":"u2"}"#;
    let end = r#"{"type":"result","subtype":"success","is_error":true,"result":"Not logged in","session_id":"s1","uuid":"u3"}"#;
    let records = written("claude", &format!("{CLAUDE_INIT}{message}\n{end}\n"), &Exit::default());
    assert_eq!(types(&records), ["system", "system", "result", "message_stop"]);
    assert_eq!(records[2].get("result"), None);
    assert_eq!(records[2]["errors"], json!(["Not logged in"]));
}

#[test]
fn a_failure_after_a_response_is_an_error() {
    let input = format!(
        "{CODEX_START}{}\n{}\n",
        r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Working."}}"#,
        r#"{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized"}}"#
    );
    let records = from_codex(&input);
    assert_eq!(types(&records), ["system", "text", "error", "result", "message_stop"]);
    assert_eq!(records[2]["message"], json!("unexpected status 401 Unauthorized"));
    assert_eq!(records[2]["code"], json!("401"));
}

#[test]
fn result_even_after_errors() {
    let records = from_codex(CODEX_START);
    assert_eq!(types(&records), ["system", "error", "result", "message_stop"]);
    let result = &records[2];
    assert_eq!(result["is_error"], json!(true));
    assert_eq!(result["subtype"], json!("error_during_execution"));

    // Not even an empty stream, or one that is not understood, leaves Yume waiting.
    for input in ["", "no protocol at all\n"] {
        let records = from_codex(input);
        assert_eq!(types(&records)[0], "system");
        assert_eq!(types(&records)[records.len() - 2..], ["result", "message_stop"]);
    }
}

#[test]
fn a_limit_has_its_own_subtype() {
    let input = format!(
        "{CLAUDE_INIT}{}\n",
        r#"{"type":"result","subtype":"error_max_turns","is_error":true,"errors":["Reached maximum number of turns (1)"],"session_id":"s1","uuid":"u3"}"#
    );
    let records = written("claude", &input, &Exit::default());
    assert_eq!(of_type(&records, "result")[0]["subtype"], json!("error_max_turns"));
}

#[test]
fn retries_are_listed_in_result_errors() {
    let items = concat!(
        r#"{"type":"error","message":"Reconnecting... 1/5 (stream disconnected before completion)"}"#,
        "\n",
        r#"{"type":"error","message":"Reconnecting... 2/5 (stream disconnected before completion)"}"#,
        "\n",
        r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Back."}}"#,
    );
    let records = from_codex(&codex(items));
    assert_eq!(types(&records), ["system", "text", "usage", "result", "message_stop"]);
    let result = &records[3];
    assert_eq!(result["is_error"], json!(false));
    assert_eq!(
        result["errors"],
        json!([
            "Reconnecting... 1/5 (stream disconnected before completion)",
            "Reconnecting... 2/5 (stream disconnected before completion)",
        ])
    );
}

#[test]
fn long_text_is_chunked_below_the_limit() {
    let text = "Zeile mit Umlaut ä, \"Zitat\" und 🧪\n".repeat(9000);
    // The text as a writer of UTF-8 prints it, and as one prints it that escapes all but ASCII.
    let plain = serde_json::to_string(&text).unwrap();
    let escaped: String = plain
        .chars()
        .map(|character| match character {
            ' '..='~' => character.to_string(),
            other => {
                let mut units = [0; 2];
                let units = other.encode_utf16(&mut units);
                units.iter().map(|unit| format!("\\u{unit:04x}")).collect()
            }
        })
        .collect();
    for literal in [plain, escaped] {
        let records = from_codex(&codex(&format!(
            r#"{{"type":"item.completed","item":{{"id":"item_0","type":"agent_message","text":{literal}}}}}"#
        )));
        let texts = of_type(&records, "text");
        assert!(texts.len() > 3);
        let joined: String = texts.iter().map(|text| text["content"].as_str().unwrap()).collect();
        assert_eq!(joined, text);
        // It would not fit next to the other fields of the result.
        assert_eq!(of_type(&records, "result")[0].get("result"), None);
    }
}

#[test]
fn long_result_is_chunked() {
    let output = "0123456789abcdef\n".repeat(20_000);
    let literal = serde_json::to_string(&output).unwrap();
    let records = from_codex(&codex(&format!(
        r#"{{"type":"item.completed","item":{{"id":"item_0","type":"command_execution","command":"yes","aggregated_output":{literal},"exit_code":0,"status":"completed"}}}}"#
    )));
    let parts = of_type(&records, "tool_result");
    assert_eq!(parts.len(), 4);
    let joined: String = parts.iter().map(|part| part["content"].as_str().unwrap()).collect();
    assert_eq!(joined, output);
    assert!(parts[..3].iter().all(|part| part["partial"] == json!(true)));
    assert_eq!(parts[3].get("partial"), None);
}

#[test]
fn a_long_input_is_shortened_and_marked() {
    let input = json!({ "file_path": "/big.txt", "content": "line\n".repeat(50_000) });
    let call = json!({
        "type": "tool_use", "timestamp": "t", "tool_name": "write_file", "tool_id": "w1",
        "parameters": input,
    });
    let records = written("gemini", &format!("{call}\n"), &Exit::default());
    let call = of_type(&records, "tool_use")[0];
    assert_eq!(call["input"]["file_path"], json!("/big.txt"));
    assert!(call["input"]["content"].as_str().unwrap().ends_with(" bytes left out]"));
}

#[test]
fn long_errors_fit_their_lines() {
    let message = "x".repeat(300_000);
    let input = format!(
        "{CODEX_START}{{\"type\":\"turn.failed\",\"error\":{{\"message\":\"{message}\"}}}}\n"
    );
    assert_eq!(types(&from_codex(&input)), ["system", "error", "result", "message_stop"]);
}

#[test]
fn usage_is_estimated_and_marked_when_unknown() {
    let input = concat!(
        r#"{"type":"message","role":"user","content":"12345"}"#,
        "\n",
        r#"{"type":"message","role":"assistant","content":"123456789","delta":true}"#,
        "\n",
    );
    let records = written("giselle", input, &Exit::default());
    let estimate = json!({ "input_tokens": 2, "output_tokens": 3, "estimated": true });
    let result = of_type(&records, "result")[0];
    assert_eq!(result["usage"], estimate);
    assert_eq!(result["usage_estimated"], json!(true));
    let mut usage = of_type(&records, "usage")[0].clone();
    usage.as_object_mut().unwrap().remove("type");
    assert_eq!(usage, estimate);
}

#[test]
fn init_first_and_once() {
    // Claude writes `init` for every turn; here, a log line precedes everything.
    let turn = |text: &str| {
        format!(
            "{CLAUDE_INIT}{}\n{}\n",
            format_args!(
                r#"{{"type":"assistant","message":{{"id":"{text}","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}},"parent_tool_use_id":null,"session_id":"s1","uuid":"u{text}"}}"#
            ),
            r#"{"type":"result","subtype":"success","is_error":false,"result":"x","session_id":"s1","usage":{"input_tokens":1,"output_tokens":1}}"#
        )
    };
    let input = format!("{}{}", turn("one"), turn("two"));
    let records = written("claude", &input, &Exit::default());
    let each = ["text", "usage", "result", "message_stop"];
    assert_eq!(types(&records), [&["system"][..], &each, &each].concat());
    assert_eq!(
        records[0],
        json!({
            "type": "system", "subtype": "init", "session_id": "s1", "model": "claude-x",
            "cwd": "/repo", "permissionMode": "plan", "tools": ["Bash", "Read"],
        })
    );
}

#[test]
fn another_session_id_is_written() {
    let input = format!("{CLAUDE_INIT}{}", CLAUDE_INIT.replace("s1", "s2"));
    let records = written("claude", &input, &Exit::default());
    let expected = json!({ "type": "system", "subtype": "session_id", "session_id": "s2" });
    assert_eq!(records[1], expected);
    assert_eq!(of_type(&records, "result")[0]["session_id"], json!("s2"));
}

#[test]
fn ids_are_stable_and_different_for_every_delta() {
    let delta = r#"{"type":"message","role":"assistant","content":"ha","delta":true}"#;
    let input = format!("{delta}\n{delta}\n");
    let one = written("giselle", &input, &Exit::default());
    assert_eq!(one, written("giselle", &input, &Exit::default()));
    let ids: Vec<_> = of_type(&one, "text").iter().map(|text| text["id"].clone()).collect();
    assert!(ids.iter().all(|id| id.as_str().is_some_and(|id| id.starts_with("chunk-"))));
    assert!(ids.len() == 2 && ids[0] != ids[1], "{ids:?}");
}

#[test]
fn a_plan_is_written_as_a_call_of_todo_write() {
    let records = from_codex(&codex(
        r#"{"type":"item.started","item":{"id":"item_0","type":"todo_list","items":[{"text":"Look","completed":true},{"text":"Act","completed":false}]}}"#,
    ));
    assert_eq!(
        records[1],
        json!({
            "type": "tool_use", "id": records[1]["id"], "name": "TodoWrite",
            "input": { "todos": [
                { "content": "Look", "status": "completed", "activeForm": "Look" },
                { "content": "Act", "status": "pending", "activeForm": "Act" },
            ]},
        })
    );
    assert!(records[1]["id"].as_str().is_some_and(|id| id.starts_with("plan-")));
    assert_eq!(records[2]["tool_use_id"], records[1]["id"]);
}

#[test]
fn reasoning_is_thinking() {
    let records = from_codex(&codex(
        r#"{"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":"**Look** first"}}"#,
    ));
    assert_eq!(
        records[1],
        json!({
            "type": "thinking", "is_thinking": true, "thought": "**Look** first",
            "id": records[1]["id"],
        })
    );
}

#[test]
fn a_turn_that_waits_for_the_client_is_no_error() {
    let input = concat!(
        r#"{"type":"snapshot_request","requestId":"r1","instruction":"look","document":"d"}"#,
        "\n",
        r#"{"type":"tool_result","tool_id":"r1","status":"success","output":"seen"}"#,
        "\n",
        r#"{"type":"result","status":"success"}"#,
        "\n",
    );
    let records = written("giselle", input, &Exit::default());
    assert_eq!(
        types(&records)[..6],
        ["system", "tool_use", "result", "message_stop", "tool_result", "usage"]
    );
    assert_eq!(records[1]["executor"], json!("client"));
    let result = &records[2];
    assert_eq!(
        (&result["is_error"], &result["subtype"]),
        (&json!(false), &json!("waiting_for_client"))
    );
    assert_eq!(records[4]["content"], json!("seen"));
}
