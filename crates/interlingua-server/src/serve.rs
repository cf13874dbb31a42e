//! Accepts connections, within limits, until the server is stopped.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::Sessions;
use crate::app::App;
use crate::routes;
use crate::settings::{Limits, Settings};
use crate::stall::StallGuard;

/// The answer to a connection beyond the limit.
const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
    content-type: application/json\r\ncontent-length: 105\r\n\r\n\
    {\"error\":{\"code\":\"too_many_connections\",\"message\":\"the server has too many connections: try again soon\"}}";

/// How long open requests may take when the server stops.
const GRACE: Duration = Duration::from_secs(5);

/// How long the server waits when the system has no resources for another connection.
const PAUSE: Duration = Duration::from_millis(50);

/// A server that is ready to accept connections.
pub struct Server {
    app: Arc<App>,
    router: Router,
    stop: watch::Sender<bool>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Server").field("settings", &self.app.settings).finish_non_exhaustive()
    }
}

impl Server {
    /// A server for some sessions.
    pub fn new(sessions: Arc<dyn Sessions>, settings: Settings) -> Self {
        let (stop, stopping) = watch::channel(false);
        let app = App::new(sessions, settings, stopping);
        let router = routes::router(Arc::clone(&app));
        Self { app, router, stop }
    }

    /// All routes with their checks, for a caller that serves them within a router of its own.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// Serves another router on the same connections, such as one that contains
    /// [`router`](Self::router).
    #[must_use]
    pub fn with_router(mut self, router: Router) -> Self {
        self.router = router;
        self
    }

    /// Serves connections until `stopped` is ready. Open requests are then completed, and readers
    /// that wait are sent away.
    pub async fn run(self, listener: TcpListener, stopped: impl Future<Output = ()>) {
        let limits = self.app.settings.limits;
        let places = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
        let graceful = GracefulShutdown::new();
        let mut stopped = std::pin::pin!(stopped);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stopped => break,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(problem) => {
                    tracing::warn!(%problem, "a connection was not accepted");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                self.app.metrics.connection_rejected();
                tokio::spawn(reject(stream));
                continue;
            };
            let gauge = self.app.metrics.connection();
            let service = TowerToHyperService::new(self.router.clone());
            // Records are small, and must not wait for each other.
            let _ = stream.set_nodelay(true);
            let stream = TokioIo::new(StallGuard::accepted(stream, limits.stall_timeout));
            let connection = protocol(&limits).serve_connection(stream, service);
            let connection = graceful.watch(connection);
            tokio::spawn(async move {
                if let Err(problem) = connection.await {
                    tracing::debug!(%problem, "a connection ended");
                }
                drop((place, gauge));
            });
        }
        self.stop.send_replace(true);
        drop(listener);
        if tokio::time::timeout(GRACE, graceful.shutdown()).await.is_err() {
            tracing::warn!("requests were cut off when the server stopped");
        }
    }
}

fn protocol(limits: &Limits) -> http1::Builder {
    let mut protocol = http1::Builder::new();
    protocol
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_headers(limits.headers)
        .max_buf_size(limits.header_bytes.max(8192));
    protocol
}

/// Turns a connection away.
async fn reject(mut stream: TcpStream) {
    let answer = async {
        stream.write_all(TOO_MANY).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), answer).await;
}
