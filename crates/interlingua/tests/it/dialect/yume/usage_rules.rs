//! The rules of Yume's contract on counts and on lines, and streams that break them.

use crate::support::rules::violations;

const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"s","model":"m","cwd":"/","permissionMode":"default","tools":[]}"#;
const USAGE: &str = r#"{"type":"usage","input_tokens":1,"output_tokens":1}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

/// The names of the rules that a turn breaks with some fields in its result.
fn broken(fields: &str) -> Vec<&'static str> {
    let result = format!(r#"{{"type":"result","is_error":false,"subtype":"success",{fields}}}"#);
    violations("yume", &[INIT, USAGE, &result, STOP].join("\n"))
}

#[test]
fn the_counts_of_models_are_numbers_by_name() {
    assert_eq!(broken(r#""modelUsage":{"m":{"inputTokens":1,"costUSD":0.5}}"#), [""; 0]);
    let wrong = [
        r#""modelUsage":[]"#,
        r#""modelUsage":{"m":1}"#,
        r#""modelUsage":{"m":{"inputTokens":"1"}}"#,
        r#""modelUsage":{"m":{"costUSD":"1"}}"#,
    ];
    for fields in wrong {
        assert_eq!(broken(fields), ["model-usage"], "{fields}");
    }
}

#[test]
fn an_estimate_is_marked_twice() {
    let usage = r#""usage":{"input_tokens":1,"output_tokens":1,"estimated":true}"#;
    assert_eq!(broken(usage), ["usage-marked"]);
    assert_eq!(broken(&format!(r#"{usage},"usage_estimated":true"#)), [""; 0]);
    let unmarked = r#""usage":{"input_tokens":1,"output_tokens":1},"usage_estimated":true"#;
    assert_eq!(broken(unmarked), ["usage-marked"]);
    let odd = r#""usage":{"input_tokens":1,"output_tokens":1,"estimated":"yes"}"#;
    assert_eq!(broken(odd), ["usage-fields"]);
}

#[test]
fn a_record_on_several_lines_can_be_read_and_breaks_a_rule() {
    let pretty = format!("{INIT}\n{USAGE}\n{{\n\"type\":\"result\",\"is_error\":true}}\n{STOP}\n");
    assert!(violations("yume", &pretty).contains(&"only-records"));
}
