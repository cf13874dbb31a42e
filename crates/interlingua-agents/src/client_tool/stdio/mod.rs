//! The MCP server over standard streams, for agents that take a server only as a command.
//!
//! It runs in a process of its own, which its agent starts. The calls belong to the *owner*: the
//! process that runs the session, and has the [server over HTTP](super::ClientToolServer). Most
//! agents never start a server again, so this one outlives a lost connection: it asks again for as
//! long as its standard input is open, and a call that is open stays open for the agent.

mod handler;
mod owner;
#[cfg(test)]
mod tests;
mod transport;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::handler::PROGRESS_INTERVAL;
use super::keyed::GRACE;
use handler::Handler;
use owner::Owner;
use transport::AgentTransport;

/// How long the server waits, before what.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// Before it reports to the agent that a call is still open, each time.
    progress: Duration,
    /// Before the second attempt to reach the owner. Each further pause is twice as long.
    shortest_pause: Duration,
    /// The longest of these pauses.
    longest_pause: Duration,
    /// Until it gives up to tell the owner that a call has ended. The owner finds out by itself, too.
    end_of_call: Duration,
    /// Until it ends, after its agent has closed its input. Meanwhile it withdraws what the agent has
    /// called.
    end: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            progress: PROGRESS_INTERVAL,
            shortest_pause: Duration::from_millis(50),
            longest_pause: Duration::from_secs(2),
            end_of_call: GRACE,
            end: Duration::from_secs(1),
        }
    }
}

/// The MCP server over standard streams that offers the client's tools of one session.
pub struct StdioToolServer {
    handler: Handler,
    closing: Arc<watch::Sender<bool>>,
    end: Duration,
}

impl StdioToolServer {
    /// The variable with the address of the server over HTTP.
    pub const URL: &str = "INTERLINGUA_MCP_URL";
    /// The variable with the token of the session. It is a secret, and never an argument.
    pub const TOKEN: &str = "INTERLINGUA_MCP_TOKEN";

    /// Prepares a server that finds its owner by the values of [`URL`](Self::URL) and
    /// [`TOKEN`](Self::TOKEN). The error states which of them cannot be used.
    pub fn new(url: &str, token: &str) -> Result<Self, String> {
        Self::with_pace(url, token, Pace::default())
    }

    fn with_pace(url: &str, token: &str, pace: Pace) -> Result<Self, String> {
        let closing = Arc::new(watch::Sender::new(false));
        let owner = Arc::new(Owner::new(url, token, pace)?);
        let handler = Handler::new(owner, closing.subscribe(), pace.progress);
        Ok(Self { handler, closing, end: pace.end })
    }

    /// Serves an agent until its input ends, or the server is [closed](Self::close).
    pub async fn serve<R, W>(&self, input: R, output: W)
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let transport = AgentTransport::new(input, output, Arc::clone(&self.closing));
        let served = async {
            // An agent that begins in another way than with a handshake is not served.
            if let Ok(running) = self.handler.clone().serve(transport).await {
                let _ = running.waiting().await;
            }
        };
        let mut closing = self.closing.subscribe();
        let overdue = async {
            let _ = closing.wait_for(|closing| *closing).await;
            tokio::time::sleep(self.end).await;
        };
        tokio::select! {
            () = served => {}
            () = overdue => {}
        }
    }

    /// Ends the server, as the end of its input does: open calls are withdrawn.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }
}

/// The token is a secret.
impl fmt::Debug for StdioToolServer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("StdioToolServer").finish_non_exhaustive()
    }
}
