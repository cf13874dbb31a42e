//! Results that are longer than what an agent gets of them.

use std::path::PathBuf;

use interlingua_agents::agent::Delivery;
use interlingua_agents::driver::PlainDriver;
use interlingua_agents::{CallOutcome, LateResult, Prompt};

use super::*;

/// A result of 5 MB.
fn long() -> String {
    "zeile ä\n".repeat(5_000_000 / 9)
}

/// What an agent gets at most of a result.
const SHOWN: usize = 20_000;

/// An agent that begins a turn with each prompt and ends it when it is interrupted. With `open PATH` in the
/// prompt, it asks for the permission to read a file.
const OPENER: &str = r#"
end() { printf '%s\n' '{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"s1","uuid":"r"}'; }
while read -r line; do
  case $line in
    *'"subtype":"interrupt"'*|*'"behavior":'*) end; continue;;
    *'"type":"user"'*) ;;
    *) continue;;
  esac
  case $line in
    *'open '*)
      path=${line#*open }; path=${path%%\"*}
      printf '%s\n' '{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"'"$path"'"}}]},"session_id":"s1","uuid":"u1"}'
      printf '%s\n' '{"type":"control_request","request_id":"p1","request":{"subtype":"can_use_tool","tool_name":"Read","input":{"file_path":"'"$path"'"},"tool_use_id":"t1"}}'
      continue;;
  esac
  printf '%s\n' '{"type":"system","subtype":"init","session_id":"s1","model":"m","cwd":"/w","tools":[],"uuid":"i"}'
done"#;

/// An agent that repeats its prompt.
const REPEATER: &str = r#"
while read -r line; do
  case $line in *'"type":"user"'*) ;; *) continue;; esac
  text=${line#*content\":\"}; text=${text%%\"*}
  printf '%s\n' '{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"'"$text"'"}]},"session_id":"s1","uuid":"u1"}'
  printf '%s\n' '{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"s1","uuid":"r1"}'
done"#;

fn played(script: &str) -> Launch {
    live(&[script], "claude", Input::Open, Box::<ClaudeDriver>::default())
}

/// The file that a result names.
fn file_of(shown: &str) -> PathBuf {
    let named = shown.split_once(" in the file ").unwrap().1;
    named.split_once(']').unwrap().0.into()
}

#[tokio::test]
async fn an_agent_gets_the_beginning_and_a_file_that_it_may_read() {
    // Otherwise the file would be inside of it.
    let folder = tempfile::tempdir().unwrap();
    let mut launch = played(OPENER);
    launch.command.folder = folder.path().to_owned();
    let mut scene = Scene::with(options(), launch).await;
    let waits = scene.call("all");
    let asked = scene.next().await;
    scene.session.handle.answer(asked.id(), json!(long())).await.unwrap();
    let result = within(waits).await.unwrap();
    let shown = text(&result);
    assert!(result.content.len() == 1 && shown.len() <= SHOWN, "{}", shown.len());
    let file = file_of(&shown);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), long());
    assert_eq!(scene.ended(asked.id()).await["output"], json!(long()));
    scene.session.handle.interrupt().await.unwrap();
    scene.session.until(|event| event["type"] == "turn_ended").await;
    let open = format!("open {}", file.display());
    scene.session.handle.prompt(open.as_str()).await.unwrap();
    let is_resolved = |event: &Value| event["type"] == "permission_resolved";
    assert_eq!(scene.session.until(is_resolved).await["decision"], "allowed");
    scene.session.handle.finish().await.unwrap();
    scene.session.end().await;
    assert!(!file.exists());
}

#[tokio::test]
async fn an_error_is_shortened_too() {
    let mut scene = Scene::new(options()).await;
    let waits = scene.call("all");
    let asked = scene.next().await;
    scene.session.handle.decline(asked.id(), &long()).await.unwrap();
    let result = within(waits).await.unwrap();
    assert_eq!(result.is_error, Some(true));
    assert_eq!(std::fs::read_to_string(file_of(&text(&result))).unwrap(), long());
}

/// An agent that repeats what it is started with, and takes no other prompt.
const ONCE: &str = r#"
text=$(cat | tr -d '\n"')
printf '%s\n' '{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"'"$text"'"}]},"session_id":"s1","uuid":"u1"}'
printf '%s\n' '{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"s1","uuid":"r1"}'"#;

/// With a history, because the agent has forgotten its session, the result was given whole, and so it was to an agent
/// that gets its prompt when it is started.
#[tokio::test]
async fn a_late_result_is_shortened_in_its_prompt() {
    let once = Launch {
        delivery: Delivery::Input,
        ..live(&[ONCE], "claude", Input::Closed, Box::new(PlainDriver::default()))
    };
    for (launch, preamble) in
        [(played(REPEATER), None), (played(REPEATER), Some("What was said.")), (once, None)]
    {
        let mut session = Watched::open(ProcessAgent::new(launch), options()).await;
        let late = LateResult {
            call: "c1".to_owned(),
            native: None,
            tool: "ask".to_owned(),
            input: "{}".to_owned(),
            outcome: CallOutcome::Output(json!(long())),
            deferred: false,
        };
        let prompt = Prompt::resuming(vec![late]);
        let prompt = preamble.map_or(prompt.clone(), |preamble| prompt.after(preamble));
        session.handle.prompt(prompt).await.unwrap();
        session.until(|event| event["type"] == "turn_ended").await;
        let given = crate::support::text(&session.events);
        assert!(given.len() < SHOWN + 1000, "{preamble:?}: {}", given.len());
        assert!(given.starts_with(preamble.unwrap_or("Your last turn was cut off")), "{given}");
        assert_eq!(std::fs::read_to_string(file_of(&given)).unwrap(), long());
        let ended = session.events.iter().find(|event| event["type"] == "tool_ended").unwrap();
        assert_eq!(ended["output"], json!(long()));
    }
}
