//! Keys are found wherever a stream is split, and nothing else changes.

use proptest::prelude::*;

use super::*;

const KEY: &str = "sk-0123456789abcdef";

fn redactor(keys: &[(&str, &str)]) -> Redactor {
    let mut redactor = Redactor::default();
    let value = |name: &str| keys.iter().find(|(key, _)| *key == name).map(|(_, it)| it.into());
    redactor.add_keys(value);
    redactor
}

/// Redacts a stream that arrives in some chunks.
fn in_chunks<'a>(redactor: &mut Redactor, chunks: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let (mut held_back, mut redacted) = (HeldBack::default(), Vec::new());
    for chunk in chunks {
        redacted.extend_from_slice(&redactor.redact_chunk(chunk, &mut held_back));
        assert!(!held_back.0.contains(&b'\n'), "a complete line is held back");
    }
    redacted.extend(redactor.redact_end(held_back));
    redacted
}

#[test]
fn a_key_is_replaced_and_counted() {
    let mut keys = redactor(&[("OPENAI_API_KEY", KEY), ("GH_TOKEN", "too short")]);
    let text = format!("too short {KEY}{KEY}, {KEY}");
    assert_eq!(keys.redact_text(&text), "too short [redacted][redacted], [redacted]");
    let all = [Redacted { variable: "OPENAI_API_KEY", occurrences: 3 }];
    assert_eq!(keys.redacted(), all);
    assert_eq!(
        keys.take_unreported()[0].to_string(),
        "3 occurrences of the value of OPENAI_API_KEY were redacted"
    );
    keys.redact(KEY.as_bytes());
    assert_eq!(
        keys.take_unreported()[0].to_string(),
        "1 occurrence of the value of OPENAI_API_KEY was redacted"
    );
    assert!(keys.take_unreported().is_empty());
    assert_eq!(keys.redacted()[0].occurrences, 4);
}

#[test]
fn the_form_of_a_json_string_is_found() {
    let key = "a\"b\\c\td€ 0123456789";
    let mut keys = redactor(&[("OPENAI_API_KEY", key)]);
    let record = serde_json::json!({"text": format!("<{key}>")}).to_string();
    assert_eq!(keys.redact_text(&record), r#"{"text":"<[redacted]>"}"#);
    assert_eq!(keys.redact_text(key), REPLACEMENT);
}

/// Two variables often have the same value, and files end with a line ending.
#[test]
fn a_value_is_counted_once() {
    let mut keys = redactor(&[("GH_TOKEN", KEY), ("GITHUB_TOKEN", &format!("{KEY}\n"))]);
    keys.redact(KEY.as_bytes());
    assert_eq!(keys.redacted(), [Redacted { variable: "GH_TOKEN", occurrences: 1 }]);
    // The next process of the agent has the same variables.
    keys.add_keys(|name| (name == "GH_TOKEN").then(|| KEY.into()));
    assert_eq!((keys.keys.len(), keys.forms.len()), (1, 1));
}

#[test]
fn what_has_no_key_is_not_copied() {
    let text = b"{\"type\":\"turn.started\"}\n";
    for mut redactor in [Redactor::default(), redactor(&[("OPENAI_API_KEY", KEY)])] {
        let redacted = redactor.redact_chunk(text, &mut HeldBack::default());
        assert!(matches!(redacted, Cow::Borrowed(same) if same == text));
    }
}

#[test]
fn only_what_may_be_a_key_is_held_back() {
    let mut keys = redactor(&[("OPENAI_API_KEY", KEY)]);
    let mut held_back = HeldBack::default();
    assert_eq!(&*keys.redact_chunk(b"no line ends", &mut held_back), b"no line end");
    assert_eq!(held_back.0, b"s");
    assert_eq!(&*keys.redact_chunk(b"ometimes sk-0123", &mut held_back), b"sometimes ");
    assert_eq!(&*keys.redact_chunk(b"456789abcdef.", &mut held_back), b"[redacted].");
    assert!(held_back.0.is_empty());
}

#[test]
fn no_value_is_shown() {
    let mut keys = redactor(&[("OPENAI_API_KEY", KEY)]);
    let mut held_back = HeldBack::default();
    keys.redact_chunk(b"sk-0123456789", &mut held_back);
    let shown = format!("{keys:?} {held_back:?}");
    assert!(shown.contains("OPENAI_API_KEY") && !shown.contains("01234"), "{shown}");
}

proptest! {
    // The same cases in every run.
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The keys overlap in every way, and one is the beginning of another.
    #[test]
    fn the_chunks_do_not_matter(text in "[abx\n]{0,6}((ab){6,12}[abx\n]{0,3}){0,6}", sizes in prop::collection::vec(1..30_usize, 1..40)) {
        let variables = [
            ("OPENAI_API_KEY", "abababababababab"),
            ("GH_TOKEN", "abababababababababab"),
            ("GEMINI_API_KEY", "babababababababax"),
        ];
        let whole = redactor(&variables).redact(text.as_bytes()).into_owned();
        let (mut rest, mut sizes) = (text.as_bytes(), sizes.into_iter().cycle());
        let chunks = std::iter::from_fn(|| {
            let size = sizes.next()?.min(rest.len());
            let (chunk, after) = rest.split_at(size);
            rest = after;
            (size > 0).then_some(chunk)
        });
        let redacted = in_chunks(&mut redactor(&variables), chunks);
        prop_assert_eq!(String::from_utf8(redacted), String::from_utf8(whole));
    }
}
