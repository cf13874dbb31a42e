//! What the server answers its agent: it passes everything on to the owner.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, DiscoverRequestMethod, DiscoverResult,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion,
    ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::{Semaphore, watch};

use super::owner::Owner;
use crate::client_tool::ClientResult;
use crate::client_tool::handler::{MOST_OPEN, protocol_versions, server_config};
use crate::client_tool::server::random_token;

/// The tools of the owner, for one agent.
#[derive(Debug, Clone)]
pub(super) struct Handler {
    owner: Arc<Owner>,
    closing: watch::Receiver<bool>,
    progress: Duration,
    /// The calls that may still be opened. Each keeps its input while the owner is not reached.
    open: Arc<Semaphore>,
}

impl Handler {
    pub(super) fn new(
        owner: Arc<Owner>,
        closing: watch::Receiver<bool>,
        progress: Duration,
    ) -> Self {
        Self { owner, closing, progress, open: Arc::new(Semaphore::new(MOST_OPEN)) }
    }

    /// Waits until the server ends.
    async fn closing(&self) {
        let _ = self.closing.clone().wait_for(|closing| *closing).await;
    }

    /// Reports to the agent that a call is still open, whether the owner is there or not.
    async fn report_progress(&self, context: &RequestContext<RoleServer>) -> ! {
        let token = context.meta.get_progress_token();
        let mut ticks = 0.0;
        loop {
            tokio::time::sleep(self.progress).await;
            ticks += 1.0;
            if let Some(token) = &token {
                let progress = ProgressNotificationParam::new(token.clone(), ticks)
                    .with_message("waiting for the user");
                // An agent that is gone closes the input.
                let _ = context.peer.notify_progress(progress).await;
            }
        }
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<ClientResult, ErrorData> {
        let Ok(_permit) = self.open.try_acquire() else {
            let problem = format!("{MOST_OPEN} calls wait already: wait for them");
            return Ok(ClientResult::Error(problem));
        };
        let key = random_token()
            .map_err(|problem| ErrorData::internal_error(problem.to_string(), None))?;
        let (result, is_closing) = tokio::select! {
            result = self.owner.call(&key, request, &context.meta) => (result, false),
            () = context.ct.cancelled() => (Err("the call was cancelled".to_owned()), false),
            () = self.closing() => (Err("the server ends".to_owned()), true),
            never = self.report_progress(context) => never,
        };
        // The owner keeps the answer until then, and the call, if there is no answer.
        let owner = Arc::clone(&self.owner);
        let ended = tokio::spawn(async move { owner.end(&key).await });
        if is_closing {
            let _ = ended.await;
        }
        Ok(result.unwrap_or_else(ClientResult::Error))
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
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = tokio::select! {
            tools = self.owner.tools() => tools,
            () = context.ct.cancelled() => Err("the request was cancelled".to_owned()),
        };
        let failed = |problem| ErrorData::internal_error(problem, None);
        Ok(ListToolsResult::with_all_items(tools.map_err(failed)?))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(self.call(request, &context).await?.into())
    }
}
