//! The rules of a stream of Interlingua's own events.

use serde_json::Value;

use super::VERSION;
use crate::check::{Findings, Rules};
use crate::event::Data;

/// The rules of `events`.
#[derive(Debug, Default)]
pub(super) struct EventsRules {
    next: u64,
    started: bool,
    in_turn: bool,
    ended: bool,
}

impl Rules for EventsRules {
    fn record(&mut self, record: &Value, findings: &mut Findings) {
        let version = record.get("interlingua").and_then(Value::as_u64);
        findings.require(version == Some(VERSION), "version", "`interlingua` is not 1");
        let sequence = record.get("sequence").and_then(Value::as_u64);
        let expected = self.next;
        let in_order = sequence == Some(expected);
        findings.require(in_order, "sequence-gapless", format!("sequence is not {expected}"));
        self.next = sequence.unwrap_or(expected) + 1;
        let kind = record.get("type").and_then(Value::as_str).unwrap_or_default();
        let known = Data::KINDS.contains(&kind);
        findings.require(known, "known-type", format!("{kind:?} is not a kind of event"));
        let range = record.get("bytes").and_then(Value::as_array).map(Vec::len);
        let placed = range == Some(2) && record.get("line").is_some_and(Value::is_u64);
        findings.require(placed, "source", "the event does not state its origin");
        findings.require(!self.ended, "session-ended-last", "an event follows `session_ended`");
        self.order(kind, findings);
    }

    fn finish(&mut self, findings: &mut Findings) {
        findings.require(self.ended, "session-ends", "there is no `session_ended`");
    }
}

impl EventsRules {
    fn order(&mut self, kind: &str, findings: &mut Findings) {
        match kind {
            "session_started" => {
                findings.require(
                    !self.started,
                    "session-starts-once",
                    "the session started before",
                );
                self.started = true;
            }
            "turn_started" => {
                findings.require(self.started, "session-first", "no session has started");
                findings.require(
                    !self.in_turn,
                    "turn-ends-once",
                    "the previous turn is still open",
                );
                self.in_turn = true;
            }
            "turn_ended" => {
                findings.require(self.in_turn, "turn-ends-once", "no turn is open");
                self.in_turn = false;
            }
            "session_ended" => {
                findings.require(!self.in_turn, "turn-ends-once", "the turn is still open");
                self.ended = true;
            }
            _ if kind.starts_with("block") || kind.starts_with("tool") => {
                findings.require(self.in_turn, "inside-a-turn", "no turn is open");
            }
            _ => {}
        }
    }
}
