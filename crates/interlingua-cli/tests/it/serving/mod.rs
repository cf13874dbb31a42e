//! `serve`: sessions outlive the server, also if it is killed. Shell scripts play the agents.
#![allow(clippy::expect_used, clippy::panic, reason = "a message tells what was wrong")]

mod access;
mod agent_api;
mod at_a_terminal;
mod closing;
mod corruption;
mod delivery;
mod desk;
mod disk;
mod faults;
mod following;
mod kills;
mod lost_agents;
mod model_api;
mod permitted;
mod remote;
mod script;
