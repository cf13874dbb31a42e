//! `--from auto` recognises each dialect by its first records.

use crate::support::{self, Case, translate};

#[test]
fn every_transcript_is_recognised() {
    for case in Case::all() {
        let agent = case.name.split('/').next().unwrap();
        let expected = agent.split("-2").next().unwrap();
        let recognised = translate("text", &case.input, &case.exit).from();
        assert_eq!(recognised.map(|dialect| dialect.name), Some(expected), "{}", case.name);
    }
}

#[test]
fn every_dialect_that_we_write_is_recognised() {
    for case in Case::all() {
        for to in support::written().filter(|to| to.decoder.is_some()) {
            let written = translate(to.name, &case.input, &case.exit);
            let recognised = translate("text", &written.bytes, &case.exit).from();
            assert_eq!(
                recognised.map(|dialect| dialect.name),
                Some(to.name),
                "{} -> {}",
                case.name,
                to.name
            );
        }
    }
}

#[test]
fn noise_in_front_does_not_hide_a_dialect() {
    let input = b"npm warn\n\x1b[2K{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n";
    let recognised = translate("text", input, &interlingua::Exit::default()).from();
    assert_eq!(recognised.unwrap().name, "codex");
}

#[test]
fn an_unknown_stream_is_kept() {
    let input = b"{\"hello\":1}\nplain text\n";
    let written = translate("events", input, &interlingua::Exit::default());
    assert!(written.from().is_none());
    let texts: Vec<_> = written
        .records()
        .into_iter()
        .filter(|event| event["type"] == "unparsed")
        .map(|event| event["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts, ["{\"hello\":1}", "plain text"]);
}
