//! The grammar fills in what an agent leaves out and the stream has stated before.

use interlingua::event::{
    Data, Decision, Error, Event, MessageEnded, MessageStarted, Outcome, PermissionRequested,
    PermissionResolved, Reason, Retry, Scope, ToolEnded, ToolInput, ToolProgress, ToolStarted,
    ToolStatus, TurnEnded, TurnStarted, Usage,
};
use interlingua::json::{Json, Text};
use interlingua::{EntryRef, Exit, ReadOptions, Reader, Source};

/// The events that the grammar emits for some events, up to the end of the input.
fn events(given: Vec<Event<'_>>) -> Vec<Event<'static>> {
    let source = Source::named("events").unwrap();
    let mut reader = Reader::new(source, ReadOptions::default()).unwrap();
    let mut events = Vec::new();
    let mut keep = |entry: EntryRef<'_>| events.push(entry.event.clone().into_owned());
    reader.emit(Event::new(TurnStarted::default()), None, &mut keep).unwrap();
    for event in given {
        reader.emit(event, None, &mut keep).unwrap();
    }
    reader.finish(&Exit::default(), None, &mut keep).unwrap();
    events
}

/// All events of a kind.
macro_rules! all {
    ($events:expr, $kind:ident) => {
        $events
            .iter()
            .filter_map(|event| match &event.data {
                Data::$kind(data) => Some(data.clone()),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
}

fn json(text: &str) -> Option<Json<'static>> {
    Json::from_text(text.to_owned())
}

fn started<'a>(call: &'a str, input: Option<Json<'a>>) -> Event<'a> {
    let (call, name) = (Text::plain(call), Text::plain("bash"));
    Event::new(ToolStarted { call, name, input, ..ToolStarted::default() })
}

fn ended(call: &str, status: ToolStatus) -> Event<'_> {
    Event::new(ToolEnded { call: Text::plain(call), status, ..ToolEnded::default() })
}

fn end(outcome: Outcome) -> Event<'static> {
    Event::new(TurnEnded { outcome, ..TurnEnded::default() })
}

#[test]
fn a_permission_request_describes_its_call() {
    let call = Some(Text::plain("c"));
    let request = PermissionRequested { call: call.clone(), ..PermissionRequested::default() };
    let resolved = PermissionResolved {
        call: call.clone(),
        decision: Decision::Allowed,
        ..PermissionResolved::default()
    };
    let complete = PermissionRequested {
        call,
        tool: Some(Text::plain("other")),
        input: json("[2]"),
        ..PermissionRequested::default()
    };
    let later = ToolInput { call: Text::plain("c"), input: json("[1]"), ..ToolInput::default() };
    for events in [
        events(vec![
            started("c", json("[1]")),
            Event::new(request.clone()),
            Event::new(resolved.clone()),
            Event::new(complete.clone()),
        ]),
        events(vec![
            started("c", None),
            Event::new(later),
            Event::new(request.clone()),
            Event::new(resolved),
            Event::new(complete),
        ]),
    ] {
        let asked = all!(events, PermissionRequested);
        assert_eq!(
            (asked[0].tool.clone().unwrap(), &asked[0].input),
            ("bash".into(), &json("[1]"))
        );
        assert_eq!(
            (asked[1].tool.clone().unwrap(), &asked[1].input),
            ("other".into(), &json("[2]"))
        );
        assert_eq!(all!(events, PermissionResolved)[0].tool, Some("bash".into()));
    }
    // A call that replaces another one does not inherit its input.
    let events = events(vec![
        started("a", json("[1]")),
        ended("a", ToolStatus::Completed),
        started("c", None),
        Event::new(request),
    ]);
    assert_eq!(all!(events, PermissionRequested)[0].input, None);
}

#[test]
fn an_open_message_ends_with_its_turn() {
    let message = |id| Some(Text::plain(id));
    let begin = |id| Event::new(MessageStarted { message: message(id), ..Default::default() });
    let events = events(vec![
        begin("one"),
        begin("two").within(message("call")),
        begin("three"),
        Event::new(MessageEnded { message: message("three"), ..Default::default() }),
        end(Outcome::Completed),
        Event::new(TurnStarted::default()),
        end(Outcome::Completed),
    ]);
    let ends: Vec<_> =
        events.iter().filter(|it| matches!(it.data, Data::MessageEnded(_))).collect();
    let ids = all!(events, MessageEnded).into_iter().map(|ended| ended.message);
    assert_eq!(ids.collect::<Vec<_>>(), [message("three"), message("one"), message("two")]);
    assert_eq!((&ends[0].synthetic, &ends[0].parent), (&None, &None));
    assert_eq!(ends[1].synthetic, Some(Reason::TurnEnded));
    assert_eq!(ends[2].parent, message("call"));
}

#[test]
fn any_number_of_messages_may_lack_an_end() {
    let ids: Vec<String> = (0..1_000).map(|id| id.to_string()).collect();
    let begin = |id| MessageStarted { message: Some(Text::plain(id)), ..MessageStarted::default() };
    let events = events(ids.iter().map(|id| Event::new(begin(id))).collect());
    let ended = all!(events, MessageEnded).into_iter().map(|ended| ended.message.unwrap());
    assert!(ended.eq(ids.iter().map(|id| Text::plain(id))));
}

fn request(input: u64, output: u64) -> Usage<'static> {
    let (input, output) = (Some(input), Some(output));
    Usage { scope: Scope::Request, input, output, ..Usage::default() }
}

fn message_used(usage: Usage<'_>) -> Event<'_> {
    Event::new(MessageEnded { usage: Some(usage), ..MessageEnded::default() })
}

#[test]
fn the_usage_of_a_truncated_turn_is_that_of_its_requests() {
    let cut_off = events(vec![
        message_used(request(100, 20)),
        // A sub-agent has a turn of its own, and the count of a turn is not the count of a request.
        message_used(request(7, 7)).within(Some(Text::plain("call"))),
        Event::new(Usage { scope: Scope::Turn, ..request(9, 9) }),
        Event::new(request(50, 10)),
    ]);
    let expected = Usage { scope: Scope::Turn, ..request(150, 30) };
    assert_eq!(all!(cut_off, TurnEnded)[0].usage, Some(expected.clone()));
    let in_a_message =
        events(vec![message_used(request(150, 30)), Event::new(MessageStarted::default())]);
    let at_least = Usage { estimated: true, ..expected };
    assert_eq!(all!(in_a_message, TurnEnded)[0].usage, Some(at_least));
    let events = events(vec![message_used(request(150, 30)), end(Outcome::Cancelled)]);
    assert_eq!(all!(events, TurnEnded)[0].usage, None);
}

fn progress<'a>(call: &'a str, output: &'a str) -> Event<'a> {
    let (call, output) = (Text::plain(call), Some(Text::plain(output)));
    Event::new(ToolProgress { call, output, ..ToolProgress::default() })
}

#[test]
fn the_progress_of_a_cancelled_call_is_its_output() {
    let events = events(vec![
        started("a", json("{}")),
        started("b", json("{}")),
        started("c", json("{}")),
        started("d", json("{}")),
        progress("a", "one\n"),
        progress("b", "x"),
        progress("c", "y"),
        progress("a", "two \"\n"),
        progress("d", "z"),
        ended("a", ToolStatus::Cancelled),
        ended("b", ToolStatus::Completed),
        Event::new(ToolEnded {
            call: Text::plain("c"),
            status: ToolStatus::Cancelled,
            output: json("\"stated\""),
            ..ToolEnded::default()
        }),
    ]);
    let outputs = all!(events, ToolEnded).into_iter().map(|ended| ended.output);
    let expected = [json(r#""one\ntwo \"\n""#), None, json("\"stated\""), json("\"z\"")];
    assert_eq!(outputs.collect::<Vec<_>>(), expected);
}

#[test]
fn only_the_end_of_long_progress_is_kept() {
    let delta = "é".repeat(1_000);
    let mut given = vec![started("a", json("{}"))];
    given.extend((0..1_000).map(|_| progress("a", &delta)));
    given.extend([progress("a", "!"), ended("a", ToolStatus::Cancelled)]);
    let output = all!(events(given), ToolEnded)[0].output.clone().unwrap();
    let output = output.as_text().unwrap().to_string();
    assert!(output.ends_with("é!") && (60_000..200_000).contains(&output.len()));
}

#[test]
fn the_message_of_a_call_may_become_known_later() {
    let of_message = |event: Event<'static>| {
        let Data::ToolStarted(started) = event.data else { panic!() };
        Event::new(ToolStarted { message: Some(Text::plain("m")), ..started })
    };
    let input = |message| ToolInput {
        call: Text::plain("c"),
        message,
        input: json("{}"),
        ..ToolInput::default()
    };
    for given in [
        vec![started("c", None), of_message(started("c", json("{}")))],
        vec![started("c", None), of_message(started("c", None)), Event::new(input(None))],
        vec![started("c", None), Event::new(input(Some(Text::plain("m"))))],
        vec![of_message(started("c", None)), started("c", json("{}"))],
    ] {
        let inputs = all!(events(given), ToolInput);
        assert_eq!((inputs.len(), inputs[0].message.clone()), (1, Some("m".into())));
    }
}

#[test]
fn the_cause_of_a_retry_is_an_error_only_if_the_turn_failed() {
    let retry = |text| Retry { message: Some(Text::plain(text)), ..Retry::default() };
    let error = |text| Error { message: Text::plain(text), ..Error::default() };
    let turn = |outcome| {
        let events = events(vec![
            Event::new(retry("busy")),
            Event::new(retry("cut")),
            Event::new(error("cut")),
            Event::new(error("odd")),
            Event::new(retry("busy again")),
            end(outcome),
        ]);
        let ended = all!(events, TurnEnded).remove(0);
        let errors: Vec<String> = ended.errors.iter().map(ToString::to_string).collect();
        (errors.join(", "), ended.cause.map(|cause| cause.to_string()))
    };
    let all = "busy, cut, odd, busy again".to_owned();
    assert_eq!(turn(Outcome::Completed), ("cut, odd".to_owned(), None));
    assert_eq!(turn(Outcome::Failed), (all, Some("busy again".to_owned())));
    assert_eq!(turn(Outcome::LimitReached), ("cut, odd".to_owned(), Some("odd".to_owned())));
}
