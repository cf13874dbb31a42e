//! What the MCP server answers: it lists the tools of a session, and passes their calls on.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, DiscoverRequestMethod,
    DiscoverResult, Implementation, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, RequestMetaObject, ServerCapabilities,
    ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use super::{ClientResult, ClientTool, SERVER_NAME};

/// How often an agent learns that a call is still open. Some agents give up a call that is silent.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(20);

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
}

impl Handler {
    pub(super) fn new(
        tools: &[ClientTool],
        messages: mpsc::UnboundedSender<ToolMessage>,
        listings: watch::Sender<u64>,
    ) -> Self {
        let tools = tools.iter().map(listed).collect();
        let (calls, open) = (AtomicU64::new(0), Arc::new(Semaphore::new(MOST_OPEN)));
        let shared = Shared { tools, messages, listings, calls, open };
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

    /// Waits for the answer to a call, and reports to the agent that it is still open.
    async fn wait(
        &self,
        mut answered: oneshot::Receiver<ClientResult>,
        context: &RequestContext<RoleServer>,
    ) -> ClientResult {
        let token = context.meta.get_progress_token();
        let mut ticks = 0.0;
        loop {
            tokio::select! {
                answer = &mut answered => {
                    let gone = "the session has ended, and the call was not answered".to_owned();
                    return answer.unwrap_or(ClientResult::Error(gone));
                }
                () = context.ct.cancelled() => {
                    return ClientResult::Error("the call was cancelled".to_owned());
                }
                () = tokio::time::sleep(PROGRESS_INTERVAL) => {}
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

/// Reports that a call is not waited for any more, however its handler ends.
struct Withdrawal<'h> {
    number: u64,
    messages: &'h mpsc::UnboundedSender<ToolMessage>,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        // The session may have ended.
        let _ = self.messages.send(ToolMessage::Withdrawn(self.number));
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let tools = ServerCapabilities::builder().enable_tools().build();
        let identity = Implementation::new(SERVER_NAME, env!("CARGO_PKG_VERSION"));
        ServerConfig::new(tools)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
            .with_server_info(identity)
    }

    /// The versions that all agents speak. In later ones, a call cannot be cancelled by a message.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        let versions = ProtocolVersion::known_up_to(&ProtocolVersion::LATEST_WITH_INITIALIZE);
        Cow::Owned(versions.to_vec())
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
        self.shared.listings.send_modify(|listings| *listings += 1);
        Ok(ListToolsResult::with_all_items(self.shared.tools.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.shared.tools.iter().all(|tool| tool.name != request.name) {
            let problem = unknown_tool(&self.shared.tools, &request.name);
            return Ok(CallToolResult::error(vec![ContentBlock::text(problem)]).into());
        }
        let Ok(_permit) = self.shared.open.try_acquire() else {
            let problem = format!("{MOST_OPEN} calls wait for the user already: wait for them");
            return Ok(CallToolResult::error(vec![ContentBlock::text(problem)]).into());
        };
        let (answer, answered) = oneshot::channel();
        let number = self.shared.calls.fetch_add(1, Ordering::Relaxed);
        let messages = &self.shared.messages;
        let withdrawal = Withdrawal { number, messages };
        let input = serde_json::Value::Object(request.arguments.unwrap_or_default()).to_string();
        let (native, tool) = (native_id(&context.meta), request.name.into_owned());
        let generation = self.generation;
        let call = ReceivedCall { number, generation, native, tool, input, answer };
        // If the session has ended, the receiver of the answer notices.
        let _ = messages.send(ToolMessage::Called(call));
        let result = self.wait(answered, &context).await;
        drop(withdrawal);
        let result = match result {
            ClientResult::Output(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            ClientResult::Error(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
        };
        Ok(result.into())
    }
}

/// What the model learns if it calls a tool that does not exist.
pub(super) fn unknown_tool(tools: &[Tool], name: &str) -> String {
    let known: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    format!("there is no tool `{name}`, only {}", known.join(", "))
}

fn native_id(meta: &RequestMetaObject) -> Option<String> {
    native_id_in(|name| meta.0.get(name))
}

/// The agent's own id of a call. Claude and Codex pass it on.
pub(super) fn native_id_in<'m>(
    meta: impl Fn(&str) -> Option<&'m serde_json::Value>,
) -> Option<String> {
    let names = ["claudecode/toolUseId", "callId"];
    let id = names.iter().find_map(|name| meta(name)?.as_str());
    id.filter(|id| !id.is_empty()).map(str::to_owned)
}

pub(super) fn listed(tool: &ClientTool) -> Tool {
    let (name, schema) = (tool.name.clone(), Arc::new(tool.input_schema.clone()));
    let annotations = ToolAnnotations::new().read_only(tool.read_only);
    Tool::new(name, tool.description.clone(), schema).with_annotations(annotations)
}
