//! A secret reaches the consumer that needs it, and nothing else.

use interlingua::{Exit, Options, Translator};

use crate::support::{self, translate_lines};

const RELAY: &str = r#"{"type":"relay.session","relayUrl":"https://relay.example","sessionId":"r1","token":"hunter2","expiresAt":1}"#;

#[test]
fn a_relay_token_is_written_only_in_the_protocol_that_carries_it() {
    for to in support::written() {
        let written = translate_lines("giselle", to.name, &[RELAY]);
        assert_eq!(written.text().contains("hunter2"), to.name == "giselle", "{}", to.name);
    }
}

#[test]
fn debug_output_does_not_contain_a_relay_token() {
    let mut seen = String::new();
    let frame = interlingua::framing::FrameText {
        text: RELAY,
        noise: "",
        replaced: false,
        unterminated: false,
        several_lines: false,
        event: "",
    };
    let mut decoder = (support::dialect("giselle").decoder.unwrap())();
    decoder
        .decode(&frame, &mut |event: interlingua::event::Event<'_>| seen += &format!("{event:?}"));
    assert!(seen.contains("[secret]") && !seen.contains("hunter2"), "{seen}");
    let to = support::dialect("events");
    let mut translator =
        Translator::new(support::dialect("giselle").into(), to, Options::default()).unwrap();
    translator.push(RELAY.as_bytes(), None);
    assert!(!format!("{translator:?}").contains("hunter2"));
    let finished = translator.finish(&Exit::default(), None);
    assert!(!format!("{finished:?}").contains("hunter2"));
}

/// A raw record contains what events leave out.
#[test]
fn debug_output_does_not_contain_raw_records() {
    let mut mapper = interlingua::mapper::NdjsonMapper::new();
    let mapped = mapper.push(RELAY.as_bytes());
    assert!(!format!("{mapper:?} {mapped:?}").contains("hunter2"));
    let giselle = support::dialect("giselle");
    let read = interlingua::ReadOptions {
        raw_records: interlingua::RawRecords::Keep,
        ..interlingua::ReadOptions::default()
    };
    let mut reader = interlingua::Reader::new(giselle.into(), read).unwrap();
    let mut writer =
        interlingua::Writer::new(giselle, &interlingua::dialect::EncodeOptions::default()).unwrap();
    let mut bytes = Vec::new();
    let mut shown = String::new();
    let mut keep = |entry: interlingua::EntryRef<'_>| {
        writer.write(entry, &mut bytes);
        shown += &format!("{entry:?} {:?} {writer:?}", entry.to_owned());
    };
    reader.push(RELAY.as_bytes(), None, &mut keep).unwrap();
    assert!(shown.contains("giselle") && !shown.contains("hunter2"), "{shown}");
}
