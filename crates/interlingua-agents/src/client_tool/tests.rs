//! The MCP server, as a client of the protocol sees it.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientRequest,
    ProgressNotificationParam, Request,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};

use super::server::Limits;
use super::*;

fn tool(name: &str) -> ClientTool {
    ClientTool {
        name: name.to_owned(),
        description: String::new(),
        input_schema: any_object(),
        read_only: false,
    }
}

#[test]
fn tools_that_no_agent_could_call_are_refused() {
    assert_eq!(ClientTool::check(&[tool("a"), tool("getForm_2-x")]), Ok(()));
    assert_eq!(ClientTool::check(&ClientTool::form()), Ok(()));
    for name in ["", "1a", "a b", "a.b", "ä", &"x".repeat(41)] {
        assert!(ClientTool::check(&[tool(name)]).unwrap_err().contains("name"), "{name}");
    }
    assert!(ClientTool::check(&[tool("a"), tool("a")]).unwrap_err().contains("two"));
    let many: Vec<_> = (0..65).map(|number| tool(&format!("t{number}"))).collect();
    assert!(ClientTool::check(&many).unwrap_err().contains("65"));
    let schema = json!({"type": "array"}).as_object().unwrap().clone();
    let array = ClientTool { input_schema: schema, ..tool("a") };
    assert!(ClientTool::check(&[array]).unwrap_err().contains("object"));
}

#[test]
fn a_tool_is_read_as_clients_write_it() {
    let read: ClientTool = serde_json::from_value(json!({"name": "a"})).unwrap();
    assert_eq!(read, tool("a"));
    let unknown = serde_json::from_value::<ClientTool>(json!({"name": "a", "schema": {}}));
    assert!(unknown.unwrap_err().to_string().contains("schema"));
}

/// Connects as an agent would.
async fn connect(endpoint: &Endpoint) -> Result<RunningService<RoleClient, ()>, String> {
    ().serve(transport(endpoint)).await.map_err(|error| error.to_string())
}

fn transport(endpoint: &Endpoint) -> StreamableHttpClientTransport<reqwest::Client> {
    crate::prepare_tls();
    let token = endpoint.authorization.strip_prefix("Bearer ").unwrap();
    let config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.clone());
    StreamableHttpClientTransport::from_config(config.auth_header(token))
}

async fn offer(tools: Vec<ClientTool>) -> ClientToolOffer {
    ClientToolServer::start().unwrap().offer(tools).unwrap()
}

fn call(name: &'static str, input: Value) -> CallToolRequestParams {
    let input = input.as_object().cloned().unwrap_or_default();
    CallToolRequestParams::new(name).with_arguments(input)
}

fn text(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|block| block.as_text()).map(|it| it.text.clone()).collect()
}

async fn next_call(messages: &mut mpsc::UnboundedReceiver<ToolMessage>) -> ReceivedCall {
    match messages.recv().await {
        Some(ToolMessage::Called(call)) => call,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_call_waits_for_its_answer() {
    let offer = offer(ClientTool::form()).await;
    let mut messages = offer.take_messages().unwrap();
    let agent = connect(&offer.endpoint()).await.unwrap();
    let listed = agent.list_all_tools().await.unwrap();
    let names: Vec<_> = listed.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["getFormSnapshot", "executeFormActions"]);
    assert_eq!(*offer.listings().borrow(), 1);
    for (result, is_error) in [
        (ClientResult::Output("fields".to_owned()), None),
        (ClientResult::Error("no form".to_owned()), Some(true)),
    ] {
        let peer = agent.peer().clone();
        let waits = tokio::spawn(async move {
            peer.call_tool(call("getFormSnapshot", json!({"instruction": "all"}))).await
        });
        let received = next_call(&mut messages).await;
        assert_eq!(received.tool, "getFormSnapshot");
        assert_eq!(received.input, r#"{"instruction":"all"}"#);
        let (ClientResult::Output(words) | ClientResult::Error(words)) = &result;
        let words = words.clone();
        received.answer.send(result).unwrap();
        let answered = waits.await.unwrap().unwrap();
        assert_eq!(text(&answered), words);
        assert_eq!(answered.is_error.filter(|it| *it), is_error);
        // It is not waited for any more.
        assert!(matches!(messages.recv().await, Some(ToolMessage::Withdrawn(_))));
    }
}

#[tokio::test]
async fn calls_wait_in_parallel() {
    let offer = offer(ClientTool::form()).await;
    let mut messages = offer.take_messages().unwrap();
    let agent = connect(&offer.endpoint()).await.unwrap();
    let calls: Vec<_> = ["one", "two"]
        .into_iter()
        .map(|word| {
            let peer = agent.peer().clone();
            tokio::spawn(async move {
                peer.call_tool(call("getFormSnapshot", json!({"instruction": word}))).await
            })
        })
        .collect();
    let both = [next_call(&mut messages).await, next_call(&mut messages).await];
    assert_ne!(both[0].number, both[1].number);
    for received in both.into_iter().rev() {
        let result = ClientResult::Output(received.input);
        received.answer.send(result).unwrap();
    }
    for (word, waits) in ["one", "two"].into_iter().zip(calls) {
        assert!(text(&waits.await.unwrap().unwrap()).contains(word));
    }
}

#[tokio::test]
async fn an_unknown_tool_is_named_to_the_model() {
    let offer = offer(vec![tool("a")]).await;
    let agent = connect(&offer.endpoint()).await.unwrap();
    let answered = agent.call_tool(call("b", json!({}))).await.unwrap();
    assert_eq!(answered.is_error, Some(true));
    assert_eq!(text(&answered), "there is no tool `b`, only a");
}

/// An agent cancels a call when it is interrupted, or after a limit of its own.
#[tokio::test]
async fn a_cancelled_call_is_withdrawn() {
    let offer = offer(ClientTool::form()).await;
    let mut messages = offer.take_messages().unwrap();
    let agent = connect(&offer.endpoint()).await.unwrap();
    let request = ClientRequest::CallToolRequest(Request::new(call("getFormSnapshot", json!({}))));
    let handle = agent.peer().send_cancellable_request(request, PeerRequestOptions::no_options());
    let handle = handle.await.unwrap();
    let received = next_call(&mut messages).await;
    handle.cancel(Some("interrupted".to_owned())).await.unwrap();
    match messages.recv().await {
        Some(ToolMessage::Withdrawn(number)) => assert_eq!(number, received.number),
        other => panic!("{other:?}"),
    }
    assert!(received.answer.is_closed());
    // OpenCode cancels every call after it was answered.
    let late = CancelledNotificationParam::new(Some(handle_id()), None);
    agent.peer().notify_cancelled(late).await.unwrap();
    assert_eq!(agent.list_all_tools().await.unwrap().len(), 2);
}

fn handle_id() -> rmcp::model::RequestId {
    rmcp::model::NumberOrString::Number(77)
}

/// A session that has ended answers its calls, and its token is void.
#[tokio::test]
async fn a_session_that_ends_leaves_no_call_open() {
    let server = ClientToolServer::start().unwrap();
    let offer = server.offer(ClientTool::form()).unwrap();
    let endpoint = offer.endpoint();
    let mut messages = offer.take_messages().unwrap();
    let agent = connect(&endpoint).await.unwrap();
    let peer = agent.peer().clone();
    let waits =
        tokio::spawn(async move { peer.call_tool(call("getFormSnapshot", json!({}))).await });
    drop(next_call(&mut messages).await);
    let answered = waits.await.unwrap().unwrap();
    assert_eq!(answered.is_error, Some(true));
    assert!(text(&answered).contains("ended"), "{}", text(&answered));
    drop((offer, messages));
    let refused = connect(&endpoint).await.map(|_| ()).unwrap_err();
    assert!(refused.contains("401") || refused.to_lowercase().contains("auth"), "{refused}");
}

/// A token is that of one session.
#[tokio::test]
async fn a_token_reaches_its_own_tools_only() {
    let server = ClientToolServer::start().unwrap();
    let one = server.offer(vec![tool("one")]).unwrap();
    let two = server.offer(vec![tool("two")]).unwrap();
    for (offer, name) in [(&one, "one"), (&two, "two")] {
        let agent = connect(&offer.endpoint()).await.unwrap();
        let listed = agent.list_all_tools().await.unwrap();
        assert!(listed.len() == 1 && listed[0].name == name);
    }
    for authorization in ["Bearer ", "Bearer x", "Bearer \u{0}"] {
        let url = one.endpoint().url;
        let authorization = authorization.to_owned();
        let forged = Endpoint { url, authorization, only_reads: false };
        let refused = tokio::time::timeout(Duration::from_secs(20), connect(&forged)).await;
        assert!(refused.unwrap().is_err(), "{forged:?}");
    }
}

#[tokio::test]
async fn tools_that_no_agent_could_call_are_not_offered() {
    let server = ClientToolServer::start().unwrap();
    let refused = server.offer(vec![tool("a"), tool("a")]).unwrap_err();
    assert!(refused.to_string().contains("two tools"), "{refused}");
}

/// The library keeps a session until it is closed, also if its client is gone.
#[tokio::test]
async fn a_disconnected_agent_leaves_no_session() {
    let offer = offer(ClientTool::form()).await;
    let agent = connect(&offer.endpoint()).await.unwrap();
    agent.list_all_tools().await.unwrap();
    let shared = offer.shared_handler();
    let before = Arc::strong_count(&shared);
    offer.disconnect();
    // The end of the session is no event here.
    for _ in 0..500 {
        if Arc::strong_count(&shared) < before {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(Arc::strong_count(&shared) < before);
}

/// An agent in a loop must not fill the memory.
#[tokio::test]
async fn the_number_of_open_calls_is_bounded() {
    let offer = offer(ClientTool::form()).await;
    let mut messages = offer.take_messages().unwrap();
    let agent = connect(&offer.endpoint()).await.unwrap();
    let calls = (0..65).map(|_| {
        let peer = agent.peer().clone();
        tokio::spawn(async move { peer.call_tool(call("getFormSnapshot", json!({}))).await })
    });
    let mut calls: Vec<_> = calls.collect();
    let mut open = Vec::new();
    for _ in 0..64 {
        open.push(next_call(&mut messages).await);
    }
    let refused = loop {
        if let Some(at) = calls.iter().position(|call| call.is_finished()) {
            break calls.remove(at).await.unwrap().unwrap();
        }
        tokio::task::yield_now().await;
    };
    assert!(text(&refused).contains("64 calls wait"), "{}", text(&refused));
}

/// A connection to the server of some tools.
async fn connected(offer: &ClientToolOffer) -> TcpStream {
    let url = offer.endpoint().url;
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    TcpStream::connect(address).await.unwrap()
}

/// Waits until the server closes a connection; returns what it has sent.
async fn closed(connection: &mut TcpStream) -> String {
    let mut received = Vec::new();
    let end = connection.read_to_end(&mut received);
    // Bytes that the server had not read make it a reset.
    let _ = tokio::time::timeout(Duration::from_secs(20), end).await.unwrap();
    String::from_utf8(received).unwrap()
}

/// An agent that counts reports of progress.
struct Counting(watch::Sender<usize>);

impl ClientHandler for Counting {
    async fn on_progress(
        &self,
        _progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.0.send_modify(|count| *count += 1);
    }
}

/// Some agents give up a call of which they learn nothing.
#[tokio::test]
async fn an_agent_learns_that_its_call_is_still_open() {
    let limits = Limits { progress: Duration::from_millis(5), ..Limits::default() };
    let offer = ClientToolServer::start_with(limits).unwrap().offer(ClientTool::form()).unwrap();
    let mut messages = offer.take_messages().unwrap();
    let (count, mut reports) = watch::channel(0);
    let agent = Counting(count).serve(transport(&offer.endpoint())).await.unwrap();
    let peer = agent.peer().clone();
    let waits =
        tokio::spawn(async move { peer.call_tool(call("getFormSnapshot", json!({}))).await });
    let Some(ToolMessage::Called(received)) = messages.recv().await else { panic!("no call") };
    let reported = reports.wait_for(|count| *count > 2);
    tokio::time::timeout(Duration::from_secs(20), reported).await.unwrap().unwrap();
    received.answer.send(ClientResult::Output("fields".to_owned())).unwrap();
    assert_ne!(waits.await.unwrap().unwrap().is_error, Some(true));
}

/// Another user of the machine could use up the descriptors of the process.
#[tokio::test]
async fn the_number_of_connections_is_bounded() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let server = ClientToolServer::start_with(limits).unwrap();
    let offer = server.offer(ClientTool::form()).unwrap();
    let mut taken = vec![connected(&offer).await, connected(&offer).await];
    let ask = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for connection in &mut taken {
        // It is served, so that it counts.
        connection.write_all(ask).await.unwrap();
        let mut first = [0; 12];
        connection.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 404");
    }
    assert_eq!(closed(&mut connected(&offer).await).await, "");
    // One that ends makes room. The server notices that later.
    drop(taken.pop());
    loop {
        let mut next = connected(&offer).await;
        let mut first = [0; 12];
        if next.write_all(ask).await.is_ok() && next.read_exact(&mut first).await.is_ok() {
            break assert_eq!(&first, b"HTTP/1.1 404");
        }
        tokio::task::yield_now().await;
    }
}

/// A client that sends nothing would keep its connection for ever.
#[tokio::test]
async fn a_head_that_does_not_come_ends_the_connection() {
    let limits = Limits { head: Duration::from_millis(50), ..Limits::default() };
    let server = ClientToolServer::start_with(limits).unwrap();
    let offer = server.offer(ClientTool::form()).unwrap();
    let mut connection = connected(&offer).await;
    connection.write_all(b"POST /mcp HTTP/1.1\r\nhost: loc").await.unwrap();
    let received = closed(&mut connection).await;
    assert!(!received.contains("200"), "{received}");
}

/// A head is read into memory before its token is known.
#[tokio::test]
async fn a_head_that_does_not_end_is_refused() {
    let offer = offer(ClientTool::form()).await;
    let mut connection = connected(&offer).await;
    connection.write_all(b"POST /mcp HTTP/1.1\r\nx: ").await.unwrap();
    let piece = [b'x'; 64 << 10];
    let mut sent = 0_usize;
    // The server does not read on, and closes the connection.
    while connection.write_all(&piece).await.is_ok() {
        sent += piece.len();
        assert!(sent < 64 << 20, "the server reads without a limit");
    }
}
