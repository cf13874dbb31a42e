//! What was missed while the stream of events was interrupted.
//!
//! The server replays nothing. Its state is fetched, and passed on as the events that would have
//! reported it: the last message, and the open requests, which would otherwise never be answered,
//! and the end of the turn. Whatever else is missing is reported.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{OpencodeDriver, Purpose, Step, Turn};

/// The part of the state that is fetched; the next one follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missed {
    LastMessage,
    Permissions,
    Questions,
    Status,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    info: &'a RawValue,
    #[serde(borrow)]
    parts: Vec<&'a RawValue>,
}

impl OpencodeDriver {
    pub(super) fn fetch_missed(&mut self, steps: &mut Vec<Step>) {
        if self.turn == Turn::Idle {
            return;
        }
        let text = "the events of OpenCode were interrupted; some of its output may be missing";
        steps.push(Step::warn(text.to_owned()));
        self.fetch(Missed::LastMessage, steps);
    }

    fn fetch(&mut self, stage: Missed, steps: &mut Vec<Step>) {
        let Some(session) = &self.session else { return };
        let path = match stage {
            Missed::LastMessage => format!("/session/{session}/message?limit=1"),
            Missed::Permissions => "/permission".to_owned(),
            Missed::Questions => "/question".to_owned(),
            Missed::Status => "/session/status".to_owned(),
        };
        self.send(Purpose::Missed(stage), "GET", &path, None, steps);
    }

    pub(super) fn read_missed(&mut self, stage: Missed, body: &str, steps: &mut Vec<Step>) {
        match stage {
            Missed::LastMessage => {
                let messages = serde_json::from_str::<Vec<Message<'_>>>(body).unwrap_or_default();
                for message in messages {
                    self.pass_message(&message, steps);
                }
                self.fetch(Missed::Permissions, steps);
            }
            Missed::Permissions => {
                self.pass_requests("permission.asked", body, steps);
                self.fetch(Missed::Questions, steps);
            }
            Missed::Questions => {
                self.pass_requests("question.asked", body, steps);
                self.fetch(Missed::Status, steps);
            }
            Missed::Status => {
                // Only sessions that work are listed.
                let status: Value = serde_json::from_str(body).unwrap_or_default();
                let session = self.session.clone().unwrap_or_default();
                if status.is_object() && status.get(&session).is_none() {
                    self.pass("session.idle", &json!({"sessionID": session}).to_string(), steps);
                }
            }
        }
    }

    /// Passes on the snapshots of a message. Steps are left out: they would be counted twice.
    fn pass_message(&mut self, message: &Message<'_>, steps: &mut Vec<Step>) {
        #[derive(Deserialize)]
        struct Typed {
            #[serde(rename = "type")]
            kind: String,
        }
        let session = self.session.clone().unwrap_or_default();
        for part in &message.parts {
            let kind = serde_json::from_str::<Typed>(part.get()).map(|part| part.kind);
            if matches!(kind.as_deref(), Ok("text" | "reasoning" | "tool")) {
                let properties = format!(r#"{{"sessionID":"{session}","part":{part}}}"#);
                self.pass("message.part.updated", &properties, steps);
            }
        }
        let properties = format!(r#"{{"sessionID":"{session}","info":{}}}"#, message.info);
        self.pass("message.updated", &properties, steps);
    }

    /// Passes on the open requests that are not known yet.
    fn pass_requests(&mut self, kind: &str, body: &str, steps: &mut Vec<Step>) {
        #[derive(Deserialize)]
        struct Identified {
            id: String,
        }
        for request in serde_json::from_str::<Vec<&RawValue>>(body).unwrap_or_default() {
            let Ok(Identified { id }) = serde_json::from_str(request.get()) else { continue };
            let is_known = self.questions.contains_key(&id)
                || self.requests.iter().any(|request| request.id == id);
            if !is_known {
                self.pass(kind, request.get(), steps);
            }
        }
    }

    fn pass(&mut self, kind: &str, properties: &str, steps: &mut Vec<Step>) {
        let line = format!("{{\"type\":\"{kind}\",\"properties\":{properties}}}\n");
        self.receive(line.into_bytes(), steps);
    }
}
