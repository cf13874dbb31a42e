//! A session reports what its host knows and the agent does not report.

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
