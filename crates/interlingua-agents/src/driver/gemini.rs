//! Gemini, and the log in which it keeps what it does not print.
//!
//! Its stream has no thoughts, no tokens before its end, no exit codes, and of most tools nothing that
//! they gave back; by ACP it tells of a command that it is over, and nothing else. The log of the session
//! has all that. It is written while the agent works, about when the same is printed, so a line that the
//! log can complete waits a moment for it.

mod line;
mod log;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use interlingua::event::{Block, BlockKind, FilesChanged, ToolEnded, ToolStatus};
use interlingua::json::{Json, Text};

use super::lines::{RawLines, Records};
use super::{AcpDriver, Beside, Driver, Step};
use crate::permission::Decision;
use line::{Answer, Line};
use log::{Call, Entry};

/// How long the log is given before it is looked at again, and how often that is done.
const MOMENT: Duration = Duration::from_millis(20);
const LOOKS: u32 = 15;

/// The driver of Gemini.
#[derive(Debug)]
pub struct GeminiDriver {
    /// The folder in which Gemini keeps its logs.
    folder: PathBuf,
    /// Who speaks to it, where it is not told everything when it is started.
    acp: Option<AcpDriver>,
    lines: RawLines,
    /// Lines that wait for the log.
    held: VecDeque<Vec<u8>>,
    looks: u32,
    log: Log,
    /// The agent has ended.
    over: bool,
}

/// What is known of the log.
#[derive(Debug, Default)]
struct Log {
    /// Where it is, once the session has a name; nothing, too, where it cannot be found.
    place: Option<Beside>,
    /// When the session began: what is older is of the past.
    began: String,
    records: Records,
    /// What is read next was there before this run.
    past: bool,
    found: bool,
    /// The calls that were answered, and not yet told.
    answered: HashMap<String, Call>,
    /// The messages whose thoughts and tokens were told; nothing, where the agent prints them.
    told: Option<HashSet<String>>,
    /// The stream has text of a message that is not in the log yet.
    owes_message: bool,
}

impl GeminiDriver {
    /// The driver of its stream, which finds the logs below a folder.
    pub fn stream(folder: PathBuf) -> Self {
        let log = Log { told: Some(HashSet::new()), ..Log::default() };
        Self::new(folder, None, log)
    }

    /// The same for ACP, where the name of a session that is resumed is not told again.
    pub fn acp(folder: PathBuf, acp: AcpDriver, resume: Option<&str>) -> Self {
        let mut driver = Self::new(folder, Some(acp), Log::default());
        driver.log.place = resume.and_then(|session| driver.log_of(session));
        driver
    }

    fn new(folder: PathBuf, acp: Option<AcpDriver>, log: Log) -> Self {
        let (lines, held) = (RawLines::default(), VecDeque::new());
        Self { folder, acp, lines, held, looks: 0, log, over: false }
    }

    /// The log of a session: its name ends with the first letters of the session's.
    fn log_of(&self, session: &str) -> Option<Beside> {
        let letters = session.get(..8)?;
        let (folder, below) = (self.folder.clone(), "chats");
        Some(Beside::Below { folder, below, ending: format!("-{letters}.jsonl") })
    }

    /// Passes on what waits for nothing; the first line that does stays, and all after it.
    fn let_go(&mut self, at_any_rate: bool, steps: &mut Vec<Step>) {
        while let Some(bytes) = self.held.front() {
            let line = Line::of(bytes);
            if !at_any_rate && self.log.owes(&line) {
                return;
            }
            self.pass(line, steps);
        }
    }

    /// Passes on the first line, with what the log adds to it.
    fn pass(&mut self, line: Line, steps: &mut Vec<Step>) {
        self.looks = 0;
        match line {
            Line::Session { id, time } => {
                self.log.place = self.log_of(&id);
                self.log.began = time;
            }
            Line::Text => self.log.owes_message = self.log.told.is_some(),
            Line::Answer(answer) => {
                if let Some(call) = self.log.answered.remove(&answer.call) {
                    complete(answer, call, steps);
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
        // What the log has of a session that is resumed is of the past.
        steps.extend(self.log.place.clone().map(Step::Read));
        self.log.past = self.log.place.is_some();
        if let Some(acp) = &mut self.acp {
            acp.start(steps);
        }
    }

    fn output(&mut self, chunk: &[u8], steps: &mut Vec<Step>) {
        let held = &mut self.held;
        self.lines.each(chunk, |line| held.push_back(line));
        self.let_go(false, steps);
        if !self.held.is_empty() {
            steps.extend(self.log.place.clone().map(Step::Read));
        }
        // What is said to the agent answers what it has printed.
        if let Some(acp) = &mut self.acp {
            acp.output(chunk, steps);
        }
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Vec<Step>) {
        if let Some(acp) = &mut self.acp {
            acp.decide(request, decision, steps);
        }
    }

    fn turn_ended(&mut self, steps: &mut Vec<Step>) {
        if let Some(acp) = &mut self.acp {
            acp.turn_ended(steps);
        }
    }

    fn interrupt(&mut self, steps: &mut Vec<Step>) -> bool {
        self.acp.as_mut().is_some_and(|acp| acp.interrupt(steps))
    }

    fn patience(&self) -> Option<Duration> {
        if self.held.is_empty() { self.acp.as_ref()?.patience() } else { Some(MOMENT) }
    }

    fn woken(&mut self, steps: &mut Vec<Step>) {
        if self.held.is_empty() {
            if let Some(acp) = &mut self.acp {
                acp.woken(steps);
            }
            return;
        }
        self.looks += 1;
        if self.looks < LOOKS {
            steps.extend(self.log.place.clone().map(Step::Read));
            return;
        }
        if !self.log.found {
            self.log.place = None;
        }
        // The line that has waited long enough goes, and so do those that wait for nothing.
        self.log.owes_message = false;
        if let Some(bytes) = self.held.front() {
            let line = Line::of(bytes);
            self.pass(line, steps);
        }
        self.let_go(false, steps);
    }

    fn beside(&mut self, bytes: &[u8], steps: &mut Vec<Step>) {
        if std::mem::replace(&mut self.log.past, false) {
            return;
        }
        self.log.read(bytes, steps);
        self.let_go(self.over, steps);
        if self.over {
            steps.extend(self.lines.rest().map(Step::Pass));
        }
    }

    fn ended(&mut self, _code: Option<i64>, steps: &mut Vec<Step>) {
        self.over = true;
        match self.log.place.clone() {
            // One that was stopped has logged more than it has printed.
            Some(place) => steps.push(Step::Read(place)),
            None => self.beside(b"", steps),
        }
    }
}

impl Log {
    /// Whether the log will say more of a line than it has said.
    fn owes(&self, line: &Line) -> bool {
        if self.place.is_none() {
            return false;
        }
        match line {
            // Of a call that failed, and of a difference, all is printed.
            Line::Answer(answer) => {
                answer.went_well && !answer.has_more && !self.answered.contains_key(&answer.call)
            }
            Line::End => self.owes_message,
            _ => false,
        }
    }

    fn read(&mut self, bytes: &[u8], steps: &mut Vec<Step>) {
        let Self { records, began, found, answered, told, owes_message, .. } = self;
        *found |= !bytes.is_empty();
        records.each(bytes, |record| {
            let Some(entry) = Entry::of(record).filter(|entry| entry.timestamp >= *began) else {
                return;
            };
            let is_new = told.as_mut().is_some_and(|told| told.insert(entry.id.clone()));
            if is_new {
                *owes_message = false;
                let thoughts = entry.thoughts.iter().enumerate();
                steps.extend(thoughts.map(|(index, thought)| {
                    Step::tell(Block {
                        message: Some(Text::from(entry.id.clone())),
                        index: index as u64,
                        kind: BlockKind::Reasoning,
                        text: Text::from(thought.text()),
                        ..Block::default()
                    })
                }));
                steps.extend(entry.usage().map(Step::tell));
            }
            answered.extend(entry.calls.into_iter().map(|call| (call.id.clone(), call)));
        });
    }
}

/// Tells of a call what is not printed.
fn complete(answer: Answer, call: Call, steps: &mut Vec<Step>) {
    let shown = answer.shown.filter(|shown| !shown.is_empty());
    // One that was stopped has its own words for that.
    let stopped = shown.as_ref().is_some_and(|shown| shown.starts_with("Command cancelled"));
    let exit_code = call.exit_code().filter(|_| !stopped);
    // What is printed is the whole of it; what the log has is what the model was told.
    if answer.went_well && !answer.has_more && (shown.is_none() || exit_code.is_some()) {
        let failed = exit_code.is_some_and(|code| code != 0);
        steps.push(Step::tell(ToolEnded {
            call: Text::from(call.id.clone()),
            status: if failed { ToolStatus::Failed } else { ToolStatus::Completed },
            output: shown.or_else(|| call.output()).and_then(|it| Json::from_serialize(&it)),
            exit_code,
            ..ToolEnded::default()
        }));
    }
    if let Some(change) = call.change().filter(|_| !answer.has_more) {
        let changed = FilesChanged { call: Some(Text::from(call.id)), changes: vec![change] };
        steps.push(Step::tell(changed));
    }
}

#[cfg(test)]
mod tests {
    use interlingua::event::{Data, Event};

    use super::*;
    use crate::driver::Session;

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

    fn told(steps: &[Step]) -> Vec<&Event<'static>> {
        let told = steps.iter().filter_map(|step| match step {
            Step::Tell(event) => Some(&**event),
            _ => None,
        });
        told.collect()
    }

    /// How many lines were passed on, the last of which may have no end.
    fn passed(steps: &[Step]) -> usize {
        let lines = |step: &Step| match step {
            Step::Pass(bytes) => bytes.split_inclusive(|byte| *byte == b'\n').count(),
            _ => 0,
        };
        steps.iter().map(lines).sum()
    }

    #[test]
    fn a_result_waits_for_what_the_log_says_of_it() {
        let (mut driver, mut steps) = (begun(), Vec::new());
        driver.output(&[line(READ), line(SHELL)].concat(), &mut steps);
        let place = Beside::Below {
            folder: PathBuf::from("logs"),
            below: "chats",
            ending: "-079d0eea.jsonl".to_owned(),
        };
        assert_eq!(steps, [Step::Read(place)]);
        assert!(driver.patience().is_some());
        steps.clear();
        driver.beside(&line(LOGGED), &mut steps);
        let events = told(&steps);
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
        assert_eq!((passed(&steps), driver.patience()), (2, None));
    }

    #[test]
    fn the_end_waits_for_the_thoughts_of_the_last_message_and_for_nothing_else() {
        let (mut driver, mut steps) = (begun(), Vec::new());
        driver.output(&[line(TEXT), line(RESULT)].concat(), &mut steps);
        assert_eq!(passed(&steps), 1, "{steps:?}");
        driver.beside(&line(LOGGED), &mut steps);
        assert_eq!((passed(&steps), told(&steps).len()), (2, 2));
        let (mut driver, mut steps) = (begun(), Vec::new());
        driver.output(&line(RESULT), &mut steps);
        assert_eq!(passed(&steps), 1);
    }

    #[test]
    fn without_a_log_nothing_waits_a_second_time() {
        let (mut driver, mut steps) = (begun(), Vec::new());
        driver.output(&line(READ), &mut steps);
        for _ in 0..LOOKS {
            assert_eq!(passed(&steps), 0);
            driver.beside(b"", &mut steps);
            driver.woken(&mut steps);
        }
        assert_eq!((passed(&steps), driver.patience()), (1, None));
        driver.output(&line(SHELL), &mut steps);
        assert_eq!(passed(&steps), 2);
    }

    #[test]
    fn what_was_logged_before_this_run_is_not_told() {
        let (mut driver, mut steps) = (begun(), Vec::new());
        driver.beside(&line(&LOGGED.replace("08:47:18", "08:46:00")), &mut steps);
        assert!(steps.is_empty(), "{steps:?}");
    }

    #[test]
    fn a_record_that_is_written_again_is_told_once() {
        let (mut driver, mut steps) = (begun(), Vec::new());
        driver.beside(&[line(LOGGED), line(LOGGED)].concat(), &mut steps);
        assert_eq!(told(&steps).len(), 2);
    }

    #[test]
    fn by_acp_the_log_says_what_a_command_gave_back() {
        let session = Session { folder: "/".to_owned(), ..Session::default() };
        let acp = AcpDriver::new("do it".to_owned(), session);
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
        let over = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"shell_1","status":"completed","content":[]}}}"#;
        driver.output(&line(over), &mut steps);
        assert_eq!(passed(&steps), 0);
        driver.beside(&line(LOGGED), &mut steps);
        // Thoughts and tokens are told by ACP itself.
        let [event] = told(&steps)[..] else { panic!("{steps:?}") };
        let Data::ToolEnded(ended) = &event.data else { panic!("{event:?}") };
        assert_eq!(
            (ended.exit_code, ended.output.as_ref().map(Json::get)),
            (Some(3), Some("\"oops\""))
        );
        assert_eq!(passed(&steps), 1);
    }

    #[test]
    fn by_acp_what_was_logged_before_a_resume_is_of_the_past() {
        let resume = Some(" 079d0eea-9df5".to_owned());
        let session = Session { resume, folder: "/".to_owned(), ..Session::default() };
        let acp = AcpDriver::new("do it".to_owned(), session);
        let mut driver = GeminiDriver::acp(PathBuf::from("logs"), acp, Some("079d0eea-9df5"));
        let mut steps = Vec::new();
        driver.start(&mut steps);
        assert!(matches!(&steps[0], Step::Read(_)), "{steps:?}");
        driver.beside(&line(LOGGED), &mut steps);
        assert!(driver.log.answered.is_empty());
    }

    #[test]
    fn the_end_of_the_agent_lets_everything_go() {
        let (mut driver, mut steps) = (begun(), Vec::new());
        driver.output(&[line(READ), line(TEXT), b"{\"cut".to_vec()].concat(), &mut steps);
        driver.ended(Some(0), &mut steps);
        assert!(matches!(steps.last(), Some(Step::Read(_))), "the log is read once more");
        driver.beside(b"", &mut steps);
        assert_eq!(passed(&steps), 3);
        let (mut unnamed, mut steps) = (GeminiDriver::stream(PathBuf::new()), Vec::new());
        unnamed.output(b"no session", &mut steps);
        unnamed.ended(Some(1), &mut steps);
        assert_eq!(passed(&steps), 1);
    }
}
