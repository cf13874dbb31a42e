//! Law 5: a line longer than the limit is reported and skipped, and the stream continues.

use interlingua::framing::Limits;
use interlingua::{Exit, Options, ReadOptions};

use crate::support;

#[test]
fn a_line_longer_than_the_limit_loses_only_itself() {
    let options = Options {
        read: ReadOptions { limits: Limits { frame: 1 << 20 }, ..ReadOptions::default() },
        ..Options::default()
    };
    let (from, to) = (support::dialect("codex"), support::dialect("events"));
    let chunk = vec![b'x'; 1 << 16];
    let mut chunks: Vec<&[u8]> = vec![b"{\"type\":\"item.completed\",\"item\":{\"text\":\""];
    chunks.extend(std::iter::repeat_n(&*chunk, 64));
    chunks.push(b"\"}}\n{\"type\":\"turn.started\"}\n");
    let records =
        support::translate_with(options, Some(from), to, chunks, &Exit::default()).records();
    assert_eq!(records[0]["flaw"], "too_long");
    assert!(records[0]["message"].as_str().unwrap().contains("1048576"));
    assert!(records.iter().any(|event| event["type"] == "turn_started" && event["line"] == 2));
}
