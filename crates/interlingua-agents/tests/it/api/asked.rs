//! Permission requests that wait for the user, and what ends the waiting.

use std::time::Duration;

use fake_model::Reply;
use interlingua_agents::api::{ApiAgent, ApiKind};
use interlingua_agents::permission::{Always, Decision, Mode};
use interlingua_agents::{InputRequest, Options};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{APIS, Bench, of_kind, only, text};
use crate::support::{Watched, within};

fn write(name: &str) -> Reply {
    Reply::call("Write", json!({"file_path": name, "content": "x"}))
}

/// A bench with a user who is asked about every change.
fn asking(
    api: ApiKind,
    replies: impl IntoIterator<Item = Reply>,
) -> (Bench, mpsc::UnboundedReceiver<InputRequest>) {
    let mut bench = Bench::new(api, replies);
    bench.policy.mode = Mode::Ask;
    let (requests, asked) = mpsc::unbounded_channel();
    bench.user = Some(requests);
    (bench, asked)
}

/// Opens a session with one prompt, which ends after it.
async fn prompted(bench: &Bench) -> Watched {
    let session = bench.open().await;
    session.handle.prompt("write").await.unwrap();
    session.handle.finish().await.unwrap();
    session
}

/// The next request, which is this one in the order of all. The entries are taken meanwhile.
async fn next_request(
    session: &mut Watched,
    asked: &mut mpsc::UnboundedReceiver<InputRequest>,
    number: usize,
) -> InputRequest {
    session.until_seen(number, |event| event["type"] == "permission_requested").await;
    within(asked.recv()).await.unwrap()
}

fn denial(events: &[Value]) -> String {
    let resolved = only(events, "permission_resolved");
    assert_eq!(resolved["decision"], "denied");
    assert_eq!(only(events, "tool_ended")["status"], "denied");
    resolved["reason"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_is_always_allowed_is_not_asked_again() {
    let calls = || write("a.txt").then_call("Write", json!({"file_path": "b.txt", "content": "x"}));
    for (always, expected) in [(Always::Same, 2), (Always::Tool, 1)] {
        let (bench, mut asked) = asking(APIS[0], [calls(), write("a.txt"), Reply::text("Done.")]);
        let mut session = prompted(&bench).await;
        for number in 1..=expected {
            let request = next_request(&mut session, &mut asked, number).await;
            session.handle.allow_always(request.id(), always.clone()).await.unwrap();
        }
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{events:#?}");
        assert_eq!(of_kind(&events, "permission_requested").len(), expected, "{always:?}");
        let statuses = of_kind(&events, "tool_ended");
        assert!(statuses.iter().all(|it| it["status"] == "completed"), "{statuses:#?}");
    }
}

#[tokio::test]
async fn a_request_that_is_not_answered_in_time_is_denied() {
    let (bench, mut asked) = asking(APIS[0], [write("a.txt"), Reply::text("I could not.")]);
    let mut options = Options {
        policy: bench.policy.clone(),
        input_requests: bench.user.clone(),
        ..crate::support::options()
    };
    // What is tested is that this time passes.
    options.deadlines.answer = Duration::from_millis(20);
    let mut session = Watched::open(ApiAgent::new(bench.settings.clone()), options).await;
    session.handle.prompt("write").await.unwrap();
    session.handle.finish().await.unwrap();
    let request = next_request(&mut session, &mut asked, 1).await;
    let (ended, events) = session.end().await;
    assert_eq!(ended.code(), 0, "{events:#?}");
    assert!(denial(&events).contains("not answered in time"));
    assert!(!request.is_pending() && !bench.path("a.txt").exists());
}

#[tokio::test]
async fn a_user_who_leaves_denies_what_waits() {
    let (mut bench, mut asked) =
        asking(APIS[0], [write("a.txt"), write("b.txt"), Reply::text("Well.")]);
    let mut session = prompted(&bench).await;
    next_request(&mut session, &mut asked, 1).await;
    bench.user = None;
    drop(asked);
    let (ended, events) = session.end().await;
    assert_eq!(ended.code(), 0, "{events:#?}");
    let resolved = of_kind(&events, "permission_resolved");
    assert_eq!(resolved.len(), 2, "{resolved:#?}");
    for denied in resolved {
        assert_eq!(denied["decision"], "denied");
        assert!(denied["reason"].as_str().unwrap().contains("no user is available"), "{denied}");
    }
}

#[tokio::test]
async fn a_change_of_the_mode_decides_what_waits() {
    for (mode, decision, status) in
        [(Mode::Auto, "allowed", "completed"), (Mode::Deny, "denied", "denied")]
    {
        let (bench, mut asked) = asking(APIS[0], [write("a.txt"), Reply::text("Done.")]);
        let mut session = prompted(&bench).await;
        let request = next_request(&mut session, &mut asked, 1).await;
        session.handle.set_mode(mode).await.unwrap();
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{events:#?}");
        assert_eq!(only(&events, "permission_resolved")["decision"], decision);
        assert_eq!(only(&events, "tool_ended")["status"], status);
        assert_eq!(bench.path("a.txt").exists(), mode == Mode::Auto);
        assert!(!request.is_pending());
    }
}

#[tokio::test]
async fn an_interrupt_withdraws_what_waits() {
    for api in APIS {
        let (bench, mut asked) = asking(api, [write("a.txt"), Reply::text("Ok.")]);
        let mut session = bench.open().await;
        session.handle.prompt("write").await.unwrap();
        let request = next_request(&mut session, &mut asked, 1).await;
        session.handle.interrupt().await.unwrap();
        assert!(!request.is_pending(), "{api:?}");
        let late = session.handle.decide(request.id(), Decision::Allow).await;
        assert!(late.is_err(), "{api:?}: {late:?}");
        session.handle.prompt("go on").await.unwrap();
        session.handle.finish().await.unwrap();
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        let ends = of_kind(&events, "turn_ended");
        let outcomes: Vec<_> = ends.iter().map(|end| end["outcome"].clone()).collect();
        assert_eq!(outcomes, ["cancelled", "completed"], "{api:?}");
        assert_eq!(text(&events), "Ok.");
        assert_eq!(only(&events, "tool_ended")["status"], "cancelled", "{api:?}");
        assert!(!bench.path("a.txt").exists(), "{api:?}");
        bench.check("interrupted-request");
    }
}

/// Who approves a change of `docs/a.txt` has to know that `docs` is a link.
#[cfg(unix)]
#[tokio::test]
async fn the_user_learns_where_a_path_leads() {
    let calls = ["docs/a.txt", "inner/a.txt", "a.txt"].map(write);
    let (bench, mut asked) = asking(APIS[0], calls.into_iter().chain([Reply::text("Done.")]));
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir(bench.path("plain")).unwrap();
    std::os::unix::fs::symlink(outside.path(), bench.path("docs")).unwrap();
    std::os::unix::fs::symlink("plain", bench.path("inner")).unwrap();
    let mut session = prompted(&bench).await;
    for number in 1..=3 {
        let request = next_request(&mut session, &mut asked, number).await;
        session.handle.decide(request.id(), Decision::Allow).await.unwrap();
    }
    let (_, events) = session.end().await;
    let requests = of_kind(&events, "permission_requested");
    let shown: Vec<_> = requests.iter().map(|it| it["description"].as_str()).collect();
    let outside = outside.path().canonicalize().unwrap().join("a.txt");
    let inside = bench.folder.path().canonicalize().unwrap().join("plain/a.txt");
    let outside = format!("it leads to {}, outside of the folder", outside.display());
    let inside = format!("it leads to {}", inside.display());
    assert_eq!(shown, [Some(&*outside), Some(&*inside), None]);
}

/// The rule would be about a place that the user was not asked about.
#[cfg(unix)]
#[tokio::test]
async fn always_is_about_the_place_that_was_judged() {
    let (bench, mut asked) = asking(APIS[0], [write("link/a.txt"), Reply::text("Well.")]);
    for folder in ["plain", ".git"] {
        std::fs::create_dir(bench.path(folder)).unwrap();
    }
    std::os::unix::fs::symlink("plain", bench.path("link")).unwrap();
    let mut session = prompted(&bench).await;
    let request = next_request(&mut session, &mut asked, 1).await;
    std::fs::remove_file(bench.path("link")).unwrap();
    std::os::unix::fs::symlink(".git", bench.path("link")).unwrap();
    let refused = session.handle.allow_always(request.id(), Always::Same).await;
    assert!(format!("{refused:?}").contains("another place"), "{refused:?}");
    session.handle.decide(request.id(), Decision::Deny("no".to_owned())).await.unwrap();
    let (_, events) = session.end().await;
    assert_eq!(denial(&events), "no");
}
