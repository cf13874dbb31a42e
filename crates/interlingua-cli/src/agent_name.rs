//! The agent of a session on the command line: a known name, or the path of a description.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};
use interlingua_agents::agent::ALL;
use interlingua_agents::api::provider;

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
        let programs = ALL.iter().map(|agent| (agent.name, agent.title));
        let all = programs.chain(provider::ALL.iter().map(|it| (it.name, it.title)));
        Some(Box::new(all.map(|(name, title)| PossibleValue::new(name).help(title))))
    }
}
