//! The scenarios: what the model answers, and what the user does.

use std::sync::Arc;

use fake_model::{Cut, FailureClass, Reply, Script};
use interlingua::Entry;
use interlingua_agents::api::{ApiKind, Earlier};
use serde_json::{Value, json};

use crate::api::Bench;
use crate::api::resume::Files;

/// A conversation with a scripted model.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    replies: fn() -> Vec<Reply>,
    user: User,
}

/// What the user does after the first prompt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum User {
    Waits,
    /// Interrupts the turn as soon as a text is streamed.
    Interrupts,
    /// Wants a structured answer.
    WantsStructure,
    /// Ends the session after the first turn, and continues it later.
    Resumes,
}

/// The log of a session.
pub(super) struct Session {
    /// Its scenario and its API.
    pub(super) name: String,
    pub(super) api: ApiKind,
    pub(super) events: Vec<Value>,
    folders: [String; 2],
}

impl Scenario {
    pub(super) const ALL: &[Self] = &[
        Self { name: "plain-text", replies: plain_text, user: User::Waits },
        Self { name: "single-tool", replies: single_tool, user: User::Waits },
        Self { name: "several-tools", replies: several_tools, user: User::Waits },
        Self { name: "tool-error", replies: tool_error, user: User::Waits },
        Self { name: "interrupt", replies: interrupt, user: User::Interrupts },
        Self { name: "parallel-calls", replies: parallel_calls, user: User::Waits },
        Self { name: "sign-in", replies: || fails(FailureClass::InvalidKey), user: User::Waits },
        Self { name: "rate-limit", replies: rate_limit, user: User::Waits },
        Self { name: "cut-in-text", replies: cut_in_text, user: User::Waits },
        Self { name: "cut-in-arguments", replies: cut_in_arguments, user: User::Waits },
        Self {
            name: "overflow",
            replies: || fails(FailureClass::ContextOverflow),
            user: User::Waits,
        },
        Self { name: "refusal", replies: refusal, user: User::Waits },
        Self { name: "structured", replies: structured, user: User::WantsStructure },
        Self { name: "resumed", replies: resumed, user: User::Resumes },
    ];

    pub(super) fn named(name: &str) -> &'static Self {
        Self::ALL.iter().find(|scenario| scenario.name == name).unwrap()
    }

    /// Runs the scenario with an API, whose requests have to be without fault.
    pub(super) async fn run(&self, api: ApiKind) -> Session {
        let script = (self.replies)().into_iter().fold(Script::new(), Script::reply);
        // A strict script expects that an interrupted answer comes back completely.
        let script = if self.user == User::Interrupts { script } else { script.strict() };
        let mut bench = Bench::with_script(api, script);
        bench.write("note.txt", "the secret word is plum\n");
        bench.write("list.txt", "apple\nbirch\n");
        let events = self.user.talk(&mut bench).await;
        bench.check(&format!("golden-{}", self.name));
        let folder = bench.folder.path();
        let folders = [folder.canonicalize().unwrap(), folder.to_owned()];
        Session {
            name: format!("{} with {}", self.name, api.dialect_name()),
            api,
            events,
            folders: folders.map(|it| it.display().to_string()),
        }
    }
}

impl User {
    async fn talk(self, bench: &mut Bench) -> Vec<Value> {
        match self {
            Self::Waits => {}
            Self::WantsStructure => {
                bench.settings.schema = Some(json!({
                    "type": "object",
                    "properties": {"count": {"type": "integer"}},
                    "required": ["count"],
                    "additionalProperties": false,
                }));
            }
            Self::Interrupts => {
                let mut session = bench.open().await;
                session.handle.prompt("do it").await.unwrap();
                session.until(|event| event["type"] == "block_delta").await;
                session.handle.interrupt().await.unwrap();
                session.handle.finish().await.unwrap();
                return session.end().await.1;
            }
            Self::Resumes => {
                bench.settings.sessions = Some(Arc::new(Files(bench.path("sessions"))));
                let (_, events) = bench.run("begin").await;
                let id = events[0]["id"].as_str().unwrap();
                let stored = std::fs::read(bench.path(&format!("sessions/{id}.jsonl"))).unwrap();
                bench.settings.earlier = Some(Earlier::read(&stored).unwrap());
            }
        }
        bench.run("do it").await.1
    }
}

impl Session {
    /// The log of another test. Its API and its folders do not matter for the laws.
    pub(super) fn of(name: &str, events: &[Value]) -> Self {
        let (api, folders) = (ApiKind::Anthropic, [String::new(), String::new()]);
        Self { name: name.to_owned(), api, events: events.to_vec(), folders }
    }

    /// The entries, as they are stored.
    pub(super) fn log(&self) -> Vec<Entry> {
        let entry = |event: &Value| serde_json::from_str(&event.to_string()).unwrap();
        self.events.iter().map(entry).collect()
    }

    /// A value without the name of the folder of the session.
    pub(super) fn without_folder(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let [canonical, given] = &self.folders;
                let text = text.replace(canonical, "FOLDER").replace(given, "FOLDER");
                // Windows separates the names in a path by backslashes.
                Value::String(if text.contains("FOLDER\\") {
                    text.replace('\\', "/")
                } else {
                    text
                })
            }
            Value::Array(values) => values.iter().map(|it| self.without_folder(it)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| (name.clone(), self.without_folder(value)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            other => other.clone(),
        }
    }
}

fn read(name: &str) -> Value {
    json!({"file_path": name})
}

fn plain_text() -> Vec<Reply> {
    let reply = Reply::new().then_reasoning("Let me see.").then_text("Hel").then_text("lo.");
    vec![reply.usage(120, 30).cached(100).reasoning_tokens(8)]
}

fn single_tool() -> Vec<Reply> {
    let call = Reply::text("I look.").then_call("Read", read("note.txt"));
    vec![call.usage(10, 5), Reply::text("It is plum.").usage(20, 7)]
}

fn several_tools() -> Vec<Reply> {
    let edit = json!({"file_path": "list.txt", "old_string": "birch", "new_string": "beech"});
    vec![
        Reply::text("First the list.").then_call("Read", read("list.txt")),
        Reply::call("Edit", edit),
        Reply::call("Grep", json!({"pattern": "be+ch", "output_mode": "content"})),
        Reply::text("The list is corrected."),
    ]
}

fn tool_error() -> Vec<Reply> {
    vec![Reply::call("Read", read("missing.txt")), Reply::text("There is no such file.")]
}

fn interrupt() -> Vec<Reply> {
    vec![Reply::text("One, two, ").then_gate("counting").then_text("three.")]
}

fn parallel_calls() -> Vec<Reply> {
    let calls = Reply::new().then_reasoning("Both at once.").then_text("I read both.");
    let calls = calls.then_call("Read", read("note.txt")).then_call("Read", read("list.txt"));
    vec![calls, Reply::text("Done.")]
}

fn fails(class: FailureClass) -> Vec<Reply> {
    vec![Reply::failure(class)]
}

fn rate_limit() -> Vec<Reply> {
    let limited = || Reply::failure(FailureClass::RateLimit);
    vec![limited(), limited(), Reply::text("Here I am.")]
}

fn cut_in_text() -> Vec<Reply> {
    let cut = Reply::text("The answer is fo").then_text("rty").cut(Cut::InText);
    vec![cut, Reply::text("The answer is 42.")]
}

fn cut_in_arguments() -> Vec<Reply> {
    let write = |text: &str| json!({"file_path": "out.txt", "content": text});
    // The order of its fields decides what is counted of it.
    let half = r#"{"content":"half of the content","file_path":"out.txt"}"#;
    let cut = Reply::call("Write", json!({})).raw_arguments(half).cut(Cut::InCall);
    vec![cut, Reply::call("Write", write("whole")), Reply::text("Done.")]
}

fn refusal() -> Vec<Reply> {
    vec![Reply::new().then_refusal("I will not.")]
}

fn structured() -> Vec<Reply> {
    let answer = |count: Value| Reply::call("StructuredOutput", json!({"count": count}));
    vec![Reply::text("Three."), answer(json!("three")), answer(json!(3))]
}

fn resumed() -> Vec<Reply> {
    let [calls, done] = parallel_calls().try_into().unwrap();
    let last = Reply::new().then_reasoning("I know it.").then_text("It was plum.");
    vec![calls, done, last]
}
