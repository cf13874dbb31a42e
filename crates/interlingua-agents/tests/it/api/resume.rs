//! Sessions that are stored, and continued later.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fake_model::{Reply, Script};
use interlingua_agents::Prompt;
use interlingua_agents::api::{ApiKind, Earlier, SessionLog, SessionStore, StoredRun};
use serde_json::{Value, json};

use super::{APIS, Bench, KEY, of_kind, only, text};

/// Stores sessions as files of a folder.
#[derive(Debug)]
pub(super) struct Files(pub(super) PathBuf);

impl SessionStore for Files {
    fn open(&self, run: &StoredRun<'_>) -> io::Result<Box<dyn SessionLog>> {
        fs::create_dir_all(&self.0)?;
        let path = self.0.join(format!("{}.jsonl", run.session));
        Ok(Box::new(Appended(File::options().create(true).append(true).open(path)?)))
    }
}

struct Appended(File);

impl SessionLog for Appended {
    fn write(&mut self, records: Vec<u8>) -> io::Result<()> {
        self.0.write_all(&records)
    }

    fn settle(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}

/// A bench whose sessions are stored.
pub(super) fn storing(api: ApiKind, replies: impl IntoIterator<Item = Reply>) -> Bench {
    that_stores(Bench::new(api, replies))
}

pub(super) fn that_stores(mut bench: Bench) -> Bench {
    bench.settings.sessions = Some(Arc::new(Files(bench.path("sessions"))));
    bench.write("note.txt", "the secret word is plum\n");
    bench.write("list.txt", "apple\nbirch\n");
    bench
}

/// The file of a session.
fn file_of(bench: &Bench, events: &[Value]) -> PathBuf {
    let id = events[0]["id"].as_str().unwrap();
    bench.path("sessions").join(format!("{id}.jsonl"))
}

pub(super) fn earlier(bench: &Bench, events: &[Value]) -> Earlier {
    Earlier::read(&std::fs::read(file_of(bench, events)).unwrap()).unwrap()
}

/// A first turn with everything that the next requests have to repeat.
fn first_turn() -> [Reply; 2] {
    let read = |name: &str| json!({"file_path": name});
    let calls = Reply::new().then_reasoning("Both at once.").then_text("I read both.");
    let calls = calls.then_call("Read", read("note.txt")).then_call("Read", read("missing.txt"));
    [calls, Reply::new().then_reasoning("One is missing.").then_text("One was there.")]
}

pub(super) fn last_turn() -> Reply {
    Reply::new().then_reasoning("I know it.").then_text("It was plum.")
}

#[tokio::test]
async fn a_session_goes_on_with_the_same_history() {
    for api in APIS {
        let [calls, done] = first_turn();
        let again = Reply::call("Read", json!({"file_path": "list.txt"}));
        let mut bench = storing(api, [calls, done, again, Reply::text("A list."), last_turn()]);
        let (_, first) = bench.run("read").await;
        bench.settings.earlier = Some(earlier(&bench, &first));
        // A resumed session keeps its own system prompt.
        bench.settings.system = "Another one.".to_owned();
        let (ended, second) = bench.run("and the list?").await;
        assert_eq!(ended.code(), 0, "{api:?}: {second:#?}");
        assert_eq!(first[0]["id"], second[0]["id"], "{api:?}");
        bench.settings.earlier = Some(earlier(&bench, &second));
        let (ended, third) = bench.run("which word?").await;
        assert_eq!(ended.code(), 0, "{api:?}: {third:#?}");
        assert_eq!(text(&third), "It was plum.");
        assert!(!notices(&third).contains("dropped"), "{api:?}");
        assert_eq!(bench.model.main_requests().len(), 5);
        bench.check("resumed");
    }
}

pub(super) fn notices(events: &[Value]) -> String {
    let texts = of_kind(events, "notice").into_iter().map(|it| it["text"].as_str().unwrap());
    texts.collect::<Vec<_>>().join("\n")
}

/// The history of an answer that took several requests has all of them.
#[tokio::test]
async fn a_session_with_reminders_and_wrong_answers_goes_on() {
    for api in APIS {
        let answer = |count: Value| Reply::call("StructuredOutput", json!({"count": count}));
        let replies =
            [Reply::text("Three."), answer(json!("three")), answer(json!(3)), answer(json!(4))];
        let mut bench = storing(api, replies);
        bench.settings.schema = Some(json!({
            "type": "object",
            "properties": {"count": {"type": "integer"}},
            "required": ["count"],
        }));
        let (_, first) = bench.run("count").await;
        bench.settings.earlier = Some(earlier(&bench, &first));
        let (ended, second) = bench.run("count again").await;
        assert_eq!(ended.code(), 0, "{api:?}: {second:#?}");
        assert_eq!(only(&second, "turn_ended")["structured"], json!({"count": 4}));
        bench.check("resumed-structured");
    }
}

#[tokio::test]
async fn an_interrupted_session_goes_on() {
    for api in APIS {
        let long = Reply::text("One, two, ").then_gate("counting").then_text("three.");
        let script = Script::new().reply(long).reply(Reply::text("Ok.")).reply(last_turn());
        let mut bench = that_stores(Bench::with_script(api, script));
        let mut session = bench.open().await;
        session.handle.prompt("count").await.unwrap();
        session.until(|event| event["type"] == "block_delta").await;
        session.handle.interrupt().await.unwrap();
        session.handle.prompt("stop").await.unwrap();
        session.handle.finish().await.unwrap();
        let (_, first) = session.end().await;
        bench.settings.earlier = Some(earlier(&bench, &first));
        let (ended, second) = bench.run("go on").await;
        assert_eq!(ended.code(), 0, "{api:?}: {second:#?}");
        let requests = bench.model.main_requests();
        let [sent, resumed] = [history(&requests[1].body), history(&requests[2].body)];
        assert_eq!(resumed[..sent.len()], sent, "{api:?}");
        bench.check("resumed-interrupted");
    }
}

/// The messages of a request.
pub(super) fn history(body: &Value) -> Vec<Value> {
    let messages = ["messages", "input", "contents"].iter().find_map(|name| body.get(name));
    let mut messages = messages.unwrap().as_array().unwrap().clone();
    // Marks for the cache move.
    messages.iter_mut().for_each(remove_marks);
    messages
}

fn remove_marks(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("cache_control");
            fields.values_mut().for_each(remove_marks);
        }
        Value::Array(values) => values.iter_mut().for_each(remove_marks),
        _ => {}
    }
}

#[tokio::test]
async fn another_api_takes_text_calls_and_results() {
    for from in APIS {
        for to in APIS.into_iter().filter(|to| *to != from) {
            for forked in [false, true] {
                let first = storing(from, first_turn());
                let (_, events) = first.run("read").await;
                let earlier = earlier(&first, &events);
                let mut second = Bench::new(to, [last_turn()]);
                second.settings.earlier = Some(if forked { earlier.forked() } else { earlier });
                let (ended, resumed) = second.run("which word?").await;
                assert_eq!(ended.code(), 0, "{from:?} {to:?}: {resumed:#?}");
                let body = second.model.main_requests()[0].body.to_string();
                for part in ["I read both.", "note.txt", "plum", "missing.txt", "One was there."] {
                    assert!(body.contains(part), "{from:?} {to:?} {part}: {body}");
                }
                let notices = notices(&resumed);
                assert!(notices.contains("reasoning of 2 earlier answers is dropped"), "{notices}");
                let is_same = resumed[0]["id"] == events[0]["id"];
                assert_eq!(is_same, !forked, "{from:?} {to:?}");
                second.check("other-api");
            }
        }
    }
}

/// The program was killed while a line was being written, and before a call was answered.
#[tokio::test]
async fn a_session_that_was_cut_off_goes_on() {
    for api in APIS {
        let [calls, done] = first_turn();
        // A strict script knows that the results were sent already.
        let replies = [calls, done, Reply::text("Hm."), last_turn()];
        let script = replies.into_iter().fold(Script::new(), Script::reply);
        let mut bench = that_stores(Bench::with_script(api, script));
        let (_, events) = bench.run("read").await;
        let path = file_of(&bench, &events);
        let stored = std::fs::read_to_string(&path).unwrap();
        let kind = |line: &str| serde_json::from_str::<Value>(line).unwrap()["type"].clone();
        let lines: Vec<_> = stored.lines().collect();
        let answered = lines.iter().position(|line| kind(line) == "tool_ended").unwrap();
        // One call is answered; the result of the other is cut off in the middle of its line.
        let kept: usize = lines[..=answered].iter().map(|line| line.len() + 1).sum();
        let half = &stored[..kept + lines[answered + 1].len() / 2];
        std::fs::write(&path, format!("{half}\n")).unwrap();
        bench.settings.earlier = Some(earlier(&bench, &events));
        let (ended, resumed) = bench.run("go on").await;
        assert_eq!(ended.code(), 0, "{api:?}: {resumed:#?}");
        let body = bench.model.main_requests()[2].body.to_string();
        assert_eq!(body.matches("is not known").count(), 1, "{api:?}: {body}");
        // What was appended to it can be read again.
        bench.settings.earlier = Some(earlier(&bench, &events));
        let (ended, _) = bench.run("which word?").await;
        assert_eq!(ended.code(), 0, "{api:?}");
        let requests = bench.model.main_requests();
        let [sent, resumed] = [history(&requests[2].body), history(&requests[3].body)];
        assert_eq!(resumed[..sent.len()], sent, "{api:?}");
        bench.check("cut-off");
    }
}

/// The recorded output of an agent.
fn recorded(agent: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../transcripts").join(agent);
    let mut cases: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|case| case.unwrap().path()).collect();
    cases.sort();
    let read = |case: PathBuf| {
        (case.display().to_string(), std::fs::read(case.join("input.jsonl")).unwrap())
    };
    cases.into_iter().map(read).collect()
}

#[tokio::test]
async fn the_session_of_another_agent_is_the_beginning() {
    for agent in ["codex", "claude"] {
        for (name, bytes) in recorded(agent) {
            let earlier = Earlier::read(&bytes).unwrap().forked();
            if earlier.is_empty() {
                continue;
            }
            for api in APIS {
                let mut bench = Bench::new(api, [last_turn()]);
                bench.settings.earlier = Some(earlier.clone());
                let (ended, events) = bench.run("which word?").await;
                assert_eq!(ended.code(), 0, "{api:?} {name}: {events:#?}");
                assert_eq!(bench.model.findings(), [], "{api:?} {name}");
            }
        }
    }
}

#[tokio::test]
async fn the_work_of_another_agent_reaches_the_model() {
    for (agent, case, parts) in [
        ("codex", "tool-multi", &["cat hello.txt", "pixel.png", "Edited files."][..]),
        ("claude", "tool-multi", &["line one", "No such tool", "Edited files."]),
    ] {
        let bytes = recorded(agent).into_iter().find(|(name, _)| name.ends_with(case)).unwrap().1;
        for api in APIS {
            let mut bench = Bench::new(api, [last_turn()]);
            bench.settings.earlier = Some(Earlier::read(&bytes).unwrap().forked());
            let (_, events) = bench.run("which word?").await;
            assert_eq!(only(&events, "turn_ended")["outcome"], "completed", "{api:?} {agent}");
            let body = bench.model.main_requests()[0].body.to_string();
            for part in parts {
                assert!(body.contains(part), "{api:?} {agent} {part}: {body}");
            }
            bench.check(&format!("from-{agent}"));
        }
    }
}

/// The history that is made of events has text, calls and results only.
#[tokio::test]
async fn what_is_lost_of_the_session_of_another_agent_is_reported() {
    let reasoning =
        "left out of the earlier session: its reasoning, which is bound to its model (1)";
    let sub_agents =
        "left out of the earlier session: what its sub-agents did, apart from their results (1)";
    for (agent, case, expected) in [
        ("claude", "thinking", reasoning),
        ("claude", "redacted", reasoning),
        ("codex", "reasoning", reasoning),
        ("claude", "subagent", sub_agents),
        ("claude", "plain", ""),
    ] {
        let end = format!("/{case}");
        let bytes = recorded(agent).into_iter().find(|(name, _)| name.ends_with(&end)).unwrap().1;
        let mut bench = Bench::new(ApiKind::Anthropic, [last_turn()]);
        bench.settings.earlier = Some(Earlier::read(&bytes).unwrap().forked());
        let (_, events) = bench.run("which word?").await;
        let notices = notices(&events);
        let lost: Vec<_> = notices.lines().filter(|line| line.contains("left out")).collect();
        assert_eq!(lost.join("\n"), expected, "{agent} {case}");
    }
}

#[tokio::test]
async fn the_key_is_not_stored() {
    let bench = storing(ApiKind::Anthropic, first_turn());
    let (_, events) = bench.run("read").await;
    let stored = std::fs::read_to_string(file_of(&bench, &events)).unwrap();
    assert!(!stored.contains("sk-abc"), "{stored}");
}

/// A resumed session offers the tools that it always has. What has become of them, of its folder and
/// of what is stored is reported.
#[tokio::test]
async fn a_resumed_session_reports_what_is_different() {
    for api in APIS {
        let write = Reply::call("Write", json!({"file_path": "a.txt", "content": "x"}));
        let mut first = storing(api, [Reply::text("Hello."), Reply::text("And goodbye.")]);
        let (_, events) = first.run("hi").await;
        first.settings.earlier = Some(earlier(&first, &events));
        first.run("and?").await;
        let path = file_of(&first, &events);
        let stored = std::fs::read_to_string(&path).unwrap();
        let mut lines: Vec<Value> =
            stored.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of_history = |line: &&mut Value| {
            line["type"] == "host_state" && line.to_string().contains("goodbye")
        };
        let record = lines.iter_mut().find(of_history).unwrap();
        record["raw"] = json!({"of a later version": true});
        let stored: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let mut second = Bench::new(api, [write, Reply::text("I could not.")]);
        second.settings.earlier = Some(Earlier::read(stored.as_bytes()).unwrap());
        second.settings.tools.tools = Some(vec!["Read".to_owned()]);
        let (ended, resumed) = second.run("write").await;
        assert_eq!(ended.code(), 0, "{api:?}: {resumed:#?}");
        assert_eq!(only(&resumed, "session_started")["tools"], json!(["Read"]), "{api:?}");
        let notices = notices(&resumed);
        let [before, now] = [&first, &second].map(|bench| bench.folder.path().canonicalize());
        let (before, now) = (before.unwrap(), now.unwrap());
        for expected in [
            "calls of these tools of the earlier session fail now: Write, Edit".to_owned(),
            format!("worked in {}, and this one works in {}", before.display(), now.display()),
            "1 steps of the stored conversation could not be read".to_owned(),
        ] {
            assert!(notices.contains(&expected), "{api:?} {expected}: {notices}");
        }
        assert_eq!(only(&resumed, "tool_ended")["status"], "failed", "{api:?}");
        assert!(!second.path("a.txt").exists());
        let offered = second.model.main_requests()[0].body["tools"].to_string();
        assert!(offered.contains("Write"), "the list stays the same: {offered}");
    }
}

/// Results can contain what no API takes as it is.
#[tokio::test]
async fn images_and_unknown_content_of_another_agent_are_reported() {
    let result = json!([
        {"type": "text", "text": "seen"},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "hologram", "data": "AA=="},
        {"type": "hologram", "data": "BB=="},
    ]);
    let call = json!({"type": "tool_use", "id": "t", "name": "Read", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": "t", "content": result});
    let message = |role: &str, content: &Value| {
        let message = json!({"id": "m", "role": role, "model": "m", "content": [content]});
        json!({"type": role, "session_id": "s", "message": message})
    };
    let records = [
        json!({"type": "system", "subtype": "init", "session_id": "s", "cwd": "/w", "tools": []}),
        message("assistant", &call),
        message("user", &result),
        json!({"type": "result", "subtype": "success", "session_id": "s", "result": ""}),
    ];
    let recorded: String = records.iter().map(|record| format!("{record}\n")).collect();
    let mut bench = Bench::new(ApiKind::Anthropic, [last_turn()]);
    bench.settings.earlier = Some(Earlier::read(recorded.as_bytes()).unwrap().forked());
    let (_, events) = bench.run("which word?").await;
    let notices = notices(&events);
    for expected in ["images (1)", "content of an unknown kind (2)"] {
        let expected = format!("left out of the earlier session: {expected}");
        assert!(notices.contains(&expected), "{expected}: {notices}");
    }
    assert!(bench.model.main_requests()[0].body.to_string().contains("seen"));
}

/// The key is in what the user gives to the session.
#[tokio::test]
async fn the_key_in_a_prompt_is_neither_sent_nor_stored() {
    for api in APIS {
        let mut bench = storing(api, [Reply::text("I see."), last_turn()]);
        bench.settings.system = format!("The key is {KEY}.");
        bench.write(".env", &format!("API_KEY={KEY}\n"));
        let mut prompt = Prompt::from(format!("use {KEY}"));
        prompt.files.push(bench.path(".env"));
        let session = bench.open().await;
        session.handle.prompt(prompt).await.unwrap();
        session.handle.finish().await.unwrap();
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert_eq!(only(&events, "user_message")["text"], "use [redacted]", "{api:?}");
        // What an earlier version has stored contains the key.
        let stored = std::fs::read_to_string(file_of(&bench, &events)).unwrap();
        assert!(
            !stored.contains(KEY) && stored.contains("API_KEY=[redacted]"),
            "{api:?}: {stored}"
        );
        let before = stored.replace("API_KEY=[redacted]", &format!("API_KEY={KEY}"));
        bench.settings.earlier = Some(Earlier::read(before.as_bytes()).unwrap().forked());
        let (ended, events) = bench.run("which word?").await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        let stored = std::fs::read_to_string(file_of(&bench, &events)).unwrap();
        assert!(
            !stored.contains(KEY) && stored.contains("API_KEY=[redacted]"),
            "{api:?}: {stored}"
        );
        let requests = bench.model.main_requests();
        let sent = requests[0].body.to_string();
        assert!(!sent.contains(KEY), "{api:?}: {sent}");
        assert_eq!(sent.matches("[redacted]").count(), 3, "{api:?}: {sent}");
    }
}

/// Models bind their reasoning to the system prompt and the tools, so both stay the same.
#[tokio::test]
async fn what_has_no_effect_on_a_resumed_session_is_reported() {
    for api in APIS {
        let mut bench = storing(api, [Reply::text("Hello."), Reply::text("Hm."), last_turn()]);
        bench.settings.tools.tools = Some(vec!["Read".to_owned(), "Grep".to_owned()]);
        let (_, first) = bench.run("hi").await;
        let without_effect = |events: &[Value]| {
            let notices = notices(events);
            [
                notices.contains("began; the current ones have no effect"),
                notices.contains("so they are not offered: Write, Edit"),
            ]
        };
        bench.settings.earlier = Some(earlier(&bench, &first));
        let (_, second) = bench.run("and?").await;
        assert_eq!(without_effect(&second), [false, false], "{api:?}: {}", notices(&second));
        bench.settings.earlier = Some(earlier(&bench, &second));
        bench.settings.system = "Be a pirate.".to_owned();
        bench.settings.tools.tools =
            Some(["Read", "Write", "Edit", "Grep"].map(str::to_owned).to_vec());
        let (_, third) = bench.run("which word?").await;
        assert_eq!(without_effect(&third), [true, true], "{api:?}: {}", notices(&third));
        bench.check("resumed-without-effect");
    }
}
