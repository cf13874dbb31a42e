//! A scripted service with the HTTP contract of the Giselle API: it streams runs, and takes results at its relay.
//!
//! It knows the contract as far as a client needs it, and nothing of models.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{Connection, Header, Incoming};

/// The token of the relay.
const TOKEN: &str = "relay-token-of-the-fake-service";

/// How often a waiting run checks whether its client is still connected.
const LOOK: Duration = Duration::from_millis(20);

/// What the service does with a run.
#[derive(Debug, Clone)]
pub enum Run {
    /// It streams these steps, and ends the response.
    Stream(Vec<Step>),
    /// It refuses the run.
    Refuse {
        /// The HTTP status.
        status: u16,
        /// Further headers.
        headers: Vec<(String, String)>,
        /// The body.
        body: String,
    },
}

/// A step of a run.
#[derive(Debug, Clone)]
pub enum Step {
    /// A record.
    Record(Value),
    /// A text in one piece, of several records or of a part of one.
    Text(String),
    /// The record of the relay, which has the address of this service.
    Relay,
    /// Waits until the relay has taken a response to the request with this id.
    AwaitResponse(String),
    /// Waits until the test opens the gate with this name.
    AwaitGate(String),
    /// Closes the connection in the middle of the response.
    Cut,
}

/// A received run.
#[derive(Debug, Clone)]
pub struct ReceivedRun {
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
    /// The client has closed the connection before the end of the response.
    pub left: bool,
}

#[derive(Debug, Default)]
struct State {
    script: Vec<Run>,
    runs: Vec<ReceivedRun>,
    relayed: Vec<Value>,
    relay_statuses: Vec<u16>,
    refused: usize,
    gates: Vec<String>,
    stopping: bool,
}

#[derive(Debug)]
struct Shared {
    address: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

/// A service on loopback that follows a script. It stops when it is dropped.
#[derive(Debug)]
pub struct FakeService {
    shared: Arc<Shared>,
}

impl FakeService {
    /// Starts on a free port of 127.0.0.1. Every request for a run takes the next one of the script.
    ///
    /// # Errors
    /// If no port is available.
    pub fn start(script: Vec<Run>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let state = Mutex::new(State { script, ..State::default() });
        let shared = Arc::new(Shared { address, state, changed: Condvar::new() });
        let there = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("fake-service".to_owned())
            .spawn(move || accept(&listener, &there))?;
        Ok(Self { shared })
    }

    /// The address of the contract, for the client.
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://{}/agent-api", self.shared.address)
    }

    /// The runs that were received.
    #[must_use]
    pub fn runs(&self) -> Vec<ReceivedRun> {
        self.shared.lock().runs.clone()
    }

    /// What the relay has taken: the whole requests.
    #[must_use]
    pub fn relayed(&self) -> Vec<Value> {
        self.shared.lock().relayed.clone()
    }

    /// Lets the relay answer the next responses with these statuses.
    pub fn refuse_at_relay(&self, statuses: &[u16]) {
        self.shared.change(|state| state.relay_statuses.extend(statuses));
    }

    /// Opens a gate.
    pub fn open(&self, gate: &str) {
        self.shared.change(|state| state.gates.push(gate.to_owned()));
    }

    /// Waits until a run was left by its client.
    pub fn until_left(&self, run: usize) {
        self.shared.wait(|state| state.runs.get(run).filter(|run| run.left).map(drop));
    }

    /// Waits until the relay has taken this many responses.
    pub fn until_relayed(&self, count: usize) {
        self.shared.wait(|state| (state.relayed.len() >= count).then_some(()));
    }

    /// Waits until the relay has refused this many responses.
    pub fn until_refused(&self, count: usize) {
        self.shared.wait(|state| (state.refused >= count).then_some(()));
    }
}

impl Drop for FakeService {
    fn drop(&mut self) {
        self.shared.change(|state| state.stopping = true);
        // This wakes the acceptor, which then sees that it must stop.
        let _ = TcpStream::connect(self.shared.address);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_all();
        changed
    }

    fn wait<T>(&self, mut found: impl FnMut(&State) -> Option<T>) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(found) = found(&state) {
                return Some(found);
            }
            if state.stopping {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for something; false if the client disconnects, or the service stops.
    fn wait_with(&self, connection: &Connection, found: impl Fn(&State) -> bool) -> bool {
        let mut state = self.lock();
        loop {
            if state.stopping || found(&state) {
                return !state.stopping;
            }
            let waited = self.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if connection.is_closed() {
                return false;
            }
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.lock().stopping {
            return;
        }
        let Ok(stream) = stream else { continue };
        let there = Arc::clone(shared);
        let spawned = std::thread::Builder::new()
            .name("fake-service connection".to_owned())
            .spawn(move || serve(&there, stream));
        drop(spawned);
    }
}

/// Serves one connection. An error ends it, since it is caused by the client.
fn serve(shared: &Shared, stream: TcpStream) {
    let Ok(mut connection) = Connection::new(stream) else { return };
    while let Ok(Some(incoming)) = connection.next() {
        let keeps = incoming.keep_alive;
        let whole = match incoming.path.as_str() {
            "/agent-api/run" => run(shared, &mut connection, incoming),
            "/agent-api/relay" => relay(shared, &mut connection, &incoming),
            _ => error(&mut connection, 404, "NOT_FOUND", "Not found."),
        };
        if !whole.unwrap_or(false) || !keeps {
            break;
        }
    }
    connection.cut();
}

/// Streams the next run of the script; returns whether the response is whole.
fn run(shared: &Shared, connection: &mut Connection, incoming: Incoming) -> io::Result<bool> {
    let (headers, body) = (incoming.headers, parsed(incoming.body.as_deref().unwrap_or_default()));
    let (number, run) = shared.change(|state| {
        state.runs.push(ReceivedRun { headers, body, left: false });
        let next = (!state.script.is_empty()).then(|| state.script.remove(0));
        (state.runs.len() - 1, next)
    });
    let steps = match run {
        Some(Run::Stream(steps)) => steps,
        Some(Run::Refuse { status, headers, body }) => {
            connection.respond(status, &headers, &body, body.len())?;
            return Ok(true);
        }
        None => return error(connection, 500, "INTERNAL_ERROR", "The script has no more runs."),
    };
    connection.start_stream(&[header("content-type", "application/x-ndjson; charset=utf-8")])?;
    for step in steps {
        let goes_on = match step {
            Step::Record(record) => connection.send_chunk(&format!("{record}\n")).is_ok(),
            Step::Text(text) => connection.send_chunk(&text).is_ok(),
            Step::Relay => connection.send_chunk(&format!("{}\n", announced(shared))).is_ok(),
            Step::AwaitResponse(request) => shared.wait_with(connection, |state| {
                state
                    .relayed
                    .iter()
                    .any(|it| it.pointer("/response/requestId") == Some(&request.as_str().into()))
            }),
            Step::AwaitGate(name) => {
                shared.wait_with(connection, |state| state.gates.contains(&name))
            }
            Step::Cut => return Ok(false),
        };
        if !goes_on {
            shared.change(|state| {
                if let Some(run) = state.runs.get_mut(number) {
                    run.left = true;
                }
            });
            return Ok(false);
        }
    }
    connection.end_stream()?;
    Ok(true)
}

fn announced(shared: &Shared) -> Value {
    let url = format!("http://{}/agent-api/relay", shared.address);
    json!({"type": "relay.session", "sessionId": "relay-1", "token": TOKEN, "relayUrl": url, "expiresAt": 4_102_444_800_000_u64})
}

fn relay(shared: &Shared, connection: &mut Connection, incoming: &Incoming) -> io::Result<bool> {
    let body = parsed(incoming.body.as_deref().unwrap_or_default());
    let field = |name: &str| body.get(name).and_then(Value::as_str);
    if field("token") != Some(TOKEN) || field("sessionId") != Some("relay-1") {
        let why = "Invalid relay session credentials.";
        return error(connection, 401, "UNAUTHORIZED", why);
    }
    let refused = shared
        .change(|state| (!state.relay_statuses.is_empty()).then(|| state.relay_statuses.remove(0)));
    if let Some(status) = refused {
        let answered = error(connection, status, "REFUSED", "The script refuses this response.");
        shared.change(|state| state.refused += 1);
        return answered;
    }
    shared.change(|state| state.relayed.push(body));
    respond(connection, 200, &json!({"ok": true}))
}

fn error(connection: &mut Connection, status: u16, code: &str, message: &str) -> io::Result<bool> {
    respond(connection, status, &json!({"ok": false, "errorCode": code, "message": message}))
}

fn respond(connection: &mut Connection, status: u16, body: &Value) -> io::Result<bool> {
    let body = body.to_string();
    connection.respond(status, &[header("content-type", "application/json")], &body, body.len())?;
    Ok(true)
}

fn header(name: &str, value: &str) -> Header {
    (name.to_owned(), value.to_owned())
}

fn parsed(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_default()
}
