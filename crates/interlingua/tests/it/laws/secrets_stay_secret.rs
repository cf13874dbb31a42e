//! A secret reaches the consumer that must have it, and nothing else.

use interlingua::{Exit, Options, Translator};

use crate::support::{self, translate_lines};

const RELAY: &str = r#"{"type":"relay.session","relayUrl":"https://relay.example","sessionId":"r1","token":"hunter2","expiresAt":1}"#;

#[test]
fn a_relay_token_is_only_in_the_protocol_that_carries_it() {
    for to in support::written() {
        let written = translate_lines("giselle", to.name, &[RELAY]);
        assert_eq!(written.text().contains("hunter2"), to.name == "giselle", "{}", to.name);
    }
}

#[test]
fn a_relay_token_is_not_printed_for_debugging() {
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
