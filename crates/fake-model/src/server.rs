//! The server: accepts connections, plays answers, and lets the test inspect requests and wait for
//! them.
//!
//! It knows threads and sockets; the content of answers is decided elsewhere.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::answer::{Plan, answer};
use crate::check::Finding;
use crate::gate::Gate;
use crate::http::{Connection, Header};
use crate::play::Step;
use crate::record::{Kind, Outcome, Request, ToolResult};
use crate::script::Script;
use crate::state::Shared;

/// A model API on loopback that follows a script. It stops when it is dropped.
#[derive(Debug)]
pub struct FakeModel {
    shared: Arc<Shared>,
    open: Arc<Mutex<Vec<Open>>>,
    acceptor: Option<JoinHandle<()>>,
}

/// A connection and its thread.
#[derive(Debug)]
struct Open {
    stream: TcpStream,
    thread: JoinHandle<()>,
}

impl FakeModel {
    /// Starts on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// If no port is available.
    pub fn start(script: Script) -> io::Result<Self> {
        Self::start_at(script, 0)
    }

    /// Starts on this port of 127.0.0.1.
    ///
    /// # Errors
    /// If the port is not available.
    pub fn start_at(script: Script, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(script, address));
        let open = Arc::new(Mutex::new(Vec::new()));
        let (shared_there, open_there) = (Arc::clone(&shared), Arc::clone(&open));
        let acceptor = std::thread::Builder::new()
            .name("fake-model".to_owned())
            .spawn(move || accept(&listener, &shared_there, &open_there))?;
        Ok(Self { shared, open, acceptor: Some(acceptor) })
    }

    /// The address for the agent, such as `http://127.0.0.1:41234`; add the prefix that it expects.
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://{}", self.shared.address)
    }

    /// All requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.look(|state| state.requests.clone())
    }

    /// The requests of the main conversation so far.
    #[must_use]
    pub fn main_requests(&self) -> Vec<Request> {
        let mut requests = self.requests();
        requests.retain(|request| matches!(request.kind, Kind::Main(_)));
        requests
    }

    /// Writes each request for an answer so far to a file `NAME-NUMBER.json` of a folder, in the form
    /// in which `tests/clients/requests` validates it, and returns how many there were. No two models
    /// of a process write the same file.
    ///
    /// # Errors
    /// If the folder cannot be created, or a file cannot be written.
    pub fn record_requests(&self, folder: &Path, name: &str) -> io::Result<usize> {
        static RECORDED: AtomicUsize = AtomicUsize::new(0);
        std::fs::create_dir_all(folder)?;
        let mut count = 0;
        for request in self.requests() {
            if let Some(recorded) = request.recorded() {
                let number = RECORDED.fetch_add(1, Ordering::Relaxed);
                let file = folder.join(format!("{name}-{number:04}.json"));
                std::fs::write(file, format!("{recorded:#}\n"))?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// The errors of the requests so far.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        self.shared.look(|state| state.findings.clone())
    }

    /// The agent's answer to each tool call that the script sent, in the order of the calls.
    #[must_use]
    pub fn tool_results(&self) -> Vec<ToolResult> {
        self.shared.look(crate::state::State::tool_results)
    }

    /// A gate of the script.
    #[must_use]
    pub fn gate(&self, name: &str) -> Gate {
        Gate { name: name.to_owned(), shared: Arc::clone(&self.shared) }
    }

    /// Waits for the request with this number, from 0, among all; `None` after the deadline.
    #[must_use]
    pub fn wait_for_request(&self, number: usize, deadline: Instant) -> Option<Request> {
        self.shared.wait(Some(deadline), |state| state.requests.get(number).cloned())
    }

    /// Waits for the request with this number, from 0, of the main conversation.
    #[must_use]
    pub fn wait_for_main_request(&self, number: usize, deadline: Instant) -> Option<Request> {
        self.shared.wait(Some(deadline), |state| {
            let mut main =
                state.requests.iter().filter(|request| matches!(request.kind, Kind::Main(_)));
            main.nth(number).cloned()
        })
    }

    /// Waits until the answer to a request has ended, in any way.
    #[must_use]
    pub fn wait_for_outcome(&self, number: usize, deadline: Instant) -> Option<Outcome> {
        self.shared.wait(Some(deadline), |state| {
            let outcome = state.requests.get(number)?.outcome;
            (outcome != Outcome::Pending).then_some(outcome)
        })
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.shared.change(|state| state.stopping = true);
        // This wakes the acceptor, which then sees that it must stop.
        let _ = TcpStream::connect(self.shared.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        for connection in &open {
            let _ = connection.stream.shutdown(std::net::Shutdown::Both);
        }
        for connection in open {
            let _ = connection.thread.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>, open: &Mutex<Vec<Open>>) {
    for stream in listener.incoming() {
        if shared.look(|state| state.stopping) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let Ok(copy) = stream.try_clone() else { continue };
        let shared = Arc::clone(shared);
        let thread = std::thread::Builder::new()
            .name("fake-model connection".to_owned())
            .spawn(move || serve(&shared, stream));
        if let Ok(thread) = thread {
            let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
            open.retain(|connection| !connection.thread.is_finished());
            open.push(Open { stream: copy, thread });
        }
    }
}

/// Serves one connection. An error ends it, since it is caused by the agent.
fn serve(shared: &Shared, stream: TcpStream) {
    let Ok(mut connection) = Connection::new(stream) else { return };
    while let Ok(Some(incoming)) = connection.next() {
        let keep_alive = incoming.keep_alive;
        let without_body = incoming.method == "HEAD";
        let (number, plan) = answer(shared, incoming);
        let mut player = Player { shared, connection: &mut connection, number };
        let outcome = player.play(plan, without_body).unwrap_or(Outcome::AgentLeft);
        shared.change(|state| {
            if let Some(request) = state.requests.get_mut(number) {
                request.outcome = outcome;
            }
        });
        if outcome != Outcome::Sent || !keep_alive {
            break;
        }
    }
    connection.cut();
}

/// Plays an answer on a connection.
struct Player<'a> {
    shared: &'a Shared,
    connection: &'a mut Connection,
    /// The number of the request that is answered.
    number: usize,
}

/// The interval at which a reply at a gate checks whether the agent is still connected.
const LOOK: Duration = Duration::from_millis(20);

impl Player<'_> {
    fn play(&mut self, plan: Plan, without_body: bool) -> io::Result<Outcome> {
        let gates = plan.gates();
        if gates > 0 {
            // It is noted before anything is sent, since the agent may give up at once.
            self.shared.change(|state| state.has_gates_ahead(self.number, gates));
        }
        match plan {
            Plan::Stream { hold, headers, steps } => {
                if hold.is_some_and(|gate| !self.pass(&gate)) {
                    return Ok(Outcome::AgentLeft);
                }
                if steps.first() == Some(&Step::Cut) {
                    return Ok(Outcome::Cut);
                }
                self.connection.start_stream(&headers)?;
                let outcome = self.steps(steps, Connection::send_chunk)?;
                if outcome == Outcome::Sent {
                    self.connection.end_stream()?;
                }
                Ok(outcome)
            }
            Plan::Whole { status, headers, body, steps } => {
                self.play_body(status, &headers, &body, steps, without_body)
            }
        }
    }

    /// Plays an answer of known length: gates and pauses first, then all or half of its body.
    fn play_body(
        &mut self,
        status: u16,
        headers: &[Header],
        body: &str,
        mut steps: Vec<Step>,
        without_body: bool,
    ) -> io::Result<Outcome> {
        let cut = steps.last() == Some(&Step::Cut);
        let sent = steps.iter().find_map(|step| match step {
            Step::Send(text) => Some(text.len()),
            _ => None,
        });
        steps.retain(|step| matches!(step, Step::Gate(_) | Step::Pause(_)));
        let outcome = self.steps(steps, |_, _| Ok(()))?;
        match (cut, sent) {
            _ if outcome != Outcome::Sent => Ok(outcome),
            (true, None) => Ok(Outcome::Cut),
            (true, Some(sent)) => {
                self.connection.respond(status, headers, body, sent)?;
                Ok(Outcome::Cut)
            }
            (false, _) => {
                let bytes = if without_body { 0 } else { body.len() };
                self.connection.respond(status, headers, body, bytes)?;
                Ok(Outcome::Sent)
            }
        }
    }

    fn steps(
        &mut self,
        steps: Vec<Step>,
        send: impl Fn(&mut Connection, &str) -> io::Result<()>,
    ) -> io::Result<Outcome> {
        for step in steps {
            match step {
                Step::Send(text) => send(self.connection, &text)?,
                Step::Cut => return Ok(Outcome::Cut),
                Step::Pause(pause) => {
                    self.shared.wait(Some(Instant::now() + pause), |_| None::<()>);
                }
                Step::Gate(name) => {
                    if !self.pass(&name) {
                        return Ok(Outcome::AgentLeft);
                    }
                }
            }
        }
        Ok(Outcome::Sent)
    }

    /// Waits at a gate; false if the agent disconnected, or the server stops.
    fn pass(&self, name: &str) -> bool {
        self.shared.change(|state| state.gate(name).reached = true);
        loop {
            let open = self.shared.wait(Some(Instant::now() + LOOK), |state| {
                (state.gate(name).open || state.stopping).then_some(!state.stopping)
            });
            match open {
                Some(open) => {
                    self.shared.change(|state| state.passed_gate(self.number));
                    return open;
                }
                None if self.connection.is_closed() => return false,
                None => {}
            }
        }
    }
}
