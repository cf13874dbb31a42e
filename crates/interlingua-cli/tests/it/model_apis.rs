//! `run` with a model API, against a scripted model, and the sessions that it stores.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use fake_model::{FakeModel, Reply, Script};
use interlingua_sessions::{SessionId, SessionRecord, SessionRecorder};
use serde_json::{Value, json};

use crate::support::{Ran, command, ran};

pub(crate) const KEY: &str = "sk-test-0123456789abcdefghij";

/// The user's home, a working folder, and a model.
pub(crate) struct Desk {
    home: Rc<tempfile::TempDir>,
    pub(crate) model: FakeModel,
}

fn model(replies: impl IntoIterator<Item = Reply>) -> FakeModel {
    let script = replies.into_iter().fold(Script::new().key(KEY), Script::reply);
    FakeModel::start(script.strict().without_side_requests()).unwrap()
}

impl Desk {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("work")).unwrap();
        Self { home: Rc::new(home), model: model(replies) }
    }

    /// The same home and folder with another model.
    pub(crate) fn with_replies(&self, replies: impl IntoIterator<Item = Reply>) -> Self {
        Self { home: self.home.clone(), model: model(replies) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// A command of a user who has no settings but a key.
    pub(crate) fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = command(arguments);
        for name in ["XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "ANTHROPIC_MODEL"] {
            command.env_remove(name);
        }
        for name in ["ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN"] {
            command.env_remove(name);
        }
        command.env("HOME", self.home.path()).env("USERPROFILE", self.home.path());
        command.env("ANTHROPIC_API_KEY", KEY).current_dir(self.path("work"));
        command.stdin(std::process::Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments).output().unwrap())
    }

    /// Asks the model, with further arguments.
    pub(crate) fn ask(&self, prompt: &str, arguments: &[&str]) -> Ran {
        let address = self.model.address();
        let start = ["run", "anthropic-api", "--base-url", &address];
        let ran = self.run(&[&start, arguments, &[prompt]].concat());
        for output in [&ran.stdout, &ran.stderr] {
            assert!(!output.contains(KEY), "no key is printed: {output}");
        }
        ran
    }

    /// The file of the store.
    fn store(&self) -> PathBuf {
        self.path(".local/share/interlingua/sessions.db")
    }

    /// The ids of the stored sessions.
    fn sessions(&self) -> Vec<String> {
        let listed = self.run(&["sessions", "--json"]);
        assert_eq!(listed.code, Some(0), "{}", listed.stderr);
        records(&listed).iter().map(|session| session["id"].as_str().unwrap().to_owned()).collect()
    }

    fn only_session(&self) -> String {
        let sessions = self.sessions();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        sessions[0].clone()
    }

    /// What the store contains, in all its files.
    fn stored(&self) -> String {
        let folder = self.store().parent().unwrap().to_owned();
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let contents = files.filter_map(|path| std::fs::read(path).ok());
        contents.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
    }
}

pub(crate) fn records(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn of_type<'r>(records: &'r [Value], kind: &str) -> &'r Value {
    let found = records.iter().find(|it| it["type"] == kind);
    assert!(found.is_some(), "{kind}: {records:#?}");
    found.unwrap()
}

#[test]
fn a_model_api_is_an_agent_for_yume() {
    let read = Reply::text("I look.").then_call("Read", json!({"file_path": "note.txt"}));
    let desk = Desk::new([read, Reply::text("It is plum.")]);
    std::fs::write(desk.path("work/note.txt"), "the word is plum\n").unwrap();
    let ran = desk.ask("which word?", &["--to", "yume"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let records = records(&ran);
    assert_eq!((&records[0]["type"], &records[0]["subtype"]), (&json!("system"), &json!("init")));
    assert_eq!(of_type(&records, "tool_use")["name"], "Read");
    assert!(of_type(&records, "tool_result")["content"].as_str().unwrap().contains("plum"));
    assert_eq!(of_type(&records, "result")["is_error"], false);
    assert_eq!(records.last().unwrap()["type"], "message_stop");
    assert_eq!(desk.model.findings(), []);
}

#[test]
fn a_model_api_is_an_agent_for_readers_of_claude() {
    let desk = Desk::new([Reply::text("Hello.")]);
    let ran = desk.ask("hi", &["--to", "claude"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let records = records(&ran);
    assert_eq!(of_type(&records, "assistant")["message"]["content"][0]["text"], "Hello.");
    let result = records.last().unwrap();
    assert_eq!((&result["type"], &result["result"]), (&json!("result"), &json!("Hello.")));
    assert_eq!(desk.model.findings(), []);
}

#[test]
fn a_missing_key_is_reported_before_anything_is_sent() {
    let desk = Desk::new([]);
    let mut command = desk.command(&["run", "anthropic-api", "hi", "--to", "yume"]);
    let ran = ran(command.env_remove("ANTHROPIC_API_KEY").output().unwrap());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let records = records(&ran);
    let error = records.iter().find(|it| it["type"] == "system" && it["subtype"] == "error");
    let text = error.unwrap().to_string();
    assert!(text.contains("there is no key for the Anthropic API"), "{text}");
    assert!(text.contains("set ANTHROPIC_API_KEY"), "{text}");
    assert_eq!(of_type(&records, "result")["is_error"], true);
    assert_eq!(desk.model.requests().len(), 0);
    assert_eq!(desk.sessions(), [] as [String; 0]);
    // What is not stored is not remembered either.
    let ran = desk.ask("go on", &["--continue"]);
    assert!(ran.stderr.contains("to continue: start one"), "{}", ran.stderr);
}

#[test]
fn a_wrong_key_fails_the_run() {
    let desk = Desk::new([Reply::failure(fake_model::FailureClass::InvalidKey)]);
    let ran = desk.ask("hi", &["--to", "yume"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let records = records(&ran);
    let error = records.iter().find(|it| it["type"] == "system" && it["subtype"] == "error");
    assert!(error.is_some(), "{}", ran.stdout);
}

#[test]
fn flags_of_model_apis_are_not_for_programs() {
    let desk = Desk::new([]);
    let ran = desk.run(&["run", "codex", "--base-url", "http://localhost:1", "hi"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let expected = "--base-url is for model APIs, and codex is not one";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    let ran = desk.ask("hi", &["--exec"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot use --exec"), "{}", ran.stderr);
}

#[test]
fn stored_sessions_are_listed_shown_and_deleted() {
    let desk = Desk::new([Reply::text("Hello."), Reply::text("Goodbye.")]);
    assert_eq!(desk.run(&["sessions"]).stdout, "");
    desk.ask("the first prompt", &[]);
    let id = desk.only_session();
    let listed = desk.run(&["sessions"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    for part in [&*id, "anthropic-api", "idle", "the first prompt"] {
        assert!(listed.stdout.contains(part), "{part}: {}", listed.stdout);
    }
    let listed: Value = serde_json::from_str(&desk.run(&["sessions", "--json"]).stdout).unwrap();
    assert_eq!((&listed["id"], &listed["title"]), (&json!(id), &json!("the first prompt")));
    let shown = desk.run(&["sessions", "show", &id[..8]]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("Hello."), "{}", shown.stdout);
    desk.ask("the second prompt", &[]);
    assert_eq!(desk.sessions().len(), 2);
    let deleted = desk.run(&["sessions", "delete", &id]);
    assert_eq!(deleted.code, Some(0), "{}", deleted.stderr);
    assert_ne!(desk.only_session(), id);
    let again = desk.run(&["sessions", "delete", &id]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("there is no stored session"), "{}", again.stderr);
}

#[test]
fn a_session_is_continued() {
    let thinks = |text: &str| Reply::new().then_reasoning("Hm.").then_text(text);
    let desk = Desk::new([thinks("Hello."), thinks("Again."), thinks("And again.")]);
    desk.ask("begin", &[]);
    let id = desk.only_session();
    let ran = desk.ask("go on", &["--continue", "--to", "text"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("Again."), "{}", ran.stdout);
    let ran = desk.ask("and on", &["--resume", &id[..8], "--to", "text"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(desk.only_session(), id);
    let last = desk.model.main_requests()[2].body.to_string();
    for part in ["begin", "Hello.", "go on", "Again.", "and on"] {
        assert!(last.contains(part), "{part}: {last}");
    }
    assert_eq!(desk.model.findings(), []);
}

#[test]
fn what_cannot_be_continued_is_reported() {
    let desk = Desk::new([]);
    for id in ["0123", "../../etc/passwd", ""] {
        let ran = desk.ask("go on", &["--resume", id]);
        assert_eq!(ran.code, Some(2), "{id}: {}", ran.stderr);
        assert!(ran.stderr.contains("`interlingua sessions` lists them"), "{id}: {}", ran.stderr);
    }
    let ran = desk.ask("go on", &["--continue"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("there is no session of anthropic-api"), "{}", ran.stderr);
    assert_eq!(desk.model.requests().len(), 0);
}

#[test]
fn the_session_of_another_agent_is_the_beginning() {
    let desk = Desk::new([Reply::text("Two lines.")]);
    let transcripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../transcripts");
    let path = transcripts.join("codex/tool-single/input.jsonl");
    let ran = desk.ask("what did it print?", &["--from-session", path.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let body = desk.model.main_requests()[0].body.to_string();
    for part in ["I will list the directory.", "echo one; echo two", "pixel.png"] {
        assert!(body.contains(part), "{part}: {body}");
    }
    assert_eq!(desk.model.findings(), []);
    std::fs::write(desk.path("empty.jsonl"), "").unwrap();
    let empty = desk.path("empty.jsonl");
    let ran = desk.ask("and this?", &["--from-session", empty.to_str().unwrap()]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("empty.jsonl"), "{}", ran.stderr);
    for other in [&["--continue"][..], &["--resume", "0123"]] {
        let arguments = [&["--from-session", empty.to_str().unwrap()], other].concat();
        let ran = desk.ask("and this?", &arguments);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("cannot be used with"), "{}", ran.stderr);
    }
}

/// The last session of the folder goes on, whichever provider it was held with.
#[test]
fn a_session_is_continued_with_another_provider() {
    let desk = Desk::new([Reply::text("Hello."), Reply::text("Again.")]);
    desk.ask("begin", &[]);
    let ran = ask_provider(&desk, "openai-api", "OPENAI_API_KEY", &["--continue", "--to", "text"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let last = desk.model.main_requests()[1].body.to_string();
    assert!(last.contains("begin") && last.contains("Hello."), "{last}");
    desk.only_session();
}

#[test]
fn an_answer_can_be_structured() {
    let desk = Desk::new([Reply::call("StructuredOutput", json!({"count": 3}))]);
    let schema =
        r#"{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"]}"#;
    let ran = desk.ask("count", &["--json-schema", schema, "--to", "claude"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let result = records(&ran).pop().unwrap();
    assert_eq!(result["structured_output"], json!({"count": 3}), "{result}");
    let ran = desk.ask("count", &["--json-schema", r#"{"type":"string"}"#]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("it has to describe an object"), "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn no_command_and_no_file_sees_the_key() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new([
        Reply::call("Bash", json!({"command": "env; echo word=plum"})),
        Reply::call("Bash", json!({"command": "cat key.txt"})),
        Reply::text("Done."),
    ]);
    // Even a key that a command finds elsewhere is not passed on.
    std::fs::write(desk.path("work/key.txt"), format!("key: {KEY}\n")).unwrap();
    let ran = desk.ask("look", &["--permission-mode", "auto", "--to", "events"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let results = desk.model.tool_results();
    let results: Vec<_> = results.iter().map(|it| it.text.clone().unwrap()).collect();
    assert!(results[0].contains("word=plum"), "{results:?}");
    assert!(!results[0].contains("ANTHROPIC_API_KEY"), "{results:?}");
    assert!(!results[1].contains(KEY), "{results:?}");
    desk.only_session();
    assert!(desk.stored().contains("word=plum") && !desk.stored().contains(KEY));
    assert_eq!(std::fs::metadata(desk.store()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(desk.model.findings(), []);
}

/// Every user of the machine can read the arguments of a process.
#[test]
fn a_key_is_not_taken_from_an_argument() {
    let desk = Desk::new([Reply::text("Hello.")]);
    let ran = desk.ask("hi", &["--env", "ANTHROPIC_API_KEY=other"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("is not taken from an argument"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("other"), "{}", ran.stderr);
    // Naming the variable only repeats what is set.
    let ran = desk.ask("hi", &["--env", "ANTHROPIC_API_KEY"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

/// Asks the model of another provider.
fn ask_provider(desk: &Desk, provider: &str, variable: &str, arguments: &[&str]) -> Ran {
    let address = match provider {
        "openai-api" => format!("{}/v1", desk.model.address()),
        _ => desk.model.address(),
    };
    let start = ["run", provider, "--base-url", &address, "hi"];
    let mut command = desk.command(&[&start, arguments].concat());
    ran(command.env_remove("ANTHROPIC_API_KEY").env(variable, KEY).output().unwrap())
}

#[test]
fn every_provider_is_an_agent() {
    let all = [
        ("openai-api", "OPENAI_API_KEY", &[][..], "/v1/responses"),
        ("openai-api", "OPENAI_API_KEY", &["--api", "chat"], "/v1/chat/completions"),
        ("gemini-api", "GEMINI_API_KEY", &[], ":streamGenerateContent"),
        ("anthropic-api", "OTHER_KEY", &["--api-key-env", "OTHER_KEY"], "/v1/messages"),
    ];
    for (provider, variable, arguments, path) in all {
        let desk = Desk::new([Reply::text("Hello.")]);
        let ran = ask_provider(&desk, provider, variable, arguments);
        assert_eq!(ran.code, Some(0), "{provider}: {}", ran.stderr);
        let requests = desk.model.main_requests();
        assert!(requests[0].path.contains(path), "{provider}: {}", requests[0].path);
        assert_eq!(desk.model.findings(), [], "{provider}");
    }
}

#[test]
fn a_key_is_read_from_a_file() {
    let desk = Desk::new([Reply::text("Hello.")]);
    std::fs::write(desk.path("key"), format!("{KEY}\n")).unwrap();
    let path = desk.path("key").display().to_string();
    let ran = ask_provider(&desk, "anthropic-api", "UNUSED", &["--api-key-file", &path]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(desk.model.findings(), []);
}

/// The arguments that change what is sent.
#[test]
fn arguments_reach_the_request() {
    let desk = Desk::new([Reply::text("Hello.")]);
    std::fs::write(desk.path("prompt.md"), "Be a pirate.").unwrap();
    std::fs::write(desk.path("work/CLAUDE.md"), "Use tabs.").unwrap();
    let prompt = desk.path("prompt.md").display().to_string();
    let ran = desk.ask(
        "hi",
        &[
            "--system-prompt-file",
            &prompt,
            "--append-system-prompt",
            "And be brief.",
            "--effort",
            "high",
            "--max-answer-tokens",
            "1234",
            "--allowed-tools",
            "Read,Grep",
            "--model",
            "some-model",
        ],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let body = &desk.model.main_requests()[0].body;
    let system = body["system"].to_string();
    for part in ["Be a pirate.", "And be brief.", "Use tabs."] {
        assert_eq!(system.matches(part).count(), 1, "{part}: {system}");
    }
    assert_eq!(body["output_config"]["effort"], "high");
    assert_eq!((&body["max_tokens"], &body["model"]), (&json!(1234), &json!("some-model")));
    let tools = body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone());
    assert_eq!(tools.collect::<Vec<_>>(), ["Read", "Grep"]);
}

#[test]
fn a_header_of_the_user_is_sent_and_never_shown() {
    let desk = Desk::new([Reply::text("It is secret-header-0123456789.")]);
    let address = desk.model.address();
    let mut command = desk.command(&[
        "run",
        "anthropic-api",
        "--base-url",
        &address,
        "--header-env",
        "x-tenant=TENANT",
        "hi",
    ]);
    let ran = ran(command.env("TENANT", "secret-header-0123456789").output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stdout.contains("secret-header-0123456789"), "{}", ran.stdout);
    assert!(ran.stdout.contains("[redacted]"), "{}", ran.stdout);
    let stored = desk.stored();
    assert!(stored.contains("[redacted]") && !stored.contains("secret-header-0123456789"));
}

#[test]
fn a_limit_of_requests_ends_the_turn() {
    let call = || Reply::call("LS", json!({"path": "."}));
    let desk = Desk::new([call(), call(), call()]);
    let ran = desk.ask("go", &["--max-turns", "2"]);
    assert_eq!(desk.model.main_requests().len(), 2, "{}", ran.stderr);
    let records = records(&ran);
    assert_eq!(of_type(&records, "turn_ended")["outcome"], "limit_reached");
}

/// A session that another process writes is not continued.
#[test]
fn a_session_has_one_writer() {
    let desk = Desk::new([Reply::text("Hello."), Reply::text("Again.")]);
    assert_eq!(desk.ask("hi", &[]).code, Some(0));
    let id = desk.only_session();
    let record = SessionRecord::new(SessionId::new(&*id).unwrap(), "anthropic-api", 0);
    let other = SessionRecorder::open(&desk.store(), record).unwrap();
    let refused = desk.ask("again", &["--resume", &id]);
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    assert!(refused.stderr.contains("in use by another process"), "{}", refused.stderr);
    other.finish().unwrap();
    assert_eq!(desk.ask("again", &["--resume", &id]).code, Some(0));
}

/// The stored session is a stream like any other, also after it was continued.
#[test]
fn a_stored_session_can_be_translated() {
    let read = Reply::text("I look.").then_call("Read", json!({"file_path": "note.txt"}));
    let desk = Desk::new([read, Reply::text("It is plum."), Reply::text("Still plum.")]);
    std::fs::write(desk.path("work/note.txt"), "the word is plum\n").unwrap();
    assert_eq!(desk.ask("which word?", &[]).code, Some(0));
    let id = desk.only_session();
    assert_eq!(desk.ask("and now?", &["--resume", &id]).code, Some(0));
    let events = desk.run(&["sessions", "show", &id, "--to", "events"]);
    assert_eq!(events.code, Some(0), "{}", events.stderr);
    let path = desk.path("session.jsonl");
    std::fs::write(&path, &events.stdout).unwrap();
    let text = desk.run(&["translate", "--to", "text", path.to_str().unwrap()]);
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    for part in ["which word?", "It is plum.", "and now?", "Still plum."] {
        assert!(text.stdout.contains(part), "{part}: {}", text.stdout);
    }
    assert!(!text.stdout.contains("You are a coding agent"), "the system prompt is no text");
    let checked = desk.run(&["check", "--as", "events", path.to_str().unwrap()]);
    // A session that rests has not ended.
    assert!(checked.stdout.contains("session-ends"), "{}", checked.stdout);
    assert_eq!(checked.stdout.lines().count(), 1, "{}", checked.stdout);
}

/// An earlier version has stored sessions as files.
#[test]
fn session_files_are_continued() {
    let desk = Desk::new([Reply::text("Hello."), Reply::text("Still here.")]);
    let ran = desk.ask("remember plum", &["--to", "events"]);
    let id = desk.only_session();
    let folder = desk.store().with_extension("");
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("0123-file.jsonl");
    std::fs::write(&file, ran.stdout.replace(&id, "0123-file")).unwrap();
    let ran = desk.ask("which word?", &["--resume", "0123"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!file.exists());
    let last = desk.model.main_requests()[1].body.to_string();
    assert!(last.contains("remember plum"), "{last}");
    assert_eq!(desk.sessions().len(), 2);
}

/// `sessions send` runs the agent of a session that no one else runs.
#[test]
fn a_stored_session_is_sent_a_prompt() {
    let desk = Desk::new([Reply::text("Hello."), Reply::text("Again.")]);
    desk.ask("begin", &[]);
    let id = desk.only_session();
    let address = desk.model.address();
    let send = ["sessions", "send", &id, "go on", "--to", "text", "--key", "k1"];
    let mut command = desk.command(&send);
    let sent = ran(command.env("ANTHROPIC_BASE_URL", &address).output().unwrap());
    assert_eq!(sent.code, Some(0), "{}{}", sent.stdout, sent.stderr);
    assert!(sent.stdout.contains("Again.") && !sent.stdout.contains("Hello."), "{}", sent.stdout);
    // Sent again, it is known.
    let mut command = desk.command(&[&send[..], &["--no-wait"]].concat());
    let again = ran(command.env("ANTHROPIC_BASE_URL", &address).output().unwrap());
    assert_eq!((again.code, &*again.stdout), (Some(0), ""), "{}", again.stderr);
    assert_eq!(desk.model.main_requests().len(), 2);
    let shown = desk.run(&["sessions", "show", &id]);
    for part in ["Hello.", "go on", "Again."] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    // It goes on with `run` as well.
    assert_eq!(desk.model.findings(), []);
}
