//! The MCP server without a connection: messages in, answers out. It is for an agent that carries the
//! messages in a protocol of its own.

use rmcp::model::{ProtocolVersion, Tool};
use serde_json::{Value, json};

use super::handler::{listed, native_id, unknown_tool};
use super::{ClientTool, SERVER_NAME};

/// The code of the error for a method that is not known.
const METHOD_NOT_FOUND: i32 = -32601;

/// The tools of a session, as an MCP server that has no connection.
#[derive(Debug, Default)]
pub(crate) struct MessageServer {
    tools: Vec<Tool>,
}

/// What a message of the agent requires.
#[derive(Debug, PartialEq)]
pub(crate) enum Received {
    /// The answer to a request.
    Answered(Value),
    /// A tool is called; the call is answered later.
    Called(MessageCall),
    /// The request with this id is not waited for any more.
    Cancelled(Value),
    /// Nothing.
    Noted,
}

/// A call of a tool.
#[derive(Debug, PartialEq)]
pub(crate) struct MessageCall {
    /// The id of the request.
    pub(crate) id: Value,
    /// The agent's own id of the call.
    pub(crate) native: Option<String>,
    pub(crate) tool: String,
    /// The input, as JSON.
    pub(crate) input: String,
}

impl MessageServer {
    pub(crate) fn new(tools: &[ClientTool]) -> Self {
        Self { tools: tools.iter().map(listed).collect() }
    }

    /// Whether it has a tool.
    pub(crate) fn has(&self, tool: &str) -> bool {
        self.tools.iter().any(|it| it.name == tool)
    }

    /// Takes a message of the agent.
    pub(crate) fn receive(&self, message: &Value) -> Received {
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
        let params = message.get("params").unwrap_or(&Value::Null);
        let Some(id) = message.get("id") else {
            return match method {
                "notifications/cancelled" => {
                    Received::Cancelled(params.get("requestId").cloned().unwrap_or_default())
                }
                _ => Received::Noted,
            };
        };
        let result = match method {
            "initialize" => initialized(params),
            "ping" => json!({}),
            "tools/list" => json!({"tools": self.tools}),
            "tools/call" => return self.called(id, params),
            // A response, although nothing is requested of the agent.
            "" => return Received::Noted,
            _ => {
                let problem = format!("the method {method} is not known");
                let error = json!({"code": METHOD_NOT_FOUND, "message": problem});
                return Received::Answered(json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        };
        Received::Answered(response(id, &result))
    }

    fn called(&self, id: &Value, params: &Value) -> Received {
        let tool = params.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !self.has(&tool) {
            return Received::Answered(Self::answer(id, &unknown_tool(&self.tools, &tool), true));
        }
        let native = params.get("_meta").and_then(Value::as_object).and_then(native_id);
        let input = params.get("arguments").filter(|input| input.is_object());
        let input = input.map_or_else(|| "{}".to_owned(), Value::to_string);
        Received::Called(MessageCall { id: id.clone(), native, tool, input })
    }

    /// The answer to a call.
    pub(crate) fn answer(id: &Value, text: &str, failed: bool) -> Value {
        let content = json!([{"type": "text", "text": text}]);
        response(id, &json!({"content": content, "isError": failed}))
    }
}

fn response(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// The server, in the version of the protocol that the agent requested, if it is known.
fn initialized(params: &Value) -> Value {
    let newest = ProtocolVersion::LATEST_WITH_INITIALIZE;
    let requested = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    let mut known = ProtocolVersion::known_up_to(&newest).iter();
    let version = known.find(|it| it.as_str() == requested).unwrap_or(&newest);
    json!({
        "protocolVersion": version.as_str(),
        "capabilities": {"tools": {}},
        "serverInfo": {"name": SERVER_NAME, "version": env!("CARGO_PKG_VERSION")},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> MessageServer {
        MessageServer::new(&ClientTool::form())
    }

    fn request(method: &str, params: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
    }

    fn answered(message: &Value) -> Value {
        match server().receive(message) {
            Received::Answered(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_introduces_itself_and_lists_its_tools() {
        for (requested, version) in [
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("2099-01-01", "2025-11-25"),
        ] {
            let answer = answered(&request("initialize", &json!({"protocolVersion": requested})));
            assert_eq!(answer["result"]["protocolVersion"], version);
            assert_eq!((&answer["id"], &answer["jsonrpc"]), (&json!(7), &json!("2.0")));
        }
        let tools = &answered(&request("tools/list", &Value::Null))["result"]["tools"];
        assert_eq!(tools[0]["name"], "getFormSnapshot");
        assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
        assert_eq!(tools[1]["inputSchema"]["required"], json!(["actions", "fields"]));
        assert_eq!(answered(&request("ping", &Value::Null))["result"], json!({}));
    }

    #[test]
    fn a_call_is_passed_on_with_the_id_of_the_agent() {
        let params = json!({"name": "getFormSnapshot", "arguments": {"instruction": "all"}, "_meta": {"claudecode/toolUseId": "t1"}});
        let call = MessageCall {
            id: json!(7),
            native: Some("t1".to_owned()),
            tool: "getFormSnapshot".to_owned(),
            input: r#"{"instruction":"all"}"#.to_owned(),
        };
        assert_eq!(server().receive(&request("tools/call", &params)), Received::Called(call));
        let answer = MessageServer::answer(&json!(7), "Blue", true);
        let result = json!({"content": [{"type": "text", "text": "Blue"}], "isError": true});
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 7, "result": result}));
    }

    #[test]
    fn what_is_not_known_is_an_error_and_never_left_unanswered() {
        let unknown = answered(&request("tools/call", &json!({"name": "click"})));
        assert_eq!(unknown["result"]["isError"], true);
        assert!(unknown["result"]["content"][0]["text"].as_str().unwrap().contains("click"));
        let method = answered(&request("server/discover", &Value::Null));
        assert_eq!(method["error"]["code"], METHOD_NOT_FOUND);
    }

    #[test]
    fn a_notification_has_no_answer() {
        let notify =
            |method: &str| json!({"jsonrpc": "2.0", "method": method, "params": {"requestId": 7}});
        assert_eq!(server().receive(&notify("notifications/initialized")), Received::Noted);
        let cancelled = Received::Cancelled(json!(7));
        assert_eq!(server().receive(&notify("notifications/cancelled")), cancelled);
        let response = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
        assert_eq!(server().receive(&response), Received::Noted);
    }
}
