//! A server with the agent API, whose sessions note their commands, and a client of it.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use interlingua::event::{
    BlockDelta, Data, Event, Executor, HostState, Outcome, SessionStarted, Suspended, ToolEnded,
    ToolStarted, TurnEnded, TurnStarted,
};
use interlingua::json::{Json, Text};
use interlingua::{Entry, Origin};
use interlingua_server::{Scope, Sessions, Settings, Token, TokenKey};
use interlingua_sessions::host::{Command, NewSession, announced};
use interlingua_sessions::{
    Acknowledgement, Answer as Future, Commit, Error, IdempotencyKey, MemoryStore, Patch,
    SessionId, SessionRecord, State, Store, Waiting,
};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::sessions::StoredSessions;
use crate::support::{ADMIN, Answer, Hands, Running, serve_sessions};

/// How long something may take that is awaited.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) const ORIGIN: &str = "https://app.example";

/// Notes the commands that sessions get.
struct Noting {
    stored: StoredSessions,
    commands: Arc<Mutex<Vec<Command>>>,
    noted: Arc<Notify>,
    /// An answer is acknowledged with the number of the entry that ends its call, which is stored later.
    answers_early: Arc<AtomicBool>,
    /// Another process holds all sessions.
    is_held: Arc<AtomicBool>,
}

impl Sessions for Noting {
    fn create(&self, request: NewSession) -> Future<'_, SessionRecord> {
        self.stored.create(request)
    }

    fn created<'a>(
        &'a self,
        owner: Option<&'a str>,
        key: &'a IdempotencyKey,
    ) -> Future<'a, Option<SessionRecord>> {
        self.stored.created(owner, key)
    }

    fn command<'a>(
        &'a self,
        id: &'a SessionId,
        key: IdempotencyKey,
        command: Command,
    ) -> Future<'a, Acknowledgement> {
        self.commands.lock().unwrap().push(command.clone());
        self.noted.notify_one();
        let is_early = matches!(command, Command::Answer { .. }) && self.answers_early.load(SeqCst);
        Box::pin(async move {
            if self.is_held.load(SeqCst) {
                return Err(Error::Held(id.clone()));
            }
            let mut acknowledgement = self.stored.command(id, key, command).await?;
            if is_early {
                acknowledgement.sequence =
                    Some(self.store().read(id, u64::MAX, 0).await?.tail.next);
            }
            Ok(acknowledgement)
        })
    }

    fn delete<'a>(&'a self, id: &'a SessionId) -> Future<'a, bool> {
        self.stored.delete(id)
    }

    fn live_agents(&self) -> usize {
        self.stored.live_agents()
    }

    fn store(&self) -> &Arc<dyn Store> {
        self.stored.store()
    }
}

pub(super) struct Stage {
    pub(super) server: Running,
    pub(super) folder: tempfile::TempDir,
    pub(super) commands: Arc<Mutex<Vec<Command>>>,
    noted: Arc<Notify>,
    pub(super) answers_early: Arc<AtomicBool>,
    pub(super) is_held: Arc<AtomicBool>,
}

impl Stage {
    pub(super) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(super) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let hands = Hands::new();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(hands.clock()));
        let stored = StoredSessions { store: Arc::clone(&store), clock: hands.clock() };
        let (commands, noted) = (Arc::default(), Arc::<Notify>::default());
        let (answers_early, is_held) = (Arc::<AtomicBool>::default(), Arc::default());
        let sessions = Noting {
            stored,
            commands: Arc::clone(&commands),
            noted: Arc::clone(&noted),
            answers_early: Arc::clone(&answers_early),
            is_held: Arc::clone(&is_held),
        };
        let root = folder.path().join("sandboxes");
        let server = serve_sessions(Arc::new(sessions), store, hands, |settings| {
            settings.tokens = vec![
                Token::new(ADMIN, Scope::Admin),
                Token::new("of-ann", Scope::Owner("ann".to_owned())),
                Token::new("of-bob", Scope::Owner("bob".to_owned())),
            ];
            settings.token_key = Some(TokenKey::from_secret("secret"));
            settings.origins = vec![ORIGIN.to_owned()];
            settings.allowed.agents = vec!["codex".to_owned(), "gemini".to_owned()];
            settings.allowed.sandboxes = Some(root);
            change(settings);
        })
        .await;
        Self { server, folder, commands, noted, answers_early, is_held }
    }

    /// Begins a run, with a key by which it is recognised when it is sent again.
    pub(super) async fn run_keyed(&self, key: &str, body: &Value) -> Run {
        let request = self.server.client.post(format!("{}/agent-api/run", self.server.url));
        let request = request.bearer_auth(ADMIN).header("content-type", "application/json");
        let request = request.header("idempotency-key", key).body(body.to_string());
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
        Run::new(response).await
    }

    pub(super) async fn send(&self, path: &str, token: &str, body: &Value) -> Response {
        let request = self.server.client.post(format!("{}{path}", self.server.url));
        let request = request.bearer_auth(token).header("content-type", "application/json");
        request.body(body.to_string()).send().await.unwrap()
    }

    /// Begins a run.
    pub(super) async fn run(&self, body: &Value) -> Run {
        self.run_as(ADMIN, body).await
    }

    pub(super) async fn run_as(&self, token: &str, body: &Value) -> Run {
        let response = self.send("/agent-api/run", token, body).await;
        assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
        Run::new(response).await
    }

    /// A run that is refused: its status, code and message.
    pub(super) async fn refused(&self, body: &Value) -> (u16, String, String) {
        problem(&Answer::of(self.send("/agent-api/run", ADMIN, body).await).await)
    }

    /// A message of a browser: the status, and the body.
    pub(super) async fn relay(&self, body: &Value) -> (u16, Value) {
        let request = self.server.client.post(format!("{}/agent-api/relay", self.server.url));
        let request = request.header("content-type", "application/json").body(body.to_string());
        let answer = Answer::of(request.send().await.unwrap()).await;
        (answer.status.as_u16(), answer.json())
    }

    pub(super) async fn respond(&self, run: &Run, response: Value) -> (u16, Value) {
        let (session, token) = (&run.session, &run.token);
        let body = json!({"type": "relay.respond", "sessionId": session, "token": token, "response": response});
        self.relay(&body).await
    }

    pub(super) async fn browser(&self, session: &str, token: &str) -> Response {
        let path = format!("/agent-api/relay?type=relay.events&sessionId={session}&token={token}");
        let request = self.server.client.request(Method::GET, format!("{}{path}", self.server.url));
        request.send().await.unwrap()
    }

    /// The commands that sessions got so far.
    pub(super) fn taken(&self) -> Vec<Value> {
        let commands = std::mem::take(&mut *self.commands.lock().unwrap());
        let commands = commands.iter().map(|command| serde_json::to_value(command).unwrap());
        // Notes are for the server itself.
        commands.filter(|command| command["request"] != "agent-api-note").collect()
    }

    /// The next commands that sessions get.
    pub(super) async fn next_taken(&self, number: usize) -> Vec<Value> {
        let mut taken = self.taken();
        let noted = async {
            while taken.len() < number {
                self.noted.notified().await;
                taken.extend(self.taken());
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, noted).await.is_ok();
        assert!(in_time, "only {taken:?}");
        taken
    }

    /// Waits until the server has noticed that no client reads any more.
    pub(super) async fn until_no_reader(&self) {
        while !self.server.get("/metrics").await.text().contains("\ninterlingua_readers 0\n") {}
    }

    /// The agent of a session.
    pub(super) async fn agent(&self, session: &str) -> Agent {
        let id = SessionId::new(session).unwrap();
        let store = Arc::clone(&self.server.store);
        let next = store.read(&id, u64::MAX, 0).await.unwrap().tail.next;
        Agent { store, id, next }
    }
}

/// The form of an error before a stream has begun.
pub(super) fn problem(answer: &Answer) -> (u16, String, String) {
    let body = answer.json();
    assert_eq!(body["ok"], false, "{body}");
    let text = |name: &str| body[name].as_str().unwrap().to_owned();
    assert_eq!(body.as_object().unwrap().len(), 3, "{body}");
    (answer.status.as_u16(), text("errorCode"), text("message"))
}

/// A run that is streamed.
pub(super) struct Run {
    response: Response,
    buffer: String,
    /// The first two records.
    pub(super) relay: Value,
    pub(super) sandbox: Value,
    pub(super) session: String,
    pub(super) token: String,
}

impl Run {
    async fn new(response: Response) -> Self {
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("content-type"), "application/x-ndjson; charset=utf-8");
        assert_eq!(header("cache-control"), "no-cache, no-transform");
        let mut run = Self {
            response,
            buffer: String::new(),
            relay: Value::Null,
            sandbox: Value::Null,
            session: String::new(),
            token: String::new(),
        };
        run.relay = run.next().await.unwrap();
        run.sandbox = run.next().await.unwrap();
        assert_eq!(
            (&run.relay["type"], &run.sandbox["type"]),
            (&json!("relay.session"), &json!("sandbox"))
        );
        run.session = run.relay["sessionId"].as_str().unwrap().to_owned();
        run.token = run.relay["token"].as_str().unwrap().to_owned();
        run
    }

    /// The next record, or nothing at the end.
    pub(super) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.find('\n') {
                let rest = self.buffer.split_off(end + 1);
                let line = std::mem::replace(&mut self.buffer, rest);
                return Some(serde_json::from_str(&line).unwrap());
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.buffer.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// All further records.
    pub(super) async fn rest(mut self) -> Vec<Value> {
        let mut records = Vec::new();
        while let Some(record) = self.next().await {
            records.push(record);
        }
        records
    }
}

/// Writes the log of a session, as the host of its agent does.
pub(super) struct Agent {
    store: Arc<dyn Store>,
    pub(super) id: SessionId,
    next: u64,
}

impl Agent {
    pub(super) async fn emit(&mut self, events: Vec<Event<'static>>) {
        self.commit(events, None).await;
    }

    async fn commit(&mut self, events: Vec<Event<'static>>, state: Option<State>) {
        let entry = |(sequence, event)| Entry {
            sequence,
            received_at: Some(7),
            epoch: 0,
            origin: Origin::default(),
            event,
            raw: None,
        };
        let entries: Vec<_> = (self.next..).zip(events).map(entry).collect();
        self.next += entries.len() as u64;
        let patch = Patch { state, ..Patch::default() };
        let commit = Commit { entries: entries.into(), patch, ..Commit::default() };
        let fence = self.store.claim(&self.id).await.unwrap();
        self.store.commit(&self.id, fence, commit).await.unwrap();
    }

    /// Begins the turn of the prompt that was submitted last.
    pub(super) async fn begin(&mut self) {
        let commands = self.store.open_commands(&self.id).await.unwrap();
        let text = commands.last().unwrap().body["text"].as_str().unwrap().to_owned();
        self.begin_of(&text).await;
    }

    /// Begins the turn of a prompt.
    pub(super) async fn begin_of(&mut self, text: &str) {
        let commands = self.store.open_commands(&self.id).await.unwrap();
        let command = commands.iter().rfind(|command| command.body["text"] == text).unwrap();
        let raw = json!({"key": command.acknowledgement.key, "text": announced(text)});
        let raw = Json::from_serialize(&raw);
        let started = SessionStarted {
            id: Some(Text::plain("native-1")),
            model: Some(Text::plain("m")),
            ..SessionStarted::default()
        };
        let events = vec![
            Event::new(HostState { name: Text::plain("prompt"), raw }),
            Event::new(TurnStarted::default()),
            Event::new(started),
        ];
        self.commit(events, Some(State::Working)).await;
    }

    /// Calls tools of the client, and waits for all of them.
    pub(super) async fn call(&mut self, calls: &[(&str, &str, Value)]) {
        let mut events = Vec::new();
        let mut waiting = Vec::new();
        for (id, tool, input) in calls {
            events.push(Event::new(ToolStarted {
                call: text(id),
                name: text(tool),
                executor: Executor::Client,
                input: Json::from_serialize(input),
                ..ToolStarted::default()
            }));
            let (request, tool) = ((*id).to_owned(), (*tool).to_owned());
            waiting.push(Waiting::ClientTool { request, tool });
        }
        let calls = calls.iter().map(|(id, ..)| text(id)).collect();
        events.push(Event::new(Suspended { calls }));
        self.commit(events, Some(State::Waiting { waiting })).await;
    }

    pub(super) async fn snapshot(&mut self, id: &str) {
        self.call(&[(id, "getFormSnapshot", json!({"instruction": "fill"}))]).await;
    }

    /// A call is answered whose agent was lost: the answer stays accepted until the agent was started again.
    pub(super) async fn is_answered_late(&self, call: &str) {
        let key = IdempotencyKey::new(format!("late-{call}")).unwrap();
        let answer = json!({"type": "answer", "request": call, "answer": {"fields": []}});
        self.store.submit(&self.id, key, answer).await.unwrap();
    }

    /// Begins the turn in which an agent that was lost gets the late answers to its calls.
    pub(super) async fn resumes(&mut self, calls: &[&str]) {
        let key = format!("late-{}", calls[0]);
        let raw = Json::from_serialize(&json!({"key": key, "text": ""}));
        let mut events = vec![
            Event::new(HostState { name: Text::plain("prompt"), raw }),
            Event::new(TurnStarted::default()),
        ];
        events.extend(calls.iter().map(|call| {
            let executor = Executor::Client;
            Event::new(ToolEnded { call: text(call), executor, ..ToolEnded::default() })
        }));
        self.commit(events, Some(State::Working)).await;
    }

    /// Goes on after an answer.
    pub(super) async fn answered(&mut self, id: &str) {
        let executor = Executor::Client;
        let ended = ToolEnded { call: text(id), executor, ..ToolEnded::default() };
        self.commit(vec![Event::new(ended)], Some(State::Working)).await;
    }

    pub(super) async fn says(&mut self, words: &str) {
        let delta = BlockDelta { block: 1, text: text(words), ..BlockDelta::default() };
        self.emit(vec![Event::new(delta)]).await;
    }

    pub(super) async fn ends(&mut self, outcome: Outcome) {
        let rests = outcome != Outcome::WaitingForClient;
        let ended = TurnEnded { outcome, ..TurnEnded::default() };
        let event = Event { data: Data::from(ended), ..Event::new(TurnStarted::default()) };
        self.commit(vec![event], rests.then_some(State::Idle)).await;
    }
}

pub(super) fn text(words: &str) -> Text<'static> {
    Text::from(words.to_owned())
}

/// The names of records, with the text of those that have one.
pub(super) fn names(records: &[Value]) -> Vec<String> {
    let name = |record: &Value| {
        let kind = record["type"].as_str().unwrap();
        match record["content"].as_str().or(record["requestId"].as_str()) {
            Some(detail) => format!("{kind} {detail}"),
            None => kind.to_owned(),
        }
    };
    records.iter().map(name).collect()
}
