//! An MCP server over standard streams, written without a library, so that the client is tested
//! against the protocol and not against itself.
//!
//! The first argument is how it behaves: `usual`, `silent` (it answers nothing), `broken` (it exits
//! at once), `modern` (it refuses the handshake of the older versions of the protocol), `colliding`
//! (its tools have names that are the same once they are made acceptable), `stubborn` (it does not
//! exit when its input ends), `noisy` (it prints what is not a message).

use std::ffi::OsString;
use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

pub(crate) fn serve(mut arguments: impl Iterator<Item = OsString>) -> io::Result<u8> {
    let behaviour = arguments.next().unwrap_or_default().to_string_lossy().into_owned();
    if behaviour == "broken" {
        eprintln!("the license has expired");
        return Ok(3);
    }
    if behaviour == "noisy" {
        writeln!(io::stdout(), "Listening on standard input.\n\n{{\"level\": \"info\"}}")?;
    }
    let mut server = Server { behaviour, cancelled: Vec::new() };
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        if let Some(code) = server.receive(&message)? {
            return Ok(code);
        }
    }
    if server.behaviour == "stubborn" {
        loop {
            std::thread::park();
        }
    }
    Ok(0)
}

struct Server {
    behaviour: String,
    /// The requests that the client has cancelled.
    cancelled: Vec<Value>,
}

impl Server {
    /// Answers a message. Returns the exit code, if it is the last one.
    fn receive(&mut self, message: &Value) -> io::Result<Option<u8>> {
        let (id, params) = (&message["id"], &message["params"]);
        if self.behaviour == "silent" {
            return Ok(None);
        }
        match message["method"].as_str().unwrap_or_default() {
            "initialize" if self.behaviour == "modern" => {
                let error = json!({"code": -32601, "message": "there is no handshake any more"});
                send(&json!({"jsonrpc": "2.0", "id": id, "error": error}))?;
            }
            "initialize" => respond(
                id,
                json!({
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "test", "version": "1"},
                }),
            )?,
            "server/discover" => respond(
                id,
                json!({
                    "resultType": "complete",
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "test", "version": "1"},
                    "ttlMs": 0,
                    "cacheScope": "private",
                }),
            )?,
            "tools/list" => self.list(id, params)?,
            "tools/call" => return self.call(id, params),
            "notifications/cancelled" => self.cancelled.push(params["requestId"].clone()),
            _ => {}
        }
        Ok(None)
    }

    /// Lists the tools on two pages.
    fn list(&self, id: &Value, params: &Value) -> io::Result<()> {
        let tool = |name: &str| {
            let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
            json!({
                "name": name,
                "description": format!("Does {name}."),
                "inputSchema": schema,
                // A hint that no client should trust.
                "annotations": {"readOnlyHint": true},
            })
        };
        if self.behaviour == "colliding" {
            return respond(id, json!({"tools": [tool("a/b"), tool("a.b"), tool("a b")]}));
        }
        if params["cursor"] == "more" {
            let tools = ["progress", "variable", "child", "cancelled"].map(tool);
            return respond(id, json!({"tools": tools}));
        }
        let tools = ["hang", "echo", "fail", "refuse", "die"].map(tool);
        respond(id, json!({"tools": tools, "nextCursor": "more"}))
    }

    fn call(&self, id: &Value, params: &Value) -> io::Result<Option<u8>> {
        let given = params["arguments"]["text"].as_str().unwrap_or_default();
        let text = match params["name"].as_str().unwrap_or_default() {
            "hang" => return Ok(None),
            "die" => {
                eprintln!("out of memory");
                return Ok(Some(9));
            }
            "fail" => {
                let content = json!([{"type": "text", "text": "no such ticket"}]);
                respond(id, json!({"content": content, "isError": true}))?;
                return Ok(None);
            }
            "refuse" => {
                let error = json!({"code": -32602, "message": "text is missing"});
                send(&json!({"jsonrpc": "2.0", "id": id, "error": error}))?;
                return Ok(None);
            }
            "progress" => {
                let token = &params["_meta"]["progressToken"];
                for done in 1..=2 {
                    send(&json!({
                        "jsonrpc": "2.0",
                        "method": "notifications/progress",
                        "params": {
                            "progressToken": token, "progress": done, "total": 2, "message": "step",
                        },
                    }))?;
                }
                "done".to_owned()
            }
            "variable" => std::env::var(given).unwrap_or_else(|_| "(not set)".to_owned()),
            "child" => {
                let child = std::process::Command::new("sleep").arg("1000").spawn()?;
                format!("{} {}", std::process::id(), child.id())
            }
            "cancelled" => Value::from(self.cancelled.clone()).to_string(),
            name => format!("{name}: {given}"),
        };
        let content = json!([{"type": "text", "text": text}]);
        respond(id, json!({"content": content, "structuredContent": {"length": text.len()}}))?;
        Ok(None)
    }
}

fn respond(id: &Value, result: Value) -> io::Result<()> {
    send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn send(message: &Value) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{message}")?;
    stdout.flush()
}
