//! Shell scripts that play agents, and sessions that a test watches.

#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "some tests run only on Linux"))]

#[cfg(unix)]
mod fifo;

use std::path::PathBuf;
use std::time::Duration;

use interlingua::dialect;
use interlingua_agents::agent::{Delivery, Launch};
use interlingua_agents::driver::{Driver, PlainDriver};
use interlingua_agents::process::{Command, Input};
use interlingua_agents::{
    Agent, Deadlines, Ended, Entries, Handle, Options, ProcessAgent, Session,
};
use serde_json::Value;

#[cfg(unix)]
pub(crate) use fifo::Fifo;

/// The first records of a run of `codex exec --json`.
pub(crate) const BEGINS: &str =
    r#"echo '{"type":"thread.started","thread_id":"t1"}'; echo '{"type":"turn.started"}'"#;
/// A message of the model.
pub(crate) const MESSAGE: &str = r#"echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"hello"}}'"#;
/// The last record.
pub(crate) const COMPLETES: &str = r#"echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'"#;
/// A command starts.
pub(crate) const TOOL_STARTS: &str = r#"echo '{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"ls","aggregated_output":"","exit_code":null,"status":"in_progress"}}'"#;
/// The command ends.
pub(crate) const TOOL_ENDS: &str = r#"echo '{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"ls","aggregated_output":"a","exit_code":0,"status":"completed"}}'"#;

/// A shell script in place of an agent that prints Codex's records, and takes one prompt.
pub(crate) fn script(lines: &[&str]) -> Launch {
    with_driver(lines, "codex", Input::Closed, Box::new(PlainDriver::default()))
}

/// A shell script in place of an agent that takes one prompt, with a driver.
pub(crate) fn with_driver(
    lines: &[&str],
    from: &str,
    input: Input,
    driver: Box<dyn Driver>,
) -> Launch {
    Launch { delivery: Delivery::DriverOnce, ..live(lines, from, input, driver) }
}

/// A shell script in place of an agent that takes any number of prompts through its driver.
pub(crate) fn live(lines: &[&str], from: &str, input: Input, driver: Box<dyn Driver>) -> Launch {
    let command = Command {
        program: PathBuf::from("/bin/sh"),
        arguments: vec!["-c".into(), lines.join("\n").into()],
        environment: Vec::new(),
        folder: std::env::temp_dir(),
        input,
        terminal: None,
        ..Command::default()
    };
    Launch::new(command, dialect::find(from).unwrap(), driver)
}

/// Options with short deadlines.
pub(crate) fn options() -> Options {
    let deadlines = Deadlines {
        interrupt: Duration::from_millis(200),
        terminate: Duration::from_millis(200),
        ..Deadlines::default()
    };
    Options { deadlines, ..Options::default() }
}

/// Runs an agent to its end, with one prompt.
pub(crate) async fn run(launch: Launch, options: Options) -> (Ended, Vec<Value>) {
    Watched::start(launch, options).await.end().await
}

/// A session that the test watches and controls. It has one prompt, and ends after it.
pub(crate) struct Watched {
    pub(crate) handle: Handle,
    pub(crate) entries: Entries,
    pub(crate) events: Vec<Value>,
}

impl Watched {
    pub(crate) async fn start(launch: Launch, options: Options) -> Self {
        let session = Self::open(ProcessAgent::new(launch), options).await;
        session.handle.prompt("do it").await.unwrap();
        // The session may have been stopped already.
        let _ = within(session.handle.finish()).await;
        session
    }

    /// A session without a prompt.
    pub(crate) async fn open(agent: impl Agent, options: Options) -> Self {
        let Session { handle, entries, .. } = Box::new(agent).start(options).await.unwrap();
        Self { handle, entries, events: Vec::new() }
    }

    /// Takes the next entries. Returns `false` at the end of the session.
    pub(crate) async fn more(&mut self) -> bool {
        let Some(entries) = within(self.entries.next()).await else { return false };
        let events =
            entries.to_entries().into_iter().map(|entry| serde_json::to_value(entry).unwrap());
        self.events.extend(events);
        true
    }

    /// Waits until the session has emitted an event that matches.
    pub(crate) async fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        self.until_seen(1, is_it).await
    }

    /// Waits until the session has emitted this many events that match; returns the last of them.
    pub(crate) async fn until_seen(
        &mut self,
        count: usize,
        is_it: impl Fn(&Value) -> bool,
    ) -> Value {
        loop {
            let mut seen = self.events.iter().filter(|event| is_it(event));
            if let Some(event) = seen.nth(count - 1) {
                return event.clone();
            }
            assert!(self.more().await, "the session has ended: {:?}", self.events);
        }
    }

    pub(crate) async fn end(mut self) -> (Ended, Vec<Value>) {
        while self.more().await {}
        (within(self.entries.end()).await.unwrap(), self.events)
    }
}

/// Waits with a timeout, so that a hanging test fails.
pub(crate) async fn within<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), wait).await.unwrap()
}

/// The types of some events.
pub(crate) fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// The only `turn_ended` event.
pub(crate) fn turn_end(events: &[Value]) -> &Value {
    let ends: Vec<_> = events.iter().filter(|event| event["type"] == "turn_ended").collect();
    assert_eq!(ends.len(), 1, "{events:?}");
    ends[0]
}

/// All text of the model.
pub(crate) fn text(events: &[Value]) -> String {
    let text = |event: &Value| event["text"].as_str().unwrap_or_default().to_owned();
    let spoken = |event: &&Value| matches!(event["type"].as_str(), Some("block" | "block_delta"));
    events.iter().filter(spoken).map(text).collect()
}

/// Whether a process is alive.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
}
