//! Agents that a file describes, with tools of the client, which they start as a command.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::ExitCode;

use fake_model::{Reply, Script};
use interlingua_agents::permission::Mode;
use interlingua_agents::{Request, StdioToolServer};
use serde_json::json;

use crate::client_tools::{answer, home, next_call, received, snapshot};
use crate::home::Home;
use crate::situations::Outcome;

type Situation = fn(&'static str, PathBuf) -> Pin<Box<dyn Future<Output = Outcome>>>;

pub(crate) const DESCRIBED: &[(&str, Situation)] = &[
    ("a_tool_of_the_client", |agent, program| Box::pin(a_tool_of_the_client(agent, program))),
    ("two_tools_of_the_client", |agent, program| Box::pin(two_tools_of_the_client(agent, program))),
];

/// The agents that are described: each learns of the server in another way.
pub(crate) const AGENTS: [&str; 3] = ["claude", "codex", "opencode"];

/// The first argument of a process that is the server, as for `interlingua`.
pub(crate) const MCP: &str = "mcp";

/// The server, as `interlingua mcp` is one.
pub(crate) fn serve() -> ExitCode {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let (url, token) = (variable(StdioToolServer::URL), variable(StdioToolServer::TOKEN));
    let server = StdioToolServer::new(&url, &token).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(server.serve(tokio::io::stdin(), tokio::io::stdout()));
    runtime.shutdown_background();
    ExitCode::SUCCESS
}

/// The description of an agent, without its command.
fn description(agent: &str) -> &'static str {
    match agent {
        "claude" => {
            r#"
            arguments = ["--print", "--output-format", "stream-json", "--verbose"]
            dialect = "claude"
            [client-tools]
            arguments = ["--mcp-config", "{file}", "--allowedTools", "mcp__interlingua"]
            file = "{servers}"
            "#
        }
        "codex" => {
            r#"
            arguments = ["exec", "--json", "--skip-git-repo-check", "-"]
            dialect = "codex"
            [client-tools]
            arguments = ["-c", '''mcp_servers.interlingua={command="{interlingua}",args=["mcp"],env_vars=["INTERLINGUA_MCP_URL","INTERLINGUA_MCP_TOKEN"],default_tools_approval_mode="approve",required=true}''']
            "#
        }
        _ => {
            r#"
            arguments = ["run", "--format", "json"]
            dialect = "opencode"
            [client-tools.environment]
            OPENCODE_CONFIG_CONTENT = '''{"mcp":{"interlingua":{"type":"local","command":["{interlingua}","mcp"]}}}'''
            "#
        }
    }
}

/// A home with a description of its agent, and a request with the tools for a form.
async fn described(
    agent: &'static str,
    program: PathBuf,
    script: Script,
) -> Result<(Home, Request, PathBuf), String> {
    let command = format!("command = {}\n", json!(program));
    let (home, request) = home(agent, program, Mode::Ask, script).await?;
    let path = home.path().join("agent.toml");
    write(&path, &(command + description(agent)))?;
    let mcp_program = std::env::current_exe().ok();
    Ok((home, Request { mcp_program, program: None, ..request }, path))
}

fn write(path: &Path, text: &str) -> Outcome {
    std::fs::write(path, text).map_err(|error| error.to_string())
}

async fn a_tool_of_the_client(agent: &'static str, program: PathBuf) -> Outcome {
    let script = Script::new().reply(snapshot(agent, "all")).reply(Reply::text("Done."));
    let (home, request, path) = described(agent, program, script).await?;
    let mut live = home.open_described(&path, &request).await?;
    live.prompt("one").await?;
    let call = next_call(&mut live).await?;
    answer(&live, &call, json!({"fields": [{"fieldId": "bt:email"}]})).await?;
    let report = live.finish(|_, _| {}).await?;
    received(&home, &report, &["bt:email"])
}

/// The second call appears after the first was answered.
async fn two_tools_of_the_client(agent: &'static str, program: PathBuf) -> Outcome {
    let replies = [snapshot(agent, "one"), snapshot(agent, "two"), Reply::text("Done.")];
    let script = replies.into_iter().fold(Script::new(), Script::reply);
    let (home, request, path) = described(agent, program, script).await?;
    let mut live = home.open_described(&path, &request).await?;
    live.prompt("one").await?;
    for result in ["first result", "second result"] {
        let call = next_call(&mut live).await?;
        answer(&live, &call, json!(result)).await?;
    }
    let report = live.finish(|_, _| {}).await?;
    received(&home, &report, &["first result", "second result"])
}
