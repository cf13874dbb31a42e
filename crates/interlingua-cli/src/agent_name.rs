//! The agent of a session on the command line: a known name, or the path of a description.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};
use interlingua_agents::agent::ALL;

/// Takes any text, because it may be a path. The known names are what a shell completes; whether the
/// agent exists is checked when it is started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentName;

impl TypedValueParser for AgentName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(ALL.iter().map(|agent| PossibleValue::new(agent.name).help(agent.title))))
    }
}
