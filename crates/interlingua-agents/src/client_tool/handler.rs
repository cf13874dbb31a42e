//! What the MCP server answers: it lists the tools of a session, and passes their calls on.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, DiscoverRequestMethod,
    DiscoverResult, Implementation, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use super::{ClientResult, ClientTool, SERVER_NAME};

/// How often an agent learns that a call is still open. Some agents give up a call that is silent.
pub(super) const PROGRESS_INTERVAL: Duration = Duration::from_secs(20);

/// The most calls of a session that wait at once. Each keeps its input.
pub(crate) const MOST_OPEN: usize = 64;

/// What a session learns of its tools.
#[derive(Debug)]
pub(crate) enum ToolMessage {
    /// The agent calls a tool.
    Called(ReceivedCall),
    /// The agent does not wait for the answer to this call any more.
    Withdrawn(u64),
}

/// A call that an agent waits for.
#[derive(Debug)]
pub(crate) struct ReceivedCall {
    /// Its number in the session.
    pub(crate) number: u64,
    /// The number of disconnections before it, by which calls of an earlier process are recognised.
    pub(crate) generation: u64,
    /// The agent's own id of the call, if it passes it on.
    pub(crate) native: Option<String>,
    pub(crate) tool: String,
    /// The input, as JSON.
    pub(crate) input: String,
    pub(crate) answer: oneshot::Sender<ClientResult>,
}

/// The tools of one session, and where their calls go.
#[derive(Debug, Clone)]
pub(super) struct Handler {
    shared: Arc<Shared>,
    generation: u64,
}

#[derive(Debug)]
pub(super) struct Shared {
    tools: Vec<Tool>,
    messages: mpsc::UnboundedSender<ToolMessage>,
    /// The number of times that the tools were listed.
    listings: watch::Sender<u64>,
    calls: AtomicU64,
    /// The calls that may still be opened.
    open: Arc<Semaphore>,
    /// How often an agent learns that its call is still open.
    progress: Duration,
}

impl Handler {
    pub(super) fn new(
        tools: &[ClientTool],
        messages: mpsc::UnboundedSender<ToolMessage>,
        listings: watch::Sender<u64>,
        progress: Duration,
    ) -> Self {
        let tools = tools.iter().map(listed).collect();
        let (calls, open) = (AtomicU64::new(0), Arc::new(Semaphore::new(MOST_OPEN)));
        let shared = Shared { tools, messages, listings, calls, open, progress };
        Self { shared: Arc::new(shared), generation: 0 }
    }

    /// The same for the connections after a number of disconnections.
    pub(super) fn after(&self, generation: u64) -> Self {
        Self { shared: Arc::clone(&self.shared), generation }
    }

    #[cfg(test)]
    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// The number of disconnections before these connections.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// The tools, for an agent that asks for them.
    pub(super) fn list(&self) -> Vec<Tool> {
        self.shared.listings.send_modify(|listings| *listings += 1);
        self.shared.tools.clone()
    }

    /// Passes a call on. The error is for the model.
    pub(super) fn open(
        &self,
        tool: String,
        input: Map<String, Value>,
        meta: &Map<String, Value>,
    ) -> Result<OpenedCall, String> {
        if self.shared.tools.iter().all(|known| known.name != tool) {
            return Err(unknown_tool(&self.shared.tools, &tool));
        }
        let Ok(permit) = Arc::clone(&self.shared.open).try_acquire_owned() else {
            return Err(format!("{MOST_OPEN} calls wait for the user already: wait for them"));
        };
        let (answer, answered) = oneshot::channel();
        let number = self.shared.calls.fetch_add(1, Ordering::Relaxed);
        let messages = self.shared.messages.clone();
        let withdrawal = Withdrawal { number, messages };
        let (native, input) = (native_id(meta), Value::Object(input).to_string());
        let generation = self.generation;
        let call = ReceivedCall { number, generation, native, tool, input, answer };
        // If the session has ended, the receiver of the answer notices.
        let _ = self.shared.messages.send(ToolMessage::Called(call));
        Ok(OpenedCall { answered, _permit: permit, _withdrawal: withdrawal })
    }

    /// Waits for the answer to a call, and reports to the agent that it is still open.
    async fn wait(
        &self,
        mut call: OpenedCall,
        context: &RequestContext<RoleServer>,
    ) -> ClientResult {
        let token = context.meta.get_progress_token();
        let mut ticks = 0.0;
        loop {
            tokio::select! {
                result = call.answered() => return result,
                () = context.ct.cancelled() => {
                    return ClientResult::Error("the call was cancelled".to_owned());
                }
                () = tokio::time::sleep(self.shared.progress) => {}
            }
            ticks += 1.0;
            if let Some(token) = &token {
                let progress = ProgressNotificationParam::new(token.clone(), ticks)
                    .with_message("waiting for the user");
                // An agent that is gone cancels the call.
                let _ = context.peer.notify_progress(progress).await;
            }
        }
    }
}

/// A call that was passed on to its session. It is withdrawn when this is dropped.
#[derive(Debug)]
pub(super) struct OpenedCall {
    answered: oneshot::Receiver<ClientResult>,
    _permit: OwnedSemaphorePermit,
    /// It comes last, so that the session finds that nobody waits.
    _withdrawal: Withdrawal,
}

impl OpenedCall {
    /// Waits for the answer, which comes once.
    pub(super) async fn answered(&mut self) -> ClientResult {
        let gone = "the session has ended, and the call was not answered".to_owned();
        (&mut self.answered).await.unwrap_or(ClientResult::Error(gone))
    }
}

/// Reports that a call is not waited for any more, however its handler ends.
#[derive(Debug)]
struct Withdrawal {
    number: u64,
    messages: mpsc::UnboundedSender<ToolMessage>,
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        // The session may have ended.
        let _ = self.messages.send(ToolMessage::Withdrawn(self.number));
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        server_config()
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        protocol_versions()
    }

    async fn discover(
        &self,
        _context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        Err(ErrorData::method_not_found::<DiscoverRequestMethod>())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.list()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let input = request.arguments.unwrap_or_default();
        let result = match self.open(request.name.into_owned(), input, &context.meta.0) {
            Ok(call) => self.wait(call, &context).await,
            Err(problem) => ClientResult::Error(problem),
        };
        Ok(result.into())
    }
}

impl From<ClientResult> for CallToolResponse {
    fn from(result: ClientResult) -> Self {
        let result = match result {
            ClientResult::Output(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            ClientResult::Error(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
        };
        result.into()
    }
}

/// What an agent learns of the server.
pub(super) fn server_config() -> ServerConfig {
    let tools = ServerCapabilities::builder().enable_tools().build();
    let identity = Implementation::new(SERVER_NAME, env!("CARGO_PKG_VERSION"));
    ServerConfig::new(tools)
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
        .with_server_info(identity)
}

/// The versions that all agents speak. In later ones, a call cannot be cancelled by a message.
pub(super) fn protocol_versions() -> Cow<'static, [ProtocolVersion]> {
    let versions = ProtocolVersion::known_up_to(&ProtocolVersion::LATEST_WITH_INITIALIZE);
    Cow::Owned(versions.to_vec())
}

/// What the model learns if it calls a tool that does not exist.
pub(super) fn unknown_tool(tools: &[Tool], name: &str) -> String {
    let known: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    format!("there is no tool `{name}`, only {}", known.join(", "))
}

/// The agent's own id of a call. Claude and Codex pass it on.
pub(super) fn native_id(meta: &Map<String, Value>) -> Option<String> {
    let names = ["claudecode/toolUseId", "callId"];
    let id = names.iter().find_map(|name| meta.get(*name)?.as_str());
    id.filter(|id| !id.is_empty()).map(str::to_owned)
}

pub(super) fn listed(tool: &ClientTool) -> Tool {
    let (name, schema) = (tool.name.clone(), Arc::new(tool.input_schema.clone()));
    let annotations = ToolAnnotations::new().read_only(tool.read_only);
    Tool::new(name, tool.description.clone(), schema).with_annotations(annotations)
}
