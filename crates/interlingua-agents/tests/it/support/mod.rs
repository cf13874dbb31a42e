//! Shell scripts that play agents, and consumers with various behaviours.

#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "some tests run only on Linux"))]

#[cfg(unix)]
mod fifo;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use interlingua::dialect;
use interlingua_agents::agent::Launch;
use interlingua_agents::driver::{Driver, PlainDriver};
use interlingua_agents::process::{Command, Input};
use interlingua_agents::{Control, Deadlines, Ended, Options};
use serde_json::Value;
use tokio::sync::mpsc;

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

/// A shell script in place of an agent that prints Codex's records.
pub(crate) fn script(lines: &[&str]) -> Launch {
    with_driver(lines, "codex", Input::Closed, Box::new(PlainDriver::default()))
}

/// A shell script in place of an agent with a driver.
pub(crate) fn with_driver(
    lines: &[&str],
    from: &str,
    input: Input,
    driver: Box<dyn Driver>,
) -> Launch {
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

/// Options for a run that writes events, with short deadlines.
pub(crate) fn options() -> Options {
    let mut options = Options::new(dialect::find("events").unwrap());
    options.deadlines = Deadlines {
        interrupt: Duration::from_millis(200),
        terminate: Duration::from_millis(200),
        ..Deadlines::default()
    };
    options
}

/// A consumer that keeps its input, and signals every chunk.
#[derive(Clone)]
pub(crate) struct Consumer {
    kept: Arc<Mutex<Vec<u8>>>,
    signals: mpsc::UnboundedSender<()>,
}

impl Consumer {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<()>) {
        let (signals, chunks) = mpsc::unbounded_channel();
        (Self { kept: Arc::default(), signals }, chunks)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.kept.lock().unwrap().clone()
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        let bytes = self.bytes();
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }
}

impl Write for Consumer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.kept.lock().unwrap().extend_from_slice(bytes);
        let _ = self.signals.send(());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl interlingua_agents::Consumer for Consumer {}

/// A consumer that accepts nothing until the test opens it, and then forwards its input.
#[derive(Clone)]
pub(crate) struct Stalled {
    open: Arc<(Mutex<bool>, Condvar)>,
    then: Consumer,
}

impl Stalled {
    pub(crate) fn before(then: &Consumer) -> Self {
        Self { open: Arc::default(), then: then.clone() }
    }

    pub(crate) fn open(&self) {
        let (open, opened) = &*self.open;
        *open.lock().unwrap() = true;
        opened.notify_all();
    }
}

impl Write for Stalled {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (open, opened) = &*self.open;
        drop(opened.wait_while(open.lock().unwrap(), |open| !*open).unwrap());
        self.then.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl interlingua_agents::Consumer for Stalled {}

/// Runs an agent to its end.
pub(crate) async fn run(launch: Launch, options: Options) -> (Ended, Vec<Value>) {
    let (consumer, _chunks) = Consumer::new();
    let (_controls, none) = mpsc::channel(1);
    let ended = within(interlingua_agents::run(launch, options, Box::new(consumer.clone()), none));
    let ended = ended.await.unwrap();
    (ended, consumer.events())
}

/// A run that the test watches and controls.
pub(crate) struct Watched {
    pub(crate) consumer: Consumer,
    pub(crate) controls: mpsc::Sender<Control>,
    chunks: mpsc::UnboundedReceiver<()>,
    run: tokio::task::JoinHandle<Ended>,
}

impl Watched {
    pub(crate) fn start(launch: Launch, options: Options) -> Self {
        let (consumer, chunks) = Consumer::new();
        let (controls, taken) = mpsc::channel(8);
        let output = Box::new(consumer.clone());
        let run = tokio::spawn(async move {
            interlingua_agents::run(launch, options, output, taken).await.unwrap()
        });
        Self { consumer, controls, chunks, run }
    }

    /// Waits until the run has emitted an event that matches.
    pub(crate) async fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            if let Some(event) = self.consumer.events().into_iter().find(|event| is_it(event)) {
                return event;
            }
            let more = async {
                tokio::select! {
                    biased;
                    more = self.chunks.recv() => more.is_some(),
                    _ = &mut self.run => false,
                }
            };
            assert!(within(more).await, "the run has ended: {:?}", self.consumer.events());
        }
    }

    pub(crate) async fn end(self) -> (Ended, Vec<Value>) {
        let ended = within(self.run).await.unwrap();
        (ended, self.consumer.events())
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
