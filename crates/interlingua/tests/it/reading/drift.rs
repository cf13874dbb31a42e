//! Everything that agents print is known: it is read, or left out on purpose with a reason.

use interlingua::dialect::{self, Dialect, Ignored};
use interlingua::{Exit, Options, ReadOptions};

use crate::support::records::of_type;
use crate::support::{self, Case, Written, translate_with};

/// Translates a stream, and records the types and fields that are not known.
fn translate_explained(from: Option<&'static Dialect>, input: &[u8], exit: &Exit) -> Written {
    let options = Options {
        read: ReadOptions { explain_unknown: true, ..ReadOptions::default() },
        ..Options::default()
    };
    translate_with(options, from, support::dialect("events"), [input], exit)
}

#[test]
fn every_type_and_field_in_the_transcripts_is_known_or_left_out_with_a_reason() {
    let mut unexplained = Vec::new();
    for case in Case::all() {
        let written = translate_explained(None, &case.input, &case.exit);
        let from = written.from().unwrap();
        let events = written.records();
        let explanation = written.finished.explanation.unwrap();
        let unknown = explanation.types().chain(explanation.fields());
        unexplained.extend(unknown.map(|(what, seen)| format!("{}: {what}: {seen:?}", case.name)));
        for event in of_type(&events, "native") {
            let name = event["name"].as_str().unwrap_or_default();
            if !ignored(from.ignores, name) {
                unexplained.push(format!("{}: `{name}` is left out without a reason", case.name));
            }
        }
    }
    unexplained.sort();
    unexplained.dedup();
    assert!(unexplained.is_empty(), "{unexplained:#?}");
}

fn ignored(ignores: &[Ignored], what: &str) -> bool {
    ignores.iter().any(|ignored| ignored.covers(what))
}

#[test]
fn every_ignored_record_has_a_reason() {
    for dialect in dialect::ALL {
        for ignored in dialect.ignores {
            assert!(!ignored.why.is_empty() && !ignored.what.is_empty(), "{}", dialect.name);
        }
    }
}

#[test]
fn a_new_type_and_a_new_field_are_reported_with_an_example() {
    let input = concat!(
        r#"{"type":"thread.started","thread_id":"t"}"#,
        "\n",
        r#"{"type":"turn.begun","effort":3}"#,
        "\n",
        r#"{"type":"item.completed","item":{"id":"a","type":"agent_message","text":"x","mood":"good"}}"#,
        "\n",
        r#"{"type":"item.completed","item":{"id":"b","type":"agent_message","text":"y","mood":"bad"}}"#,
        "\n",
    );
    let written = translate_explained(None, input.as_bytes(), &Exit::default());
    let explanation = written.finished.explanation.unwrap();
    let types: Vec<_> = explanation.types().collect();
    assert_eq!((types[0].0, types[0].1.count, types[0].1.line), ("turn.begun", 1, 2));
    assert!(types[0].1.example.contains(r#""effort":3"#));
    let fields: Vec<_> = explanation.fields().map(|(path, seen)| (path, seen.count)).collect();
    assert_eq!(fields, [("item.completed: item.mood", 2)]);
    assert_eq!(explanation.fields().next().unwrap().1.example, r#""good""#);
}

/// Of some types, only the records of sub-agents or of hooks are left out.
#[test]
fn a_new_field_of_a_type_that_is_left_out_at_times_is_reported() {
    let types = ["session.model_change", "permission.requested", "tool.shell_output"];
    for kind in types {
        let event = format!(r#"{{"type":"{kind}","data":{{"toolCallId":"c","mood":"good"}}}}"#);
        let line = format!("{event}\n");
        let params = format!(r#"{{"sessionId":"s","event":{event},"mood":1}}"#);
        let message = format!(r#"{{"jsonrpc":"2.0","method":"session.event","params":{params}}}"#);
        let message = format!("Content-Length: {}\r\n\r\n{message}", message.len());
        let inner = format!("{kind}: data.mood");
        let envelope = "session.event: params.mood".to_owned();
        let cases = [
            ("copilot", line, vec![inner.clone()]),
            ("copilot-headless", message, vec![inner, envelope]),
        ];
        for (from, input, mut expected) in cases {
            let from = Some(support::dialect(from));
            let written = translate_explained(from, input.as_bytes(), &Exit::default());
            let explanation = written.finished.explanation.unwrap();
            let fields: Vec<_> = explanation.fields().map(|(path, _)| path.to_owned()).collect();
            expected.sort();
            assert_eq!(fields, expected, "{kind}");
        }
    }
}

/// What a permission is requested for is kept as JSON until it is read.
#[test]
fn a_new_field_of_a_permission_request_is_reported() {
    let request = r#"{"kind":"shell","fullCommandText":"ls","commands":[],"mood":"good","fileEdits":[{"after":{"path":"/f","owner":"me"}}]}"#;
    let data = format!(r#"{{"requestId":"r","permissionRequest":{request}}}"#);
    let event = format!(r#"{{"type":"permission.requested","data":{data}}}"#);
    let params = format!(r#"{{"sessionId":"s","event":{event}}}"#);
    let message = format!(r#"{{"jsonrpc":"2.0","method":"session.event","params":{params}}}"#);
    let message = format!("Content-Length: {}\r\n\r\n{message}", message.len());
    for (from, input) in [("copilot", format!("{event}\n")), ("copilot-headless", message)] {
        let from = Some(support::dialect(from));
        let written = translate_explained(from, input.as_bytes(), &Exit::default());
        let explanation = written.finished.explanation.unwrap();
        let fields: Vec<_> = explanation.fields().map(|(path, _)| path).collect();
        let inside = "permission.requested: data.permissionRequest";
        let expected = [format!("{inside}.fileEdits[].after.owner"), format!("{inside}.mood")];
        assert_eq!(fields, expected);
    }
}
