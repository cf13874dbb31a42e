//! Faults of a server with a real agent: no entry is lost, changed, repeated or reordered, no prompt reaches
//! the model twice, every turn ends once and contains what the model streamed, and no process is left.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use fake_model::{Reply, Script};
use serde_json::{Value, json};

use crate::log::{assert_continues, intents, of_kind, turns};
use crate::random::Random;
use crate::reader::{Mode, Reader};
use crate::served::{Agent, PATIENCE, Served};

/// What the model says in turns that nothing happens to.
const TEXT: &str = "These are a few words, one after the other.";

/// A command that runs until it is ended.
const ENDLESS: &str = "tail -f /dev/null";

fn script() -> Script {
    let words = TEXT.split_inclusive(' ').fold(Reply::new(), Reply::then_text).delay_ms(20);
    Script::new()
        .reply(words.clone())
        .reply(Reply::text("These ").then_gate("never").then_text("are"))
        .reply(Reply::shell(ENDLESS))
        .reply(Reply::shell(ENDLESS))
        .reply(words)
        .repeat_last()
        .any_stream()
}

pub(crate) fn check(agent: Agent, programs: &Path, seed: u64, faults: u64) {
    let mut trial = Trial::new(agent, programs, seed);
    trial.kill_in_every_phase();
    for _ in 0..faults {
        trial.random_fault();
    }
    trial.finish();
}

/// One session, and what is known of it.
struct Trial {
    random: Random,
    served: Served,
    id: String,
    prompts: u64,
    seen: Vec<Value>,
    readers: Vec<Reader>,
}

fn key(prompt: u64) -> String {
    format!("k{prompt}")
}

/// No prompt is a part of another one.
fn text(prompt: u64) -> String {
    format!("Prompt number {prompt}.")
}

impl Trial {
    fn new(agent: Agent, programs: &Path, seed: u64) -> Self {
        let mut served = Served::new(agent, programs, script());
        served.start();
        let id = served.create(&text(0), &key(0), "default");
        let modes = [Mode::LongPoll, Mode::Sse, Mode::Reconnecting];
        let readers = modes.map(|mode| Reader::new(&served.address, &id, "events", mode, 0));
        let random = Random::new(seed);
        Self { random, served, id, prompts: 1, seen: Vec::new(), readers: readers.into() }
    }

    /// In a text, in a question, in a tool call, and between the intent and the receipt.
    fn kill_in_every_phase(&mut self) {
        self.until(|events| of_kind(events, "turn_ended").len() == 1);
        let prompt = self.prompt();
        self.until(|events| text_after(events, prompt).contains("These "));
        self.kill();
        self.prompt();
        self.until(|events| of_kind(events, "permission_requested").len() == 1);
        self.kill();
        self.prompt();
        self.until(|events| of_kind(events, "permission_requested").len() == 2);
        let requested = of_kind(&self.seen, "permission_requested")[1];
        let request = requested["request"].as_str().or(requested["call"].as_str()).unwrap();
        let allow = json!({"type": "decide", "request": request, "decision": "allow"});
        let decided = self.served.command_of(&self.id, "allow", allow);
        assert_eq!(decided.status, 202, "{}", decided.text());
        let begun = std::time::Instant::now();
        // No event reports that the command runs.
        while !self.served.home.runs(ENDLESS) {
            assert!(begun.elapsed() < PATIENCE, "the command does not run");
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill();
        let prompt = self.prompt();
        self.until(|events| intents(events).contains(&&*key(prompt)));
        self.kill();
    }

    fn random_fault(&mut self) {
        let prompt = self.prompt();
        match self.random.below(4) {
            0 => {}
            1 => self.until(|events| intents(events).contains(&&*key(prompt))),
            _ => self.until(|events| turn_of(events, prompt).is_some()),
        }
        // The moment of a fault is random, and no event of ours.
        std::thread::sleep(Duration::from_millis(self.random.below(250)));
        self.look();
        match self.random.below(8) {
            0..=2 => self.kill(),
            6 | 7 => self.served.kill_one_process(&mut self.random),
            3 => {
                self.served.stop();
                self.restart();
            }
            4 => self.readers.iter().for_each(Reader::disconnect),
            _ => {
                let again = self.served.prompt(&self.id, &text(prompt), &key(prompt));
                assert!([202, 409].contains(&again.status), "{}", again.text());
            }
        }
        self.look();
    }

    fn prompt(&mut self) -> u64 {
        let prompt = self.prompts;
        self.prompts += 1;
        let sent = self.served.prompt(&self.id, &text(prompt), &key(prompt));
        assert_eq!(sent.status, 202, "{}", sent.text());
        prompt
    }

    fn look(&mut self) {
        let events = self.served.log(&self.id, "events").0;
        assert_continues(&self.seen, &events);
        self.seen = events;
    }

    fn until(&mut self, done: impl Fn(&[Value]) -> bool) {
        let events = self.served.until(&self.id, done);
        assert_continues(&self.seen, &events);
        self.seen = events;
    }

    fn kill(&mut self) {
        self.served.kill();
        self.restart();
    }

    fn restart(&mut self) {
        self.served.start();
        self.look();
    }

    /// Lets every prompt have its turn, closes the session, and compares what everyone saw.
    fn finish(mut self) {
        let count = self.prompts;
        self.until(|events| (0..count).all(|prompt| turn_of(events, prompt) == Some(true)));
        let closed = self.served.command_of(&self.id, "close", json!({"type": "close"}));
        assert_eq!(closed.status, 202, "{}", closed.text());
        self.look();
        for reader in std::mem::take(&mut self.readers) {
            assert!(reader.finish().records == self.seen, "a reader saw something else");
        }
        self.check_turns();
        self.check_requests();
        self.served.kill();
    }

    fn check_turns(&self) {
        let told = turns(&self.seen);
        let mut known = HashSet::new();
        for turn in &told {
            let key = turn.key.expect("every turn has its prompt");
            assert!(known.insert(key), "{key} has two turns: {told:#?}");
            assert!(TEXT.starts_with(&turn.text), "{turn:?}");
            assert!(turn.outcome != "completed" || turn.text == TEXT, "{turn:?}");
        }
        let completed = told.iter().filter(|turn| turn.outcome == "completed").count();
        assert!(completed > 0, "{told:#?}");
    }

    /// The model received every prompt at most once, and those of completed turns exactly once.
    fn check_requests(&self) {
        let requests = self.served.home.model.main_requests();
        let bodies: Vec<_> = requests.iter().map(|request| request.body.to_string()).collect();
        let prompt_of = |body: &String| {
            let place = |prompt: &u64| body.rfind(&text(*prompt));
            (0..self.prompts).filter(|prompt| place(prompt).is_some()).max_by_key(place)
        };
        let received: Vec<_> = bodies.iter().filter_map(prompt_of).collect();
        for turn in turns(&self.seen) {
            let prompt = (0..self.prompts).find(|prompt| turn.key == Some(&*key(*prompt)));
            let times = received.iter().filter(|it| Some(**it) == prompt).count();
            assert!(times <= 1, "{turn:?} reached the model {times} times");
            assert!(turn.outcome != "completed" || times == 1, "{turn:?} never reached the model");
        }
    }
}

/// Whether the turn of a prompt has ended; nothing if it has not begun.
fn turn_of(events: &[Value], prompt: u64) -> Option<bool> {
    let last = events.iter().rposition(|event| event["raw"]["key"] == *key(prompt))?;
    let mut live = events[last..].iter().filter(|event| event["replay"] != true);
    live.find(|event| event["type"] == "turn_started")?;
    Some(live.any(|event| event["type"] == "turn_ended"))
}

/// The text since a prompt was announced.
fn text_after(events: &[Value], prompt: u64) -> String {
    let is_intent = |event: &Value| event["raw"]["key"] == *key(prompt);
    let start = events.iter().rposition(is_intent).unwrap_or(events.len());
    let texts = events[start..].iter().filter(|event| event["kind"] == "text");
    texts.filter_map(|event| event["text"].as_str()).collect()
}
