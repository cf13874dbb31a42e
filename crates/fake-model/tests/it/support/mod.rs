//! A small client for all four protocols: it writes requests and reads answers back.

pub mod bodies;
pub mod http;
pub mod parsed_answers;
pub mod turns;

use std::time::{Duration, Instant};

use fake_model::{FakeModel, Reply, Script};

pub use bodies::{Entry, Wire, request};
pub use http::{Client, Response, post};
pub use parsed_answers::{ParsedAnswer, parsed_answer};

/// A deadline that is long enough for a loaded machine; only a failing test waits that long.
pub fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

pub fn start(script: Script) -> FakeModel {
    FakeModel::start(script).unwrap()
}

/// Starts a model with these replies.
pub fn model(replies: impl IntoIterator<Item = Reply>) -> FakeModel {
    start(replies.into_iter().fold(Script::new(), Script::reply))
}

/// Sends a streaming request after "Hello".
pub fn ask(model: &FakeModel, wire: Wire) -> Response {
    let (path, body) = request(wire, &[Entry::User("Hello")]);
    post(model, &path, &body)
}

/// The names of the findings.
pub fn found(model: &FakeModel) -> Vec<&'static str> {
    model.findings().iter().map(|finding| finding.breach.name()).collect()
}
