//! Law 5: a line over the limit is reported and skipped, and the stream goes on.

use interlingua::framing::Limits;
use interlingua::{Exit, Options, ReadOptions, Translator};

use crate::support;

#[test]
fn a_line_over_the_limit_costs_one_line() {
    let options = Options {
        read: ReadOptions { limits: Limits { frame: 1 << 20 }, ..ReadOptions::default() },
        ..Options::default()
    };
    let (from, to) = (support::dialect("codex"), support::dialect("events"));
    let mut translator = Translator::new(from.into(), to, options).unwrap();
    let mut out =
        translator.push(b"{\"type\":\"item.completed\",\"item\":{\"text\":\"", None).to_vec();
    let piece = vec![b'x'; 1 << 16];
    for _ in 0..64 {
        out.extend_from_slice(translator.push(&piece, None));
    }
    out.extend_from_slice(translator.push(b"\"}}\n{\"type\":\"turn.started\"}\n", None));
    out.extend_from_slice(&translator.finish(&Exit::default(), None).bytes);
    let records: Vec<serde_json::Value> = String::from_utf8(out)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records[0]["flaw"], "too_long");
    assert!(records[0]["message"].as_str().unwrap().contains("1048576"));
    assert!(records.iter().any(|event| event["type"] == "turn_started" && event["line"] == 2));
}
