//! Measures what a call of a client's tool costs, without the time of the client and of the model:
//!
//!     cargo bench --package interlingua-agents --bench client_tools
//!
//! The agent is a connection to the MCP server of a live session, whose client answers at once.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]
#![allow(clippy::indexing_slicing, reason = "the index is within the number of calls")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use interlingua::dialect;
use interlingua_agents::agent::Launch;
use interlingua_agents::driver::ClaudeDriver;
use interlingua_agents::process::{Command, Input};
use interlingua_agents::{
    Agent, ClientTool, ClientToolServer, Endpoint, Options, ProcessAgent, Session,
};
use rmcp::model::CallToolRequestParams;
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceExt};
use serde_json::json;
use tokio::sync::mpsc;

const CALLS: usize = 1000;

/// An agent that begins a turn, and does nothing else.
const AGENT: &str = r#"read -r prompt
echo '{"type":"system","subtype":"init","session_id":"s1","model":"m","cwd":"/w","tools":[],"uuid":"i"}'
exec cat > /dev/null"#;

fn main() {
    // A test run of all targets passes no `--bench`.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut times = runtime.block_on(measure());
    runtime.shutdown_background();
    times.sort();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
    println!(
        "{} calls of a client's tool: median {:.2?}, 95 of 100 within {:.2?}, longest {:.2?}",
        times.len(),
        at(50),
        at(95),
        at(100)
    );
}

async fn measure() -> Vec<Duration> {
    let server = ClientToolServer::start().unwrap();
    let offer = Arc::new(server.offer(ClientTool::form()).unwrap());
    let command = Command {
        program: PathBuf::from("/bin/sh"),
        arguments: vec!["-c".into(), AGENT.into()],
        folder: std::env::temp_dir(),
        input: Input::Open,
        ..Command::default()
    };
    let driver = Box::<ClaudeDriver>::default();
    let launch = Launch::new(command, dialect::find("claude").unwrap(), driver);
    let (requests, mut asked) = mpsc::unbounded_channel();
    let options = Options { input_requests: Some(requests), ..Options::default() };
    let agent = ProcessAgent::new(launch).with_client_tools(Some(Arc::clone(&offer)));
    let Session { handle, mut entries, .. } = Box::new(agent).start(options).await.unwrap();
    let (begun, mut began) = mpsc::unbounded_channel();
    let reading = tokio::spawn(async move {
        while let Some(batch) = entries.next().await {
            let _ = begun.send(batch.len());
        }
    });
    handle.prompt("go").await.unwrap();
    began.recv().await.unwrap();
    let connection = connect(&offer.endpoint()).await;
    let client = tokio::spawn({
        let handle = handle.clone();
        async move {
            while let Some(request) = asked.recv().await {
                handle.answer(request.id(), json!({"fields": []})).await.unwrap();
            }
        }
    });
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let input = json!({"instruction": "all"}).as_object().cloned().unwrap();
        let call = CallToolRequestParams::new("getFormSnapshot").with_arguments(input);
        let begun = Instant::now();
        let result = connection.peer().call_tool(call).await.unwrap();
        times.push(begun.elapsed());
        assert_ne!(result.is_error, Some(true), "{result:?}");
    }
    handle.close().await.unwrap();
    client.abort();
    reading.abort();
    times
}

async fn connect(endpoint: &Endpoint) -> RunningService<RoleClient, ()> {
    interlingua_agents::prepare_tls();
    let token = endpoint.authorization.strip_prefix("Bearer ").unwrap();
    let config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.clone());
    let transport = StreamableHttpClientTransport::from_config(config.auth_header(token));
    ().serve(transport).await.unwrap()
}
