//! The text that a person at a terminal sees of a stream.

use interlingua::dialect::FramingKind;
use interlingua::{Exit, Options, ReadOptions, Translator};

use crate::support::{dialect, translate_with};

/// The text that a person sees of a stream, and the names of what was lost.
fn shown_with_losses(from: &str, lines: &[&str], exit: &Exit) -> (String, Vec<String>) {
    let options = Options {
        read: ReadOptions { framing: Some(FramingKind::Lines), ..ReadOptions::default() },
        ..Options::default()
    };
    let input = lines.join("\n") + "\n";
    let (from, to) = (Some(dialect(from)), dialect("text"));
    let written = translate_with(options, from, to, [input.as_bytes()], exit);
    let lost = written.losses().iter().map(|(what, count)| format!("{count} {what}"));
    (written.text(), lost.collect())
}

fn shown(from: &str, lines: &[&str]) -> String {
    shown_with_losses(from, lines, &Exit::default()).0
}

const CODEX: &[&str] = &[
    r#"{"type":"thread.started","thread_id":"t"}"#,
    r#"{"type":"turn.started"}"#,
    r#"{"type":"item.completed","item":{"id":"0","type":"reasoning","text":"Look first.\nThen act."}}"#,
    r#"{"type":"item.started","item":{"id":"1","type":"command_execution","command":"cat a\n  b","aggregated_output":"","exit_code":null,"status":"in_progress"}}"#,
    r#"{"type":"item.completed","item":{"id":"1","type":"command_execution","command":"cat a","aggregated_output":"one\ntwo\nthree\n","exit_code":2,"status":"failed"}}"#,
    r#"{"type":"item.completed","item":{"id":"2","type":"file_change","changes":[{"path":"a.txt","kind":"add"},{"path":"b.txt","kind":"delete"}],"status":"completed"}}"#,
    r#"{"type":"item.completed","item":{"id":"3","type":"todo_list","items":[{"text":"Look","completed":true},{"text":"Act","completed":false}]}}"#,
    r#"{"type":"item.completed","item":{"id":"4","type":"agent_message","text":"Done\u001b[2J.\rReally."}}"#,
    "not a record",
    r#"{"type":"nobody.knows","x":1}"#,
    r#"{"type":"turn.completed","usage":{"input_tokens":12345,"cached_input_tokens":40,"output_tokens":20}}"#,
];

#[test]
fn a_turn_is_shown_readably() {
    let (shown, lost) = shown_with_losses("codex", CODEX, &Exit::default());
    assert_eq!(
        shown,
        "\
● codex · session t

thinking: Look first.
  Then act.

▸ command_execution: cat a b
  ⎿ failed, exit code 2: one … (+2 lines)
▸ file_change
  + a.txt
  - b.txt
  ⎿ done
plan:
  [x] Look
  [ ] Act

Done.Really.

? line 9: this is not JSON: unexpected character at column 1: not a record
? line 10: unknown record: \"nobody.knows\"

— 12,345 tokens in (40 cached), 20 out
"
    );
    assert_eq!(lost, ["1 tool outputs beyond one line"]);
}

#[test]
fn a_truncated_turn_shows_its_cause_once() {
    let line = r#"{"type":"item.started","item":{"id":"1","type":"command_execution","command":"sleep 9","status":"in_progress"}}"#;
    let exit = Exit { code: Some(1), stderr: Some("boom\n".to_owned()), ..Exit::default() };
    let (shown, _) = shown_with_losses("codex", &[line], &exit);
    assert!(shown.starts_with("▸ command_execution: sleep 9\n  ⎿ abandoned: "), "{shown}");
    assert!(shown.contains("\n\n— failed: the agent exited with code 1"), "{shown}");
    assert!(shown.ends_with("\n\n| boom\n"), "{shown}");
    assert_eq!(shown.matches("exited with code 1").count(), 1, "{shown}");
}

#[test]
fn deltas_are_written_as_they_arrive() {
    let (from, to) = (dialect("codex"), dialect("text"));
    let mut translator = Translator::new(from.into(), to, Options::default()).unwrap();
    let delta = |text| {
        format!(
            "{{\"type\":\"message.output_text.delta\",\"item_id\":\"a\",\"delta\":\"{text}\"}}\n"
        )
    };
    assert_eq!(translator.push(delta("Hel").as_bytes(), None), b"Hel");
    assert_eq!(translator.push(delta("lo\\n").as_bytes(), None), b"lo\n");
    assert_eq!(translator.push(delta("you").as_bytes(), None), b"you");
}

#[test]
fn the_output_of_a_sub_agent_is_indented() {
    let shown = shown(
        "claude",
        &[
            r#"{"type":"assistant","session_id":"s","message":{"id":"m","content":[{"type":"tool_use","id":"c","name":"Task","input":{"description":"look","prompt":"Look."}}]}}"#,
            r#"{"type":"assistant","session_id":"s","parent_tool_use_id":"c","message":{"id":"n","content":[{"type":"text","text":"one\ntwo"}]}}"#,
            r#"{"type":"user","session_id":"s","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":"found"}]}}"#,
        ],
    );
    let start = "● claude · session s\n▸ Task: look\n\n    one\n    two\n\n  ⎿ found\n";
    assert!(shown.starts_with(start), "{shown}");
}

fn claude_call(id: &str, command: &str) -> String {
    format!(
        r#"{{"type":"assistant","session_id":"s","message":{{"id":"m-{id}","content":[{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"{command}"}}}}]}}}}"#
    )
}

fn claude_answer(id: &str, output: &str) -> String {
    format!(
        r#"{{"type":"user","session_id":"s","message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}","content":"{output}"}}]}}}}"#
    )
}

/// Regression: `⎿ Bash: fast` looked like a command.
#[test]
fn answers_of_parallel_calls_name_their_call() {
    let lines = [
        claude_call("a", "sleep 1; cat a"),
        claude_call("b", "cat b"),
        claude_answer("b", "fast"),
        claude_answer("a", "slow"),
        claude_call("c", "cat c"),
        claude_answer("c", "alone"),
    ];
    let shown = shown("claude", &lines.each_ref().map(String::as_str));
    let lines: Vec<_> = shown.lines().skip(1).take(6).collect();
    assert_eq!(
        lines,
        [
            "▸ Bash: sleep 1; cat a",
            "▸ Bash: cat b",
            "  ⎿ (Bash: cat b) fast",
            "  ⎿ (Bash: sleep 1; cat a) slow",
            "▸ Bash: cat c",
            "  ⎿ alone",
        ]
    );
}

/// Regression: `failed, exit code 3: Exit code 3 … (+2 lines)` hid the first line of the output.
#[test]
fn the_exit_code_is_not_the_first_line_of_the_output() {
    let call = claude_call("a", "false");
    let answer = r#"{"type":"user","session_id":"s","message":{"content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":"Exit code 3\nout\nerr"}]}}"#;
    let shown = shown("claude", &[&call, answer]);
    assert!(shown.contains("\n  ⎿ failed, exit code 3: out … (+1 line)\n"), "{shown}");
}

#[test]
fn a_failed_change_lists_its_files() {
    let shown = shown(
        "codex",
        &[
            r#"{"type":"item.completed","item":{"id":"2","type":"file_change","changes":[{"path":"a.txt","kind":"add"},{"path":"b.txt","kind":"delete"}],"status":"failed"}}"#,
        ],
    );
    let start = "▸ file_change\n  ⎿ (file_change: a.txt, b.txt) failed";
    assert!(shown.starts_with(start), "{shown}");
}

#[test]
fn an_empty_line_of_a_prompt_is_marked_too() {
    let prompt = r#"{"type":"message","role":"user","content":"one\n\ntwo\n"}"#;
    let shown = shown("gemini", &[prompt]);
    assert!(shown.starts_with("> one\n>\n> two\n\n"), "{shown}");
}

/// Regression: an escape sequence that was split between two deltas left `0m` on the screen.
#[test]
fn an_escape_sequence_that_is_split_between_deltas_is_removed() {
    let delta = |text: &str| {
        format!(r#"{{"type":"message","role":"assistant","content":"{text}","delta":true}}"#)
    };
    let deltas = [delta("\\u001b[31mred\\u001b["), delta("0m and"), delta(" plain")];
    let shown = shown("gemini", &deltas.each_ref().map(String::as_str));
    assert!(shown.starts_with("red and plain\n"), "{shown}");
}

#[test]
fn a_refused_plan_is_shown_as_refused() {
    let call = |id: &str, step: &str| {
        format!(
            r#"{{"type":"tool_use","tool_name":"write_todos","tool_id":"{id}","parameters":{{"todos":[{{"description":"{step}","status":"pending"}}]}}}}"#
        )
    };
    let result = |id: &str, status: &str| {
        format!(r#"{{"type":"tool_result","tool_id":"{id}","status":"{status}"}}"#)
    };
    let refused = [call("a", "Look"), result("a", "error")];
    let shown_first = shown("gemini", &refused.each_ref().map(String::as_str));
    assert!(shown_first.contains("  ⎿ failed\n! the plan was rejected\n"), "{shown_first}");
    assert!(!shown_first.contains("(empty)"), "{shown_first}");
    let lines = [call("a", "Look"), result("a", "success"), call("b", "Act"), result("b", "error")];
    let shown = shown("gemini", &lines.each_ref().map(String::as_str));
    assert!(
        shown.contains("! the plan was rejected; the previous plan still applies\n"),
        "{shown}"
    );
    assert_eq!(shown.matches("Look").count(), 1, "{shown}");
}

#[test]
fn an_error_that_is_also_the_cause_is_shown_once() {
    let retry = r#"{"type":"error","message":"Reconnecting... 1/2 (too busy)"}"#;
    let codex = shown("codex", &[r#"{"type":"turn.started"}"#, retry]);
    assert!(codex.contains(": Reconnecting... 1/2 (too busy)\n"), "{codex}");
    assert!(!codex.contains("1 of 2"), "{codex}");
    let denied = r#"{"type":"system","subtype":"permission_denied","session_id":"s","tool_name":"Bash","tool_use_id":"a","message":"not here"}"#;
    let answer = r#"{"type":"user","session_id":"s","message":{"content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":"not here"}]}}"#;
    let claude = shown("claude", &[&claude_call("a", "ls"), denied, answer]);
    assert_eq!(claude.matches("not here").count(), 1, "{claude}");
}

#[test]
fn a_turn_without_cost_shows_no_price() {
    let result = |cost: &str| {
        format!(
            r#"{{"type":"result","subtype":"success","is_error":false,"session_id":"s","duration_ms":1199,"total_cost_usd":{cost},"result":"ok"}}"#
        )
    };
    let ends = |cost: &str| shown("claude", &[&result(cost)]);
    assert!(ends("0").ends_with("\n— 1.2 s\n"), "{}", ends("0"));
    assert!(ends("0.0021").ends_with("\n— $0.0021 · 1.2 s\n"), "{}", ends("0.0021"));
}

#[test]
fn a_permission_request_shows_its_subject_and_reason() {
    let call = r#"{"type":"tool_started","call":"c","name":"file_change","kind":"edit","input":{"changes":[{"path":"a.txt"}]}}"#;
    let asks = r#"{"type":"permission_requested","request":"1","call":"c","description":"Outside the workspace?"}"#;
    let blind = shown("events", &[call, asks]);
    assert!(
        blind.contains("! permission requested: file_change: a.txt (Outside the workspace?)\n"),
        "{blind}"
    );
    let repeats = r#"{"type":"permission_requested","request":"1","tool":"bash","input":{"command":"ls -l"},"description":"run ls -l"}"#;
    let text = shown("events", &[repeats]);
    assert!(text.contains("! permission requested: bash: ls -l\n"), "{text}");
    let nothing = shown("events", &[r#"{"type":"permission_requested","request":"1"}"#]);
    assert!(nothing.contains("! permission requested\n"), "{nothing}");
}

#[test]
fn questions_and_answers_are_shown_as_text() {
    let call = r#"{"type":"tool_started","call":"c","name":"question","input":{"questions":[{"question":"Which?"}]}}"#;
    let asked = r#"{"type":"question_asked","request":"q","questions":[{"id":"0","text":"Which?","options":[{"label":"A","description":"the\nfirst"},{"label":"B"}],"multiple":true},{"id":"1","text":"Key?","secret":true}]}"#;
    let shown_with = |answer: &str| {
        let answer = format!(r#"{{"type":"question_answered","request":"q",{answer}}}"#);
        shown("events", &[call, asked, &answer])
    };
    let lines = "▸ question: Which?\n! question: Which? (several answers)\n! 1. A (the first)\n! 2. B\n! question: Key? (the answer is a secret)\n";
    for (answer, line) in [
        (r#""answers":[{"question":"0","values":["A","B"]}]"#, "answer: A, B"),
        (r#""answers":[{"question":"1","values":["s3cret"]}]"#, "the question was answered"),
        (r#""declined":true,"reason":"later""#, "the question was not answered (later)"),
        (r#""form":{"a":1}"#, r#"answer: {"a":1}"#),
    ] {
        let shown = shown_with(answer);
        assert!(shown.contains(&format!("{lines}! {line}\n")), "{shown}");
    }
}

#[test]
fn a_form_and_an_address_are_shown() {
    let asked = r#"{"type":"question_asked","request":"q","message":"Sign in","server":"s","url":"https://a.b"}"#;
    let shown = shown("events", &[asked]);
    assert!(shown.contains("! question of s: Sign in\n! open https://a.b\n"), "{shown}");
}

#[test]
fn the_answer_of_a_call_that_wrote_the_plan_does_not_repeat_it() {
    let call = r#"{"type":"tool_started","call":"c","name":"todowrite","kind":"plan","input":{"todos":[]}}"#;
    let plan = r#"{"type":"plan_updated","call":"c","items":[{"text":"Look"}]}"#;
    let answer = |output: &str, status: &str| {
        format!(r#"{{"type":"tool_ended","call":"c","status":"{status}","output":{output}}}"#)
    };
    let list = answer(r#""[\n{}\n]""#, "completed");
    let (drawn, lost) = shown_with_losses("events", &[call, plan, &list], &Exit::default());
    assert!(drawn.contains("  [ ] Look\n  ⎿ done\n"), "{drawn}");
    assert!(lost.contains(&"1 tool outputs beyond one line".to_owned()), "{lost:?}");
    let short = shown("events", &[call, plan, &answer("\"Noted.\"", "completed")]);
    assert!(short.contains("⎿ Noted.\n"), "{short}");
    let undrawn = shown("events", &[call, &list]);
    assert!(undrawn.contains("⎿ [ … (+2 lines)\n"), "{undrawn}");
    let failed = shown("events", &[call, plan, &answer(r#""no\nno""#, "failed")]);
    assert!(failed.contains("⎿ failed: no … (+1 line)\n"), "{failed}");
}

#[test]
fn a_file_is_shown_by_its_path_under_any_name() {
    for name in ["file_path", "filePath", "fileName", "path"] {
        let call = format!(
            r#"{{"type":"tool_started","call":"c","name":"write","kind":"write","input":{{"content":"x","{name}":"a.txt"}}}}"#
        );
        let shown = shown("events", &[&call]);
        assert!(shown.contains("▸ write: a.txt\n"), "{shown}");
    }
}

#[test]
fn the_prompt_of_a_sub_agent_is_not_shown_again() {
    let prompt = r#"{"type":"user_message","parent":"c","text":"Look around","injected":true}"#;
    let shown = shown("events", &[prompt]);
    assert!(shown.contains("    > (to the sub-agent) Look around\n"), "{shown}");
}

#[test]
fn the_output_of_a_stopped_call_precedes_its_cause() {
    let lines = [
        r#"{"type":"tool_started","call":"c","name":"bash","input":{"command":"make"}}"#,
        r#"{"type":"tool_progress","call":"c","output":"started"}"#,
        r#"{"type":"tool_ended","call":"c","status":"cancelled","output":null,"error":"stopped"}"#,
    ];
    let shown = shown("events", &lines);
    assert!(shown.contains("⎿ cancelled: started … (+1 line)\n"), "{shown}");
}
