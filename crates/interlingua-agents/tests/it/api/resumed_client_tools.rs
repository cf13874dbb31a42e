//! Calls of the client's tools that were open when the program of a session was killed.

use fake_model::Reply;
use interlingua::event::Outcome;
use interlingua::{Continuation, Entry, EntryRef, Exit, ReadOptions, Stopped, StreamEnd};
use interlingua_agents::api::{ApiKind, Earlier};
use interlingua_agents::{CallOutcome, LateResult, Options, Prompt, Wanted};
use serde_json::{Value, json};

use super::client_tools::{Asked, input, last_history, next, request, snapshot, start, with_form};
use super::golden::laws;
use super::resume::{earlier, last_turn, storing};
use super::{APIS, Bench, of_kind, text};
use crate::support::options;

/// Runs a session up to its calls, and returns its log as it was then: its program is killed.
async fn killed(bench: &Bench, asked: &mut Asked, answered: usize) -> Earlier {
    let mut session = bench.open().await;
    session.handle.prompt("fill in the form").await.unwrap();
    let (one, two) = (next(&mut session, asked).await.0, next(&mut session, asked).await.0);
    for call in [one, two].iter().take(answered) {
        session.handle.answer(call, json!("answered before")).await.unwrap();
        session.until(|event| event["type"] == "tool_ended").await;
    }
    let earlier = earlier(bench, &session.events);
    session.handle.close().await.unwrap();
    session.end().await;
    earlier
}

fn stored(api: ApiKind) -> (Bench, Asked) {
    let both = snapshot("one").then_call("getFormSnapshot", input("two"));
    with_form(storing(api, [both, Reply::text("Done."), last_turn()]))
}

/// The calls were answered as unknown, although only the client could have run them.
#[tokio::test]
async fn a_resumed_session_waits_for_the_client_again() {
    for api in APIS {
        for answered in [0, 1] {
            let (mut bench, mut asked) = stored(api);
            bench.settings.earlier = Some(killed(&bench, &mut asked, answered).await);
            let mut session = bench.open().await;
            for number in answered..2 {
                let request = request(&mut session, &mut asked).await;
                let Wanted::Call(call) = &request.wanted else { panic!("{request:?}") };
                assert!(call.input.contains(["one", "two"][number]), "{api:?}: {call:?}");
                session.handle.answer(&call.id, json!("answered later")).await.unwrap();
            }
            session.handle.prompt("which word was it?").await.unwrap();
            session.handle.finish().await.unwrap();
            let (ended, events) = session.end().await;
            assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
            assert_eq!(text(&events), "Done.|It was plum.", "{api:?}");
            let starts = of_kind(&events, "tool_started");
            let is_of_client =
                |it: &&Value| it["executor"] == "client" && it["name"] == "getFormSnapshot";
            assert!(starts.len() == 2 - answered && starts.iter().all(is_of_client), "{starts:#?}");
            assert_eq!(of_kind(&events, "turn_ended").len(), 2, "{api:?}");
            let sent = last_history(&bench);
            let times = |words: &str| sent.matches(words).count();
            let counts = (times("answered before"), times("answered later"), times("not known"));
            assert_eq!(counts, (answered, 2 - answered, 0), "{api:?}: {sent}");
            laws::check_events("client-tool-resumed", &events);
            bench.check("client-tool-resumed");
        }
    }
}

/// A host closes the turn of a session that was killed, continues its log, and gives the answers with a
/// prompt.
#[tokio::test]
async fn a_continued_log_goes_on_with_late_answers() {
    for api in APIS {
        let (mut bench, mut asked) = stored(api);
        let read = || ReadOptions { id_seed: Some(7), ..ReadOptions::default() };
        let mut session = start(&bench, Options { read: read(), ..options() }).await;
        session.handle.prompt("fill in the form").await.unwrap();
        let calls =
            [next(&mut session, &mut asked).await.0, next(&mut session, &mut asked).await.0];
        session.until(|event| event["type"] == "suspended").await;
        let mut log: Vec<Entry> = session.events.iter().map(entry).collect();
        session.handle.close().await.unwrap();
        session.end().await;
        let mut continuation = Continuation::new(read()).unwrap();
        log.iter().for_each(|entry| continuation.push(entry.borrowed()));
        let mut reader = continuation.into_reader();
        let mut keep = |entry: EntryRef<'_>| log.push(entry.to_owned());
        let stopped = Stopped { outcome: Outcome::WaitingForClient, cause: "lost".to_owned() };
        let exit = Exit { stopped: Some(stopped), ..Exit::default() };
        reader.end_stream(StreamEnd::Exit(&exit), None, &mut keep).unwrap();
        let lines: Vec<_> = log.iter().map(|it| serde_json::to_string(it).unwrap()).collect();
        bench.settings.earlier = Some(Earlier::read(lines.join("\n").as_bytes()).unwrap());
        let reader = Some(reader);
        let session = start(&bench, Options { read: read(), reader, ..options() }).await;
        let result = |call: &String| LateResult {
            call: call.clone(),
            native: None,
            tool: "getFormSnapshot".to_owned(),
            input: "{}".to_owned(),
            outcome: CallOutcome::Output(json!("answered later")),
            deferred: false,
        };
        let results: Vec<_> = calls.iter().map(result).collect();
        session.handle.prompt(Prompt::resuming(results)).await.unwrap();
        session.handle.finish().await.unwrap();
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert_eq!(text(&events), "Done.", "{api:?}");
        assert_eq!(events[0]["sequence"], log.len(), "{api:?}");
        for kind in ["tool_started", "suspended"] {
            assert_eq!(of_kind(&events, kind), [&json!(null); 0], "{api:?}");
        }
        let ends = of_kind(&events, "tool_ended");
        let ends: Vec<_> = ends.iter().map(|it| it["call"].as_str().unwrap()).collect();
        assert_eq!(ends, calls, "{api:?}");
        assert_eq!(last_history(&bench).matches("answered later").count(), 2, "{api:?}");
        bench.check("client-tool-continued");
    }
}

fn entry(event: &Value) -> Entry {
    serde_json::from_str(&event.to_string()).unwrap()
}

/// Without the tools, or without a client, no answer can come any more.
#[tokio::test]
async fn a_resumed_session_without_the_client_goes_on() {
    for api in APIS {
        for has_tools in [false, true] {
            let (mut bench, mut asked) = stored(api);
            bench.settings.earlier = Some(killed(&bench, &mut asked, 1).await);
            if has_tools {
                bench.user = None;
            } else {
                bench.settings.client_tools.clear();
            }
            let (ended, events) = bench.run("go on").await;
            assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
            assert_eq!(text(&events), "Done.", "{api:?}");
            let sent = last_history(&bench);
            assert!(
                sent.contains("answered before") && sent.contains("not known"),
                "{api:?}: {sent}"
            );
            bench.check("client-tool-resumed-alone");
        }
    }
}
