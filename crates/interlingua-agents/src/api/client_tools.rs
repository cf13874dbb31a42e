//! The tools of the client, as the model sees them.
//!
//! They are offered beside our own, under the client's names for them. A name that one of our tools
//! has, or that of an MCP server could have, is changed for the model. The names depend on nothing
//! else, so that they are the same when a session is resumed.

use serde_json::Value;

use super::mcp::is_of_server;
use super::model::OfferedTool;
use super::turns::ANSWER_TOOL;
use crate::client_tool::ClientTool;
use crate::error::Error;
use crate::tool;

/// What the name of a tool begins with that is one of ours, too.
const PREFIX: &str = "client_";

/// The tools of the client.
#[derive(Debug, Default)]
pub(crate) struct ClientTools {
    tools: Vec<Offered>,
}

/// A tool of the client, as it is offered.
#[derive(Debug)]
struct Offered {
    offered: OfferedTool,
    /// The client's own name for it.
    own: String,
}

impl ClientTools {
    /// Names the tools. Tools that no model could call are an error.
    pub(crate) fn new(tools: &[ClientTool]) -> Result<Self, Error> {
        let invalid = |problem: String| Error::InvalidClientTools { problem };
        ClientTool::check(tools).map_err(invalid)?;
        let is_ours =
            |name: &str| tool::is_known(name) || name == ANSWER_TOOL || is_of_server(name);
        let mut taken: Vec<_> = tools.iter().map(|tool| tool.name.clone()).collect();
        let named = tools.iter().map(|tool| {
            let mut name = tool.name.clone();
            if is_ours(&name) {
                let whole = format!("{PREFIX}{name}");
                let numbered = (2_u64..).map(|number| format!("{whole}_{number}"));
                let mut names = std::iter::once(whole.clone()).chain(numbered);
                name = names.find(|name| !taken.contains(name)).unwrap_or(whole);
                taken.push(name.clone());
            }
            let offered = OfferedTool {
                name,
                description: tool.description.clone(),
                input_schema: Value::Object(tool.input_schema.clone()),
            };
            Offered { offered, own: tool.name.clone() }
        });
        Ok(Self { tools: named.collect() })
    }

    /// What is offered to the model, always in the same order.
    pub(crate) fn offered(&self) -> impl Iterator<Item = OfferedTool> {
        self.tools.iter().map(|tool| tool.offered.clone())
    }

    /// The client's own name of a tool that the model calls.
    pub(crate) fn own_name(&self, offered: &str) -> Option<&str> {
        self.tools.iter().find(|tool| tool.offered.name == offered).map(|tool| &*tool.own)
    }

    /// The name under which a tool of the client is offered.
    pub(crate) fn offered_name(&self, own: &str) -> Option<&str> {
        self.tools.iter().find(|tool| tool.own == own).map(|tool| &*tool.offered.name)
    }

    /// The tools for a reader, which recognises them in what the model calls.
    pub(crate) fn to_reader(&self) -> interlingua::ClientTools {
        let (renamed, kept): (Vec<_>, Vec<_>) =
            self.tools.iter().partition(|tool| tool.offered.name != tool.own);
        let renamed = renamed.iter().map(|it| (it.offered.name.clone(), it.own.clone()));
        interlingua::ClientTools {
            server: String::new(),
            names: kept.iter().map(|tool| tool.own.clone()).collect(),
            renamed: renamed.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(names: &[&str]) -> ClientTools {
        let tool = |name: &&str| serde_json::from_value(serde_json::json!({"name": name})).unwrap();
        ClientTools::new(&names.iter().map(tool).collect::<Vec<_>>()).unwrap()
    }

    fn offered(names: &[&str]) -> Vec<String> {
        tools(names).offered().map(|tool| tool.name).collect()
    }

    #[test]
    fn names_of_our_own_tools_are_changed() {
        let long = format!("mcp__{}", "x".repeat(35));
        let own = ["getForm", "Read", "StructuredOutput", "TodoWrite", &long];
        let named = offered(&own);
        let prefixed = format!("client_{long}");
        let expected =
            ["getForm", "client_Read", "client_StructuredOutput", "client_TodoWrite", &prefixed];
        assert_eq!(named, expected);
        assert!(named.iter().all(|name| name.len() <= 64));
        let tools = tools(&own);
        for (own, offered) in own.into_iter().zip(&named) {
            assert_eq!(tools.own_name(offered), Some(own));
            assert_eq!(tools.offered_name(own), Some(&**offered));
        }
        assert_eq!(tools.own_name("Read"), None);
        assert_eq!(tools.to_reader().named("client_Read"), Some("Read"));
        assert_eq!(tools.to_reader().named("Read"), None);
    }

    #[test]
    fn changed_names_do_not_collide() {
        assert_eq!(offered(&["Read", "client_Read"]), ["client_Read_2", "client_Read"]);
    }
}
