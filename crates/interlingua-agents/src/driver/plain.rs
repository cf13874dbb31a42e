//! An agent that is told everything when it is started. A signal is its own way to be interrupted.

use super::Driver;

/// The driver of an agent to which nothing is said while it runs.
#[derive(Debug, Default)]
pub struct PlainDriver;

impl Driver for PlainDriver {}
