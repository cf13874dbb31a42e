//! A session reports what its host knows and the agent does not report.

use interlingua_agents::ProcessAgent;
use interlingua_agents::driver::ClaudeDriver;
use interlingua_agents::permission::Mode;
use interlingua_agents::process::Input;
use serde_json::json;

use crate::support::*;

#[tokio::test]
async fn a_session_reports_its_folder_model_and_mode() {
    let folder = tempfile::tempdir().unwrap();
    let mut launch = script(&[BEGINS, COMPLETES]);
    launch.command.folder = folder.path().to_owned();
    launch.model = Some("m".to_owned());
    let (_, events) = run(launch, options()).await;
    let started = events.iter().find(|event| event["type"] == "session_started").unwrap();
    let canonical = folder.path().canonicalize().unwrap();
    assert_eq!(started["cwd"], json!(canonical));
    assert_eq!((&started["model"], &started["permission_mode"]), (&json!("m"), &json!("default")));
    assert_eq!(started["host_fields"], json!(["cwd", "model", "permission_mode"]));
    let ended = turn_end(&events);
    assert!(ended["duration_ms"].is_u64() && ended["duration_measured"] == true, "{ended}");
}

/// Claude was always started in its own mode `default`, and a session in `auto` reported that.
#[tokio::test]
async fn the_mode_of_a_session_is_the_one_that_is_enforced() {
    let init = r#"{"type":"system","subtype":"init","session_id":"s","permissionMode":"default"}"#;
    let end = r#"{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"s","uuid":"UUID"}"#;
    let turn = format!("n=$((n+1)); echo '{init}'; echo '{end}' | sed s/UUID/r$n/");
    let talks = format!("while read -r line; do case $line in *content*) {turn};; esac; done");
    let launch = live(&[&talks], "claude", Input::Open, Box::<ClaudeDriver>::default());
    let mut session = Watched::open(ProcessAgent::new(launch), options()).await;
    session.handle.set_mode(Mode::Auto).await.unwrap();
    let is_end = |event: &serde_json::Value| event["type"] == "turn_ended";
    session.handle.prompt("one").await.unwrap();
    session.until(is_end).await;
    session.handle.set_mode(Mode::AcceptEdits).await.unwrap();
    session.handle.prompt("two").await.unwrap();
    session.handle.finish().await.unwrap();
    let (_, events) = session.end().await;
    let modes: Vec<_> =
        events.iter().filter_map(|event| event["permission_mode"].as_str()).collect();
    assert_eq!(modes, ["auto", "accept-edits"]);
}
