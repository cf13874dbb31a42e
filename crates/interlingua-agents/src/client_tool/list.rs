//! A list of tools, as people and clients write it: definitions, and the names of tools that are built
//! in.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::ClientTool;

/// Tools that were checked: an agent can be offered them together.
///
/// ```
/// use interlingua_agents::ClientTools;
///
/// let tools = r#"["getFormSnapshot", {"name": "askColour", "description": "Asks for a colour."}]"#;
/// let ClientTools(tools) = serde_json::from_str(tools)?;
/// assert_eq!(tools[1].name, "askColour");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientTools(pub Vec<ClientTool>);

impl<'de> Deserialize<'de> for ClientTools {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Vec::<Value>::deserialize(deserializer)?;
        let tools: Result<Vec<_>, _> = written.into_iter().map(read).collect();
        let tools = tools.map_err(D::Error::custom)?;
        ClientTool::check(&tools).map_err(D::Error::custom)?;
        Ok(Self(tools))
    }
}

/// Reads one tool: its name if it is built in, else its definition.
fn read(written: Value) -> Result<ClientTool, String> {
    let Value::String(name) = written else {
        return serde_json::from_value(written).map_err(|problem| format!("a tool: {problem}"));
    };
    let mut built_in = ClientTool::form();
    match built_in.iter().position(|tool| tool.name == name) {
        Some(at) => Ok(built_in.swap_remove(at)),
        None => {
            let names: Vec<_> = built_in.iter().map(|tool| format!("`{}`", tool.name)).collect();
            Err(format!(
                "no tool {name:?} is built in, only {}: any other one needs an object with its `name`, `description` and `inputSchema`",
                names.join(" and ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(written: &str) -> String {
        serde_json::from_str::<ClientTools>(written).unwrap_err().to_string()
    }

    #[test]
    fn built_in_tools_are_named_and_others_defined() {
        let written = r#"["executeFormActions", {"name": "ask", "readOnly": true}]"#;
        let ClientTools(tools) = serde_json::from_str(written).unwrap();
        let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["executeFormActions", "ask"]);
        assert!(tools[1].read_only && tools[1].input_schema["type"] == "object");
    }

    #[test]
    fn a_list_that_cannot_be_offered_is_explained() {
        assert!(problem(r#"["click"]"#).contains("`getFormSnapshot` and `executeFormActions`"));
        assert!(problem(r#"[{"name": "a b"}]"#).contains("cannot be the name of a tool"));
        assert!(problem(r#"[{"description": "x"}]"#).contains("missing field `name`"));
        assert!(problem(r#"["getFormSnapshot", "getFormSnapshot"]"#).contains("two tools"));
        let large = format!(r#"[{{"name": "a", "description": "{}"}}]"#, "x".repeat(70_000));
        assert!(problem(&large).contains("65536"));
    }
}
