//! Tools that the client of a served session runs, while the agent lives, and after it was lost.

use std::path::Path;
use std::time::{Duration, Instant};

use fake_model::{Reply, Script};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::http::{Response, send};
use crate::served::{Agent, PATIENCE, Served};

/// What the client answers. The model has to get it once.
pub(crate) const ANSWER: &str = "colour-4711";

/// Why the client refuses a call.
const REASON: &str = "not-this-form-4712";

/// What the client prompts after an interrupt.
const PROMPT: &str = "Forget the form 4713.";

/// What happens while a call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Nothing.
    None,
    /// The agent is killed.
    Agent,
    /// The server is killed, and with it the agent.
    Server,
    /// The server is stopped properly.
    Shutdown,
}

const LOSSES: [(&str, Loss); 4] = [
    ("a_client_tool", Loss::None),
    ("a_client_tool_of_a_killed_agent", Loss::Agent),
    ("a_client_tool_of_a_killed_server", Loss::Server),
    ("a_client_tool_of_a_stopped_server", Loss::Shutdown),
];

/// What can happen to an agent. A model API has no process of its own.
pub(crate) fn losses(agent: Agent) -> impl Iterator<Item = (&'static str, Loss)> {
    LOSSES.into_iter().filter(move |(_, loss)| agent.is_program() || *loss != Loss::Agent)
}

/// The name under which an agent offers a tool of the client to the model.
pub(crate) fn name(agent: &str, tool: &str) -> String {
    match agent {
        "codex" => format!("mcp__interlingua/{tool}"),
        "gemini" => format!("mcp_interlingua_{tool}"),
        "copilot" => format!("interlingua-{tool}"),
        "opencode" => format!("interlingua_{tool}"),
        "claude" | "qwen" => format!("mcp__interlingua__{tool}"),
        _ => tool.to_owned(),
    }
}

pub(crate) fn check(agent: Agent, programs: &Path, loss: Loss) {
    let call = Reply::call(&name(agent.name, "getFormSnapshot"), json!({"instruction": "all"}));
    let script = Script::new().reply(call).reply(Reply::text("Done.")).any_stream();
    let mut served = Served::new(agent, programs, script);
    let configuration = served.home.configuration().unwrap();
    served.start();
    let tools = json!(["getFormSnapshot", "executeFormActions"]);
    let id = served.create_with("k1", json!({"prompt": "Fill in the form.", "tools": tools}));
    let waits = |events: &[Value]| events.iter().any(|event| event["type"] == "suspended");
    let events = served.until(&id, waits);
    let started: Vec<_> = of(&events, "tool_started").collect();
    assert_eq!(started.len(), 1, "{started:#?}");
    assert_eq!(
        (&started[0]["executor"], &started[0]["name"]),
        (&json!("client"), &json!("getFormSnapshot"))
    );
    let call = started[0]["call"].as_str().unwrap().to_owned();
    let lines = served.command_lines();
    assert!(lines.iter().all(|line| !line.contains("Fill in the form.")), "{lines:#?}");
    match loss {
        Loss::None => {}
        Loss::Agent => kill_agent(&served),
        Loss::Server => {
            served.kill();
            served.start();
        }
        Loss::Shutdown => {
            served.stop();
            served.start();
        }
    }
    if loss != Loss::None {
        let events = served.until(&id, |events| !outcomes(events).is_empty());
        assert_eq!(outcomes(&events), ["waiting_for_client"]);
    }
    let waiting = json!([{"for": "clientTool", "request": call, "tool": "getFormSnapshot"}]);
    until_waiting(&served, &id, &waiting);
    let answer = json!({"type": "answer", "request": call, "answer": {"fields": [ANSWER]}});
    let answered = served.command_of(&id, "k2", answer.clone());
    assert_eq!(answered.status, 202, "{}", answered.text());
    let other = json!({"type": "answer", "request": call, "answer": "another"});
    assert_eq!(served.command_of(&id, "k3", other).status, 409);
    let turns = if loss == Loss::None { 1 } else { 2 };
    let events = served.until(&id, |events| outcomes(events).len() == turns);
    assert_eq!(outcomes(&events).last().map(|it| &**it), Some("completed"), "{events:#?}");
    let in_place = of(&events, "native").any(|event| event["name"] == "thread/inject_items");
    assert_eq!(in_place, agent.name == "codex" && loss != Loss::None, "{events:#?}");
    let ended: Vec<_> = of(&events, "tool_ended").collect();
    assert_eq!(ended.len(), 1, "{ended:#?}");
    assert_eq!((&ended[0]["call"], &ended[0]["status"]), (&json!(call), &json!("completed")));
    let again = served.command_of(&id, "k2", answer);
    assert_eq!((again.status, &again.json()["status"]), (202, &json!("delivered")));
    let requests = served.home.model.main_requests();
    let times = |request: &fake_model::Request| request.body.to_string().matches(ANSWER).count();
    let counts: Vec<_> = requests.iter().map(times).collect();
    assert_eq!(counts, [0, 1], "the model got the answer so often in each request");
    assert_eq!(served.findings(&id), [""; 0]);
    served.stop();
    assert_eq!(served.home.configuration().unwrap(), configuration, "the user's configuration");
}

/// The tools of the client are allowed, and no others.
pub(crate) fn check_others(agent: Agent, programs: &Path) {
    let script = Script::new().reply(Reply::shell("touch made"));
    let script = script.reply(Reply::text("Done.")).any_stream();
    let mut served = Served::new(agent, programs, script);
    served.start();
    let body = json!({"prompt": "Fill in the form.", "tools": ["getFormSnapshot"]});
    let id = served.create_with("k1", body);
    let events = served.until(&id, |events| of(events, "permission_requested").next().is_some());
    let request = of(&events, "permission_requested").next().unwrap()["request"].clone();
    let decision = json!({"type": "decide", "request": request, "decision": "deny"});
    assert_eq!(served.command_of(&id, "k2", decision).status, 202);
    served.until(&id, |events| !outcomes(events).is_empty());
    assert!(!served.home.work().join("made").exists());
    served.stop();
}

/// What the client does instead of answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instead {
    /// It refuses the call.
    Refuse,
    /// It interrupts the turn, and prompts again.
    Interrupt,
}

pub(crate) const INSTEAD: [(&str, Instead); 2] = [
    ("a_client_tool_that_is_refused", Instead::Refuse),
    ("a_client_tool_of_an_interrupted_turn", Instead::Interrupt),
];

pub(crate) fn check_instead(agent: Agent, programs: &Path, instead: Instead) {
    let call = Reply::call(&name(agent.name, "getFormSnapshot"), json!({"instruction": "all"}));
    let script = Script::new().reply(call).reply(Reply::text("Done.")).any_stream();
    let mut served = Served::new(agent, programs, script);
    served.start();
    let body = json!({"prompt": "Fill in the form.", "tools": ["getFormSnapshot"]});
    let id = served.create_with("k1", body);
    served.until(&id, |events| of(events, "suspended").next().is_some());
    let call = next_waiting(&served, &id, &[]);
    let (command, outcome, status) = match instead {
        Instead::Refuse => {
            let decision =
                json!({"type": "decide", "request": call, "decision": "deny", "reason": REASON});
            (decision, "completed", "denied")
        }
        Instead::Interrupt => (json!({"type": "interrupt"}), "cancelled", "cancelled"),
    };
    let taken = served.command_of(&id, "k2", command);
    assert_eq!(taken.status, 202, "{}", taken.text());
    let events = served.until(&id, |events| !outcomes(events).is_empty());
    assert_eq!(outcomes(&events), [outcome], "{events:#?}");
    let ended: Vec<_> = of(&events, "tool_ended").map(|it| it["status"].clone()).collect();
    assert_eq!(ended, [status], "{events:#?}");
    let answer = json!({"type": "answer", "request": call, "answer": {"fields": [ANSWER]}});
    assert_eq!(served.command_of(&id, "k3", answer).status, 409, "the call has ended");
    let counts = |text: &str| {
        let requests = served.home.model.main_requests();
        let counts = requests.iter().map(|it| it.body.to_string().matches(text).count());
        counts.collect::<Vec<_>>()
    };
    if instead == Instead::Interrupt {
        assert_eq!(served.prompt(&id, PROMPT, "k4").status, 202);
        let events = served.until(&id, |events| outcomes(events).len() == 2);
        assert_eq!(outcomes(&events), ["cancelled", "completed"], "{events:#?}");
        assert_eq!(counts(PROMPT), [0, 1], "the model got the prompt so often in each request");
    } else {
        // Qwen Code quotes the whole response of the server, which has the text twice.
        let times = if agent.name == "qwen" { 2 } else { 1 };
        assert_eq!(counts(REASON), [0, times], "the model got the reason so often in each request");
    }
    assert_eq!(counts(ANSWER), [0, 0]);
    assert_eq!(served.findings(&id), [""; 0]);
    served.stop();
}

/// How long a person may take at least: longer than some agents wait for a call unless they are told to.
pub(crate) const SLOW_PERSON: Duration = Duration::from_mins(4);

/// Two calls of one message, of which the first waits for a time. Some agents make them one after the other.
pub(crate) fn check_two(agent: Agent, programs: &Path, wait: Duration) {
    let tool = name(agent.name, "getFormSnapshot");
    let both = Reply::call(&tool, json!({"instruction": "one"}));
    let both = both.then_call(&tool, json!({"instruction": "two"}));
    let script = Script::new().reply(both).reply(Reply::text("Done.")).any_stream();
    let mut served = Served::new(agent, programs, script);
    served.start();
    let body = json!({"prompt": "Fill in the form.", "tools": ["getFormSnapshot"]});
    let id = served.create_with("k", body);
    served.until(&id, |events| of(events, "suspended").next().is_some());
    // This is the time that a person takes; nothing happens in it.
    std::thread::sleep(wait);
    let mut given = Vec::new();
    while given.len() < 2 {
        let call = next_waiting(&served, &id, &given);
        let events = served.log(&id, "events").0;
        let of_call = events.iter().filter(|event| event["call"] == *call);
        let input: String = of_call.map(|event| event["input"].to_string()).collect();
        let result = if input.contains("one") { "first-4711" } else { "second-4712" };
        let answer = json!({"type": "answer", "request": call, "answer": result});
        let answered = served.command_of(&id, &call, answer);
        assert_eq!(answered.status, 202, "{}", answered.text());
        given.push(call);
    }
    let events = served.until(&id, |events| !outcomes(events).is_empty());
    assert_eq!(outcomes(&events), ["completed"], "{events:#?}");
    assert_eq!(of(&events, "tool_ended").count(), 2, "{events:#?}");
    let requests = served.home.model.main_requests();
    for result in ["first-4711", "second-4712"] {
        let times =
            |request: &fake_model::Request| request.body.to_string().matches(result).count();
        let counts: Vec<_> = requests.iter().map(times).collect();
        assert_eq!(counts, [0, 1], "the model got {result} so often in each request");
    }
    assert_eq!(served.findings(&id), [""; 0]);
    served.stop();
}

/// Waits for a call of the client that is not among those that were answered. The log may show a call before
/// the agent makes it.
fn next_waiting(served: &Served, id: &str, answered: &[String]) -> String {
    let begun = Instant::now();
    loop {
        let session = served.session(id);
        let mut waiting = session["waiting"].as_array().into_iter().flatten();
        let calls = waiting.find_map(|it| {
            let call = it["request"].as_str()?;
            answered.iter().all(|it| it != call).then(|| call.to_owned())
        });
        if let Some(call) = calls {
            return call;
        }
        assert!(begun.elapsed() < PATIENCE, "{session:#}");
        std::thread::yield_now();
    }
}

/// A result of 5 MB, after one that the server refuses: the model gets the beginning, and the log has all of it.
pub(crate) fn check_long(agent: Agent, programs: &Path) {
    let call = Reply::call(&name(agent.name, "getFormSnapshot"), json!({"instruction": "all"}));
    let script = Script::new().reply(call).reply(Reply::text("Done.")).any_stream();
    let mut served = Served::new(agent, programs, script);
    served.start();
    let body = json!({"prompt": "Fill in the form.", "tools": ["getFormSnapshot"]});
    let id = served.create_with("k1", body);
    let events =
        served.until(&id, |events| events.iter().any(|event| event["type"] == "suspended"));
    let call = of(&events, "tool_started").next().unwrap()["call"].as_str().unwrap().to_owned();
    let answer = |text: &str| json!({"type": "answer", "request": call, "answer": text});
    let (address, path) = (served.address.get().unwrap(), format!("/v1/sessions/{id}/commands"));
    let too_long = answer(&"x".repeat(17 << 20));
    // The server does not read it, so that the connection may break before the answer is read.
    let sent = send(&address, "POST", &path, Some("k2"), Some(&too_long));
    if let Ok(refused) = sent.and_then(Response::complete) {
        assert_eq!(refused.status, 413);
    }
    let text = format!("{ANSWER}\n").repeat(5_000_000 / (ANSWER.len() + 1));
    let answered = served.command_of(&id, "k3", answer(&text));
    assert_eq!(answered.status, 202, "{}", answered.text());
    let events = served.until(&id, |events| !outcomes(events).is_empty());
    assert_eq!(outcomes(&events), ["completed"]);
    let ended = of(&events, "tool_ended").next().unwrap();
    assert_eq!(ended["output"].as_str().map(str::len), Some(text.len()));
    let requests = served.home.model.main_requests();
    let given = requests.last().unwrap().body.to_string();
    let shown = given.matches(ANSWER).count() * ANSWER.len();
    assert!((10_000..40_000).contains(&shown), "the model got {shown} bytes of the result");
    if agent.is_program() {
        assert!(given.contains("all of it is in the file "), "the model did not get the path");
    }
    served.stop();
}

/// Waits for the state, which is stored after the entries.
pub(crate) fn until_waiting(served: &Served, id: &str, waiting: &Value) {
    let begun = Instant::now();
    while served.session(id)["waiting"] != *waiting {
        assert!(begun.elapsed() < PATIENCE, "{:#}", served.session(id));
        std::thread::yield_now();
    }
}

pub(crate) fn of<'e>(events: &'e [Value], kind: &'static str) -> impl Iterator<Item = &'e Value> {
    events.iter().filter(move |event| event["type"] == kind)
}

pub(crate) fn outcomes(events: &[Value]) -> Vec<String> {
    let ended = of(events, "turn_ended").filter(|event| event["replay"] != true);
    ended.map(|event| event["outcome"].as_str().unwrap().to_owned()).collect()
}

/// Kills everything that the server has started.
fn kill_agent(served: &Served) {
    for process in served.processes() {
        // Another one of them may have been its only reason to live.
        let _ = kill_process(Pid::from_raw(process).unwrap(), Signal::KILL);
    }
}
