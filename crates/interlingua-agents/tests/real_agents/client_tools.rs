//! Tools that the client runs, called from inside every agent.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use fake_model::{Reply, Script};
use interlingua_agents::permission::{Decision, Mode};
use interlingua_agents::{ClientTool, ClientToolServer, InputRequest, Request, Wanted};
use serde_json::{Value, json};

use crate::home::{Home, Live, RunReport};
use crate::situations::{Outcome, expect};

type Situation = fn(&'static str, PathBuf) -> Pin<Box<dyn Future<Output = Outcome>>>;

macro_rules! situations {
    ($($name:ident),+ $(,)?) => {
        pub(crate) const CLIENT_TOOLS: &[(&str, Situation)] =
            &[$((stringify!($name), |agent, program| Box::pin($name(agent, program)))),+];
    };
}

situations![
    answered,
    answered_twice_in_a_turn,
    answered_in_every_mode,
    two_in_parallel,
    refused,
    failed,
    interrupted,
    no_client,
    closed_while_it_waits,
];

/// The name under which an agent offers a tool of the client to the model.
fn name(agent: &str, tool: &str) -> String {
    match agent {
        "codex" => format!("mcp__interlingua/{tool}"),
        "gemini" => format!("mcp_interlingua_{tool}"),
        "copilot" => format!("interlingua-{tool}"),
        "opencode" => format!("interlingua_{tool}"),
        _ => format!("mcp__interlingua__{tool}"),
    }
}

pub(crate) fn snapshot(agent: &str, instruction: &str) -> Reply {
    Reply::call(&name(agent, "getFormSnapshot"), json!({"instruction": instruction}))
}

/// A home whose model follows the script, and a request with the tools for a form.
pub(crate) async fn home(
    agent: &'static str,
    program: PathBuf,
    mode: Mode,
    script: Script,
) -> Result<(Home, Request), String> {
    let home = Home::new(agent, program, script.any_stream())?;
    let server = ClientToolServer::start().map_err(|error| error.to_string())?;
    let offer = server.offer(ClientTool::form()).map_err(|error| error.to_string())?;
    let request = Request { client_tools: Some(Arc::new(offer)), ..home.request(mode) };
    Ok((home, request))
}

/// Waits for a call of the client.
pub(crate) async fn next_call(live: &mut Live<'_>) -> Result<InputRequest, String> {
    let asked = live.next_question().await?;
    match &asked.wanted {
        Wanted::Call(_) => Ok(asked),
        other => Err(format!("it is not a call of the client: {other:?}")),
    }
}

pub(crate) async fn answer(live: &Live<'_>, call: &InputRequest, answer: Value) -> Outcome {
    let answered = live.handle.answer(call.id(), answer).await;
    answered.map(|_| ()).map_err(|refused| refused.to_string())
}

/// Checks that the calls are the client's, that each was answered once, and what the model received.
pub(crate) fn received(home: &Home, report: &RunReport, results: &[&str]) -> Outcome {
    report.lawful()?;
    expect(report.outcome() == "completed", "the turn was not completed", report)?;
    let started = report.of("tool_started");
    let is_of_client =
        |call: &&Value| call["executor"] == "client" && call["name"] == "getFormSnapshot";
    let all = started.len() == results.len() && started.iter().all(is_of_client);
    expect(all, "the calls are not the client's", report)?;
    expect(!report.of("suspended").is_empty(), "the turn was not suspended", report)?;
    expect(report.of("permission_requested").is_empty(), "the user was asked", report).or_else(
        // These agents always ask, and are answered without the user.
        |problem| if ["opencode", "copilot"].contains(&home.agent) { Ok(()) } else { Err(problem) },
    )?;
    let given = home.model.tool_results();
    for result in results {
        let has = |text: &Option<String>| text.as_ref().is_some_and(|it| it.contains(result));
        let times = given.iter().filter(|given| has(&given.text)).count();
        expect(
            times == 1,
            &format!("the model received {result:?} {times} times: {given:?}"),
            report,
        )?;
    }
    expect(report.text() == "Done.", "the text is not the script's", report)
}

async fn answered(agent: &'static str, program: PathBuf) -> Outcome {
    let script = Script::new().reply(snapshot(agent, "all")).reply(Reply::text("Done."));
    let (home, request) = home(agent, program, Mode::Ask, script).await?;
    let mut live = home.open(&request, None).await?;
    live.prompt("one").await?;
    let call = next_call(&mut live).await?;
    let Wanted::Call(called) = &call.wanted else { unreachable!() };
    let input = serde_json::from_str::<Value>(&called.input).unwrap_or_default();
    if called.tool != "getFormSnapshot" || input != json!({"instruction": "all"}) {
        return Err(format!("another call was made: {called:?}"));
    }
    // The call has an id that the stream of the agent may not have reported yet.
    live.until("the turn is suspended", |event| event["type"] == "suspended").await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    answer(&live, &call, json!({"fields": [{"fieldId": "bt:email"}]})).await?;
    let again = live.handle.answer(call.id(), json!("late")).await;
    let report = live.finish(|_, _| {}).await?;
    expect(again.is_err(), "a second answer was accepted", &report)?;
    received(&home, &report, &["bt:email"])?;
    let ended = report.of("tool_ended");
    let is_answer = ended.len() == 1
        && ended[0]["call"] == call.id()
        && ended[0]["structured"]["fields"][0]["fieldId"] == "bt:email";
    expect(is_answer, "the answer is not the client's", &report)
}

/// The second call appears after the first was answered.
async fn answered_twice_in_a_turn(agent: &'static str, program: PathBuf) -> Outcome {
    let replies = [snapshot(agent, "one"), snapshot(agent, "two"), Reply::text("Done.")];
    let script = replies.into_iter().fold(Script::new(), Script::reply);
    let (home, request) = home(agent, program, Mode::Ask, script).await?;
    let mut live = home.open(&request, None).await?;
    live.prompt("one").await?;
    for result in ["first result", "second result"] {
        let call = next_call(&mut live).await?;
        answer(&live, &call, json!(result)).await?;
    }
    let report = live.finish(|_, _| {}).await?;
    received(&home, &report, &["first result", "second result"])
}

/// The client can refuse a call itself, so no mode forbids it.
async fn answered_in_every_mode(agent: &'static str, program: PathBuf) -> Outcome {
    for mode in [Mode::Deny, Mode::Plan, Mode::Auto, Mode::AcceptEdits] {
        let script = Script::new().reply(snapshot(agent, "all")).reply(Reply::text("Done."));
        let (home, request) = home(agent, program.clone(), mode, script).await?;
        let mut live = home.open(&request, None).await?;
        live.prompt("one").await?;
        let call = next_call(&mut live).await.map_err(|problem| format!("{mode}: {problem}"))?;
        answer(&live, &call, json!("the fields")).await?;
        let report = live.finish(|_, _| {}).await?;
        received(&home, &report, &["the fields"]).map_err(|it| format!("{mode}: {it}"))?;
    }
    Ok(())
}

/// Some agents run parallel calls one after the other, and one in reverse order.
async fn two_in_parallel(agent: &'static str, program: PathBuf) -> Outcome {
    let tool = name(agent, "getFormSnapshot");
    let both = snapshot(agent, "one").then_call(&tool, json!({"instruction": "two"}));
    let script = Script::new().reply(both).reply(Reply::text("Done."));
    let (home, request) = home(agent, program, Mode::Ask, script).await?;
    let mut live = home.open(&request, None).await?;
    live.prompt("one").await?;
    for _ in 0..2 {
        let call = next_call(&mut live).await?;
        let Wanted::Call(called) = &call.wanted else { unreachable!() };
        let result = if called.input.contains("one") { "result of one" } else { "result of two" };
        answer(&live, &call, json!(result)).await?;
    }
    let report = live.finish(|_, _| {}).await?;
    received(&home, &report, &["result of one", "result of two"])?;
    for call in report.of("tool_started") {
        let ended = report.of("tool_ended");
        let its = ended.iter().find(|ended| ended["call"] == call["call"]);
        let output = its.map(|ended| ended["output"].to_string()).unwrap_or_default();
        let input = report.input_of(&call["call"]);
        let word = if input.contains("one") { "of one" } else { "of two" };
        expect(output.contains(word), "a result is that of the other call", &report)?;
    }
    Ok(())
}

async fn refused(agent: &'static str, program: PathBuf) -> Outcome {
    let script = Script::new().reply(snapshot(agent, "all")).reply(Reply::text("Done."));
    let (home, request) = home(agent, program, Mode::Ask, script).await?;
    let mut live = home.open(&request, None).await?;
    live.prompt("one").await?;
    let call = next_call(&mut live).await?;
    let denied = live.handle.decide(call.id(), Decision::Deny("not this form".to_owned())).await;
    denied.map_err(|refused| refused.to_string())?;
    let report = live.finish(|_, _| {}).await?;
    received(&home, &report, &["not this form"])?;
    let ended = report.of("tool_ended");
    expect(ended.len() == 1 && ended[0]["status"] == "denied", "it was not denied once", &report)
}

async fn failed(agent: &'static str, program: PathBuf) -> Outcome {
    let script = Script::new().reply(snapshot(agent, "all")).reply(Reply::text("Done."));
    let (home, request) = home(agent, program, Mode::Ask, script).await?;
    let mut live = home.open(&request, None).await?;
    live.prompt("one").await?;
    let call = next_call(&mut live).await?;
    let declined = live.handle.decline(call.id(), "the page has no form").await;
    declined.map_err(|refused| refused.to_string())?;
    let report = live.finish(|_, _| {}).await?;
    received(&home, &report, &["the page has no form"])?;
    let ended = report.of("tool_ended");
    expect(ended.len() == 1 && ended[0]["status"] == "failed", "it has not failed once", &report)
}

/// The turn ends, an answer comes too late, and the next prompt works.
async fn interrupted(agent: &'static str, program: PathBuf) -> Outcome {
    let script = Script::new().reply(snapshot(agent, "all")).reply(Reply::text("Done."));
    let (home, request) = home(agent, program, Mode::Ask, script).await?;
    let mut live = home.open(&request, None).await?;
    live.prompt("one").await?;
    let call = next_call(&mut live).await?;
    live.handle.interrupt().await.map_err(|refused| refused.to_string())?;
    live.until_turns(1).await?;
    let late = live.handle.answer(call.id(), json!("late")).await;
    live.prompt("two").await?;
    let report = live.finish(|_, _| {}).await?;
    report.lawful()?;
    expect(late.is_err() && !call.is_pending(), "a late answer was accepted", &report)?;
    let outcomes: Vec<_> = report.of("turn_ended").iter().map(|it| it["outcome"].clone()).collect();
    expect(outcomes == ["cancelled", "completed"], "the turns ended differently", &report)?;
    let given = home.model.tool_results();
    let is_late = given.iter().any(|it| it.text.as_deref().is_some_and(|it| it.contains("late")));
    expect(!is_late, "the model received the late answer", &report)?;
    expect(report.text() == "Done.", "the text is not the script's", &report)
}

/// If no client is there, the model learns it, and goes on.
async fn no_client(agent: &'static str, program: PathBuf) -> Outcome {
    let script = Script::new().reply(snapshot(agent, "all")).reply(Reply::text("Done."));
    let (home, request) = home(agent, program, Mode::Auto, script).await?;
    let live = home.open_without_user(&request).await?;
    live.prompt("one").await?;
    let report = live.finish(|_, _| {}).await?;
    received(&home, &report, &["no client is connected"])
}

async fn closed_while_it_waits(agent: &'static str, program: PathBuf) -> Outcome {
    let script = Script::new().reply(snapshot(agent, "all")).reply(Reply::text("Done."));
    let (home, request) = home(agent, program, Mode::Ask, script).await?;
    let mut live = home.open(&request, None).await?;
    live.prompt("one").await?;
    let call = next_call(&mut live).await?;
    live.handle.close().await.map_err(|refused| refused.to_string())?;
    let report = live.rest(|_, _| {}).await?;
    report.lawful()?;
    expect(!call.is_pending(), "the call is still pending", &report)?;
    expect(report.outcome() == "cancelled", "the turn was not cancelled", &report)
}
