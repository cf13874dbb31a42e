//! Files that agents leave. The numbers are those of the scenarios in `docs/giselle.md`.

use interlingua::event::Outcome;
use serde_json::{Value, json};

use super::stage::{Stage, names, problem};
use crate::support::{ADMIN, Answer};

async fn get(stage: &Stage, token: &str, query: &str) -> Answer {
    let url = format!("{}/agent-api/files?{query}", stage.server.url);
    Answer::of(stage.server.client.get(url).bearer_auth(token).send().await.unwrap()).await
}

#[tokio::test]
async fn scenario_22_and_44_artifacts_are_announced_and_served() {
    let stage = Stage::new().await;
    let chat = json!({"type": "agent.run", "chat_id": "c", "message": "go", "agent_type": "codex"});
    let run = stage.run(&chat).await;
    let session = run.session.clone();
    let cwd = stage.server.get(&format!("/v1/sessions/{session}")).await.json()["cwd"].clone();
    let folder = std::path::PathBuf::from(cwd.as_str().unwrap());
    std::fs::create_dir_all(folder.join("artifacts/deep")).unwrap();
    std::fs::write(folder.join("artifacts/report.md"), "# Report").unwrap();
    std::fs::write(folder.join("artifacts/deep/big.bin"), vec![7; 200_000]).unwrap();
    std::fs::write(folder.join("private"), "p").unwrap();
    let mut agent = stage.agent(&session).await;
    agent.begin().await;
    agent.ends(Outcome::Completed).await;
    let records = run.rest().await;
    assert_eq!(names(&records), ["init", "result", "artifact", "artifact"]);
    let report = json!({
        "type": "artifact", "path": "./artifacts/report.md", "size_bytes": 8,
        "mime_type": "text/markdown; charset=utf-8", "label": "report.md",
    });
    assert_eq!(records[3], report);
    let path = "path=.%2Fartifacts%2Freport.md";
    let file = get(&stage, ADMIN, &format!("chat_id=c&{path}")).await;
    assert_eq!((file.status.as_u16(), file.text()), (200, "# Report"));
    for (name, value) in [
        ("content-type", "text/markdown; charset=utf-8"),
        ("content-disposition", "inline; filename=\"report.md\""),
        ("cache-control", "private, no-store"),
        ("content-length", "8"),
    ] {
        assert_eq!(file.header(name), Some(value));
    }
    let file = get(&stage, ADMIN, &format!("session_id={session}&{path}&download=1")).await;
    assert_eq!(file.header("content-disposition"), Some("attachment; filename=\"report.md\""));
    let big = get(&stage, ADMIN, "chat_id=c&path=./artifacts/deep/big.bin").await;
    assert_eq!(big.body, vec![7; 200_000]);
    for (query, status) in [
        (path.to_owned(), 400),
        ("chat_id=c".to_owned(), 400),
        ("chat_id=c&path=./private".to_owned(), 400),
        ("chat_id=c&path=./artifacts/../private".to_owned(), 400),
        ("chat_id=c&path=./artifacts/none".to_owned(), 404),
        (format!("chat_id=other&{path}"), 404),
        (format!("session_id=other&{path}"), 404),
    ] {
        assert_eq!(problem(&get(&stage, ADMIN, &query).await).0, status, "{query}");
    }
    assert_eq!(problem(&get(&stage, "of-ann", &format!("chat_id=c&{path}")).await).0, 404);
    assert_eq!(problem(&get(&stage, "wrong", &format!("chat_id=c&{path}")).await).0, 401);
    // Callers of other routes can write the same metadata, and name no sandbox by it.
    let metadata: Value =
        stage.server.get(&format!("/v1/sessions/{session}")).await.json()["metadata"].clone();
    let forged = json!({"agent": "codex", "metadata": metadata});
    let forged = stage.server.post("/v1/sessions", &forged).await.json()["id"].clone();
    let query = format!("session_id={}&{path}", forged.as_str().unwrap());
    assert_eq!(problem(&get(&stage, ADMIN, &query).await).0, 404);
}
