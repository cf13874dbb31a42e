//! The standard streams of the server, as a transport of the protocol.

use std::io;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::client_tool::exchange::LARGEST;

/// Lines from an agent and to it. A line that is no message costs only itself.
pub(super) struct AgentTransport<R: AsyncRead, W: AsyncWrite> {
    lines: AsyncRwTransport<RoleServer, R, W>,
    /// A request has arrived. What is no request cannot begin the handshake, and would end it.
    has_begun: bool,
    closing: Arc<watch::Sender<bool>>,
}

impl<R, W> AgentTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(input: R, output: W, closing: Arc<watch::Sender<bool>>) -> Self {
        let lines = AsyncRwTransport::new_server(input, output).with_max_line_length(LARGEST);
        Self { lines, has_begun: false, closing }
    }
}

impl<R, W> Transport<RoleServer> for AgentTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.lines.send(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let mut closing = self.closing.subscribe();
        loop {
            let message = tokio::select! {
                message = self.lines.receive() => message,
                _ = closing.wait_for(|closing| *closing) => None,
            };
            let Some(message) = message else {
                self.closing.send_replace(true);
                return None;
            };
            self.has_begun |= matches!(message, ClientJsonRpcMessage::Request(_));
            if self.has_begun {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.lines.close().await
    }
}
