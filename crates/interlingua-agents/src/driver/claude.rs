//! Claude Code through stream-json in both directions, with its control protocol.
//!
//! The prompt is a record. The program requests permissions with a `control_request`, which must be
//! answered, and accepts requests of its host: an interrupt. It exits when its input is closed, so
//! the input stays open as long as the program may send requests.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::lines::Records;
use super::{Driver, Step};
use crate::permission::Decision;

/// The driver of Claude Code.
#[derive(Debug)]
pub struct ClaudeDriver {
    prompt: String,
    records: Records,
    /// The inputs of the tools that wait for a permission, by request id.
    pending: HashMap<String, Box<RawValue>>,
    interrupts: u64,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    request_id: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    request: Option<ControlRequest<'a>>,
}

#[derive(Deserialize)]
struct ControlRequest<'a> {
    #[serde(borrow, default)]
    subtype: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

impl ClaudeDriver {
    /// Creates a driver that begins with this prompt.
    pub fn new(prompt: String) -> Self {
        Self { prompt, records: Records::default(), pending: HashMap::new(), interrupts: 0 }
    }
}

impl Driver for ClaudeDriver {
    fn start(&mut self, steps: &mut Vec<Step>) {
        let prompt = std::mem::take(&mut self.prompt);
        let message = json!({"type": "user", "message": {"role": "user", "content": prompt}});
        steps.push(Step::Send(message.to_string()));
    }

    fn output(&mut self, chunk: &[u8], steps: &mut Vec<Step>) {
        let pending = &mut self.pending;
        self.records.each(chunk, |record| {
            // Most records are long and irrelevant here, so they are not parsed.
            if !record.contains("\"control_") {
                return;
            }
            let Ok(line) = serde_json::from_str::<Line<'_>>(record) else { return };
            let Some(id) = line.request_id else { return };
            match (&*line.kind, line.request) {
                ("control_request", Some(request)) => match request.subtype.as_deref() {
                    Some("can_use_tool") => {
                        let input = request.input.unwrap_or(RawValue::NULL);
                        pending.insert(id.into_owned(), input.to_owned());
                    }
                    // An unanswered request would block the turn, so unsupported requests are
                    // refused.
                    subtype => steps.push(Step::Send(refusal(&id, subtype.unwrap_or_default()))),
                },
                ("control_cancel_request", _) => drop(pending.remove(&*id)),
                _ => {}
            }
        });
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Vec<Step>) {
        let Some(input) = self.pending.remove(request) else { return };
        let answer = match decision {
            Decision::Allow => json!({"behavior": "allow", "updatedInput": input}),
            Decision::Deny(why) => json!({"behavior": "deny", "message": why}),
        };
        steps.push(Step::Send(response(
            request,
            &json!({"response": answer, "subtype": "success"}),
        )));
    }

    fn turn_ended(&mut self, steps: &mut Vec<Step>) {
        steps.push(Step::CloseInput);
    }

    fn interrupt(&mut self, steps: &mut Vec<Step>) -> bool {
        self.interrupts += 1;
        let id = format!("interrupt-{}", self.interrupts);
        let request = json!({"type": "control_request", "request_id": id, "request": {"subtype": "interrupt"}});
        steps.push(Step::Send(request.to_string()));
        true
    }
}

fn refusal(id: &str, subtype: &str) -> String {
    let error = format!("{subtype} is not supported by this host");
    response(id, &json!({"subtype": "error", "error": error}))
}

fn response(id: &str, body: &serde_json::Value) -> String {
    let mut response = json!({"request_id": id});
    if let (Some(into), Some(from)) = (response.as_object_mut(), body.as_object()) {
        into.extend(from.clone());
    }
    json!({"type": "control_response", "response": response}).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::testing::sent;
    use super::*;

    const ASKS: &str = r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t1"}}"#;

    #[test]
    fn the_prompt_comes_first_and_the_input_ends_with_the_turn() {
        let (mut driver, mut steps) = (ClaudeDriver::new("do it".into()), Vec::new());
        driver.start(&mut steps);
        assert_eq!(sent(&steps)[0]["message"]["content"], "do it");
        steps.clear();
        driver.turn_ended(&mut steps);
        assert_eq!(steps, [Step::CloseInput]);
    }

    #[test]
    fn a_permission_is_granted_for_the_requested_input() {
        for cut in [1, 40, ASKS.len()] {
            let (mut driver, mut steps) = (ClaudeDriver::new(String::new()), Vec::new());
            let (one, two) = ASKS.split_at(cut);
            driver.output(one.as_bytes(), &mut steps);
            driver.output(format!("{two}\n").as_bytes(), &mut steps);
            assert_eq!(steps, []);
            driver.decide("r1", &Decision::Allow, &mut steps);
            let response = &sent(&steps)[0]["response"];
            assert_eq!(response["request_id"], "r1");
            assert_eq!(response["response"]["updatedInput"]["command"], "ls");
            steps.clear();
            driver.decide("r1", &Decision::Allow, &mut steps);
            assert_eq!(steps, [], "a second decision has no effect");
        }
    }

    #[test]
    fn a_denial_carries_its_reason() {
        let (mut driver, mut steps) = (ClaudeDriver::new(String::new()), Vec::new());
        driver.output(format!("{ASKS}\n").as_bytes(), &mut steps);
        driver.decide("r1", &Decision::Deny("no".into()), &mut steps);
        assert_eq!(
            sent(&steps)[0]["response"]["response"],
            json!({"behavior":"deny","message":"no"})
        );
    }

    #[test]
    fn unsupported_requests_are_refused_at_once() {
        let (mut driver, mut steps) = (ClaudeDriver::new(String::new()), Vec::new());
        let hook =
            r#"{"type":"control_request","request_id":"r2","request":{"subtype":"hook_callback"}}"#;
        driver.output(format!("{hook}\n").as_bytes(), &mut steps);
        assert_eq!(sent(&steps)[0]["response"]["subtype"], "error");
    }

    #[test]
    fn an_interrupt_is_a_request_with_an_id_of_its_own() {
        let (mut driver, mut steps) = (ClaudeDriver::new(String::new()), Vec::new());
        assert!(driver.interrupt(&mut steps) && driver.interrupt(&mut steps));
        let sent = sent(&steps);
        assert_eq!(sent[0]["request"]["subtype"], "interrupt");
        assert_ne!(sent[0]["request_id"], sent[1]["request_id"]);
    }
}
