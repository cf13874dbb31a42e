//! An agent that calls the client's tools over its control channel, without a connection. A shell script
//! plays Claude Code.

use interlingua::event::Outcome;
use interlingua_agents::{Ended, Stop};

use super::*;

/// An agent that calls a tool in each turn: it asks the hook, makes the call when that is allowed, and repeats
/// the result. In a file `deaf` in its folder it finds that it is not to react to a deferral.
const CALLER: &str = r#"
ends() { echo '{"type":"result","subtype":"success","is_error":false,"terminal_reason":"'$1'","stop_reason":"'$1'","result":"","session_id":"s1","uuid":"r"}'; }
while read -r line; do
  case $line in
    *'"type":"user"'*)
      printf '%s\n' '{"type":"system","subtype":"init","session_id":"s1","model":"m","cwd":"/w","tools":[],"uuid":"i"}'
      printf '%s\n' '{"type":"stream_event","event":{"type":"message_start","message":{"id":"m1"}},"session_id":"s1","parent_tool_use_id":null,"uuid":"e1"}'
      printf '%s\n' '{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"mcp__interlingua__getFormSnapshot","input":{"instruction":"all"}}]},"session_id":"s1","parent_tool_use_id":null,"uuid":"u1"}'
      printf '%s\n' '{"type":"control_request","request_id":"h1","request":{"subtype":"hook_callback","callback_id":"interlingua-client-tool","input":{"hook_event_name":"PreToolUse","tool_name":"mcp__interlingua__getFormSnapshot","tool_input":{"instruction":"all"},"tool_use_id":"t1"},"tool_use_id":"t1"}}'
      printf '%s\n' '{"type":"stream_event","event":{"type":"message_stop"},"session_id":"s1","parent_tool_use_id":null,"uuid":"e2"}'
      ;;
    *'"permissionDecision":"allow"'*)
      printf '%s\n' '{"type":"control_request","request_id":"c1","request":{"subtype":"mcp_message","server_name":"interlingua","message":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"getFormSnapshot","arguments":{"instruction":"all"},"_meta":{"claudecode/toolUseId":"t1"}}}}}'
      ;;
    *'"permissionDecision":"defer"'*) test -e deaf || ends tool_deferred;;
    *'"mcp_response"'*)
      text=${line#*text\":\"}; text=${text%%\"*}
      printf '%s\n' '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"'"$text"'"}]},"session_id":"s1","uuid":"u2"}'
      printf '%s\n' '{"type":"assistant","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"got '"$text"'"}]},"session_id":"s1","parent_tool_use_id":null,"uuid":"u3"}'
      ends end_turn;;
  esac
done"#;

type Asked = mpsc::UnboundedReceiver<InputRequest>;

/// A session whose agent waits for the client, which is there as long as its end of the channel.
async fn waiting(folder: &tempfile::TempDir) -> (Watched, Asked) {
    let server = ClientToolServer::start().unwrap();
    let offer = Arc::new(server.offer(ClientTool::form()).unwrap());
    let driver = ClaudeDriver::default().with_client_tools(offer.tools());
    let mut launch = live(&[CALLER], "claude", Input::Open, Box::new(driver));
    launch.command.folder = folder.path().to_owned();
    launch.client_tools.passes_ids = true;
    let (requests, mut asked) = mpsc::unbounded_channel();
    let options = Options { input_requests: Some(requests), ..options() };
    let agent = ProcessAgent::new(launch).with_client_tools(Some(offer));
    let mut session = Watched::open(agent, options).await;
    session.handle.prompt("go").await.unwrap();
    let call = within(asked.recv()).await.unwrap();
    assert_eq!(call.id(), "t1");
    session.until(|event| event["type"] == "suspended").await;
    session.until(|event| event["type"] == "message_ended").await;
    (session, asked)
}

#[tokio::test]
async fn a_call_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let (mut session, _asked) = waiting(&folder).await;
    session.handle.answer("t1", json!("Blue")).await.unwrap();
    session.until(|event| event["type"] == "turn_ended").await;
    assert_eq!(crate::support::text(&session.events), "got Blue");
    let of = |kind: &str| session.events.iter().filter(|it| it["type"] == kind).collect::<Vec<_>>();
    assert_eq!((of("tool_started").len(), of("tool_ended").len()), (1, 1));
    assert_eq!(of("tool_started")[0]["executor"], "client");
    assert_eq!(of("tool_ended")[0]["output"], "Blue");
    session.handle.finish().await.unwrap();
    let (ended, _) = session.end().await;
    assert_eq!(ended.outcome, Some(Outcome::Completed));
}

/// Stops a session whose call waits; returns its end, and the end of the turn.
async fn suspended(folder: &tempfile::TempDir) -> (Ended, Value) {
    let (session, _asked) = waiting(folder).await;
    session.handle.stop(Stop::Suspended).await.unwrap();
    let (ended, events) = session.end().await;
    assert!(events.iter().all(|event| event["type"] != "tool_ended"), "{events:#?}");
    let turns: Vec<_> = events.into_iter().filter(|it| it["type"] == "turn_ended").collect();
    let [turn] = &*turns else { panic!("{turns:#?}") };
    assert_eq!(turn["outcome"], "waiting_for_client");
    (ended, turn.clone())
}

#[tokio::test]
async fn a_suspended_agent_defers_the_call_and_exits_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (ended, turn) = suspended(&folder).await;
    assert_eq!((&turn["reason"], &turn["synthetic"]), (&json!("tool_deferred"), &Value::Null));
    assert_eq!((ended.exit.code, ended.exit.signal), (Some(0), None));
}

/// It must not go on with what it did.
#[tokio::test]
async fn a_suspended_agent_that_does_not_defer_the_call_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("deaf"), "").unwrap();
    let (ended, turn) = suspended(&folder).await;
    assert_eq!(turn["synthetic"], "stopped");
    assert_eq!(ended.exit.signal, Some(9));
}

/// The beginning, which the driver passes on, and what the reader reads itself are in one chunk.
#[tokio::test]
async fn what_a_resumed_agent_prints_is_read_once() {
    const ANSWERS: &str = r#"
read -r line
printf '%s\n%s\n%s\n' '{"type":"system","subtype":"init","session_id":"s1","model":"m","cwd":"/w","tools":[],"uuid":"i"}' '{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Hi"}]},"session_id":"s1","uuid":"u1"}' '{"type":"result","subtype":"success","is_error":false,"result":"Hi","session_id":"s1","uuid":"r"}'
cat >/dev/null"#;
    let driver = Box::new(ClaudeDriver::default().resuming());
    let launch = live(&[ANSWERS], "claude", Input::Open, driver);
    let mut session = Watched::open(ProcessAgent::new(launch), options()).await;
    session.handle.prompt("go").await.unwrap();
    session.until(|event| event["type"] == "turn_ended").await;
    session.handle.finish().await.unwrap();
    let (_, events) = session.end().await;
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((count("turn_ended"), count("block")), (1, 1), "{events:#?}");
    assert_eq!(crate::support::text(&events), "Hi");
}
