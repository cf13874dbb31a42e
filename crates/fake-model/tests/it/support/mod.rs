//! A small client for all four protocols: it writes requests and reads answers back.

pub mod bodies;
pub mod http;
pub mod stories;

use std::time::{Duration, Instant};

use fake_model::{FakeModel, Reply, Script};

pub use bodies::{Said, Wire, request};
pub use http::{Client, Response, post};
pub use stories::{Story, story};

/// Long enough for a loaded machine; nothing waits that long unless it fails.
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

/// Asks the model to go on after "Hello", in a stream.
pub fn ask(model: &FakeModel, wire: Wire) -> Response {
    let (path, body) = request(wire, &[Said::User("Hello")]);
    post(model, &path, &body)
}

/// The names of what was found.
pub fn found(model: &FakeModel) -> Vec<&'static str> {
    model.findings().iter().map(|finding| finding.breach.name()).collect()
}
