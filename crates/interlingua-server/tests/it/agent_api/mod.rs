//! The agent API over real connections. The tests write what the agent does.

mod denying;
mod files;
mod relay;
mod resuming;
mod runs;
mod scenarios;
mod sent_again;
mod stage;
