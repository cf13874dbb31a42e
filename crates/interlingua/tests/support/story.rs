//! The story that a written stream tells: its text, calls, plan and counts, read from the records by
//! their names alone, so that it shares nothing with our own readers.

use std::collections::BTreeMap;

use serde_json::Value;

#[derive(Debug, Default, Clone, PartialEq)]
pub struct Story {
    pub text: String,
    /// The same without what sub-agents said, where our own events tell it.
    pub own_text: String,
    pub calls: BTreeMap<String, Call>,
    pub plan: Option<Plan>,
    /// Uncached input, cached input, output.
    pub usage: Option<(u64, u64, u64)>,
    pub ends: usize,
    /// The last call that wrote a plan, and the plan before it.
    replaced: Option<(String, Option<Plan>)>,
}

/// The text and the status of every step.
pub type Plan = Vec<(String, String)>;

#[derive(Debug, Default, Clone, PartialEq)]
pub struct Call {
    pub name: String,
    pub input: Value,
    pub output: Option<String>,
    pub failed: bool,
}

const PLAN_TOOLS: &[&str] = &["TodoWrite", "write_todos", "todo_write", "update_plan"];

impl Story {
    pub fn of(dialect: &str, records: &[Value]) -> Self {
        let mut story = Self::default();
        for record in records {
            match dialect {
                "claude" => story.claude(record),
                "yume" => story.yume(record),
                "giselle" => story.giselle(record),
                "ai-sdk" | "ai-sdk-v4" => story.ai_sdk(record),
                "agent-event" => story.agent_event(record),
                "events" => story.events(record),
                other => panic!("no story is told in {other}"),
            }
        }
        // Calls that the writer made up to tell the plan are no part of the story.
        let made_up = ["plan-", "artifact-", "compaction-", "file-change-"];
        story.calls.retain(|id, _| !made_up.iter().any(|start| id.starts_with(start)));
        for call in story.calls.values_mut() {
            call.output = call.output.take().map(normal);
        }
        story
    }

    fn call(&mut self, id: &Value, name: &Value, input: Value) {
        let name = string(name);
        if PLAN_TOOLS.contains(&&*name) || name == "updatePlan" {
            let list = ["todos", "plan", "items"].iter().find_map(|key| input.get(key)?.as_array());
            let before = self.plan.clone();
            self.plan = list.map(|list| steps(list)).or(self.plan.take());
            self.replaced = Some((string(id), before));
        }
        let call = Call { name, input, ..Call::default() };
        assert!(self.calls.insert(string(id), call).is_none(), "a call is made twice: {id}");
    }

    fn answer(&mut self, id: &Value, output: String, failed: bool) {
        let call = self.calls.get_mut(&string(id)).unwrap_or_else(|| panic!("no call {id}"));
        call.output = Some(call.output.take().unwrap_or_default() + &output);
        call.failed = failed;
        // A plan whose call failed does not stand.
        if failed && let Some((_, before)) = self.replaced.take_if(|(call, _)| id == &**call) {
            self.plan = Some(before.unwrap_or_default());
        }
    }

    fn count(&mut self, input: Option<u64>, cached: Option<u64>, output: Option<u64>) {
        if input.is_none() && output.is_none() {
            return;
        }
        let before = self.usage.unwrap_or_default();
        self.usage = Some((
            before.0 + input.unwrap_or(0),
            before.1 + cached.unwrap_or(0),
            before.2 + output.unwrap_or(0),
        ));
    }

    fn claude(&mut self, record: &Value) {
        match record["type"].as_str().unwrap_or_default() {
            // What the program says in the model's place is an error, not text.
            "assistant" if record.get("error").is_some() => {}
            "assistant" => {
                for block in record["message"]["content"].as_array().into_iter().flatten() {
                    match block["type"].as_str().unwrap_or_default() {
                        "text" => self.text += block["text"].as_str().unwrap(),
                        "tool_use" => {
                            self.call(&block["id"], &block["name"], block["input"].clone())
                        }
                        _ => {}
                    }
                }
            }
            "user" => {
                for block in record["message"]["content"].as_array().into_iter().flatten() {
                    if block["type"] == "tool_result" {
                        let failed = block["is_error"] == true;
                        self.answer(&block["tool_use_id"], flat(&block["content"]), failed);
                    }
                }
            }
            "result" => {
                self.ends += 1;
                let usage = &record["usage"];
                let unknown = record["unknown_fields"].as_array();
                if !unknown.is_some_and(|unknown| unknown.contains(&Value::from("usage"))) {
                    self.count(
                        usage["input_tokens"].as_u64(),
                        usage["cache_read_input_tokens"].as_u64(),
                        usage["output_tokens"].as_u64(),
                    );
                }
            }
            _ => {}
        }
    }

    fn yume(&mut self, record: &Value) {
        match record["type"].as_str().unwrap_or_default() {
            "text" => self.text += record["content"].as_str().unwrap(),
            "tool_use" => self.call(&record["id"], &record["name"], record["input"].clone()),
            "tool_result" => {
                let failed = record["is_error"] == true;
                self.answer(&record["tool_use_id"], flat(&record["content"]), failed);
            }
            "result" => {
                self.ends += 1;
                let usage = &record["usage"];
                if record["usage_estimated"] != true {
                    self.count(
                        usage["input_tokens"].as_u64(),
                        usage["cache_read_input_tokens"].as_u64(),
                        usage["output_tokens"].as_u64(),
                    );
                }
            }
            _ => {}
        }
    }

    fn giselle(&mut self, record: &Value) {
        match record["type"].as_str().unwrap_or_default() {
            "message" if record["role"] == "assistant" => {
                self.text += record["content"].as_str().unwrap();
            }
            "tool_use" => {
                self.call(&record["tool_id"], &record["tool_name"], record["parameters"].clone());
            }
            "tool_result" => {
                let said = answered(flat(&record["output"]), flat(&record["error"]["message"]));
                self.answer(&record["tool_id"], said, record["status"] != "success");
            }
            "snapshot_request" => {
                let mut input = serde_json::Map::new();
                for key in ["instruction", "document"] {
                    input.extend(record.get(key).map(|value| (key.to_owned(), value.clone())));
                }
                let name = Value::from("getFormSnapshot");
                self.call(&record["requestId"], &name, Value::Object(input));
            }
            "result" => {
                self.ends += 1;
                let stats = &record["stats"];
                let (input, cached) = (stats["input"].as_u64(), stats["cached"].as_u64());
                self.count(input, cached, stats["output_tokens"].as_u64());
            }
            _ => {}
        }
    }

    fn ai_sdk(&mut self, part: &Value) {
        match part["type"].as_str().unwrap_or_default() {
            "text-delta" => self.text += part["delta"].as_str().unwrap(),
            "tool-call" => {
                let input = serde_json::from_str(part["input"].as_str().unwrap()).unwrap();
                self.call(&part["toolCallId"], &part["toolName"], input);
            }
            "tool-result" => {
                let failed = part["isError"] == true;
                self.answer(&part["toolCallId"], flat(&part["result"]), failed);
            }
            "finish" => {
                self.ends += 1;
                let (input, output) =
                    (&part["usage"]["inputTokens"], &part["usage"]["outputTokens"]);
                self.count(
                    input["noCache"].as_u64(),
                    input["cacheRead"].as_u64(),
                    output["total"].as_u64(),
                );
            }
            _ => {}
        }
    }

    fn agent_event(&mut self, event: &Value) {
        match event["type"].as_str().unwrap_or_default() {
            "text" if event["category"] != "reasoning" && event["role"] != "system" => {
                self.text += event["text"].as_str().unwrap()
            }
            "tool.started" => {
                self.call(&event["toolId"], &event["toolName"], event["input"].clone())
            }
            "tool.completed" => {
                let (said, error) = (flat(&event["output"]), flat(&event["error"]));
                let failed = event.get("error").is_some();
                let code_only = error.starts_with("Exit code: ") && !said.is_empty();
                let said = if code_only { said } else { answered(said, error) };
                self.answer(&event["toolId"], said, failed);
            }
            "todo_list" => self.plan = Some(steps(event["items"].as_array().unwrap())),
            "turn.completed" => self.ends += 1,
            _ => {}
        }
    }

    fn events(&mut self, event: &Value) {
        match event["type"].as_str().unwrap_or_default() {
            "block" | "block_delta" if event["kind"] == "text" => {
                let text = event["text"].as_str().unwrap();
                self.text += text;
                if event.get("parent").is_none() {
                    self.own_text += text;
                }
            }
            "tool_started" | "tool_input" => {
                if let Some(input) = event.get("input") {
                    self.calls.remove(&string(&event["call"]));
                    self.call(&event["call"], &event["name"], input.clone());
                } else if event["type"] == "tool_started" {
                    self.call(&event["call"], &event["name"], Value::Object(Default::default()));
                }
            }
            "tool_ended" => {
                let said = answered(flat(&event["output"]), flat(&event["error"]));
                self.answer(&event["call"], said, event["status"] != "completed");
            }
            "plan_updated" => {
                let items = event["items"].as_array().map(|list| steps(list));
                self.plan = Some(items.unwrap_or_default());
            }
            "turn_ended" => {
                self.ends += 1;
                let usage = &event["usage"];
                self.count(
                    usage["input"].as_u64(),
                    usage["cache_read"].as_u64(),
                    usage["output"].as_u64(),
                );
            }
            _ => {}
        }
    }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a string")).to_owned()
}

/// The text of an output: a string as it is, blocks joined line by line, anything else as JSON.
fn flat(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(blocks) if blocks.iter().all(|block| block["type"].is_string()) => {
            let texts: Vec<_> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
        other => other.to_string(),
    }
}

/// What was said of a call: what it gave back, and what went wrong where that says more.
fn answered(said: String, error: String) -> String {
    match () {
        () if error.contains(&said) => error,
        () if said.contains(&error) => said,
        () => format!("{said}\n{error}"),
    }
}

/// JSON with its fields in one order; any other text as it is.
fn normal(text: String) -> String {
    match serde_json::from_str::<Value>(&text) {
        Ok(value) if value.is_object() || value.is_array() => value.to_string(),
        _ => text,
    }
}

fn steps(list: &[Value]) -> Plan {
    list.iter()
        .map(|step| {
            let text = ["content", "description", "text", "step"];
            let text = text.iter().find_map(|key| step[key].as_str()).unwrap_or_default();
            let status = step["status"].as_str().unwrap_or_default();
            (text.to_owned(), status.to_owned())
        })
        .collect()
}
