//! The tools and forms of MCP servers: a tool needs a permission, and a form is a question.

use std::path::PathBuf;
use std::pin::Pin;

use fake_model::{Reply, Script};
use interlingua_agents::Request;
use interlingua_agents::permission::Mode;
use serde_json::json;

use crate::home::{Home, RunReport, exists};
use crate::situations::{Outcome, expect};

type Situation = fn(&'static str, PathBuf) -> Pin<Box<dyn Future<Output = Outcome>>>;

macro_rules! situations {
    ($($name:ident),+ $(,)?) => {
        pub(crate) const MCP: &[(&str, Situation)] =
            &[$((stringify!($name), |agent, program| Box::pin($name(agent, program)))),+];
    };
}

situations![a_form_answered, a_form_declined, a_tool_denied];

/// The agents that show the forms of MCP servers to their host.
pub(crate) const AGENTS: [&str; 2] = ["codex", "claude"];

/// A home whose agent has the server `form`, the request for a session, and the file that the tool
/// of the server writes.
fn home(
    agent: &'static str,
    program: PathBuf,
    mode: Mode,
) -> Result<(Home, Request, PathBuf), String> {
    let tool = if agent == "codex" { "mcp__form/ask" } else { "mcp__form__ask" };
    let call = Reply::call(tool, json!({}));
    let script = Script::new().reply(call).reply(Reply::text("Done."));
    let home = Home::new(agent, program, script.any_stream())?;
    let called = home.work().join("called");
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/real_agents/form_server.mjs");
    let arguments = json!([server, called]);
    let mut request = home.request(mode);
    request.flags = match agent {
        "codex" => {
            let of_server =
                |key: &str, value: serde_json::Value| format!("mcp_servers.form.{key}={value}");
            let command = of_server("command", json!("node"));
            ["-c".to_owned(), command, "-c".to_owned(), of_server("args", arguments)].into()
        }
        _ => {
            let servers = json!({"mcpServers": {"form": {"command": "node", "args": arguments}}});
            ["--mcp-config".to_owned(), servers.to_string()].into()
        }
    };
    Ok((home, request, called))
}

/// The server receives the user's form.
async fn a_form_answered(agent: &'static str, program: PathBuf) -> Outcome {
    let (home, request, _) = home(agent, program, Mode::Ask)?;
    let mut live = home.open(&request, None).await?;
    live.prompt("one").await?;
    let asked = live.next_question().await?;
    let answered = live.handle.answer(asked.id(), json!({"name": "Ada"})).await;
    answered.map_err(|refused| refused.to_string())?;
    let report = live.finish(|_, _| {}).await?;
    asked_once(&report)?;
    let answers = report.of("question_answered");
    let is_ada = answers.len() == 1 && answers[0]["form"] == json!({"name": "Ada"});
    expect(is_ada, "the answer was not emitted once", &report)?;
    received(&home, &report, r#"accept: {"name":"Ada"}"#)
}

/// The server learns that there is no answer, and the turn goes on.
async fn a_form_declined(agent: &'static str, program: PathBuf) -> Outcome {
    let (home, request, _) = home(agent, program, Mode::Ask)?;
    let mut live = home.open(&request, None).await?;
    live.prompt("one").await?;
    let asked = live.next_question().await?;
    let declined = live.handle.decline(asked.id(), "not now").await;
    declined.map_err(|refused| refused.to_string())?;
    let report = live.finish(|_, _| {}).await?;
    asked_once(&report)?;
    let answers = report.of("question_answered");
    let is_declined = answers.len() == 1 && answers[0]["declined"] == true;
    expect(is_declined, "the refusal was not emitted once", &report)?;
    received(&home, &report, "decline: null")
}

/// A tool of an MCP server is judged by the policy, although Codex asks about it with a form.
async fn a_tool_denied(agent: &'static str, program: PathBuf) -> Outcome {
    for mode in [Mode::Deny, Mode::Plan] {
        let (home, request, called) = home(agent, program.clone(), mode)?;
        let live = home.open(&request, None).await?;
        live.prompt("one").await?;
        let report = live.finish(|_, _| {}).await?;
        report.lawful()?;
        expect(report.outcome() == "completed", "the turn was not completed", &report)?;
        expect(!exists(&called), "the tool ran", &report)?;
        expect(report.of("question_asked").is_empty(), "the user was asked", &report)?;
        let resolved = report.of("permission_resolved");
        let is_denied = resolved.len() == 1 && resolved[0]["decision"] == "denied";
        expect(is_denied, "the permission was not denied once", &report)?;
    }
    Ok(())
}

/// Checks that the tool was allowed, and that the server asked one question.
fn asked_once(report: &RunReport) -> Outcome {
    report.lawful()?;
    expect(report.outcome() == "completed", "the turn was not completed", report)?;
    let resolved = report.of("permission_resolved");
    let allowed = resolved.len() == 1 && resolved[0]["decision"] == "allowed";
    expect(allowed, "the tool was not allowed once", report)?;
    let asked = report.of("question_asked");
    let is_form = asked.len() == 1
        && asked[0]["message"] == "Who?"
        && asked[0]["server"] == "form"
        && asked[0]["schema"]["properties"]["name"]["type"] == "string";
    expect(is_form, "it is not the server's form", report)
}

fn received(home: &Home, report: &RunReport, words: &str) -> Outcome {
    let results = home.model.tool_results();
    let text = |text: &Option<String>| text.as_ref().is_some_and(|text| text.contains(words));
    let found = results.iter().any(|result| text(&result.text));
    expect(found, &format!("the model received {results:?}"), report)?;
    expect(report.text() == "Done.", "the text is not the script's", report)
}
