//! Events that the caller adds to the stream become part of it, and are marked as such.

use interlingua::event::{Event, Reason, Scope, ToolEnded, Usage};
use interlingua::json::{Json, Text};
use interlingua::{Exit, Options, Translator, dialect};
use serde_json::Value;

fn from_elsewhere<'a>(data: impl Into<interlingua::event::Data<'a>>) -> Event<'a> {
    let mut event = Event::new(data);
    event.synthetic = Some(Reason::Elsewhere);
    event
}

fn events_with(added: Vec<Event<'_>>) -> Vec<Value> {
    let (from, to) = (dialect::find("gemini"), dialect::find("events").unwrap());
    let mut translator = Translator::new(from.unwrap().into(), to, Options::default()).unwrap();
    let mut written = translator
        .push(b"{\"type\":\"init\",\"session_id\":\"s\"}\n{\"type\":\"tool_use\",\"tool_name\":\"read_file\",\"tool_id\":\"c\",\"parameters\":{}}\n", None)
        .to_vec();
    for event in added {
        written.extend_from_slice(translator.emit(event, None));
    }
    written.extend_from_slice(translator.push(
        b"{\"type\":\"tool_result\",\"tool_id\":\"c\",\"status\":\"success\",\"output\":\"\"}\n{\"type\":\"result\",\"status\":\"success\"}\n", None));
    written.extend_from_slice(
        &translator.finish(&Exit { code: Some(0), ..Exit::default() }, None).bytes,
    );
    let lines = std::str::from_utf8(&written).unwrap().lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn only<'e>(events: &'e [Value], kind: &str) -> &'e Value {
    let mut all = events.iter().filter(|event| event["type"] == kind);
    let only = all.next().unwrap();
    assert!(all.next().is_none(), "{kind} is emitted twice");
    only
}

#[test]
fn an_answer_added_by_the_caller_precedes_that_of_the_stream() {
    let answer = ToolEnded {
        call: Text::plain("c"),
        output: Json::from_serialize("hello"),
        ..ToolEnded::default()
    };
    let events = events_with(vec![from_elsewhere(answer)]);
    let ended = only(&events, "tool_ended");
    assert_eq!((&ended["output"], &ended["synthetic"]), (&"hello".into(), &"elsewhere".into()));
    assert_eq!(ended["name"], "read_file");
}

#[test]
fn counts_added_by_the_caller_are_reported_at_the_end_of_the_turn() {
    let usage = |model, input, scope| {
        from_elsewhere(Usage {
            model: Some(Text::plain(model)),
            input: Some(input),
            scope,
            ..Usage::default()
        })
    };
    let added = vec![
        usage("a", 5, Scope::Turn),
        usage("a", 7, Scope::Turn),
        usage("b", 100, Scope::Turn),
        usage("b", 9000, Scope::Session),
    ];
    let events = events_with(added);
    let end = only(&events, "turn_ended");
    assert_eq!(end["usage"]["input"], 107);
    assert_eq!(end["by_model"].as_array().unwrap().len(), 2);
    assert_eq!(only(&events[..], "turn_ended")["outcome"], "completed");
}
