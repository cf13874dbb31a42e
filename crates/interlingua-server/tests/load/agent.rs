//! An agent for load tests, which prints what Claude Code prints while a model writes.
//!
//! Usage: load-agent DELTAS DELTAS_PER_WRITE PAUSE_IN_MICROSECONDS GATE
//!
//! It waits until the named pipe `GATE` is opened for writing (`-`: it does not wait), so that many
//! agents begin at the same time. Each delta contains its number and the time at which it is printed,
//! in nanoseconds since 1970. The last text is the [`Sum`] of all texts before it, by which a reader
//! verifies that it has read exactly what was printed.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

mod sum;

use sum::Sum;

/// The number of deltas in one message.
const PER_MESSAGE: usize = 200;

const SESSION: &str = r#""session_id":"106eae25-cfc8-4db0-a17a-81e5ab84c534","parent_tool_use_id":null,"uuid":"d36005f8-a0b1-4eac-acf1-7feba8965fac""#;

fn main() -> io::Result<()> {
    // The prompt is one argument.
    let prompt = std::env::args().nth(1).unwrap_or_default();
    let words: Vec<_> = prompt.split_whitespace().collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse().ok()).unwrap_or(1_usize);
    let (deltas, per_write) = (number(0), number(1).max(1));
    let pause = Duration::from_micros(number(2) as u64);
    let mut out = io::stdout().lock();
    writeln!(
        out,
        r#"{{"type":"system","subtype":"init","cwd":"/work","tools":[],"model":"m",{SESSION}}}"#
    )?;
    if let Some(gate) = words.get(3).filter(|gate| **gate != "-") {
        drop(std::fs::File::open(gate)?);
    }
    let mut agent = Agent { lines: String::new(), text: String::new(), sum: Sum::default() };
    let mut printed = 0;
    for (message, first) in (0..deltas).step_by(PER_MESSAGE).enumerate() {
        agent.begin(message);
        for number in first..(first + PER_MESSAGE).min(deltas) {
            agent.delta(&format!("{number}@{} ", now()));
            printed += 1;
            if printed % per_write == 0 {
                agent.print(&mut out)?;
                if !pause.is_zero() {
                    std::thread::sleep(pause);
                }
            }
        }
        agent.end(message);
    }
    let sum = format!("sum {}", agent.sum);
    agent.begin(deltas);
    agent.delta(&sum);
    agent.end(deltas);
    let _ = writeln!(
        agent.lines,
        r#"{{"type":"result","subtype":"success","is_error":false,"result":"","num_turns":1,{SESSION}}}"#
    );
    agent.print(&mut out)
}

fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

struct Agent {
    /// The lines that were not printed yet.
    lines: String,
    /// The text of the message.
    text: String,
    sum: Sum,
}

impl Agent {
    fn event(&mut self, event: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.lines, r#"{{"type":"stream_event","event":{{{event}}},{SESSION}}}"#);
    }

    fn begin(&mut self, message: usize) {
        self.text.clear();
        self.event(format_args!(
            r#""type":"message_start","message":{{"id":"msg_{message}","type":"message","role":"assistant","model":"m","content":[]}}"#
        ));
        self.event(format_args!(
            r#""type":"content_block_start","index":0,"content_block":{{"type":"text","text":""}}"#
        ));
    }

    fn delta(&mut self, text: &str) {
        self.text.push_str(text);
        self.sum.add(text.as_bytes());
        self.event(format_args!(
            r#""type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}"#
        ));
    }

    /// The whole message follows its deltas, as Claude Code prints it.
    fn end(&mut self, message: usize) {
        let _ = writeln!(
            self.lines,
            r#"{{"type":"assistant","message":{{"id":"msg_{message}","type":"message","role":"assistant","model":"m","content":[{{"type":"text","text":"{}"}}]}},{SESSION}}}"#,
            self.text
        );
        self.event(format_args!(r#""type":"content_block_stop","index":0"#));
        self.event(format_args!(r#""type":"message_stop""#));
    }

    fn print(&mut self, out: &mut impl io::Write) -> io::Result<()> {
        out.write_all(self.lines.as_bytes())?;
        self.lines.clear();
        out.flush()
    }
}
