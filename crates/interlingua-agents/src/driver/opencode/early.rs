//! Permission requests that the server reports before the input of their call.
//!
//! It reports both independently, in either order. A request for a command does not name the folder
//! in which it runs, and one to read a file does not name the file. So a request is held back until
//! the input of its call was passed on.

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Duration;

use serde::Deserialize;

use super::Step;

/// The time after which a request is passed on although the input of its call was not reported.
pub(super) const INPUT_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(super) struct EarlyRequests {
    /// The calls of the turn whose input was reported.
    known: HashSet<String>,
    /// The requests that are held back, with their calls.
    held: Vec<(String, Vec<u8>)>,
}

/// The properties of an update of a part of a message.
#[derive(Deserialize)]
struct Updated<'a> {
    #[serde(borrow)]
    part: Part<'a>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(rename = "callID", borrow)]
    call: Cow<'a, str>,
    #[serde(borrow)]
    state: State<'a>,
}

#[derive(Deserialize)]
struct State<'a> {
    #[serde(borrow)]
    status: Cow<'a, str>,
}

impl EarlyRequests {
    /// Reads an update of a part, which may be a call.
    pub(super) fn read_part(&mut self, properties: &str) {
        if let Ok(Updated { part }) = serde_json::from_str(properties)
            && part.state.status != "pending"
            && !self.known.contains(&*part.call)
        {
            self.known.insert(part.call.into_owned());
        }
    }

    pub(super) fn is_early(&self, call: &str) -> bool {
        !self.known.contains(call)
    }

    pub(super) fn hold(&mut self, call: String, line: Vec<u8>) {
        self.held.push((call, line));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Passes on the requests whose calls are known by now.
    pub(super) fn release(&mut self, steps: &mut Vec<Step>) {
        for (call, line) in std::mem::take(&mut self.held) {
            if self.known.contains(&call) {
                Step::pass(line, steps);
            } else {
                self.held.push((call, line));
            }
        }
    }

    /// Passes on all requests.
    pub(super) fn release_all(&mut self, steps: &mut Vec<Step>) {
        self.held.drain(..).for_each(|(_, line)| Step::pass(line, steps));
    }

    pub(super) fn turn_ended(&mut self) {
        self.known.clear();
    }
}
