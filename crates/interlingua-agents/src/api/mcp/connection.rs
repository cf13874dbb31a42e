//! A connection to one MCP server: its start, its tools, its calls.

use std::sync::Mutex;
use std::time::Duration;

use interlingua::event::ToolStatus;
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientCapabilities,
    ClientConfig, ClientRequest, Implementation, ProgressNotificationParam, ProgressToken,
    ProtocolVersion, RequestId, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, Peer, PeerRequestOptions,
    RoleClient, RunningService, ServiceError, serve_client_with_lifecycle,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::config::{McpServer, McpTransport};
use super::result;
use super::stdio::ServerProcess;
use crate::tool::{Output, Settings};

/// How many reports of progress may wait.
const REPORTS: usize = 256;

/// How long the end of a connection may take.
const CLOSING: Duration = Duration::from_secs(2);

/// How long a connection over HTTP may take.
const CONNECTING: Duration = Duration::from_secs(15);

/// The longest part of a server's standard error in a message.
const SHOWN: usize = 500;

/// A server that has started.
#[derive(Debug)]
pub(super) struct Connection {
    name: String,
    transport: McpTransport,
    call_limit: Duration,
    tools: Vec<ListedTool>,
    peer: Peer<RoleClient>,
    reports: broadcast::Sender<ProgressNotificationParam>,
    service: Mutex<Option<RunningService<RoleClient, Handler>>>,
    process: Option<ServerProcess>,
}

/// A tool that a server lists.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ListedTool {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) input_schema: Value,
}

/// Takes what a server sends unasked: reports of progress. It offers nothing to the server.
#[derive(Debug, Clone)]
struct Handler {
    reports: broadcast::Sender<ProgressNotificationParam>,
}

impl ClientHandler for Handler {
    async fn on_progress(
        &self,
        report: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        // There may be no call that is interested.
        let _ = self.reports.send(report);
    }

    fn get_info(&self) -> ClientConfig {
        let version = env!("CARGO_PKG_VERSION");
        let client = Implementation::new("interlingua", version);
        ClientConfig::new(ClientCapabilities::default(), client)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

/// Why a server did not start.
enum NotStarted {
    /// It does not know the handshake.
    Handshake(String),
    /// Anything else.
    Other(String),
}

impl Connection {
    /// Starts a server, and lists its tools. The reason of a failure is for the user.
    pub(super) async fn start(server: McpServer, settings: &Settings) -> Result<Self, String> {
        let limit = server.start_limit;
        // Servers of the newest version of the protocol have no handshake any more. Those with
        // one may exit when they are asked something before it, so it is tried first.
        let start = async {
            match Self::start_in(&server, settings, ClientLifecycleMode::Initialize).await {
                Err(NotStarted::Handshake(problem)) => {
                    let preferred_versions = vec![ProtocolVersion::LATEST];
                    let mode = ClientLifecycleMode::Discover { preferred_versions };
                    let again = Self::start_in(&server, settings, mode).await;
                    again.map_err(|_| problem)
                }
                Err(NotStarted::Other(problem)) => Err(problem),
                Ok(connection) => Ok(connection),
            }
        };
        let started = tokio::time::timeout(limit, start).await;
        let late = |_| Err(format!("it did not start within {}", shown(limit)));
        started.unwrap_or_else(late).map_err(|problem| server.transport.without_secrets(&problem))
    }

    async fn start_in(
        server: &McpServer,
        settings: &Settings,
        mode: ClientLifecycleMode,
    ) -> Result<Self, NotStarted> {
        let (reports, _) = broadcast::channel(REPORTS);
        let handler = Handler { reports: reports.clone() };
        let (service, process) = match &server.transport {
            McpTransport::Stdio { command, .. } => {
                let started = ServerProcess::start(&server.transport, settings).await;
                let (process, streams) = started.map_err(|problem| {
                    NotStarted::Other(format!("{command} could not be started: {problem}"))
                })?;
                let service = serve_client_with_lifecycle(handler, streams, mode).await;
                (service, Some(process))
            }
            McpTransport::Http { url, headers } => {
                let client = http_client(headers, settings).map_err(NotStarted::Other)?;
                let config = StreamableHttpClientTransportConfig::with_uri(&**url);
                let transport = StreamableHttpClientTransport::with_client(client, config);
                (serve_client_with_lifecycle(handler, transport, mode).await, None)
            }
        };
        let service = match service {
            Ok(service) => service,
            Err(problem) => return Err(not_started(&problem, process.as_ref()).await),
        };
        let listed = match service.list_all_tools().await {
            Ok(listed) => listed,
            Err(problem) => {
                let problem = format!("its tools cannot be listed: {problem}");
                return Err(NotStarted::Other(with_stderr(problem, process.as_ref()).await));
            }
        };
        let mut tools: Vec<_> = listed.into_iter().map(listed_tool).collect();
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Self {
            name: server.name.clone(),
            transport: server.transport.clone(),
            call_limit: server.call_limit,
            tools,
            peer: service.peer().clone(),
            reports,
            service: Mutex::new(Some(service)),
            process,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Its tools, in the order of their names.
    pub(super) fn tools(&self) -> &[ListedTool] {
        &self.tools
    }

    /// Calls a tool. If the future is dropped, or takes too long, the server is notified.
    pub(super) async fn call(
        &self,
        tool: &str,
        input: &Value,
        progress: &mut (dyn FnMut(&str) + Send),
    ) -> Output {
        // To explain a failure, the end of a server is waited for: within the limit, too.
        let answered = tokio::time::timeout(self.call_limit, async {
            match self.answer(tool, input, progress).await {
                Ok(answer) => Ok(answer),
                Err(problem) => Err(self.explained(&problem).await),
            }
        });
        match answered.await {
            Ok(Ok(ServerResult::CallToolResult(result))) => result::output(result),
            Ok(Ok(_)) => {
                let text = format!(
                    "The MCP server `{}` wants more than one answer for this call, which is not supported.",
                    self.name
                );
                result::without_result(ToolStatus::Failed, text)
            }
            Ok(Err(problem)) => result::without_result(ToolStatus::Failed, problem),
            Err(_) => {
                let limit = shown(self.call_limit);
                let text = format!("The MCP server `{}` did not answer within {limit}.", self.name);
                result::without_result(ToolStatus::TimedOut, text)
            }
        }
    }

    async fn answer(
        &self,
        tool: &str,
        input: &Value,
        progress: &mut (dyn FnMut(&str) + Send),
    ) -> Result<ServerResult, ServiceError> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = input.as_object().cloned();
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        // Reports are received from before the request on, so that none is missed.
        let mut reports = self.reports.subscribe();
        let options = PeerRequestOptions::no_options();
        let handle = self.peer.send_cancellable_request(request, options).await?;
        let token = handle.progress_token.clone();
        let mut cancels = CancelOnDrop { peer: &self.peer, request: Some(handle.id.clone()) };
        let mut answer = std::pin::pin!(handle.await_response());
        let answer = loop {
            tokio::select! {
                biased;
                // Reports that come without end must not delay the answer.
                answer = &mut answer => break answer,
                report = next_report(&mut reports, &token) => progress(&report),
            }
        };
        cancels.request = None;
        // Those that came before the answer. There are at most as many as the channel holds.
        while let Ok(report) = reports.try_recv() {
            if report.progress_token == token {
                progress(&report_text(&report));
            }
        }
        answer
    }

    /// Why a call failed, for the model.
    async fn explained(&self, problem: &ServiceError) -> String {
        let name = &self.name;
        match problem {
            ServiceError::McpError(error) => {
                format!("The MCP server `{name}` answered with an error: {}", error.message)
            }
            ServiceError::TransportClosed | ServiceError::TransportSend(_)
                if self.process.is_some() =>
            {
                let text = format!("the MCP server `{name}` has ended");
                with_stderr(text, self.process.as_ref()).await
            }
            other => {
                let problem = self.transport.without_secrets(&other.to_string());
                format!("The MCP server `{name}` cannot be reached: {problem}")
            }
        }
    }

    /// Begins to end the server.
    pub(super) fn stop(&self) {
        if let Some(process) = &self.process {
            process.stop();
        }
    }

    /// Waits until the server has ended.
    pub(super) async fn stopped(&self) {
        if let Some(process) = &self.process {
            process.ended().await;
        }
        let service = self.service.lock().ok().and_then(|mut service| service.take());
        if let Some(mut service) = service {
            // A server that does not answer is left alone.
            let _ = service.close_with_timeout(CLOSING).await;
        }
    }
}

/// The next report about a call.
async fn next_report(
    reports: &mut broadcast::Receiver<ProgressNotificationParam>,
    token: &ProgressToken,
) -> String {
    loop {
        match reports.recv().await {
            Ok(report) if report.progress_token == *token => return report_text(&report),
            // Reports that came too fast are outdated.
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

fn report_text(report: &ProgressNotificationParam) -> String {
    let ProgressNotificationParam { progress, total, message, .. } = report;
    let count = match total {
        Some(total) => format!("{progress} of {total}"),
        None => progress.to_string(),
    };
    match message {
        Some(message) => format!("{message} ({count})\n"),
        None => format!("{count}\n"),
    }
}

/// Notifies the server of a request that no one waits for any more.
struct CancelOnDrop<'c> {
    peer: &'c Peer<RoleClient>,
    request: Option<RequestId>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let reason = Some("the call was cancelled".to_owned());
            let cancelled = CancelledNotificationParam::new(Some(request), reason);
            // The server may have ended.
            let _ = peer.notify_cancelled(cancelled).await;
        });
    }
}

async fn not_started(
    problem: &ClientInitializeError,
    process: Option<&ServerProcess>,
) -> NotStarted {
    let text = with_stderr(format!("the handshake failed: {problem}"), process).await;
    match problem {
        ClientInitializeError::JsonRpcError(_) => NotStarted::Handshake(text),
        _ => NotStarted::Other(text),
    }
}

/// A problem, with what the server wrote to its standard error. Ends the server.
async fn with_stderr(problem: String, process: Option<&ServerProcess>) -> String {
    let Some(process) = process else { return problem };
    process.stop();
    let stderr = process.ended().await.stderr.unwrap_or_default();
    let stderr = stderr.trim();
    if stderr.is_empty() {
        return problem;
    }
    let start = stderr.ceil_char_boundary(stderr.len().saturating_sub(SHOWN));
    let end = stderr.get(start..).unwrap_or(stderr);
    format!("{problem}; its standard error ends with: {end}")
}

fn listed_tool(tool: rmcp::model::Tool) -> ListedTool {
    let mut input_schema = Value::Object((*tool.input_schema).clone());
    // Model APIs want it, and some servers leave it out.
    if let Some(schema) = input_schema.as_object_mut() {
        schema.entry("type").or_insert_with(|| json!("object"));
    }
    ListedTool {
        name: tool.name.into_owned(),
        description: tool
            .description
            .or(tool.title.map(Into::into))
            .unwrap_or_default()
            .into_owned(),
        input_schema,
    }
}

fn http_client(
    headers: &[(String, String)],
    settings: &Settings,
) -> Result<reqwest::Client, String> {
    let mut map = reqwest::header::HeaderMap::new();
    for (name, value) in headers {
        let parsed = reqwest::header::HeaderName::from_bytes(name.as_bytes())
            .ok()
            .zip(reqwest::header::HeaderValue::from_str(value).ok());
        let Some((name, mut value)) = parsed else {
            return Err(format!("the header {name:?} is not valid"));
        };
        value.set_sensitive(true);
        map.insert(name, value);
    }
    crate::tls::prepare();
    let builder = reqwest::Client::builder()
        .connect_timeout(CONNECTING)
        .default_headers(map)
        .tls_certs_merge(crate::tls::certificates(&settings.certificates)?)
        .user_agent(concat!("interlingua/", env!("CARGO_PKG_VERSION")))
        // A redirect would send the headers, which may be secrets, to another host.
        .redirect(reqwest::redirect::Policy::none());
    builder.build().map_err(|problem| format!("the connection cannot be prepared: {problem}"))
}

/// A limit for people.
fn shown(limit: Duration) -> String {
    match limit.subsec_millis() {
        0 => format!("{} s", limit.as_secs()),
        _ => format!("{} ms", limit.as_millis()),
    }
}
