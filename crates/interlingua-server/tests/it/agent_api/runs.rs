//! New runs, and follow-ups. The numbers are those of the scenarios in `docs/giselle.md`.

use interlingua::event::Outcome;
use serde_json::{Value, json};

use super::stage::{Stage, names, problem};
use crate::support::{ADMIN, Answer};

fn chat(message: &str) -> Value {
    json!({"type": "agent.run", "chat_id": "chat-1", "message": message, "agent_type": "codex", "snapshot_id": "snap"})
}

#[tokio::test]
async fn scenario_27_new_text_only_session() {
    let stage = Stage::new().await;
    let run = stage.run(&json!({"type": "agent.run", "message": "Hi", "document": "D"})).await;
    assert_eq!(
        stage.taken(),
        [json!({"type": "prompt", "text": "Hi\n\nDocument:\nD", "whilePending": "supersede"})]
    );
    let mut agent = stage.agent(&run.session).await;
    agent.begin().await;
    agent.says("Hello ").await;
    agent.says("world!").await;
    agent.ends(Outcome::Completed).await;
    let session = run.session.clone();
    let records = run.rest().await;
    assert_eq!(names(&records), ["init", "message Hello ", "message world!", "result"]);
    assert_eq!(records[0]["session_id"], json!(session), "a follow-up finds the session by it");
    assert_eq!((&records[1]["delta"], &records[3]["status"]), (&json!(true), &json!("success")));
}

#[tokio::test]
async fn scenario_33_a_run_begins_with_the_relay_and_the_sandbox() {
    let stage = Stage::new().await;
    let run = stage.run(&chat("go")).await;
    let url = format!("{}/agent-api/relay", stage.server.url);
    assert_eq!(run.relay["relayUrl"], json!(url));
    assert_eq!(run.relay["expiresAt"], json!(stage.server.hands.now() + 24 * 60 * 60 * 1000));
    let sandbox = run.sandbox["sandbox_id"].as_str().unwrap();
    let folder = stage.folder.path().join("sandboxes/admin").join(sandbox);
    assert!(folder.is_dir());
    let session = stage.server.get(&format!("/v1/sessions/{}", run.session)).await.json();
    assert_eq!(session["cwd"], json!(folder.canonicalize().unwrap()));
    assert_eq!((&session["ttl"], &session["agent"]), (&json!(600), &json!("codex")));
    let tools: Vec<_> =
        session["tools"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(tools, ["getFormSnapshot", "executeFormActions"]);
}

#[tokio::test]
async fn scenario_34_a_follow_up_finds_the_session_and_its_sandbox() {
    let stage = Stage::new().await;
    for follow_up in [None, Some(())] {
        let first = match follow_up {
            None => chat("one"),
            Some(()) => json!({"message": "one", "sandbox_id": "mine"}),
        };
        let run = stage.run(&first).await;
        let (session, sandbox) = (run.session.clone(), run.sandbox.clone());
        let mut agent = stage.agent(&session).await;
        agent.begin().await;
        agent.ends(Outcome::Completed).await;
        assert_eq!(names(&run.rest().await), ["init", "result"]);
        let second = match follow_up {
            None => chat("two"),
            Some(()) => json!({"message": "two", "session_id": session, "sandbox_id": "mine"}),
        };
        let run = stage.run(&second).await;
        assert_eq!((&run.session, &run.sandbox), (&session, &sandbox));
        let mut agent = stage.agent(&session).await;
        agent.begin().await;
        agent.says("two").await;
        agent.ends(Outcome::Completed).await;
        assert_eq!(names(&run.rest().await), ["init", "message two", "result"], "of this run only");
    }
}

/// A follow-up that named no sandbox was a 409, and left an empty folder.
#[tokio::test]
async fn a_follow_up_of_a_chat_in_a_named_sandbox_names_none() {
    let stage = Stage::new().await;
    let mut first = chat("one");
    first["sandbox_id"] = json!("mine");
    let (one, two) = (stage.run(&first).await, stage.run(&chat("two")).await);
    assert_eq!((&two.session, &two.sandbox), (&one.session, &one.sandbox));
    let folders = std::fs::read_dir(stage.folder.path().join("sandboxes/admin")).unwrap();
    assert_eq!(folders.count(), 1);
    first["sandbox_id"] = json!("other");
    assert_eq!(stage.refused(&first).await.0, 409);
}

#[tokio::test]
async fn a_chat_belongs_to_the_owner_of_its_token() {
    let stage = Stage::new().await;
    let ann = stage.run_as("of-ann", &chat("go")).await;
    let bob = stage.run_as("of-bob", &chat("go")).await;
    assert_ne!(ann.session, bob.session);
    let session = |run: &super::stage::Run| json!({"message": "go", "session_id": run.session});
    let stolen = stage.send("/agent-api/run", "of-bob", &session(&ann)).await;
    assert_eq!(problem(&Answer::of(stolen).await).0, 404);
    let other = stage.run_as("of-ann", &json!({"message": "go", "sandbox_id": "same"})).await;
    let same = stage.run_as("of-bob", &json!({"message": "go", "sandbox_id": "same"})).await;
    let folder = async |run: &super::stage::Run| {
        stage.server.get(&format!("/v1/sessions/{}", run.session)).await.json()["cwd"].clone()
    };
    assert_ne!(folder(&other).await, folder(&same).await);
}

#[tokio::test]
async fn errors_before_the_stream_have_the_form_of_the_contract() {
    let stage = Stage::new().await;
    let code = async |body: Value| {
        let (status, code, _) = stage.refused(&body).await;
        (status, code)
    };
    let invalid = (400, "INVALID_REQUEST".to_owned());
    assert_eq!(code(json!({})).await, invalid);
    assert_eq!(code(json!({"message": "go", "sandbox_id": "../x"})).await, invalid);
    assert_eq!(
        code(json!({"message": "go", "agent_type": "claude"})).await,
        invalid,
        "not allowed"
    );
    let unknown = json!({"message": "go", "session_id": "none"});
    assert_eq!(code(unknown).await, (404, "NOT_FOUND".to_owned()));
    stage.run(&chat("go")).await;
    let other = json!({"chat_id": "chat-1", "message": "go", "agent_type": "gemini"});
    assert_eq!(code(other).await, (409, "CONFLICT".to_owned()), "the chat has another agent");
    let path = "/agent-api/run";
    let unauthorized = Answer::of(stage.send(path, "wrong", &chat("go")).await).await;
    assert_eq!(problem(&unauthorized).1, "UNAUTHORIZED");
    assert_eq!(unauthorized.status, 401);
    // Of another interface.
    stage.server.session("other").await;
    let other = json!({"message": "go", "session_id": "other"});
    assert_eq!(code(other).await, (404, "NOT_FOUND".to_owned()));
    let without = Stage::with(|settings| settings.allowed.sandboxes = None).await;
    assert_eq!(without.refused(&chat("go")).await.0, 404, "the server does not serve it");
}

#[tokio::test]
async fn other_routes_of_the_contract() {
    let stage = Stage::new().await;
    for (path, status) in [
        ("/agent-api/auth", 200),
        ("/agent-api/auth/", 200),
        ("/agent-api/build", 501),
        ("/agent-api/build/", 501),
        ("/agent-api/nothing", 404),
    ] {
        let answer = Answer::of(stage.send(path, ADMIN, &json!({})).await).await;
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.json()["ok"], json!(status == 200), "{path}");
    }
    let slash = stage.send("/agent-api/run/", ADMIN, &chat("go")).await;
    assert_eq!(slash.status(), 200);
    let answer = stage.server.get("/agent-api/run").await;
    assert_eq!(problem(&answer), (404, "NOT_FOUND".to_owned(), "Not found.".to_owned()));
}

/// B18: a failed run looked like a successful one without any usage.
#[tokio::test]
async fn b18_a_failure_ends_as_an_error() {
    let stage = Stage::new().await;
    let run = stage.run(&chat("go")).await;
    let mut agent = stage.agent(&run.session).await;
    agent.begin().await;
    agent.ends(Outcome::Failed).await;
    let records = run.rest().await;
    assert_eq!(names(&records), ["init", "result"]);
    assert_eq!(records[1]["status"], "error");
}

/// The run goes on in the session, and is read again with the key of the request.
#[tokio::test]
async fn a_client_that_has_disconnected_comes_back() {
    let stage = Stage::new().await;
    let url = format!("{}/agent-api/run", stage.server.url);
    let send = async || {
        let request = stage.server.client.post(&url).bearer_auth(ADMIN);
        let request =
            request.header("content-type", "application/json").header("idempotency-key", "k1");
        request.body(chat("go").to_string()).send().await.unwrap()
    };
    let first = send().await;
    assert_eq!(first.status(), 200);
    drop(first);
    let commands = stage.taken();
    let run = stage.run(&chat("other")).await;
    let session = run.session.clone();
    drop(run);
    assert_eq!(commands[0]["text"], "go");
    let mut agent = stage.agent(&session).await;
    agent.begin_of("go").await;
    agent.says("one").await;
    agent.ends(Outcome::Completed).await;
    agent.begin_of("other").await;
    agent.says("two").await;
    agent.ends(Outcome::Completed).await;
    let again = send().await.text().await.unwrap();
    assert!(again.contains("one") && !again.contains("two"), "{again}");
}
