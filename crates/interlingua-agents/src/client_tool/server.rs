//! The MCP server: HTTP on loopback, with a token for each session.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::AUTHORIZATION;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::AbortHandle;
use tower_service::Service as _;

use super::handler::{Handler, PROGRESS_INTERVAL, ToolMessage};
use super::keyed::{GRACE, KeyedCalls};
use super::routes::{self, Body, plain};
use super::{ClientTool, Endpoint, SERVER_NAME};

type McpService = StreamableHttpService<Handler, LocalSessionManager>;

/// The service of a session, and the connections that it has.
struct Offered {
    service: McpService,
    sessions: Arc<LocalSessionManager>,
    /// The calls of MCP servers over standard streams.
    keyed: Arc<KeyedCalls>,
}

impl Offered {
    fn new(handler: Handler, grace: Duration) -> Self {
        let mut sessions = LocalSessionManager::default();
        // A person may take longer than any period of inactivity. The sessions end with the offer.
        sessions.session_config.keep_alive = None;
        // Gemini disconnects after an event without data, with which a stream would begin.
        sessions.session_config.sse_retry = None;
        let settings =
            StreamableHttpServerConfig::default().with_sse_retry(None).enforce_origin_validation();
        let sessions = Arc::new(sessions);
        let keyed = Arc::new(KeyedCalls::new(handler.clone(), grace));
        let factory = move || Ok(handler.clone());
        let service = StreamableHttpService::new(factory, Arc::clone(&sessions), settings);
        Self { service, sessions, keyed }
    }

    /// Ends all connections. The library keeps a session until it is closed, also if its client is gone.
    fn end(self) {
        self.keyed.close();
        self.service.config.cancellation_token.cancel();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let sessions = std::mem::take(&mut *self.sessions.sessions.write().await);
            for session in sessions.values() {
                // It may have ended by itself.
                let _ = session.close().await;
            }
        });
    }
}

/// The path of the server.
const PATH: &str = "/mcp";

/// What clients may do: other users of the machine reach the port, too.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// How long a client may take for the head of a request.
    pub(super) head: Duration,
    /// How many may be connected.
    pub(super) connections: usize,
    /// How long a call waits for a caller that was cut off.
    pub(super) grace: Duration,
    /// How often an agent learns that its call is still open.
    pub(super) progress: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let head = Duration::from_secs(10);
        Self { head, connections: 1024, grace: GRACE, progress: PROGRESS_INTERVAL }
    }
}

/// How long to wait before connections are accepted again, after that has failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The MCP server of client tools: one for a process, for any number of sessions. It ends when it and
/// all offers are dropped.
#[derive(Debug, Clone)]
pub struct ClientToolServer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    address: SocketAddr,
    offers: Arc<Offers>,
    accepting: AbortHandle,
    limits: Limits,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// The services of the sessions, by their tokens. The tokens are random and long, so that the time
/// that a lookup takes reveals nothing about them.
#[derive(Default)]
struct Offers(Mutex<HashMap<String, Offered>>);

impl Offers {
    fn with<T>(&self, change: impl FnOnce(&mut HashMap<String, Offered>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is offered to the sender of a request.
    fn find<T>(&self, request: &Request<Incoming>, part: impl FnOnce(&Offered) -> T) -> Option<T> {
        let token = request.headers().get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")?;
        self.with(|offers| offers.get(token).map(part))
    }
}

impl fmt::Debug for Offers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Offers({})", self.with(|offers| offers.len()))
    }
}

impl ClientToolServer {
    /// Starts the server on a free port of the loopback interface. It has to be called in a runtime.
    pub fn start() -> io::Result<Self> {
        Self::start_with(Limits::default())
    }

    pub(super) fn start_with(limits: Limits) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        let offers = Arc::new(Offers::default());
        let accepting = tokio::spawn(accept(listener, Arc::clone(&offers), limits)).abort_handle();
        Ok(Self { shared: Arc::new(Shared { address, offers, accepting, limits }) })
    }

    /// Offers tools to one session, for as long as the result exists. Tools that no agent could call
    /// are an error.
    pub fn offer(&self, tools: Vec<ClientTool>) -> io::Result<ClientToolOffer> {
        let invalid = |problem: String| io::Error::new(io::ErrorKind::InvalidInput, problem);
        ClientTool::check(&tools).map_err(invalid)?;
        let token = random_token()?;
        let (messages, received) = mpsc::unbounded_channel();
        let (listings, listed) = watch::channel(0);
        let limits = self.shared.limits;
        let handler = Handler::new(&tools, messages, listings, limits.progress);
        let offer = ClientToolOffer {
            server: self.clone(),
            tools,
            token,
            handler,
            disconnections: AtomicU64::new(0),
            received: Mutex::new(Some(received)),
            listed,
        };
        let offered = Offered::new(offer.handler.clone(), limits.grace);
        self.shared.offers.with(|offers| offers.insert(offer.token.clone(), offered));
        Ok(offer)
    }
}

/// The tools of one session at the [server](ClientToolServer).
pub struct ClientToolOffer {
    server: ClientToolServer,
    tools: Vec<ClientTool>,
    token: String,
    handler: Handler,
    disconnections: AtomicU64,
    received: Mutex<Option<mpsc::UnboundedReceiver<ToolMessage>>>,
    listed: watch::Receiver<u64>,
}

impl ClientToolOffer {
    /// The tools.
    pub fn tools(&self) -> &[ClientTool] {
        &self.tools
    }

    /// Where the agent finds them.
    pub fn endpoint(&self) -> Endpoint {
        let url = format!("http://{}{PATH}", self.server.shared.address);
        let authorization = format!("Bearer {}", self.token);
        let only_reads = self.tools.iter().all(|tool| tool.read_only);
        Endpoint { url, authorization, only_reads }
    }

    /// The secret by which the agent is known.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// The tools, as the core recognises them in what an agent reports.
    pub(crate) fn to_reader(&self) -> interlingua::ClientTools {
        let names = self.tools.iter().map(|tool| tool.name.clone()).collect();
        let server = SERVER_NAME.to_owned();
        interlingua::ClientTools { server, names, ..interlingua::ClientTools::default() }
    }

    /// The calls of the session. Only the first caller receives them.
    pub(crate) fn take_messages(&self) -> Option<mpsc::UnboundedReceiver<ToolMessage>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends all connections. An agent that was asked to exit may not do so before, and the next one
    /// begins anew.
    pub(crate) fn disconnect(&self) {
        let generation = self.disconnections.fetch_add(1, Ordering::Relaxed) + 1;
        let next = Offered::new(self.handler.after(generation), self.server.shared.limits.grace);
        let token = self.token.clone();
        let before = self.server.shared.offers.with(|offers| offers.insert(token, next));
        before.into_iter().for_each(Offered::end);
    }

    /// The number of disconnections, which the calls of the present process have, too.
    pub(crate) fn generation(&self) -> u64 {
        self.disconnections.load(Ordering::Relaxed)
    }

    /// What all connections share, by which a test finds out whether one is left.
    #[cfg(test)]
    pub(super) fn shared_handler(&self) -> Arc<super::handler::Shared> {
        self.handler.shared()
    }

    /// Counts how often an agent has listed the tools.
    pub(crate) fn listings(&self) -> watch::Receiver<u64> {
        self.listed.clone()
    }
}

impl Drop for ClientToolOffer {
    fn drop(&mut self) {
        let offered = self.server.shared.offers.with(|offers| offers.remove(&self.token));
        offered.into_iter().for_each(Offered::end);
    }
}

/// The token is a secret.
impl fmt::Debug for ClientToolOffer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.tools.iter().map(|tool| &tool.name).collect();
        out.debug_struct("ClientToolOffer").field("tools", &names).finish_non_exhaustive()
    }
}

/// A secret that nobody guesses.
pub(super) fn random_token() -> io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

async fn accept(listener: TcpListener, offers: Arc<Offers>, limits: Limits) {
    let free = Arc::new(Semaphore::new(limits.connections));
    loop {
        match listener.accept().await {
            Ok((connection, _)) => {
                let Ok(permit) = Arc::clone(&free).try_acquire_owned() else { continue };
                // An answer is small, and the agent waits for it.
                let _ = connection.set_nodelay(true);
                let offers = Arc::clone(&offers);
                tokio::spawn(async move {
                    serve(connection, offers, limits.head).await;
                    drop(permit);
                });
            }
            // Most likely the process has too many open files.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn serve(connection: TcpStream, offers: Arc<Offers>, head: Duration) {
    let answer = service_fn(move |request| {
        let offers = Arc::clone(&offers);
        async move { Ok::<_, Infallible>(respond(request, &offers).await) }
    });
    // What goes wrong with a connection concerns the agent only.
    let _ = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .serve_connection(TokioIo::new(connection), answer)
        .await;
}

async fn respond(request: Request<Incoming>, offers: &Offers) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let Some(below) = path.strip_prefix(PATH) else {
        return plain(StatusCode::NOT_FOUND, "the server is at /mcp");
    };
    if let Some(below) = below.strip_prefix('/') {
        return match offers.find(&request, |offered| Arc::clone(&offered.keyed)) {
            Some(calls) => routes::respond(request, below, &calls).await,
            None => unauthorized(),
        };
    }
    if !below.is_empty() {
        return plain(StatusCode::NOT_FOUND, "the server is at /mcp");
    }
    match offers.find(&request, |offered| offered.service.clone()) {
        Some(mut service) => {
            let Ok(response) = service.call(request).await;
            response
        }
        None => unauthorized(),
    }
}

fn unauthorized() -> Response<Body> {
    plain(StatusCode::UNAUTHORIZED, "the token is missing or not valid any more")
}
