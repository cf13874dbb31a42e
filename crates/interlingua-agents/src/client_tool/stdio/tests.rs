//! The server over standard streams, as its agent and its owner see it. A proxy is between them.

mod proxy;

use std::net::SocketAddr;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientRequest,
    NumberOrString, ProgressNotificationParam, Request,
};
use rmcp::service::{NotificationContext, Peer, PeerRequestOptions, RequestHandle, RunningService};
use rmcp::{ClientHandler, RoleClient, ServiceExt as _};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::*;
use crate::client_tool::handler::{ReceivedCall, ToolMessage};
use crate::client_tool::server::Limits;
use crate::client_tool::{ClientResult, ClientTool, ClientToolOffer, ClientToolServer};
use proxy::{Mode, Proxy};

/// An agent that counts reports of progress.
#[derive(Debug, Clone)]
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

/// Quick enough for a test.
const PACE: Pace = Pace {
    progress: Duration::from_millis(10),
    shortest_pause: Duration::from_millis(1),
    longest_pause: Duration::from_millis(10),
    end_of_call: Duration::from_secs(20),
    end: Duration::from_secs(1),
};

/// A session, a proxy, a server, and its agent.
struct Scene {
    owner: ClientToolServer,
    offer: ClientToolOffer,
    messages: mpsc::UnboundedReceiver<ToolMessage>,
    proxy: Proxy,
    served: JoinHandle<()>,
    agent: RunningService<RoleClient, Counting>,
    progress: watch::Receiver<usize>,
}

/// A session with the tools of a form, and its calls.
fn session(owner: &ClientToolServer) -> (ClientToolOffer, mpsc::UnboundedReceiver<ToolMessage>) {
    let offer = owner.offer(ClientTool::form()).unwrap();
    let messages = offer.take_messages().unwrap();
    (offer, messages)
}

/// The proxy of a session, and a server that reaches the session through it.
async fn connected(offer: &ClientToolOffer, pace: Pace) -> (Proxy, StdioToolServer) {
    let url = offer.endpoint().url;
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").parse().unwrap();
    let proxy = Proxy::to(address).await;
    let url = format!("http://{}/mcp", proxy.address);
    (proxy, StdioToolServer::with_pace(&url, offer.token(), pace).unwrap())
}

fn serve(server: StdioToolServer) -> (DuplexStream, JoinHandle<()>) {
    let (agent, streams) = tokio::io::duplex(64 << 10);
    let (input, output) = tokio::io::split(streams);
    (agent, tokio::spawn(async move { server.serve(input, output).await }))
}

impl Scene {
    async fn new() -> Self {
        Self::with(Limits::default(), PACE).await
    }

    async fn with(limits: Limits, pace: Pace) -> Self {
        let owner = ClientToolServer::start_with(limits).unwrap();
        let (offer, messages) = session(&owner);
        let (proxy, server) = connected(&offer, pace).await;
        let (streams, served) = serve(server);
        let (count, progress) = watch::channel(0);
        let agent = Counting(count).serve(streams).await.unwrap();
        Self { owner, offer, messages, proxy, served, agent, progress }
    }

    fn call(&self, word: &str) -> JoinHandle<Result<CallToolResult, rmcp::ServiceError>> {
        let (peer, call) = (self.agent.peer().clone(), call(word));
        tokio::spawn(async move { peer.call_tool(call).await })
    }

    async fn next(&mut self) -> ReceivedCall {
        match within(self.messages.recv()).await {
            Some(ToolMessage::Called(call)) => call,
            other => panic!("{other:?}"),
        }
    }

    async fn withdrawn(&mut self, number: u64) {
        match within(self.messages.recv()).await {
            Some(ToolMessage::Withdrawn(withdrawn)) => assert_eq!(withdrawn, number),
            other => panic!("{other:?}"),
        }
    }

    /// Nothing else has reached the session. It answers the list of tools, before which everything
    /// would have arrived.
    async fn quiet(&mut self) {
        self.agent.list_all_tools().await.unwrap();
        assert!(self.messages.try_recv().is_err());
    }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.unwrap()
}

fn call(word: &str) -> CallToolRequestParams {
    let input = json!({"instruction": word}).as_object().cloned().unwrap();
    let mut call = CallToolRequestParams::new("getFormSnapshot").with_arguments(input);
    let meta = json!({"claudecode/toolUseId": format!("id of {word}")});
    call.meta = Some(serde_json::from_value(meta).unwrap());
    call
}

async fn cancellable(peer: &Peer<RoleClient>, word: &str) -> RequestHandle<RoleClient> {
    let request = ClientRequest::CallToolRequest(Request::new(call(word)));
    let options = PeerRequestOptions::no_options();
    peer.send_cancellable_request(request, options).await.unwrap()
}

fn text(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|block| block.as_text()).map(|it| it.text.clone()).collect()
}

fn output(text: &str) -> ClientResult {
    ClientResult::Output(text.to_owned())
}

#[tokio::test]
async fn tools_are_listed_and_called() {
    let mut scene = Scene::new().await;
    let listed = within(scene.agent.list_all_tools()).await.unwrap();
    let names: Vec<_> = listed.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["getFormSnapshot", "executeFormActions"]);
    for (tool, ours) in listed.iter().zip(ClientTool::form()) {
        assert_eq!(*tool.input_schema, ours.input_schema);
        assert_eq!(tool.annotations.as_ref().unwrap().read_only_hint, Some(ours.read_only));
    }
    assert_eq!(*scene.offer.listings().borrow(), 1);
    for (result, is_error) in
        [(output("fields"), None), (ClientResult::Error("no form".to_owned()), Some(true))]
    {
        let waits = scene.call("all");
        let received = scene.next().await;
        assert_eq!(received.input, r#"{"instruction":"all"}"#);
        assert_eq!(received.native.as_deref(), Some("id of all"));
        let (ClientResult::Output(words) | ClientResult::Error(words)) = &result;
        let words = words.clone();
        received.answer.send(result).unwrap();
        let answered = within(waits).await.unwrap().unwrap();
        assert_eq!((text(&answered), answered.is_error.filter(|it| *it)), (words, is_error));
        scene.withdrawn(received.number).await;
    }
    let unknown = scene.agent.call_tool(CallToolRequestParams::new("b")).await.unwrap();
    assert!(text(&unknown).starts_with("there is no tool `b`"), "{}", text(&unknown));
}

/// An agent may know the tools from earlier.
#[tokio::test]
async fn a_call_needs_no_list_before_it() {
    let mut scene = Scene::new().await;
    let waits = scene.call("all");
    scene.next().await.answer.send(output("fields")).unwrap();
    assert_eq!(text(&within(waits).await.unwrap().unwrap()), "fields");
}

#[tokio::test]
async fn calls_wait_in_parallel() {
    let mut scene = Scene::new().await;
    let calls = ["one", "two"].map(|word| (word, scene.call(word)));
    let both = [scene.next().await, scene.next().await];
    for received in both.into_iter().rev() {
        let result = ClientResult::Output(received.input);
        received.answer.send(result).unwrap();
    }
    for (word, waits) in calls {
        assert!(text(&within(waits).await.unwrap().unwrap()).contains(word));
    }
}

#[tokio::test]
async fn a_call_survives_a_lost_connection() {
    let mut scene = Scene::new().await;
    let waits = scene.call("all");
    let received = scene.next().await;
    for _ in 0..3 {
        within(scene.proxy.cut()).await;
        scene.proxy.set(Mode::Open);
    }
    scene.quiet().await;
    assert!(!received.answer.is_closed());
    received.answer.send(output("fields")).unwrap();
    assert_eq!(text(&within(waits).await.unwrap().unwrap()), "fields");
    scene.withdrawn(received.number).await;
    scene.quiet().await;
}

#[tokio::test]
async fn an_answer_that_is_given_meanwhile_is_delivered() {
    let mut scene = Scene::new().await;
    let waits = scene.call("all");
    let received = scene.next().await;
    within(scene.proxy.cut()).await;
    received.answer.send(output("fields")).unwrap();
    scene.withdrawn(received.number).await;
    assert!(!waits.is_finished());
    scene.proxy.set(Mode::Open);
    assert_eq!(text(&within(waits).await.unwrap().unwrap()), "fields");
    scene.quiet().await;
}

/// The owner has sent the answer, and cannot know that it did not arrive.
#[tokio::test]
async fn an_answer_that_was_lost_on_its_way_is_delivered() {
    let mut scene = Scene::new().await;
    let waits = scene.call("all");
    let received = scene.next().await;
    scene.proxy.set(Mode::KeepsBack);
    received.answer.send(output("fields")).unwrap();
    within(scene.proxy.kept_back()).await;
    within(scene.proxy.cut()).await;
    scene.proxy.set(Mode::Open);
    assert_eq!(text(&within(waits).await.unwrap().unwrap()), "fields");
    scene.withdrawn(received.number).await;
    scene.quiet().await;
}

/// Some agents give up a call that is silent.
#[tokio::test]
async fn progress_is_reported_without_the_owner() {
    let mut scene = Scene::new().await;
    let waits = scene.call("all");
    let received = scene.next().await;
    within(scene.proxy.cut()).await;
    let before = *scene.progress.borrow();
    within(scene.progress.wait_for(|count| *count > before + 2)).await.unwrap();
    scene.proxy.set(Mode::Open);
    received.answer.send(output("fields")).unwrap();
    assert_eq!(text(&within(waits).await.unwrap().unwrap()), "fields");
}

#[tokio::test]
async fn a_cancelled_call_is_withdrawn() {
    let mut scene = Scene::new().await;
    for is_down in [false, true] {
        let handle = cancellable(scene.agent.peer(), "all").await;
        let received = scene.next().await;
        if is_down {
            within(scene.proxy.cut()).await;
        }
        handle.cancel(Some("interrupted".to_owned())).await.unwrap();
        scene.proxy.set(Mode::Open);
        scene.withdrawn(received.number).await;
        assert!(received.answer.is_closed());
    }
}

/// OpenCode cancels each call after it was answered.
#[tokio::test]
async fn a_late_cancellation_is_ignored() {
    let mut scene = Scene::new().await;
    let handle = cancellable(scene.agent.peer(), "one").await;
    let (id, received) = (handle.id.clone(), scene.next().await);
    received.answer.send(output("fields")).unwrap();
    within(handle.await_response()).await.unwrap();
    scene.withdrawn(received.number).await;
    let waits = scene.call("two");
    let other = scene.next().await;
    for id in [id, NumberOrString::Number(77)] {
        let late = CancelledNotificationParam::new(Some(id), None);
        scene.agent.peer().notify_cancelled(late).await.unwrap();
    }
    scene.quiet().await;
    other.answer.send(output("more")).unwrap();
    assert_eq!(text(&within(waits).await.unwrap().unwrap()), "more");
}

#[tokio::test]
async fn a_token_that_is_not_known_is_explained() {
    let (offer, _messages) = session(&ClientToolServer::start().unwrap());
    let url = offer.endpoint().url;
    let server = StdioToolServer::with_pace(&url, "forged", PACE).unwrap();
    let (streams, _served) = serve(server);
    let agent = ().serve(streams).await.unwrap();
    let refused = within(agent.list_all_tools()).await.unwrap_err().to_string();
    assert!(refused.contains("the session has ended") && !refused.contains("forged"), "{refused}");
    let called = within(agent.call_tool(call("all"))).await.unwrap();
    assert_eq!(called.is_error, Some(true));
    assert!(text(&called).starts_with("the session has ended"), "{}", text(&called));
}

/// Calls that are open fail, also one that has no connection, and so do later ones.
#[tokio::test]
async fn a_session_that_has_ended_leaves_no_call_open() {
    let mut scene = Scene::new().await;
    let open = scene.call("one");
    scene.next().await;
    within(scene.proxy.cut()).await;
    let Scene { owner, offer, messages, proxy, agent, .. } = scene;
    drop((offer, messages));
    proxy.set(Mode::Open);
    let refused = within(agent.list_all_tools()).await.unwrap_err().to_string();
    assert!(refused.contains("the session has ended"), "{refused}");
    let ended = within(open).await.unwrap().unwrap();
    assert!(ended.is_error == Some(true) && text(&ended).contains("has ended"), "{ended:?}");
    // That is known also when nothing answers any more.
    drop(owner);
    proxy.set(Mode::Down);
    let later = within(agent.call_tool(call("two"))).await.unwrap();
    assert!(later.is_error == Some(true) && text(&later).contains("has ended"), "{later:?}");
}

/// The next process of the agent has calls of its own.
#[tokio::test]
async fn a_call_ends_with_the_process_of_its_agent() {
    let mut scene = Scene::new().await;
    let connected = scene.call("one");
    let one = scene.next().await;
    scene.offer.disconnect();
    scene.withdrawn(one.number).await;
    let ended = within(connected).await.unwrap().unwrap();
    assert!(text(&ended).contains("has ended"), "{}", text(&ended));
    let later = within(scene.call("two")).await.unwrap().unwrap();
    assert!(text(&later).contains("the process of the agent"), "{}", text(&later));
    scene.quiet().await;
}

/// A server that was killed says nothing.
#[tokio::test]
async fn a_call_whose_caller_stays_away_is_withdrawn() {
    let grace = Duration::from_millis(50);
    let mut scene = Scene::with(Limits { grace, ..Limits::default() }, PACE).await;
    let _waits = scene.call("all");
    let received = scene.next().await;
    scene.proxy.set(Mode::Down);
    within(scene.proxy.cut()).await;
    scene.withdrawn(received.number).await;
    assert!(received.answer.is_closed());
}

#[tokio::test]
async fn the_end_of_the_input_ends_the_server_and_withdraws_calls() {
    // It ends as soon as the owner has answered, however busy the machine is.
    let patient = Pace { end: Duration::from_secs(60), ..PACE };
    let mut scene = Scene::with(Limits::default(), patient).await;
    let _waits = scene.call("all");
    let received = scene.next().await;
    scene.agent.cancel().await.unwrap();
    within(scene.served).await.unwrap();
    match scene.messages.try_recv() {
        Ok(ToolMessage::Withdrawn(number)) => assert_eq!(number, received.number),
        other => panic!("it has ended before it has withdrawn the call: {other:?}"),
    }
}

/// The owner is not there, and the server ends nevertheless. The library would wait for 5 seconds.
#[tokio::test]
async fn the_end_of_the_input_needs_no_owner() {
    let mut scene = Scene::new().await;
    let _waits = scene.call("all");
    let _received = scene.next().await;
    within(scene.proxy.cut()).await;
    scene.agent.cancel().await.unwrap();
    tokio::time::timeout(Duration::from_secs(4), scene.served).await.unwrap().unwrap();
}

/// An agent in a loop must not fill the memory while the owner is away.
#[tokio::test]
async fn the_number_of_open_calls_is_bounded() {
    let scene = Scene::new().await;
    within(scene.agent.list_all_tools()).await.unwrap();
    scene.proxy.set(Mode::Down);
    let mut calls: JoinSet<_> = (0..65)
        .map(|_| {
            let peer = scene.agent.peer().clone();
            async move { peer.call_tool(call("all")).await }
        })
        .collect();
    let refused = within(calls.join_next()).await.unwrap().unwrap().unwrap();
    assert!(text(&refused).starts_with("64 calls wait"), "{}", text(&refused));
}

/// An owner that answers each request with more than 64 MiB.
async fn excessive() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut server, _)) = listener.accept().await {
            let head = "HTTP/1.1 200 OK\r\ncontent-length: 70000000\r\n\r\n";
            server.write_all(head.as_bytes()).await.unwrap();
            // The server closes the connection before it has read all of it.
            let _ = server.write_all(&vec![b' '; 70_000_000]).await;
        }
    });
    address
}

#[tokio::test]
async fn a_result_that_is_too_large_is_an_error() {
    let url = format!("http://{}/mcp", excessive().await);
    let server = StdioToolServer::with_pace(&url, "t", PACE).unwrap();
    let (streams, _served) = serve(server);
    let agent = ().serve(streams).await.unwrap();
    let refused = within(agent.list_all_tools()).await.unwrap_err().to_string();
    assert!(refused.contains("more than 67108864 bytes"), "{refused}");
}

#[tokio::test]
async fn a_call_that_is_too_large_is_refused() {
    let (offer, mut messages) = session(&ClientToolServer::start().unwrap());
    let url = offer.endpoint().url;
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let mut owner = TcpStream::connect(address).await.unwrap();
    let authorization = offer.endpoint().authorization;
    let head = format!(
        "PUT /mcp/calls/0123456789abcdef HTTP/1.1\r\nhost: {address}\r\nauthorization: {authorization}\r\ncontent-length: 70000000\r\n\r\n"
    );
    owner.write_all(head.as_bytes()).await.unwrap();
    let (mut response, mut body) = owner.split();
    let mut status = [0; 12];
    let sending = async {
        // The owner closes the connection before it has read all of it.
        let _ = body.write_all(&vec![b' '; 70_000_000]).await;
        std::future::pending::<()>().await
    };
    tokio::select! {
        read = within(response.read_exact(&mut status)) => drop(read.unwrap()),
        () = sending => {}
    }
    assert_eq!(&status, b"HTTP/1.1 413");
    assert!(messages.try_recv().is_err());
}

#[tokio::test]
async fn a_large_result_arrives_whole() {
    let mut scene = Scene::new().await;
    let waits = scene.call("all");
    let large = "é\"\n".repeat(5 << 20 >> 2);
    scene.next().await.answer.send(output(&large)).unwrap();
    assert!(text(&within(waits).await.unwrap().unwrap()) == large);
}

/// A line that is no message costs only itself, also before the handshake.
#[tokio::test]
async fn lines_that_are_no_messages_are_skipped() {
    let (offer, mut messages) = session(&ClientToolServer::start().unwrap());
    let (_proxy, server) = connected(&offer, PACE).await;
    let (streams, _served) = serve(server);
    let (output, mut input) = tokio::io::split(streams);
    let mut lines = BufReader::new(output).lines();
    let garbage = [
        "",
        "{",
        "\u{1b}[31mhello",
        "[]",
        "17",
        "{\"jsonrpc\":\"2.0\"}",
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
        r#"{"jsonrpc":"2.0","id":3,"result":{}}"#,
    ];
    let requests = [
        json!({"method": "initialize", "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }}),
        json!({"method": "tools/list"}),
        json!({"method": "no/such/method"}),
        json!({"method": "tools/call", "params": {"name": "getFormSnapshot", "arguments": {}}}),
    ];
    for (id, mut request) in (10..).zip(requests) {
        for line in garbage {
            input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        }
        input.write_all(b"\xff\xfe\n").await.unwrap();
        request["jsonrpc"] = "2.0".into();
        request["id"] = id.into();
        input.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        if id == 13 {
            match within(messages.recv()).await {
                Some(ToolMessage::Called(call)) => {
                    call.answer.send(self::output("fields")).unwrap()
                }
                other => panic!("{other:?}"),
            }
        }
        let response = loop {
            let line = within(lines.next_line()).await.unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                break message;
            }
        };
        let code = &response["error"]["code"];
        assert_eq!(*code == -32601, id == 12, "{response}");
    }
}
