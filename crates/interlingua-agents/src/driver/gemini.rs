//! Gemini, and the log that contains what it does not print.
//!
//! Its stream has no thoughts, no token counts before its end, no exit codes, and no output for
//! most tools; over ACP it reports only that a command has finished. The log of the session
//! contains all of it. The log is written at about the same time as the stream, so a line that the
//! log can complete is held back for a moment.

mod line;
mod log;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use interlingua::event::{Block, BlockKind, FilesChanged, ToolEnded, ToolStatus};
use interlingua::json::{Json, Text};

use super::lines::{RawLines, Records};
use super::{AcpDriver, Answer, Applied, Driver, SidecarFile, Step};
use crate::permission::{Decision, Mode};
use line::{CallResult, Line};
use log::{Call, Entry};

/// The interval between two readings of the log, and the maximum number of readings.
const LOG_INTERVAL: Duration = Duration::from_millis(20);
const LOG_READINGS: u32 = 15;

/// The driver of Gemini.
#[derive(Debug)]
pub struct GeminiDriver {
    /// The folder that contains Gemini's logs.
    folder: PathBuf,
    /// The driver of the ACP connection, if ACP is used.
    acp: Option<AcpDriver>,
    lines: RawLines,
    /// Lines that are held back for the log.
    held: VecDeque<Vec<u8>>,
    readings: u32,
    log: Log,
    /// The agent has ended.
    closed: bool,
}

/// The state of the log.
#[derive(Debug, Default)]
struct Log {
    /// The log file, once the session id is known; `None` also if it cannot be found.
    place: Option<SidecarFile>,
    /// When the session began; older records are history.
    began: String,
    records: Records,
    /// The next bytes were written before this run.
    past: bool,
    found: bool,
    /// The answered calls that were not emitted yet.
    answered: HashMap<String, Call>,
    /// The messages whose thoughts and tokens were emitted; `None` if the agent prints them itself.
    emitted: Option<HashSet<String>>,
    /// The stream contains text of a message that is not in the log yet.
    message_pending: bool,
}

impl GeminiDriver {
    /// Creates a driver for the stream. The logs are below this folder.
    pub fn stream(folder: PathBuf) -> Self {
        let log = Log { emitted: Some(HashSet::new()), ..Log::default() };
        Self::new(folder, None, log)
    }

    /// Creates a driver for ACP. The id of a resumed session is not printed again, so it is given
    /// here.
    pub fn acp(folder: PathBuf, acp: AcpDriver, resume: Option<&str>) -> Self {
        let mut driver = Self::new(folder, Some(acp), Log::default());
        driver.log.place = resume.and_then(|session| driver.log_of(session));
        driver
    }

    fn new(folder: PathBuf, acp: Option<AcpDriver>, log: Log) -> Self {
        let (lines, held) = (RawLines::default(), VecDeque::new());
        Self { folder, acp, lines, held, readings: 0, log, closed: false }
    }

    /// The log of a session: its file name ends with the first characters of the session id.
    fn log_of(&self, session: &str) -> Option<SidecarFile> {
        let letters = session.get(..8)?;
        let (folder, below) = (self.folder.clone(), "chats");
        Some(SidecarFile::Below { folder, below, ending: format!("-{letters}.jsonl") })
    }

    /// Passes on lines up to the first one that waits for the log; `force` passes on that line too.
    fn flush(&mut self, force: bool, steps: &mut Vec<Step>) {
        while let Some(bytes) = self.held.front() {
            let line = Line::of(bytes);
            if !force && self.log.is_pending(&line) {
                return;
            }
            self.pass(line, steps);
        }
    }

    /// Passes on the first line, with what the log adds to it.
    fn pass(&mut self, line: Line, steps: &mut Vec<Step>) {
        self.readings = 0;
        match line {
            Line::Session { id, time } => {
                self.log.place = self.log_of(&id);
                self.log.began = time;
            }
            Line::Text => self.log.message_pending = self.log.emitted.is_some(),
            Line::Result(result) => {
                if let Some(call) = self.log.answered.remove(&result.call) {
                    complete(result, call, steps);
                }
            }
            Line::End | Line::Other => {}
        }
        if let Some(line) = self.held.pop_front() {
            Step::pass(line, steps);
        }
    }
}

impl Driver for GeminiDriver {
    fn holds_back(&self) -> bool {
        true
    }

    fn start(&mut self, steps: &mut Vec<Step>) {
        // What the log contains of a resumed session is history.
        steps.extend(self.log.place.clone().map(Step::Read));
        self.log.past = self.log.place.is_some();
        if let Some(acp) = &mut self.acp {
            acp.start(steps);
        }
    }

    fn output(&mut self, chunk: &[u8], steps: &mut Vec<Step>) {
        let held = &mut self.held;
        self.lines.each(chunk, |line| held.push_back(line));
        self.flush(false, steps);
        if !self.held.is_empty() {
            steps.extend(self.log.place.clone().map(Step::Read));
        }
        // The records sent to the agent answer what it has printed.
        if let Some(acp) = &mut self.acp {
            acp.output(chunk, steps);
        }
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Vec<Step>) {
        if let Some(acp) = &mut self.acp {
            acp.decide(request, decision, steps);
        }
    }

    fn prompt(&mut self, prompt: &str, steps: &mut Vec<Step>) {
        if let Some(acp) = &mut self.acp {
            acp.prompt(prompt, steps);
        }
    }

    fn answer(&mut self, request: &str, answer: &Answer, steps: &mut Vec<Step>) {
        if let Some(acp) = &mut self.acp {
            acp.answer(request, answer, steps);
        }
    }

    fn set_model(&mut self, model: &str, steps: &mut Vec<Step>) -> Applied {
        self.acp.as_mut().map_or(Applied::AtRestart, |acp| acp.set_model(model, steps))
    }

    fn set_mode(&mut self, mode: Mode, steps: &mut Vec<Step>) -> Applied {
        self.acp.as_mut().map_or(Applied::AtRestart, |acp| acp.set_mode(mode, steps))
    }

    fn turn_ended(&mut self, steps: &mut Vec<Step>) {
        if let Some(acp) = &mut self.acp {
            acp.turn_ended(steps);
        }
    }

    fn close(&mut self, steps: &mut Vec<Step>) {
        match &mut self.acp {
            Some(acp) => acp.close(steps),
            None => steps.push(Step::CloseInput),
        }
    }

    fn interrupt(&mut self, steps: &mut Vec<Step>) -> bool {
        self.acp.as_mut().is_some_and(|acp| acp.interrupt(steps))
    }

    fn wake_after(&self) -> Option<Duration> {
        if self.held.is_empty() { self.acp.as_ref()?.wake_after() } else { Some(LOG_INTERVAL) }
    }

    fn woken(&mut self, steps: &mut Vec<Step>) {
        if self.held.is_empty() {
            if let Some(acp) = &mut self.acp {
                acp.woken(steps);
            }
            return;
        }
        self.readings += 1;
        if self.readings < LOG_READINGS {
            steps.extend(self.log.place.clone().map(Step::Read));
            return;
        }
        if !self.log.found {
            self.log.place = None;
        }
        // The log is not awaited any longer: this line is released, and so are the following ones
        // that need no log entry.
        self.log.message_pending = false;
        if let Some(bytes) = self.held.front() {
            let line = Line::of(bytes);
            self.pass(line, steps);
        }
        self.flush(false, steps);
    }

    fn sidecar_read(&mut self, bytes: &[u8], steps: &mut Vec<Step>) {
        if std::mem::replace(&mut self.log.past, false) {
            return;
        }
        self.log.read(bytes, steps);
        self.flush(self.closed, steps);
        if self.closed {
            steps.extend(self.lines.rest().map(Step::Pass));
        }
    }

    fn ended(&mut self, _code: Option<i64>, steps: &mut Vec<Step>) {
        self.closed = true;
        match self.log.place.clone() {
            // An agent that was stopped has logged more than it printed.
            Some(place) => steps.push(Step::Read(place)),
            None => self.sidecar_read(b"", steps),
        }
    }
}

impl Log {
    /// Whether the log is expected to add something to a line.
    fn is_pending(&self, line: &Line) -> bool {
        if self.place.is_none() {
            return false;
        }
        match line {
            // Failed calls and diffs are printed completely.
            Line::Result(result) => {
                result.succeeded && !result.has_more && !self.answered.contains_key(&result.call)
            }
            Line::End => self.message_pending,
            _ => false,
        }
    }

    fn read(&mut self, bytes: &[u8], steps: &mut Vec<Step>) {
        let Self { records, began, found, answered, emitted, message_pending, .. } = self;
        *found |= !bytes.is_empty();
        records.each(bytes, |record| {
            let Some(entry) = Entry::of(record).filter(|entry| entry.timestamp >= *began) else {
                return;
            };
            let is_new = emitted.as_mut().is_some_and(|emitted| emitted.insert(entry.id.clone()));
            if is_new {
                *message_pending = false;
                let thoughts = entry.thoughts.iter().enumerate();
                steps.extend(thoughts.map(|(index, thought)| {
                    Step::emit(Block {
                        message: Some(Text::from(entry.id.clone())),
                        index: index as u64,
                        kind: BlockKind::Reasoning,
                        text: Text::from(thought.text()),
                        ..Block::default()
                    })
                }));
                steps.extend(entry.usage().map(Step::emit));
            }
            answered.extend(entry.calls.into_iter().map(|call| (call.id.clone(), call)));
        });
    }
}

/// Emits what the stream does not contain about a call.
fn complete(result: CallResult, call: Call, steps: &mut Vec<Step>) {
    let printed = result.printed.filter(|printed| !printed.is_empty());
    // The output of a cancelled command is a message about the cancellation.
    let stopped = printed.as_ref().is_some_and(|printed| printed.starts_with("Command cancelled"));
    let exit_code = call.exit_code().filter(|_| !stopped);
    // The printed output is complete; the log has the text that was sent to the model.
    if result.succeeded && !result.has_more && (printed.is_none() || exit_code.is_some()) {
        let failed = exit_code.is_some_and(|code| code != 0);
        steps.push(Step::emit(ToolEnded {
            call: Text::from(call.id.clone()),
            status: if failed { ToolStatus::Failed } else { ToolStatus::Completed },
            output: printed.or_else(|| call.output()).and_then(|it| Json::from_serialize(&it)),
            exit_code,
            ..ToolEnded::default()
        }));
    }
    if let Some(change) = call.change().filter(|_| !result.has_more) {
        let changed = FilesChanged { call: Some(Text::from(call.id)), changes: vec![change] };
        steps.push(Step::emit(changed));
    }
}

#[cfg(test)]
mod tests {
    use interlingua::event::{Data, Event};

    use super::*;
    use crate::driver::AcpSession;

    const INIT: &str =
        r#"{"type":"init","timestamp":"2026-11-16T08:47:17.557Z","session_id":"079d0eea-9df5"}"#;
    const READ: &str =
        r#"{"type":"tool_result","tool_id":"read_1","status":"success","output":""}"#;
    const SHELL: &str =
        r#"{"type":"tool_result","tool_id":"shell_1","status":"success","output":"oops"}"#;
    const TEXT: &str = r#"{"type":"message","role":"assistant","content":"Hi.","delta":true}"#;
    const RESULT: &str = r#"{"type":"result","status":"success"}"#;
    const LOGGED: &str = r#"{"id":"m1","timestamp":"2026-11-16T08:47:18.154Z","type":"gemini","content":"",
        "thoughts":[{"subject":"Plan","description":"Look."}],
        "tokens":{"input":120,"output":22,"cached":100,"thoughts":8,"tool":0,"total":150},"model":"g",
        "toolCalls":[
        {"id":"read_1","name":"read_file","result":[{"functionResponse":{"response":{"output":"hello"}}}],"status":"success"},
        {"id":"shell_1","name":"run_shell_command","result":[{"functionResponse":{"response":{"output":"<untrusted_context>\nOutput: oops\nExit Code: 3\n</untrusted_context>"}}}],"status":"success","resultDisplay":"oops"}]}"#;

    fn line(text: &str) -> Vec<u8> {
        [text.replace('\n', "").as_bytes(), b"\n"].concat()
    }

    /// A driver whose session has begun.
    fn begun() -> GeminiDriver {
        let mut driver = GeminiDriver::stream(PathBuf::from("logs"));
        let mut steps = Vec::new();
        driver.output(&line(INIT), &mut steps);
        assert_eq!(steps, [Step::Pass(line(INIT))]);
        driver
    }

    fn emitted(steps: &[Step]) -> Vec<&Event<'static>> {
        let emitted = steps.iter().filter_map(|step| match step {
            Step::Emit(event) => Some(&**event),
            _ => None,
        });
        emitted.collect()
    }

    /// The number of lines that were passed on; the last one may have no line ending.
    fn passed(steps: &[Step]) -> usize {
        let lines = |step: &Step| match step {
            Step::Pass(bytes) => bytes.split_inclusive(|byte| *byte == b'\n').count(),
            _ => 0,
        };
        steps.iter().map(lines).sum()
    }

    #[test]
    fn a_result_waits_for_its_log_record() {
        let (mut driver, mut steps) = (begun(), Vec::new());
        driver.output(&[line(READ), line(SHELL)].concat(), &mut steps);
        let place = SidecarFile::Below {
            folder: PathBuf::from("logs"),
            below: "chats",
            ending: "-079d0eea.jsonl".to_owned(),
        };
        assert_eq!(steps, [Step::Read(place)]);
        assert!(driver.wake_after().is_some());
        steps.clear();
        driver.sidecar_read(&line(LOGGED), &mut steps);
        let events = emitted(&steps);
        let Data::Block(thought) = &events[0].data else { panic!("{events:?}") };
        assert_eq!(
            (thought.text.to_string(), &thought.kind),
            ("**Plan**\nLook.".to_owned(), &BlockKind::Reasoning)
        );
        let Data::Usage(usage) = &events[1].data else { panic!("{events:?}") };
        assert_eq!((usage.input, usage.cache_read, usage.output), (Some(20), Some(100), Some(30)));
        let Data::ToolEnded(read) = &events[2].data else { panic!("{events:?}") };
        assert_eq!(read.output.as_ref().map(Json::get), Some("\"hello\""));
        let Data::ToolEnded(shell) = &events[3].data else { panic!("{events:?}") };
        assert_eq!(shell.output.as_ref().map(Json::get), Some("\"oops\""));
        assert_eq!((shell.exit_code, &shell.status), (Some(3), &ToolStatus::Failed));
        assert_eq!((passed(&steps), driver.wake_after()), (2, None));
    }

    #[test]
    fn the_end_waits_for_the_thoughts_of_the_last_message_and_for_nothing_else() {
        let (mut driver, mut steps) = (begun(), Vec::new());
        driver.output(&[line(TEXT), line(RESULT)].concat(), &mut steps);
        assert_eq!(passed(&steps), 1, "{steps:?}");
        driver.sidecar_read(&line(LOGGED), &mut steps);
        assert_eq!((passed(&steps), emitted(&steps).len()), (2, 2));
        let (mut driver, mut steps) = (begun(), Vec::new());
        driver.output(&line(RESULT), &mut steps);
        assert_eq!(passed(&steps), 1);
    }

    #[test]
    fn without_a_log_only_the_first_line_waits() {
        let (mut driver, mut steps) = (begun(), Vec::new());
        driver.output(&line(READ), &mut steps);
        for _ in 0..LOG_READINGS {
            assert_eq!(passed(&steps), 0);
            driver.sidecar_read(b"", &mut steps);
            driver.woken(&mut steps);
        }
        assert_eq!((passed(&steps), driver.wake_after()), (1, None));
        driver.output(&line(SHELL), &mut steps);
        assert_eq!(passed(&steps), 2);
    }

    #[test]
    fn records_logged_before_this_run_are_not_emitted() {
        let (mut driver, mut steps) = (begun(), Vec::new());
        driver.sidecar_read(&line(&LOGGED.replace("08:47:18", "08:46:00")), &mut steps);
        assert!(steps.is_empty(), "{steps:?}");
    }

    #[test]
    fn a_repeated_record_is_emitted_once() {
        let (mut driver, mut steps) = (begun(), Vec::new());
        driver.sidecar_read(&[line(LOGGED), line(LOGGED)].concat(), &mut steps);
        assert_eq!(emitted(&steps).len(), 2);
    }

    #[test]
    fn over_acp_the_log_provides_the_output_of_a_command() {
        let session = AcpSession { folder: "/".to_owned(), ..AcpSession::default() };
        let mut acp = AcpDriver::new(session);
        acp.prompt("do it", &mut Vec::new());
        let mut driver = GeminiDriver::acp(PathBuf::from("logs"), acp, None);
        let mut steps = Vec::new();
        driver.output(&line(r#"{"jsonrpc":"2.0","id":0,"result":{}}"#), &mut steps);
        steps.clear();
        let opened = r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"079d0eea-9df5"}}"#;
        driver.output(&line(opened), &mut steps);
        assert!(
            matches!(&steps[0], Step::Pass(_)) && matches!(&steps[1], Step::Send(_)),
            "{steps:?}"
        );
        steps.clear();
        let closed = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"shell_1","status":"completed","content":[]}}}"#;
        driver.output(&line(closed), &mut steps);
        assert_eq!(passed(&steps), 0);
        driver.sidecar_read(&line(LOGGED), &mut steps);
        // ACP itself reports thoughts and tokens.
        let [event] = emitted(&steps)[..] else { panic!("{steps:?}") };
        let Data::ToolEnded(ended) = &event.data else { panic!("{event:?}") };
        assert_eq!(
            (ended.exit_code, ended.output.as_ref().map(Json::get)),
            (Some(3), Some("\"oops\""))
        );
        assert_eq!(passed(&steps), 1);
    }

    #[test]
    fn over_acp_records_logged_before_a_resume_are_history() {
        let resume = Some(" 079d0eea-9df5".to_owned());
        let session = AcpSession { resume, folder: "/".to_owned(), ..AcpSession::default() };
        let mut acp = AcpDriver::new(session);
        acp.prompt("do it", &mut Vec::new());
        let mut driver = GeminiDriver::acp(PathBuf::from("logs"), acp, Some("079d0eea-9df5"));
        let mut steps = Vec::new();
        driver.start(&mut steps);
        assert!(matches!(&steps[0], Step::Read(_)), "{steps:?}");
        driver.sidecar_read(&line(LOGGED), &mut steps);
        assert!(driver.log.answered.is_empty());
    }

    #[test]
    fn the_end_of_the_agent_flushes_everything() {
        let (mut driver, mut steps) = (begun(), Vec::new());
        driver.output(&[line(READ), line(TEXT), b"{\"cut".to_vec()].concat(), &mut steps);
        driver.ended(Some(0), &mut steps);
        assert!(matches!(steps.last(), Some(Step::Read(_))), "the log is read once more");
        driver.sidecar_read(b"", &mut steps);
        assert_eq!(passed(&steps), 3);
        let (mut unnamed, mut steps) = (GeminiDriver::stream(PathBuf::new()), Vec::new());
        unnamed.output(b"no session", &mut steps);
        unnamed.ended(Some(1), &mut steps);
        assert_eq!(passed(&steps), 1);
    }
}
