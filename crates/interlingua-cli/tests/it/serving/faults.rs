//! Random faults: whatever happens, no entry is lost, changed, repeated or reordered, no prompt runs twice,
//! every turn ends once and contains what the agent's script printed, and no process is left.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use serde_json::{Value, json};

use super::desk::Desk;
use super::disk::SmallDisk;
use super::script::said;
use crate::log::{assert_continues, intents, kinds, of_kind, turns};
use crate::random::{Random, settings};
use crate::reader::Reader;

/// The servers that are tested at once. After it was killed, each waits two seconds for the guards of
/// its agents.
const SERVERS: u64 = 4;

#[test]
fn a_hundred_random_faults() {
    let (seed, faults) = settings();
    std::thread::scope(|scope| {
        for server in 0..SERVERS {
            scope.spawn(move || {
                let mut trial = Trial::new(seed.wrapping_add(server));
                for number in 0..faults.div_ceil(SERVERS) {
                    trial.fault(number);
                }
                trial.finish();
            });
        }
    });
}

/// One session of one server, and what is known of it.
struct Trial {
    random: Random,
    // Ends before the disk of its store.
    desk: Desk,
    disk: Option<SmallDisk>,
    id: String,
    /// The keys and texts of the prompts.
    prompts: Vec<(String, String)>,
    /// What was read of the log.
    seen: Vec<Value>,
    readers: Vec<Reader>,
    /// The number of keys that were used for other commands.
    keys: usize,
}

impl Trial {
    fn new(seed: u64) -> Self {
        let mut desk = Desk::prepared();
        // A store that is on a disk of its own cannot be damaged from outside.
        let disk = if seed.is_multiple_of(2) { SmallDisk::mount(&mut desk) } else { None };
        desk.start();
        let id = desk.create("hello first", "first");
        let readers = desk.readers(&id);
        let prompts = vec![("first".to_owned(), "hello first".to_owned())];
        let random = Random::new(seed);
        Self { random, desk, disk, id, prompts, seen: Vec::new(), readers, keys: 0 }
    }

    /// Sends prompts, lets the session work for a while, and lets something happen to it.
    fn fault(&mut self, number: u64) {
        let words = ["hello", "stream", "wait", "run", "touch", "hello", "stream", "silent"];
        let count = 1 + self.random.below(2);
        for prompt in 0..count {
            let word = words[self.place(words.len())];
            self.prompt(format!("{word} {number}-{prompt}"));
        }
        if self.random.below(4) > 0 {
            self.advance(self.prompts.len() - usize::try_from(count).unwrap());
        }
        // The moment of a fault is random, and no event of ours.
        std::thread::sleep(Duration::from_millis(self.random.below(40)));
        self.look();
        match (self.random.below(10), self.disk.is_some()) {
            (4, _) => {
                self.desk.stop();
                self.restart();
            }
            (5, _) => drop(self.desk.kill_agent()),
            (6, _) => self.readers.iter().for_each(Reader::disconnect),
            (7, _) => self.repeat_commands(),
            (8 | 9, true) => self.fill_disk(number),
            (8 | 9, false) => self.damage_another_session(number),
            _ => {
                self.desk.kill();
                self.restart();
            }
        }
        self.look();
    }

    /// A random place in a list.
    fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.random.below(length as u64)).unwrap()
    }

    fn prompt(&mut self, text: String) {
        let key = format!("k{}", self.prompts.len());
        let sent = self.desk.prompt(&self.id, &text, &key);
        assert_eq!(sent.status, 202, "{}", sent.text());
        self.prompts.push((key, text));
    }

    /// Reads the log.
    fn look(&mut self) {
        let events = self.desk.events(&self.id);
        assert_continues(&self.seen, &events);
        self.seen = events;
    }

    fn restart(&mut self) {
        self.seen = self.desk.restart(&self.id, &self.seen);
    }

    /// Ends turns that would last for ever, until a prompt was announced.
    fn advance(&mut self, prompt: usize) {
        let key = self.prompts[prompt].0.clone();
        let begun = Instant::now();
        while !intents(&self.seen).contains(&&*key) {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "{key} waits: {:#?}",
                kinds(&self.seen)
            );
            self.release();
            self.desk.until_more(&self.id, &self.seen);
            self.look();
        }
    }

    /// Decides what the session waits for, or stops the turn that is running.
    fn release(&mut self) {
        let session = self.desk.session(&self.id);
        let command = match session["state"].as_str().unwrap() {
            "waiting" => {
                let decision = ["allow", "deny"][self.place(2)];
                let request = &session["waiting"][0]["request"];
                json!({"type": "decide", "request": request, "decision": decision})
            }
            "working" => json!({"type": "interrupt"}),
            _ => return,
        };
        self.keys += 1;
        // What it concerns may have ended meanwhile.
        let sent = self.desk.command(&self.id, &format!("r{}", self.keys), command);
        assert!([202, 409].contains(&sent.status), "{}", sent.text());
    }

    /// Sends commands again, some of them at once: they are acknowledged again, and that is all.
    fn repeat_commands(&mut self) {
        let older = self.place(self.prompts.len());
        for at in [older, self.prompts.len() - 1] {
            let (key, text) = &self.prompts[at];
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        let again = self.desk.prompt(&self.id, text, key);
                        assert!([202, 409].contains(&again.status), "{}", again.text());
                    });
                }
            });
            assert_eq!(self.desk.prompt(&self.id, "another text", key).status, 422);
        }
    }

    /// The disk is full for a while, in which the server may be killed.
    fn fill_disk(&mut self, number: u64) {
        let Some(disk) = &self.disk else { return };
        disk.fill();
        let (key, text) = (format!("k{}", self.prompts.len()), format!("hello full {number}"));
        // It may fit into what the store has already.
        self.desk.prompt(&self.id, &text, &key);
        let events = self.desk.events(&self.id);
        assert_continues(&self.seen, &events);
        self.seen = events;
        let is_killed = self.random.below(2) == 0;
        if is_killed {
            self.desk.kill();
        }
        disk.free();
        if is_killed {
            self.restart();
        }
        self.prompt(text);
    }

    fn damage_another_session(&mut self, number: u64) {
        let other = self.desk.create("wait other", &format!("other-{number}"));
        self.desk.kill();
        let connection = Connection::open(&self.desk.store).unwrap();
        let damage = "UPDATE sessions SET record = '{' WHERE id = ?1";
        assert_eq!(connection.execute(damage, params![other]).unwrap(), 1);
        drop(connection);
        self.restart();
        let path = format!("/v1/sessions/{other}");
        assert_eq!(self.desk.request("GET", &path, None, None).status, 404);
    }

    /// Lets every prompt have its turn, closes the session, and compares what everyone saw.
    fn finish(mut self) {
        self.advance(self.prompts.len() - 1);
        let begun = Instant::now();
        while self.desk.session(&self.id)["state"] != "idle" {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:#?}", kinds(&self.seen));
            self.look();
            self.release();
            self.desk.until_more(&self.id, &self.seen);
        }
        let closed = self.desk.command(&self.id, "close", json!({"type": "close"}));
        assert_eq!(closed.status, 202, "{}", closed.text());
        self.look();
        for reader in std::mem::take(&mut self.readers) {
            assert!(
                reader.finish().records == self.seen,
                "a reader saw something else than the log"
            );
        }
        assert_eq!(of_kind(&self.seen, "session_ended").len(), 1);
        self.check_prompts();
        self.desk.kill();
        self.desk.until_no_process();
    }

    fn check_prompts(&self) {
        let turns = turns(&self.seen);
        let mut known = HashSet::new();
        for turn in &turns {
            let key = turn.key.expect("every turn has its prompt");
            assert!(known.insert(key), "{key} has two turns");
        }
        for (key, text) in &self.prompts {
            let again = self.desk.prompt(&self.id, text, key);
            let status = match again.status {
                409 => "refused".to_owned(),
                _ => again.json()["status"].as_str().unwrap().to_owned(),
            };
            let turn = turns.iter().find(|turn| turn.key == Some(key));
            let facts = format!("{key}: {text:?} is {status}, {turn:?}");
            match (status.as_str(), self.desk.times(text)) {
                // It was given to the agent, which may have ended before it read it.
                ("delivered" | "unknown", 0 | 1) | ("refused", 0) => {}
                (_, times) => panic!("{facts}, and was received {times} times"),
            }
            let turn = turn.unwrap_or_else(|| panic!("a prompt was lost: {facts}"));
            let is_answer = ["", "allowed", "denied"].contains(&&*turn.text);
            let expected =
                if text.starts_with("touch") && is_answer { turn.text.clone() } else { said(text) };
            assert!(expected.starts_with(&turn.text), "{facts}");
            let is_complete = turn.text == expected && self.desk.times(text) == 1;
            assert!(turn.outcome != "completed" || is_complete, "{facts}");
        }
    }
}
