//! Tools that the client runs. A shell script plays Claude Code, and the test calls the tools in its
//! place.

mod control_channel;
mod long_results;
mod overhead;

use std::sync::Arc;
use std::time::Duration;

use interlingua_agents::agent::{ClientToolNeeds, Launch};
use interlingua_agents::driver::ClaudeDriver;
use interlingua_agents::permission::Decision;
use interlingua_agents::process::Input;
use interlingua_agents::{
    Agent, ClientTool, ClientToolOffer, ClientToolServer, Endpoint, InputRequest, Options,
    ProcessAgent, Refused, Wanted,
};
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::support::*;

/// An agent that begins a turn with each prompt, and ends it when it is interrupted. A prompt with the
/// word `repeat` is repeated.
const WAITER: &str = r#"
end() { echo '{"type":"result","subtype":"'$1'","is_error":'$2',"terminal_reason":"'$3'","result":"","session_id":"s1","uuid":"r'$n'"}'; }
n=0
while read -r line; do
  case $line in
    *'"subtype":"interrupt"'*) end error_during_execution true aborted_streaming; continue;;
    *'"type":"user"'*) ;;
    *) continue;;
  esac
  n=$((n+1))
  case $line in
    *repeat*)
      text=${line#*content\":\"}
      echo '{"type":"assistant","message":{"id":"m'$n'","role":"assistant","content":[{"type":"text","text":"'"${text%%\"*}"'"}]},"session_id":"s1","uuid":"u'$n'"}'
      end success false completed; continue;;
  esac
  echo '{"type":"system","subtype":"init","session_id":"s1","model":"m","cwd":"/w","tools":[],"uuid":"i'$n'"}'
done"#;

fn waiter() -> Launch {
    live(&[WAITER], "claude", Input::Open, Box::<ClaudeDriver>::default())
}

/// A session in a turn, what the client learns of it, and the connection of its agent.
struct Scene {
    session: Watched,
    asked: mpsc::UnboundedReceiver<InputRequest>,
    agent: RunningService<RoleClient, ()>,
    _offer: Arc<ClientToolOffer>,
}

impl Scene {
    async fn new(options: Options) -> Self {
        Self::with(options, waiter()).await
    }

    async fn with(mut options: Options, launch: Launch) -> Self {
        let server = ClientToolServer::start().unwrap();
        let offer = Arc::new(server.offer(ClientTool::form()).unwrap());
        let (requests, asked) = mpsc::unbounded_channel();
        options.input_requests = Some(requests);
        let agent = ProcessAgent::new(launch).with_client_tools(Some(Arc::clone(&offer)));
        let mut session = Watched::open(agent, options).await;
        session.handle.prompt("go").await.unwrap();
        session.until(|event| event["type"] == "turn_started").await;
        let agent = connect(&offer.endpoint()).await;
        Self { session, asked, agent, _offer: offer }
    }

    /// The agent calls a tool, with an id of its own in the metadata.
    fn call_as(&self, id: &str, instruction: &str) -> JoinHandle<CallToolResult> {
        let peer = self.agent.peer().clone();
        let input = json!({"instruction": instruction}).as_object().cloned().unwrap();
        let mut call = CallToolRequestParams::new("getFormSnapshot").with_arguments(input);
        let meta = json!({"claudecode/toolUseId": id}).as_object().cloned().unwrap();
        call.meta = Some(serde_json::from_value(meta.into()).unwrap());
        tokio::spawn(async move { peer.call_tool(call).await.unwrap() })
    }

    /// The agent calls a tool.
    fn call(&self, instruction: &str) -> JoinHandle<CallToolResult> {
        let peer = self.agent.peer().clone();
        let input = json!({"instruction": instruction}).as_object().cloned().unwrap();
        let call = CallToolRequestParams::new("getFormSnapshot").with_arguments(input);
        tokio::spawn(async move { peer.call_tool(call).await.unwrap() })
    }

    async fn next(&mut self) -> InputRequest {
        let asked = within(self.asked.recv()).await.unwrap();
        assert!(matches!(&asked.wanted, Wanted::Call(call) if call.tool == "getFormSnapshot"));
        asked
    }

    async fn ended(&mut self, call: &str) -> Value {
        let is_end = |event: &Value| event["type"] == "tool_ended" && event["call"] == *call;
        self.session.until(is_end).await
    }
}

async fn connect(endpoint: &Endpoint) -> RunningService<RoleClient, ()> {
    interlingua_agents::prepare_tls();
    let token = endpoint.authorization.strip_prefix("Bearer ").unwrap();
    let config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.clone());
    let transport = StreamableHttpClientTransport::from_config(config.auth_header(token));
    ().serve(transport).await.unwrap()
}

fn text(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|block| block.as_text()).map(|it| it.text.clone()).collect()
}

#[tokio::test]
async fn a_call_suspends_the_turn_until_it_is_answered() {
    let mut scene = Scene::new(options()).await;
    let waits = scene.call("all");
    let asked = scene.next().await;
    let suspended = scene.session.until(|event| event["type"] == "suspended").await;
    assert_eq!(suspended["calls"], json!([asked.id()]));
    assert_eq!(suspended["sequence"], asked.sequence);
    let answer = json!({"fields": [{"label": "E-mail"}]});
    scene.session.handle.answer(asked.id(), answer.clone()).await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text(&waits.await.unwrap())).unwrap(), answer);
    let ended = scene.ended(asked.id()).await;
    assert_eq!((&ended["status"], &ended["structured"]), (&json!("completed"), &answer));
    assert!(!asked.is_pending());
    let again = scene.session.handle.answer(asked.id(), json!("late")).await;
    assert!(matches!(again, Err(Refused::UnknownRequest { .. })), "{again:?}");
}

#[tokio::test]
async fn a_refusal_and_a_failure_are_errors_that_the_model_sees() {
    let mut scene = Scene::new(options()).await;
    for (status, words) in [("denied", "not this form"), ("failed", "there is no form")] {
        let waits = scene.call(status);
        let asked = scene.next().await;
        let handle = &scene.session.handle;
        let answered = match status {
            "denied" => handle.decide(asked.id(), Decision::Deny(words.to_owned())).await,
            _ => handle.decline(asked.id(), words).await,
        };
        answered.unwrap();
        let result = waits.await.unwrap();
        assert_eq!((result.is_error, &*text(&result)), (Some(true), words));
        let ended = scene.ended(asked.id()).await;
        assert_eq!((&ended["status"], &ended["error"]), (&json!(status), &json!(words)));
    }
}

/// A permission is not what a call needs.
#[tokio::test]
async fn a_call_cannot_be_allowed() {
    let mut scene = Scene::new(options()).await;
    let waits = scene.call("all");
    let asked = scene.next().await;
    let allowed = scene.session.handle.decide(asked.id(), Decision::Allow).await;
    assert!(matches!(allowed, Err(Refused::WrongAnswer { .. })), "{allowed:?}");
    scene.session.handle.answer(asked.id(), json!("fields")).await.unwrap();
    assert_eq!(text(&waits.await.unwrap()), "fields");
}

/// The limit is one of its own: a person may take longer than for a permission.
#[tokio::test]
async fn a_call_that_is_not_answered_in_time_fails() {
    let mut options = options();
    options.deadlines.client_tool = Duration::from_millis(50);
    let mut scene = Scene::new(options).await;
    let waits = scene.call("all");
    let asked = scene.next().await;
    let result = within(waits).await.unwrap();
    assert_eq!(result.is_error, Some(true));
    assert!(text(&result).contains("not answered in time"), "{}", text(&result));
    assert_eq!(scene.ended(asked.id()).await["status"], "failed");
}

/// Gemini gives a call up after ten minutes. The model learns that it can wait on.
#[tokio::test]
async fn a_call_ends_before_the_limit_of_its_agent() {
    let limit = Some(Duration::from_millis(50));
    let needs = ClientToolNeeds { limit, ..ClientToolNeeds::default() };
    let launch = Launch { client_tools: needs, ..waiter() };
    let mut scene = Scene::with(options(), launch).await;
    let waits = scene.call("all");
    let asked = scene.next().await;
    let result = within(waits).await.unwrap();
    assert_eq!(result.is_error, Some(true));
    assert!(text(&result).contains("call this tool again to keep waiting"), "{}", text(&result));
    assert_eq!(scene.ended(asked.id()).await["status"], "failed");
}

/// The answer to a permission request is awaited for a shorter time.
#[tokio::test]
async fn a_call_outlasts_the_limit_for_answers() {
    let mut options = options();
    options.deadlines.answer = Duration::ZERO;
    let mut scene = Scene::new(options).await;
    let waits = scene.call("all");
    let asked = scene.next().await;
    scene.session.handle.answer(asked.id(), json!("fields")).await.unwrap();
    assert_eq!(text(&waits.await.unwrap()), "fields");
}

/// The agent is released, also if it does not cancel its calls.
#[tokio::test]
async fn an_interrupt_ends_the_calls() {
    let mut scene = Scene::new(options()).await;
    let waits = [scene.call("one"), scene.call("two")];
    let asked = [scene.next().await, scene.next().await];
    scene.session.handle.interrupt().await.unwrap();
    for (waits, asked) in waits.into_iter().zip(asked) {
        let result = within(waits).await.unwrap();
        assert_eq!(result.is_error, Some(true));
        assert_eq!(scene.ended(asked.id()).await["status"], "abandoned");
        let late = scene.session.handle.answer(asked.id(), json!("late")).await;
        assert!(matches!(late, Err(Refused::UnknownRequest { .. })), "{late:?}");
    }
}

/// No one can answer any more, and the agent does not wait.
#[tokio::test]
async fn a_client_that_leaves_fails_the_calls() {
    let mut scene = Scene::new(options()).await;
    let waits = scene.call("all");
    let asked = scene.next().await;
    scene.asked.close();
    let result = within(waits).await.unwrap();
    assert!(text(&result).contains("no client is connected"), "{}", text(&result));
    assert_eq!(scene.ended(asked.id()).await["status"], "failed");
    let result = within(scene.call("again")).await.unwrap();
    assert!(text(&result).contains("no client is connected"), "{}", text(&result));
}

/// An agent may give a call up by itself.
#[tokio::test]
async fn a_call_that_is_withdrawn_is_not_pending() {
    let mut scene = Scene::new(options()).await;
    let waits = scene.call("all");
    let asked = scene.next().await;
    waits.abort();
    let ended = scene.ended(asked.id()).await;
    assert_eq!(ended["status"], "cancelled");
    assert!(!asked.is_pending());
    let late = scene.session.handle.answer(asked.id(), json!("late")).await;
    assert!(matches!(late, Err(Refused::UnknownRequest { .. })), "{late:?}");
}

/// Codex gives its calls up when it is asked to exit. They were cancelled, so that no answer was taken any more.
#[tokio::test]
async fn a_call_that_is_withdrawn_by_a_process_that_exits_waits_on() {
    let exits = Fifo::new();
    let begins = r#"read -r prompt; echo '{"type":"system","subtype":"init","session_id":"s1","model":"m","cwd":"/w","tools":[],"uuid":"i1"}'"#;
    let lines = [begins, &exits.wait_command(), "exit 3"];
    let launch = live(&lines, "claude", Input::Open, Box::<ClaudeDriver>::default());
    let mut scene = Scene::with(options(), launch).await;
    let waits = scene.call("all");
    scene.next().await;
    waits.abort();
    assert!(waits.await.unwrap_err().is_cancelled());
    // What the server answers now, it answers behind the withdrawal.
    scene.agent.peer().list_all_tools().await.unwrap();
    exits.release();
    let ended = scene.session.until(|event| event["type"] == "turn_ended").await;
    assert_eq!(ended["outcome"], "waiting_for_client");
    assert!(!scene.session.events.iter().any(|event| event["type"] == "tool_ended"));
}

/// An agent may print its configuration.
#[tokio::test]
async fn the_token_is_redacted() {
    let server = ClientToolServer::start().unwrap();
    let offer = Arc::new(server.offer(ClientTool::form()).unwrap());
    let agent = ProcessAgent::new(waiter()).with_client_tools(Some(Arc::clone(&offer)));
    let session = Watched::open(agent, options()).await;
    let authorization = offer.endpoint().authorization;
    session.handle.prompt(format!("repeat {authorization} twice").as_str()).await.unwrap();
    session.handle.finish().await.unwrap();
    let (ended, events) = session.end().await;
    let token = authorization.strip_prefix("Bearer ").unwrap();
    let all = serde_json::to_string(&events).unwrap();
    assert!(all.contains("repeat Bearer [") && !all.contains(token), "{all}");
    assert!(!ended.redacted.is_empty());
}

/// The silence of the agent begins with the answer. Before, a late answer ended the session at once.
#[tokio::test]
async fn a_call_may_take_longer_than_the_limit_for_silence() {
    let mut options = options();
    let silence = Duration::from_secs(2);
    options.deadlines.silence = Some(silence);
    let mut scene = Scene::new(options).await;
    for word in ["one", "two"] {
        let waits = scene.call(word);
        let asked = scene.next().await;
        // The time that passes is what is tested.
        tokio::time::sleep(silence + Duration::from_millis(100)).await;
        scene.session.handle.answer(asked.id(), json!(word)).await.unwrap();
        assert_eq!(text(&within(waits).await.unwrap()), word);
    }
}

/// A call that arrives after the end of its turn would open one that never ends.
#[tokio::test]
async fn a_call_outside_of_a_turn_is_refused() {
    let mut scene = Scene::new(options()).await;
    scene.session.handle.interrupt().await.unwrap();
    scene.session.until(|event| event["type"] == "turn_ended").await;
    let result = within(scene.call("late")).await.unwrap();
    assert!(text(&result).contains("no turn is running"), "{}", text(&result));
    scene.session.handle.prompt("repeat this").await.unwrap();
    let is_end = |event: &Value| event["type"] == "turn_ended";
    let second = scene.session.until_seen(2, is_end).await;
    assert_eq!(second["outcome"], "completed");
    let started = scene.session.events.iter().filter(|event| event["type"] == "tool_started");
    assert_eq!(started.count(), 0);
}

/// Only of some agents it is known that the id is that of the call. What another one sends in its place
/// could be the id of any call.
#[tokio::test]
async fn an_id_that_an_agent_does_not_pass_on_is_not_trusted() {
    let mut scene = Scene::new(options()).await;
    let waits = scene.call_as("toolu_forged", "all");
    let asked = scene.next().await;
    assert_ne!(asked.id(), "toolu_forged");
    scene.session.handle.answer(asked.id(), json!("fields")).await.unwrap();
    assert_eq!(text(&waits.await.unwrap()), "fields");
}

/// With the id of another call, the answer would become the result of that one.
#[tokio::test]
async fn the_id_of_another_call_is_refused() {
    let passes_ids = ClientToolNeeds { passes_ids: true, ..ClientToolNeeds::default() };
    let launch = Launch { client_tools: passes_ids, ..waiter() };
    let mut scene = Scene::with(options(), launch).await;
    let waits = scene.call_as("toolu_1", "all");
    let asked = scene.next().await;
    assert_eq!(asked.id(), "toolu_1");
    scene.session.handle.answer("toolu_1", json!("fields")).await.unwrap();
    assert_eq!(text(&waits.await.unwrap()), "fields");
    // It has ended.
    let result = within(scene.call_as("toolu_1", "again")).await.unwrap();
    assert_eq!((result.is_error, &*text(&result)), (Some(true), "this call has ended already"));
    assert!(scene.asked.try_recv().is_err());
}

/// The calls of two sessions could not be distinguished.
#[tokio::test]
async fn an_offer_is_for_one_session() {
    let server = ClientToolServer::start().unwrap();
    let offer = Arc::new(server.offer(ClientTool::form()).unwrap());
    let agent = || ProcessAgent::new(waiter()).with_client_tools(Some(Arc::clone(&offer)));
    let _session = Watched::open(agent(), options()).await;
    let refused = Box::new(agent()).start(options()).await.unwrap_err();
    assert!(refused.to_string().contains("another session"), "{refused}");
}
