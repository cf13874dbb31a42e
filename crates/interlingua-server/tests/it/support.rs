//! What the tests share: a server on a port of the system, a client, and real entries.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use interlingua::dialect::{self, Dialect, EncodeOptions, Written};
use interlingua::event::{Event, Notice};
use interlingua::json::Text;
use interlingua::{Entry, EntryRef, Exit, Origin, ReadOptions, Reader, Source, Writer};
use interlingua_server::{Allowed, Scope, Server, Sessions, Settings, Token};
use interlingua_sessions::{
    Clock, Commit, Fence, MemoryStore, Patch, SessionId, SessionRecord, State, Store,
};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::sessions::StoredSessions;

pub(crate) const ADMIN: &str = "admin-token";
pub(crate) const ID_SEED: u64 = 7;

/// A server that runs until it is dropped.
pub(crate) struct Running {
    pub(crate) url: String,
    pub(crate) address: std::net::SocketAddr,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hands: Hands,
    pub(crate) client: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// A time that moves only when a test moves it.
#[derive(Clone)]
pub(crate) struct Hands(Arc<AtomicU64>);

impl Hands {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1_800_000_000_000)))
    }

    pub(crate) fn clock(&self) -> Clock {
        let hands = Arc::clone(&self.0);
        Arc::new(move || hands.load(Ordering::SeqCst))
    }

    pub(crate) fn advance(&self, milliseconds: u64) {
        self.0.fetch_add(milliseconds, Ordering::SeqCst);
    }

    pub(crate) fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A server with a store in memory.
pub(crate) async fn serve() -> Running {
    serve_with(|_| {}).await
}

pub(crate) async fn serve_with(change: impl FnOnce(&mut Settings)) -> Running {
    let hands = Hands::new();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(hands.clock()));
    serve_store(store, hands, change).await
}

pub(crate) async fn serve_store(
    store: Arc<dyn Store>,
    hands: Hands,
    change: impl FnOnce(&mut Settings),
) -> Running {
    let sessions = StoredSessions { store: Arc::clone(&store), clock: hands.clock() };
    serve_sessions(Arc::new(sessions), store, hands, change).await
}

pub(crate) async fn serve_sessions(
    sessions: Arc<dyn Sessions>,
    store: Arc<dyn Store>,
    hands: Hands,
    change: impl FnOnce(&mut Settings),
) -> Running {
    let mut settings = Settings::default();
    settings.clock = hands.clock();
    settings.tokens = vec![Token::new(ADMIN, Scope::Admin)];
    settings.limits.requests_per_second = 1_000_000;
    settings.allowed = Allowed {
        agents: vec!["codex".to_owned()],
        folders: Vec::new(),
        modes: vec!["default".to_owned()],
        sandboxes: None,
    };
    change(&mut settings);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::new(sessions, settings);
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(server.run(listener, async {
        let _ = stopped.await;
    }));
    Running {
        url: format!("http://{address}"),
        address,
        store,
        hands,
        client: client(),
        stop: Some(stop),
        task,
    }
}

impl Running {
    /// Stops the server, and waits until it has ended.
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        self.task.await.unwrap();
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url)).bearer_auth(ADMIN)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path).send().await.unwrap()).await
    }

    pub(crate) async fn head(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::HEAD, path).send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_with(path, body, &[]).await
    }

    pub(crate) async fn post_with(
        &self,
        path: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut request = self.request(Method::POST, path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.header("content-type", "application/json").body(body.to_string());
        Answer::of(request.send().await.unwrap()).await
    }

    /// Creates a session in the store.
    pub(crate) async fn session(&self, name: &str) -> Log {
        self.session_of(name, None).await
    }

    pub(crate) async fn session_of(&self, name: &str, owner: Option<&str>) -> Log {
        let id = SessionId::new(name).unwrap();
        let record = SessionRecord {
            state: State::Idle,
            owner: owner.map(str::to_owned),
            id_seed: ID_SEED,
            ttl_ms: Some(600_000),
            ..SessionRecord::new(id.clone(), "codex", self.hands.now())
        };
        self.store.create(record).await.unwrap();
        let fence = self.store.claim(&id).await.unwrap();
        Log { store: Arc::clone(&self.store), id, fence }
    }

    /// A closed session with the entries of a transcript.
    pub(crate) async fn transcript(&self, name: &str, entries: &[Entry]) -> Log {
        let log = self.session(name).await;
        log.append(entries.to_vec()).await;
        log.close().await;
        log
    }
}

/// The log of a session, which a test writes.
pub(crate) struct Log {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) id: SessionId,
    pub(crate) fence: Fence,
}

impl Log {
    pub(crate) async fn append(&self, entries: Vec<Entry>) {
        let commit = Commit { entries: entries.into(), ..Commit::default() };
        self.store.commit(&self.id, self.fence, commit).await.unwrap();
    }

    pub(crate) async fn set(&self, state: State) {
        let patch = Patch { state: Some(state), ..Patch::default() };
        let commit = Commit { patch, ..Commit::default() };
        self.store.commit(&self.id, self.fence, commit).await.unwrap();
    }

    pub(crate) async fn close(&self) {
        self.set(State::Ended).await;
    }

    pub(crate) fn events(&self) -> String {
        format!("/v1/sessions/{}/events", self.id)
    }
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) async fn of(response: Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        Self { status, headers, body: response.bytes().await.unwrap().to_vec() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn next(&self) -> u64 {
        let next = self.header("stream-next-offset").unwrap();
        // What a stream ends with may have been served, too.
        let entries = next.strip_suffix(".end").unwrap_or(next);
        assert_eq!(entries.len(), 20);
        entries.parse().unwrap()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.header("stream-closed") == Some("true")
    }

    pub(crate) fn is_up_to_date(&self) -> bool {
        self.header("stream-up-to-date") == Some("true")
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn records(&self) -> Vec<Value> {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The code of an error, after a check of its form.
    pub(crate) fn error(&self) -> (u16, String) {
        let json = self.json();
        let error = &json["error"];
        assert!(error["message"].as_str().unwrap().len() > 10, "{json}");
        (self.status.as_u16(), error["code"].as_str().unwrap().to_owned())
    }
}

/// An entry that contains a text.
pub(crate) fn entry(sequence: u64, text: &str) -> Entry {
    let notice = Notice { text: Text::from(text.to_owned()), ..Notice::default() };
    Entry {
        sequence,
        received_at: Some(7),
        epoch: 0,
        origin: Origin::default(),
        event: Event::new(notice),
        raw: None,
    }
}

pub(crate) fn entries(numbers: std::ops::Range<u64>) -> Vec<Entry> {
    numbers.map(|number| entry(number, &format!("entry {number}"))).collect()
}

/// The entries of a transcript.
pub(crate) fn transcript(name: &str) -> Vec<Entry> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../transcripts").join(name);
    let input = std::fs::read(folder.join("input.jsonl")).unwrap();
    let options = ReadOptions { id_seed: Some(ID_SEED), ..ReadOptions::default() };
    let mut reader = Reader::new(Source::Recognise, options).unwrap();
    let mut entries = Vec::new();
    let mut keep = |entry: EntryRef<'_>| entries.push(entry.to_owned());
    reader.push(&input, Some(1_700_000_000_000), &mut keep).unwrap();
    reader.finish(&Exit::default(), Some(1_700_000_000_000), &mut keep).unwrap();
    entries
}

/// All dialects that are written.
pub(crate) fn written() -> impl Iterator<Item = &'static Dialect> {
    dialect::ALL.iter().copied().filter(|dialect| dialect.encoder.is_some())
}

/// What a writer writes for each entry, and at the end.
pub(crate) fn parts(entries: &[Entry], to: &'static Dialect) -> Vec<Part> {
    let options = EncodeOptions { id_seed: Some(ID_SEED), ..EncodeOptions::default() };
    let mut writer = Writer::new(to, &options).unwrap();
    let mut parts = Vec::new();
    for entry in entries {
        let mut bytes = Vec::new();
        writer.write(entry.borrowed(), &mut bytes);
        parts.push(Part::of(&bytes, to.written));
    }
    let mut bytes = Vec::new();
    writer.finish(&mut bytes);
    parts.push(Part::of(&bytes, to.written));
    parts
}

/// What an entry becomes: records, or text.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Part {
    pub(crate) records: Vec<Value>,
    pub(crate) text: String,
}

impl Part {
    fn of(bytes: &[u8], form: Written) -> Self {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        if form == Written::Text {
            return Self { text, ..Self::default() };
        }
        let lines = text.lines().map(|line| line.trim_start_matches("data: "));
        let lines = lines.filter(|line| !line.is_empty() && *line != "[DONE]");
        let records = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        Self { records, ..Self::default() }
    }

    /// What a response contains.
    pub(crate) fn served(body: &[u8], form: Written) -> Self {
        match form {
            Written::Text => {
                Self { text: String::from_utf8(body.to_vec()).unwrap(), ..Self::default() }
            }
            _ => Self { records: serde_json::from_slice(body).unwrap(), ..Self::default() },
        }
    }

    pub(crate) fn joined<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.records.extend(part.records.iter().cloned());
            all.text.push_str(&part.text);
        }
        all
    }
}

/// The server-sent events of a response that is still open.
pub(crate) struct Events {
    response: Response,
    buffer: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sse {
    pub(crate) event: String,
    pub(crate) id: String,
    pub(crate) data: String,
}

impl Sse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

impl Events {
    pub(crate) fn new(response: Response) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        Self { response, buffer: String::new() }
    }

    /// The next event, or nothing when the server has closed the connection.
    pub(crate) async fn next(&mut self) -> Option<Sse> {
        loop {
            let block = self.next_block().await?;
            if !block.starts_with(':') {
                return Some(parse(&block));
            }
        }
    }

    /// The next block, which may be a comment.
    pub(crate) async fn next_block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.find("\n\n") {
                let rest = self.buffer.split_off(end + 2);
                return Some(std::mem::replace(&mut self.buffer, rest).trim_end().to_owned());
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.buffer.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// All events until the connection is closed.
    pub(crate) async fn all(mut self) -> Vec<Sse> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

fn parse(block: &str) -> Sse {
    let field = |name: &str| {
        let lines = block.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let values: Vec<_> = lines.map(|value| value.strip_prefix(' ').unwrap_or(value)).collect();
        values.join("\n")
    };
    Sse { event: field("event"), id: field("id"), data: field("data") }
}

/// A client without TLS. The crate of the agents leaves the choice of its cryptography to programs, and
/// creating a client panics without one.
fn client() -> reqwest::Client {
    #[cfg(target_os = "linux")]
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}
