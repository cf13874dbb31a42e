//! Reads many sessions at once over HTTP, as server-sent events, and verifies what arrives.
//!
//! Usage: load-readers ADDRESS TOKENS GATE SLOW_BYTES_PER_SECOND < IDS
//!
//! `TOKENS` is the file of the server's tokens, which readers share, since each has a limit of requests.
//!
//! Every second session has a slow reader, which takes so many bytes in a second (0: none is slow)
//! until all others have read everything; then it reads the rest as fast as it can. When all sessions
//! have begun, the named pipe `GATE` is opened, at which the agents wait. A reader that is disconnected
//! continues at its last position. Prints one JSON object with what was read and how long it took.

use std::borrow::Cow;
use std::error::Error;
use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};

mod sum;

use sum::Sum;

type Failure = Box<dyn Error + Send + Sync>;

/// How long everything may take.
const LIMIT: Duration = Duration::from_secs(300);

/// The memory of the system for what a slow reader has not read.
const SLOW_BUFFER: u32 = 4096;

/// A slow reader reads so often in a second.
const SLOW_READS: u64 = 10;

/// What all readers share.
struct Shared {
    address: String,
    tokens: Vec<String>,
    slow_bytes: u64,
    /// The sessions that have not begun.
    waiting: AtomicUsize,
    begun: Semaphore,
    /// All fast readers are done.
    released: watch::Receiver<bool>,
}

#[tokio::main]
#[allow(clippy::print_stdout, reason = "the result is printed")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [address, tokens, gate, slow_bytes] = &arguments[..] else {
        return Err("ADDRESS TOKENS GATE SLOW_BYTES_PER_SECOND < IDS".into());
    };
    let tokens = std::fs::read_to_string(tokens)?.lines().map(str::to_owned).collect();
    let ids: Vec<_> = std::io::stdin().lock().lines().collect::<Result<_, _>>()?;
    let (release, released) = watch::channel(false);
    let shared = Arc::new(Shared {
        address: address.clone(),
        tokens,
        slow_bytes: slow_bytes.parse()?,
        waiting: AtomicUsize::new(ids.len()),
        begun: Semaphore::new(0),
        released,
    });
    let all = read_all(shared, ids, gate.clone(), release);
    println!("{}", tokio::time::timeout(LIMIT, all).await.map_err(|_| "it took too long")??);
    Ok(())
}

async fn read_all(
    shared: Arc<Shared>,
    ids: Vec<String>,
    gate: String,
    release: watch::Sender<bool>,
) -> Result<serde_json::Value, Failure> {
    let (mut fast, mut slow) = (Vec::new(), Vec::new());
    for (number, id) in ids.into_iter().enumerate() {
        let is_slow = shared.slow_bytes > 0 && number % 2 == 1;
        let reader = Reader::new(Arc::clone(&shared), id, number, is_slow);
        let task = tokio::spawn(reader.read());
        if is_slow { slow.push(task) } else { fast.push(task) }
    }
    shared.begun.acquire().await?.forget();
    let begun = Instant::now();
    // All agents wait for it to be opened.
    tokio::task::spawn_blocking(move || std::fs::File::options().write(true).open(gate)).await??;
    let mut total = Total::default();
    for task in fast {
        total.add(task.await??);
    }
    let streamed = begun.elapsed();
    let _ = release.send(true);
    let mut late = Total::default();
    for task in slow {
        late.add(task.await??);
    }
    let all = begun.elapsed();
    total.delays.sort_unstable();
    let delay = |share: f64| {
        let at = (total.delays.len() as f64 * share) as usize;
        total.delays.get(at).map(|nanoseconds| *nanoseconds as f64 / 1e6)
    };
    let problems = [&*total.problems, &*late.problems].concat();
    Ok(serde_json::json!({
        "fast": total.readers,
        "slow": late.readers,
        "events": total.events,
        "slow_events": late.events,
        "slow_events_before_release": late.before_release,
        "problems": problems,
        "reconnects": total.reconnects + late.reconnects,
        "seconds": streamed.as_secs_f64(),
        "seconds_with_slow": all.as_secs_f64(),
        "delay_median_ms": delay(0.5),
        "delay_95_ms": delay(0.95),
        "delay_99_ms": delay(0.99),
    }))
}

#[derive(Default)]
struct Total {
    readers: usize,
    events: u64,
    before_release: u64,
    reconnects: u64,
    problems: Vec<String>,
    delays: Vec<u64>,
}

impl Total {
    fn add(&mut self, mut reader: Reader) {
        self.readers += 1;
        self.events += reader.next;
        self.before_release += reader.before_release;
        self.reconnects += reader.connections.saturating_sub(1);
        self.problems.extend(reader.problems);
        self.delays.append(&mut reader.delays);
    }
}

/// An entry, as far as a reader verifies it.
#[derive(Deserialize)]
struct Seen<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    sequence: u64,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

/// Reads one session.
struct Reader {
    shared: Arc<Shared>,
    id: String,
    /// The reader's own number.
    number: usize,
    is_slow: bool,
    /// The number of the next entry.
    next: u64,
    /// The last position that the server stated.
    offset: String,
    sum: Sum,
    has_begun: bool,
    has_ended: bool,
    is_verified: bool,
    connections: u64,
    before_release: u64,
    problems: Vec<String>,
    delays: Vec<u64>,
}

impl Reader {
    fn new(shared: Arc<Shared>, id: String, number: usize, is_slow: bool) -> Self {
        Self {
            shared,
            id,
            number,
            is_slow,
            next: 0,
            offset: "-1".to_owned(),
            sum: Sum::default(),
            has_begun: false,
            has_ended: false,
            is_verified: false,
            connections: 0,
            before_release: 0,
            problems: Vec::new(),
            delays: Vec::new(),
        }
    }

    async fn read(mut self) -> Result<Self, Failure> {
        while !self.has_ended {
            self.connections += 1;
            self.read_connection().await?;
        }
        if !self.is_verified {
            self.problems.push(format!("{}: the sum of the texts did not arrive", self.id));
        }
        Ok(self)
    }

    /// Reads until the end of the turn, or of the connection.
    async fn read_connection(&mut self) -> Result<(), Failure> {
        let mut stream = self.connect().await?;
        let (mut body, mut events) = (Chunked::default(), Events::default());
        let mut released = self.shared.released.clone();
        let mut piece = vec![0; 64 << 10];
        loop {
            // A slow one reads at its own speed once its session has begun.
            let is_slow = self.is_slow && self.has_begun && !*released.borrow();
            let length = if is_slow { self.shared.slow_bytes / SLOW_READS } else { u64::MAX };
            let length = usize::try_from(length).unwrap_or(usize::MAX).clamp(1, piece.len());
            let read = stream.read(piece.get_mut(..length).unwrap_or_default()).await?;
            let now = nanoseconds();
            if read == 0 {
                return Ok(());
            }
            body.push(piece.get(..read).unwrap_or_default(), &mut events.unread)?;
            while let Some(event) = events.next() {
                self.event(event, now)?;
            }
            if self.has_ended {
                return Ok(());
            }
            if is_slow {
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(1000 / SLOW_READS)) => {}
                    _ = released.wait_for(|released| *released) => self.before_release = self.next,
                }
            }
        }
    }

    /// Requests the events after the last position, and reads the header of the response.
    async fn connect(&self) -> Result<TcpStream, Failure> {
        let socket = TcpSocket::new_v4()?;
        if self.is_slow {
            socket.set_recv_buffer_size(SLOW_BUFFER)?;
        }
        let Shared { address, tokens, .. } = &*self.shared;
        let token = tokens.get(self.number % tokens.len().max(1)).map_or("", String::as_str);
        let mut stream = socket.connect(address.parse()?).await?;
        let (id, offset) = (&self.id, &self.offset);
        let request = format!(
            "GET /v1/sessions/{id}/events?live=sse&offset={offset} HTTP/1.1\r\nhost: {address}\r\n\
             authorization: Bearer {token}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        if !head.starts_with(b"HTTP/1.1 200 ") {
            return Err(String::from_utf8_lossy(&head).into());
        }
        Ok(stream)
    }

    fn event(&mut self, event: Event, now: u64) -> Result<(), Failure> {
        if event.name == b"data" {
            for entry in serde_json::from_slice::<Vec<Seen<'_>>>(&event.data)? {
                self.entry(&entry, now);
            }
        }
        if !event.id.is_empty() {
            self.offset = String::from_utf8(event.id)?;
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Seen<'_>, now: u64) {
        if entry.sequence != self.next {
            let problem = format!("{}: {} instead of {}", self.id, entry.sequence, self.next);
            self.problems.push(problem);
        }
        self.next = entry.sequence + 1;
        match (entry.kind, entry.text.as_deref()) {
            ("turn_started", _) => self.begin(),
            ("turn_ended", _) => self.has_ended = true,
            ("block_delta", Some(text)) => self.text(text, now),
            _ => {}
        }
    }

    fn begin(&mut self) {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        if is_first && self.shared.waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.shared.begun.add_permits(1);
        }
    }

    fn text(&mut self, text: &str, now: u64) {
        if let Some(sum) = text.strip_prefix("sum ") {
            self.is_verified = true;
            if sum != self.sum.to_string() {
                self.problems.push(format!("{}: the text differs from what was printed", self.id));
            }
            return;
        }
        self.sum.add(text.as_bytes());
        let printed = text.split('@').nth(1).and_then(|printed| printed.trim().parse().ok());
        if let Some(printed) = printed.filter(|_| !self.is_slow) {
            self.delays.push(now.saturating_sub(printed));
        }
    }
}

fn nanoseconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Decodes a body that is sent in chunks.
#[derive(Default)]
struct Chunked {
    /// The bytes of the chunk that are still to come.
    missing: usize,
    /// The line between two chunks.
    line: Vec<u8>,
}

impl Chunked {
    fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        while let Some((first, after)) = bytes.split_first() {
            if self.missing > 0 {
                let (data, rest) = bytes.split_at(self.missing.min(bytes.len()));
                out.extend_from_slice(data);
                self.missing -= data.len();
                bytes = rest;
                continue;
            }
            bytes = after;
            match first {
                b'\r' => {}
                b'\n' if self.line.is_empty() => {}
                b'\n' => {
                    let length = std::mem::take(&mut self.line);
                    self.missing = usize::from_str_radix(std::str::from_utf8(&length)?, 16)?;
                }
                digit => self.line.push(*digit),
            }
        }
        Ok(())
    }
}

/// Cuts a body into server-sent events.
#[derive(Default)]
struct Events {
    unread: Vec<u8>,
    /// The bytes before this were searched for the end of an event.
    searched: usize,
}

#[derive(Default)]
struct Event {
    name: Vec<u8>,
    data: Vec<u8>,
    id: Vec<u8>,
}

impl Events {
    fn next(&mut self) -> Option<Event> {
        let from = self.searched.saturating_sub(1);
        let found = memchr::memmem::find(self.unread.get(from..)?, b"\n\n");
        let Some(end) = found.map(|at| from + at) else {
            self.searched = self.unread.len();
            return None;
        };
        self.searched = 0;
        let rest = self.unread.split_off(end + 2);
        let text = std::mem::replace(&mut self.unread, rest);
        let mut event = Event::default();
        for line in text.split(|byte| *byte == b'\n') {
            if let Some(name) = line.strip_prefix(b"event: ") {
                event.name = name.to_vec();
            } else if let Some(data) = line.strip_prefix(b"data:") {
                event.data.extend_from_slice(data);
            } else if let Some(id) = line.strip_prefix(b"id: ") {
                event.id = id.to_vec();
            }
        }
        Some(event)
    }
}
