//! A reader of a session's log that connects again whenever its connection breaks, at the place that it has
//! reached.

use std::io::{Error, ErrorKind, Result};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::http::{Cut, send};

/// Where the server listens now. It is nowhere while it is down, and has another port after each start.
#[derive(Clone, Default)]
pub(crate) struct Address(Arc<(Mutex<Option<String>>, Condvar)>);

impl Address {
    pub(crate) fn set(&self, address: Option<String>) {
        *self.0.0.lock().unwrap() = address;
        self.0.1.notify_all();
    }

    pub(crate) fn get(&self) -> Option<String> {
        self.0.0.lock().unwrap().clone()
    }

    /// Waits until there is a server. One that was killed a moment ago may still be named.
    fn wait(&self) -> String {
        let mut address = self.0.0.lock().unwrap();
        loop {
            if let Some(address) = &*address {
                return address.clone();
            }
            let waited = self.0.1.wait_timeout(address, Duration::from_secs(60)).unwrap();
            assert!(!waited.1.timed_out(), "the server was not started again");
            address = waited.0;
        }
    }
}

/// How a log is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    LongPoll,
    Sse,
    /// As server-sent events, over another connection whenever there was something new, ten times.
    Reconnecting,
}

/// How often a [reconnecting](Mode::Reconnecting) reader does so by itself.
pub(crate) const RECONNECTIONS: usize = 10;

/// A part of a log that one response, or one event of it, contained.
#[derive(Default)]
struct Part {
    records: Vec<Value>,
    next: Option<String>,
    closed: bool,
    /// It states the position that is reached, after the records before it.
    is_position: bool,
}

/// What a reader has read.
pub(crate) struct Read {
    pub(crate) records: Vec<Value>,
    /// How often it had to connect.
    pub(crate) connections: usize,
}

/// Reads the log of a session, in a thread.
pub(crate) struct Reader {
    thread: JoinHandle<Read>,
    connection: Arc<Mutex<Option<Cut>>>,
}

impl Reader {
    /// Reads the log in a dialect after so many entries, until its stream is closed.
    pub(crate) fn new(
        address: &Address,
        id: &str,
        dialect: &str,
        mode: Mode,
        entries: u64,
    ) -> Self {
        let connection = Arc::new(Mutex::new(None));
        let live = match mode {
            Mode::LongPoll => "long-poll",
            Mode::Sse | Mode::Reconnecting => "sse",
        };
        let path = format!("/v1/sessions/{id}/events?dialect={dialect}&live={live}&offset=");
        let follower = Follower {
            address: address.clone(),
            path,
            is_text: dialect == "text",
            mode,
            connection: Arc::clone(&connection),
            records: Vec::new(),
            connections: 0,
            next: format!("{entries:020}"),
            closed: false,
        };
        Self { thread: std::thread::spawn(|| follower.run()), connection }
    }

    /// Cuts the connection.
    pub(crate) fn disconnect(&self) {
        if let Some(connection) = self.connection.lock().unwrap().take() {
            connection.now();
        }
    }

    /// Waits for the end of the stream.
    pub(crate) fn finish(self) -> Read {
        self.thread.join().unwrap()
    }
}

struct Follower {
    address: Address,
    path: String,
    /// The records are text, which may be cut anywhere.
    is_text: bool,
    mode: Mode,
    connection: Arc<Mutex<Option<Cut>>>,
    records: Vec<Value>,
    connections: usize,
    /// The offset that was reached.
    next: String,
    closed: bool,
}

impl Follower {
    fn run(mut self) -> Read {
        while !self.closed {
            let address = self.address.wait();
            // What arrived before the connection broke was taken; the rest is read again.
            let _ = self.connect(&address);
            std::thread::yield_now();
        }
        Read { records: self.records, connections: self.connections }
    }

    fn connect(&mut self, address: &str) -> Result<()> {
        let path = format!("{}{}", self.path, self.next);
        let mut response = send(address, "GET", &path, None, None)?;
        // Too many requests at once.
        if response.status == 429 {
            std::thread::sleep(Duration::from_secs(1));
            return Ok(());
        }
        *self.connection.lock().unwrap() = Some(response.connection()?);
        self.connections += 1;
        assert!(response.status < 300, "{}: {}", path, response.status);
        match self.mode {
            Mode::LongPoll => {
                let answer = response.complete()?;
                let next = answer.header("stream-next-offset").map(str::to_owned);
                let closed = answer.header("stream-closed") == Some("true");
                let records = self.records_of(&answer.text());
                self.take(Part { records, next, closed, is_position: true });
            }
            Mode::Sse | Mode::Reconnecting => {
                let (mut rest, begun_at) = (String::new(), self.next.clone());
                while let Some(chunk) = response.chunk()? {
                    rest += std::str::from_utf8(&chunk)
                        .map_err(|_| Error::from(ErrorKind::InvalidData))?;
                    while let Some((event, after)) = rest.split_once("\n\n") {
                        let part = self.part_of_event(event);
                        rest = after.to_owned();
                        // A position is reached with the event that states it.
                        let is_position = part.is_position;
                        self.take(part);
                        if is_position
                            && self.next > begun_at
                            && self.mode == Mode::Reconnecting
                            && self.connections <= RECONNECTIONS
                        {
                            return Ok(());
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, part: Part) {
        self.records.extend(part.records);
        if let Some(next) = part.next {
            self.next = next;
        }
        self.closed = part.closed;
    }

    fn part_of_event(&self, event: &str) -> Part {
        let field = |name: &str| {
            let values = event.split('\n').filter_map(|line| line.strip_prefix(name));
            // A reader removes one space after the colon.
            let values = values.map(|value| value.strip_prefix(' ').unwrap_or(value));
            values.collect::<Vec<_>>().join("\n")
        };
        let (name, data) = (field("event:"), field("data:"));
        let next = Some(field("id:")).filter(|id| !id.is_empty());
        match name.as_str() {
            "data" => Part { records: self.records_of(&data), next, ..Part::default() },
            "control" => {
                let control: Value = serde_json::from_str(&data).unwrap();
                let closed = control["streamClosed"] == true;
                Part { next, closed, is_position: true, ..Part::default() }
            }
            // A heartbeat.
            _ => Part::default(),
        }
    }

    fn records_of(&self, body: &str) -> Vec<Value> {
        match (body.is_empty(), self.is_text) {
            (true, _) => Vec::new(),
            (false, true) => vec![Value::from(body)],
            (false, false) => serde_json::from_str(body).unwrap(),
        }
    }
}
