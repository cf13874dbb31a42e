//! MCP servers that are reached with streamable HTTP, as tools of a model API.

use std::sync::{Arc, Mutex};

use fake_model::Reply;
use interlingua_agents::api::mcp::{McpServer, McpTransport};
use interlingua_agents::api::{ApiAgent, ApiKind};
use interlingua_agents::{Agent, Options};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::Bench;
use crate::support::within;

/// What a request of the client had.
#[derive(Debug, Clone)]
struct Seen {
    method: String,
    headers: Vec<(String, String)>,
    message: Value,
}

impl Seen {
    fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(known, _)| known == name);
        header.map(|(_, value)| &**value)
    }
}

/// A server on loopback, written without a library for the protocol.
struct HttpServer {
    address: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl HttpServer {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let shared = seen.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let seen = shared.clone();
                // The client may close the connection at any time.
                tokio::spawn(async move { serve(stream, &seen).await });
            }
        });
        Self { address, seen }
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(stream: TcpStream, seen: &Mutex<Vec<Seen>>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let method = line.split(' ').next().unwrap_or_default().to_owned();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let mut request = Seen { method, headers, message: Value::Null };
        let length = request.header("content-length").and_then(|length| length.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut body).await?;
        request.message = serde_json::from_slice(&body).unwrap_or_default();
        let response = respond(&request);
        seen.lock().unwrap().push(request);
        stream.get_mut().write_all(response.as_bytes()).await?;
    }
}

fn respond(request: &Seen) -> String {
    let message = &request.message;
    let result = match (&*request.method, message["method"].as_str().unwrap_or_default()) {
        ("POST", "initialize") => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "test", "version": "1"},
        }),
        ("POST", "tools/list") => json!({"tools": [
            {"name": "echo", "description": "Echoes.", "inputSchema": {"type": "object"}},
        ]}),
        ("POST", "tools/call") => return stream(message),
        ("POST", _) => return http("202 Accepted", "", ""),
        ("DELETE", _) => return http("200 OK", "", ""),
        // There is nothing to listen to.
        _ => return http("405 Method Not Allowed", "", ""),
    };
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    http("200 OK", "content-type: application/json\r\nmcp-session-id: session-1\r\n", &body)
}

/// A response that is a stream of events.
fn stream(message: &Value) -> String {
    let params = &message["params"];
    let progress = json!({
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": params["_meta"]["progressToken"], "progress": 1},
    });
    let text = format!("echo: {}", params["arguments"]["text"].as_str().unwrap_or_default());
    let result = json!({"content": [{"type": "text", "text": text}]});
    let result = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    let body = format!("event: message\ndata: {progress}\n\nevent: message\ndata: {result}\n\n");
    http("200 OK", "content-type: text/event-stream\r\n", &body)
}

fn http(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

fn bench(url: &str) -> Bench {
    let call = Reply::call("mcp__remote__echo", json!({"text": "hello"}));
    let mut bench = Bench::new(ApiKind::Chat, [call, Reply::text("Done.")]);
    let headers = vec![("Authorization".to_owned(), "Bearer token".to_owned())];
    let transport = McpTransport::Http { url: url.to_owned(), headers };
    bench.settings.mcp = vec![McpServer::new("remote", transport)];
    bench
}

#[tokio::test]
async fn a_call_over_http_has_progress_and_a_result() {
    let server = HttpServer::start().await;
    let bench = bench(&server.address);
    let (_, events) = bench.run("do it").await;
    let of_kind = |kind: &str| events.iter().find(|event| event["type"] == kind).unwrap();
    assert_eq!(of_kind("tool_ended")["output"], "echo: hello");
    assert_eq!(of_kind("tool_progress")["output"], "1\n");
    assert_eq!(bench.model.findings(), []);
    let seen = server.seen();
    assert!(seen.iter().all(|request| request.header("authorization") == Some("Bearer token")));
    // The session that the server opened is named, and closed at the end.
    let deleted = seen.iter().find(|request| request.method == "DELETE").unwrap();
    assert_eq!(deleted.header("mcp-session-id"), Some("session-1"));
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_a_notice() {
    // Nothing listens at a port that was just closed.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let bench = bench(&address);
    let (_, events) = bench.run("do it").await;
    let is_it = |event: &&Value| {
        let text = event["text"].as_str().unwrap_or_default();
        event["type"] == "notice" && text.starts_with("the MCP server `remote` is not available")
    };
    assert_eq!(events.iter().filter(is_it).count(), 1, "{events:?}");
    // The model called the tool nevertheless, and learns that it does not exist.
    let end = events.iter().find(|event| event["type"] == "tool_ended").unwrap();
    assert_eq!(end["status"], "failed", "{end}");
}

/// `--ca-file` reaches servers, too: certificates that cannot be read are an error.
#[tokio::test]
async fn certificates_of_the_session_are_used() {
    let mut bench = Bench::new(ApiKind::Anthropic, []);
    bench.settings.connection.certificates =
        b"-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n".to_vec();
    let url = "https://127.0.0.1:9/mcp".to_owned();
    let mut server = McpServer::new("test", McpTransport::Http { url, headers: Vec::new() });
    server.required = true;
    bench.settings.mcp = vec![server];
    let agent = Box::new(ApiAgent::new(bench.settings.clone()));
    let problem = within(agent.start(Options::default())).await.unwrap_err().to_string();
    assert!(problem.contains("`test`, which is required"), "{problem}");
    assert!(problem.contains("the certificates cannot be read"), "{problem}");
}
