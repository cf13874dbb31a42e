//! Calls that do not fit: the model learns what is wrong, and what the tool takes.

use interlingua_agents::tool::{Settings, Toolbox};
use serde_json::json;

use super::Bench;

#[tokio::test]
async fn an_unknown_tool_is_named_with_the_known_ones() {
    let bench = Bench::with(|settings| settings.tools = Some(vec!["Read".into(), "LS".into()]));
    let text = bench.failed("Frobnicate", json!({})).await;
    assert_eq!(text, "there is no tool `Frobnicate`; the tools are Read, LS");
    // A tool that is not offered does not run either.
    let text = bench.failed("Bash", json!({"command": "true"})).await;
    assert!(text.contains("there is no tool `Bash`"), "{text}");
}

#[tokio::test]
async fn an_input_that_does_not_fit_is_explained() {
    let bench = Bench::new();
    let text = bench.failed("Read", json!({"path": "a"})).await;
    assert_eq!(
        text,
        "Read: the input lacks the field `file_path`. It takes `file_path` (string), `limit` \
         (integer, optional), `offset` (integer, optional)."
    );
    for (name, input) in [
        ("Edit", json!({"file_path": "a", "old_string": 1, "new_string": "x"})),
        ("Edit", json!({"file_path": "a", "old_string": "1", "new_string": "x", "all": true})),
        ("MultiEdit", json!({"file_path": "a", "edits": []})),
        ("MultiEdit", json!({"file_path": "a", "edits": [{"old_string": "x"}]})),
        ("Grep", json!({"pattern": "("})),
        ("Grep", json!({"pattern": "x", "output_mode": "lines"})),
        ("Grep", json!({"pattern": "x", "type": "no-such-type"})),
        ("Glob", json!({"pattern": "[a"})),
        ("TodoWrite", json!({"todos": [{"content": "a", "status": "done", "activeForm": "b"}]})),
        ("Read", json!([])),
        ("Read", json!({"file_path": ""})),
        ("Read", json!({"file_path": "a\0b"})),
    ] {
        bench.failed(name, input).await;
    }
}

#[tokio::test]
async fn a_list_of_tasks_is_checked() {
    let bench = Bench::new();
    let todo = |status| json!({"content": "Run", "status": status, "activeForm": "Running"});
    let list = json!({"todos": [todo("completed"), todo("in_progress"), todo("pending")]});
    let text = bench.done("TodoWrite", list).await;
    assert!(text.contains("1 completed, 1 in progress, 1 pending"), "{text}");
    let list = json!({"todos": [todo("in_progress"), todo("in_progress")]});
    bench.failed("TodoWrite", list).await;
}

#[test]
fn a_folder_has_to_exist() {
    let problem = Toolbox::new(Settings::new("/no/such/folder")).unwrap_err();
    assert!(problem.to_string().contains("/no/such/folder"), "{problem}");
}

/// A name that is not known would otherwise leave a tool out in silence.
#[test]
fn the_name_of_an_allowed_tool_has_to_be_known() {
    let mut settings = Settings::new(std::env::temp_dir());
    settings.tools = Some(vec!["Read".to_owned(), "read_file".to_owned()]);
    let problem = Toolbox::new(settings).unwrap_err();
    assert_eq!(problem.to_string(), "\"read_file\" cannot be the name of a tool");
}

/// A loop runs calls in tasks, several of them at the same time.
#[test]
fn calls_can_run_in_any_task() {
    fn is_send<T: Send>(_: &T) {}
    fn is_shared<T: Send + Sync>(_: &T) {}
    let bench = Bench::new();
    is_shared(&bench.tools);
    let (call, mut progress) = (super::call("LS", json!({"path": "."})), |_: &str| {});
    is_send(&bench.tools.run(&call, &mut progress));
    is_send(&bench.tools.close());
}

#[test]
fn schemas_are_objects_that_forbid_other_fields() {
    let bench = Bench::with(|settings| settings.web_fetch = true);
    for definition in bench.tools.definitions() {
        assert_eq!(definition.input_schema["type"], "object", "{}", definition.name);
        assert_eq!(definition.input_schema["additionalProperties"], false, "{}", definition.name);
        assert!(!definition.description.is_empty());
    }
}
