//! The content of a written stream: its text, calls, plan and counts. They are read from the
//! records by their names, so that nothing is shared with our own decoders.

use std::collections::BTreeMap;

use serde_json::{Value, json};

#[derive(Debug, Default, Clone, PartialEq)]
pub struct Summary {
    pub text: String,
    /// The text of every block that was not withdrawn, if the dialect reports that.
    remaining: Vec<(Value, String)>,
    /// The text without that of sub-agents, which only our own events mark.
    pub own_text: String,
    pub calls: BTreeMap<String, Call>,
    pub plan: Option<Plan>,
    /// Uncached input, cached input, output.
    pub usage: Option<(u64, u64, u64)>,
    /// The counts with those of sub-agents, which only our own events contain.
    pub usage_of_models: Option<(u64, u64, u64)>,
    counts_models: bool,
    /// The counts that the agent states for the turn, else for its models, else for its requests.
    pub usage_stated: Option<(u64, u64, u64)>,
    /// The usage of the requests of the current turn.
    requests: Vec<Value>,
    pub ends: usize,
    /// The current turn is replayed history.
    replayed: bool,
    /// The last call that wrote a plan, and the plan before it.
    replaced: Option<(String, Option<Plan>)>,
}

/// The text and the status of every step.
pub type Plan = Vec<(String, String)>;

#[derive(Debug, Default, Clone, PartialEq)]
pub struct Call {
    pub name: String,
    /// Its tool keeps the plan, which only our own events state.
    pub plans: bool,
    /// The client runs its tool, which only our own events state.
    pub of_client: bool,
    /// It was closed without an answer, which only our own events state.
    pub abandoned: bool,
    pub input: Value,
    pub output: Option<String>,
    pub failed: bool,
}

impl Summary {
    pub fn of(dialect: &str, records: &[Value]) -> Self {
        let mut summary = Self::default();
        for record in records {
            match dialect {
                "claude" => summary.claude(record),
                "yume" => summary.yume(record),
                "giselle" => summary.giselle(record),
                "ai-sdk" | "ai-sdk-v4" => summary.ai_sdk(record),
                "ui-message" => summary.ui_message(record),
                "ag-ui" => summary.ag_ui(record),
                "agent-event" => summary.agent_event(record),
                "acp" => summary.acp(record),
                "events" => summary.events(record),
                other => panic!("{other} has no summary"),
            }
        }
        // Calls that the writer generated, for instance to carry the plan, are left out.
        let generated = ["plan-", "artifact-", "compaction-", "file-change-"];
        summary.calls.retain(|id, _| !generated.iter().any(|start| id.starts_with(start)));
        // So are the calls for all files but the first that one call changes.
        summary.calls.retain(|id, _| !id.contains("#file-"));
        for call in summary.calls.values_mut() {
            call.output = call.output.take().map(normal);
        }
        summary
    }

    /// The text that was not withdrawn.
    pub fn remaining_text(&self) -> String {
        self.remaining.iter().map(|(_, text)| &**text).collect()
    }

    fn call(&mut self, id: &Value, name: &Value, input: Value) {
        let name = string(name);
        let list = ["todos", "plan", "items"].iter().find_map(|key| input.get(key)?.as_array());
        if let Some(list) = list.filter(|list| list.iter().all(is_step)) {
            self.replaced = Some((string(id), self.plan.replace(steps(list))));
        }
        let call = Call { name, input, ..Call::default() };
        assert!(self.calls.insert(string(id), call).is_none(), "a call is started twice: {id}");
    }

    fn answer(&mut self, id: &Value, output: String, failed: bool) {
        let call = self.calls.get_mut(&string(id)).unwrap_or_else(|| panic!("no call {id}"));
        call.output = Some(call.output.take().unwrap_or_default() + &output);
        call.failed = failed;
        // If the call failed, the plan before it is valid again.
        if failed && let Some((_, before)) = self.replaced.take_if(|(call, _)| id == &**call) {
            self.plan = Some(before.unwrap_or_default());
        }
    }

    fn count(&mut self, input: Option<u64>, cached: Option<u64>, output: Option<u64>) {
        self.usage = sum(self.usage, input, cached, output);
    }

    fn claude(&mut self, record: &Value) {
        match record["type"].as_str().unwrap_or_default() {
            // A message that the program writes in place of the model is an error, not text.
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
                        self.answer(&block["tool_use_id"], flat_text(&block["content"]), failed);
                    }
                }
            }
            "result" => {
                self.ends += 1;
                // Claude Code prints a structured answer only here.
                let answer = record["result"].as_str().unwrap_or_default();
                if record.get("structured_output").is_some() && !self.text.ends_with(answer) {
                    self.text += answer;
                }
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
                self.answer(&record["tool_use_id"], flat_text(&record["content"]), failed);
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
                let output = answer_text(
                    flat_text(&record["output"]),
                    flat_text(&record["error"]["message"]),
                );
                self.answer(&record["tool_id"], output, record["status"] != "success");
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
                // The input of a client's call that is not known is no JSON.
                let input = serde_json::from_str(part["input"].as_str().unwrap());
                let input = input.unwrap_or_else(|_| json!({}));
                self.call(&part["toolCallId"], &part["toolName"], input);
            }
            "tool-result" => {
                let failed = part["isError"] == true;
                self.answer(&part["toolCallId"], flat_text(&part["result"]), failed);
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

    fn ui_message(&mut self, chunk: &Value) {
        match chunk["type"].as_str().unwrap_or_default() {
            "text-delta" => self.text += chunk["delta"].as_str().unwrap(),
            "tool-input-available" => {
                self.call(&chunk["toolCallId"], &chunk["toolName"], chunk["input"].clone());
            }
            "tool-input-error" => {
                self.call(&chunk["toolCallId"], &chunk["toolName"], json!({}));
            }
            "tool-output-available" => {
                self.answer(&chunk["toolCallId"], flat_text(&chunk["output"]), false);
            }
            "tool-output-error" => {
                self.answer(&chunk["toolCallId"], flat_text(&chunk["errorText"]), true);
            }
            "data-plan" => {
                let items = chunk["data"]["items"].as_array().map(|list| steps(list));
                self.plan = Some(items.unwrap_or_default());
            }
            "finish" => {
                self.ends += 1;
                let usage = &chunk["messageMetadata"]["usage"];
                self.count(
                    usage["inputTokenDetails"]["noCacheTokens"].as_u64(),
                    usage["inputTokenDetails"]["cacheReadTokens"].as_u64(),
                    usage["outputTokens"].as_u64(),
                );
            }
            _ => {}
        }
    }

    fn ag_ui(&mut self, event: &Value) {
        match event["type"].as_str().unwrap_or_default() {
            "TEXT_MESSAGE_CONTENT" => self.text += event["delta"].as_str().unwrap(),
            "TOOL_CALL_START" => {
                self.call(&event["toolCallId"], &event["toolCallName"], Value::from(""));
            }
            "TOOL_CALL_ARGS" => {
                let call = self.calls.get_mut(event["toolCallId"].as_str().unwrap()).unwrap();
                let so_far = call.input.as_str().unwrap().to_owned();
                call.input = Value::from(so_far + event["delta"].as_str().unwrap());
            }
            "TOOL_CALL_END" => {
                // The input was streamed in deltas. Now that it is complete, the call is parsed again.
                let call = self.calls.remove(event["toolCallId"].as_str().unwrap()).unwrap();
                let text = call.input.as_str().unwrap();
                let input = serde_json::from_str(text).unwrap_or_else(|_| serde_json::json!({}));
                self.call(&event["toolCallId"], &Value::from(call.name), input);
            }
            "TOOL_CALL_RESULT" => {
                let failed = event["metadata"]["status"] != "completed";
                self.answer(&event["toolCallId"], flat_text(&event["content"]), failed);
            }
            "ACTIVITY_SNAPSHOT" if event["activityType"] == "PLAN" => {
                self.plan = event["content"]["items"].as_array().map(|list| steps(list));
            }
            "RUN_FINISHED" if event["metadata"]["afterword"] == true => {}
            "RUN_FINISHED" | "RUN_ERROR" => {
                self.ends += 1;
                for usage in event["usage"].as_array().into_iter().flatten() {
                    let count = |name: &str| usage[name].as_u64();
                    let cached = count("cachedInputTokens").unwrap_or(0)
                        + count("cacheWriteInputTokens").unwrap_or(0);
                    self.count(
                        count("inputTokens").map(|all| all - cached),
                        count("cachedInputTokens"),
                        count("outputTokens"),
                    );
                }
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
                let (output, error) = (flat_text(&event["output"]), flat_text(&event["error"]));
                let failed = event.get("error").is_some();
                let code_only = error.starts_with("Exit code: ") && !output.is_empty();
                let output = if code_only { output } else { answer_text(output, error) };
                self.answer(&event["toolId"], output, failed);
            }
            "todo_list" => self.plan = Some(steps(event["items"].as_array().unwrap())),
            "turn.completed" => self.ends += 1,
            _ => {}
        }
    }

    fn acp(&mut self, message: &Value) {
        let update = &message["params"]["update"];
        if update["_meta"]["interlingua"]["replay"] == true {
            return;
        }
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => {
                self.text += update["content"]["text"].as_str().unwrap_or_default()
            }
            "tool_call" => {
                self.call(&update["toolCallId"], &update["name"], acp_input(update));
            }
            "tool_call_update" => {
                if update.get("rawInput").is_some() {
                    let id = string(&update["toolCallId"]);
                    let name = self.calls.remove(&id).map(|call| call.name).unwrap_or_default();
                    self.call(&update["toolCallId"], &Value::from(name), acp_input(update));
                }
                if ["completed", "failed"].iter().any(|word| update["status"] == *word) {
                    let parts = update["content"].as_array().into_iter().flatten();
                    let texts: Vec<_> =
                        parts.filter_map(|part| part["content"]["text"].as_str()).collect();
                    let failed = update["status"] == "failed";
                    let error = flat_text(&update["_meta"]["interlingua"]["error"]);
                    let output = answer_text(texts.join("\n"), error);
                    self.answer(&update["toolCallId"], output, failed);
                }
            }
            "plan" => {
                let entries = update["entries"].as_array().unwrap();
                let exact = |entry: &Value| {
                    let status = &entry["_meta"]["interlingua"]["status"];
                    let status = if status.is_string() { status } else { &entry["status"] };
                    (string(&entry["content"]), string(status))
                };
                self.plan = Some(entries.iter().map(exact).collect());
            }
            _ => {}
        }
        if message.get("method").is_none() {
            self.ends += 1;
            let ours = &message["error"]["data"]["interlingua"];
            let ours =
                if ours.is_object() { ours } else { &message["result"]["_meta"]["interlingua"] };
            let (standard, usage) = (&message["result"]["usage"], &ours["usage"]);
            if standard.is_object() {
                let thought = standard["thoughtTokens"].as_u64().unwrap_or(0);
                let output = standard["outputTokens"].as_u64().map(|output| output + thought);
                self.count(
                    standard["inputTokens"].as_u64(),
                    standard["cachedReadTokens"].as_u64(),
                    output,
                );
            } else {
                let (input, cached) = (usage["input"].as_u64(), usage["cacheRead"].as_u64());
                self.count(input, cached, usage["output"].as_u64());
            }
        }
    }

    fn events(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap_or_default();
        self.replayed |= kind == "turn_started" && event["replay"] == true;
        if self.replayed {
            self.replayed = kind != "turn_ended";
            return;
        }
        match event["type"].as_str().unwrap_or_default() {
            "block" | "block_delta" if event["kind"] == "text" => {
                let text = event["text"].as_str().unwrap();
                self.text += text;
                self.remaining.push((event["block"].clone(), text.to_owned()));
                if event.get("parent").is_none() {
                    self.own_text += text;
                }
            }
            "withdrawn" => {
                let gone = event["blocks"].as_array().unwrap();
                self.remaining
                    .retain(|(block, _)| !gone.iter().any(|gone| gone["block"] == *block));
            }
            "tool_started" | "tool_input" => {
                if let Some(input) = event.get("input") {
                    self.calls.remove(&string(&event["call"]));
                    self.call(&event["call"], &event["name"], input.clone());
                } else if event["type"] == "tool_started" {
                    self.call(&event["call"], &event["name"], Value::Object(Default::default()));
                }
                if let Some(call) = self.calls.get_mut(&string(&event["call"])) {
                    call.plans = event["kind"] == "plan";
                    call.of_client = event["executor"] == "client";
                }
            }
            "tool_ended" => {
                let output = answer_text(flat_text(&event["output"]), flat_text(&event["error"]));
                self.answer(&event["call"], output, event["status"] != "completed");
                if let Some(call) = self.calls.get_mut(&string(&event["call"])) {
                    call.abandoned = event["status"] == "abandoned";
                }
            }
            "plan_updated" => {
                let items = event["items"].as_array().map(|list| steps(list));
                self.plan = Some(items.unwrap_or_default());
            }
            "usage" if event["scope"] == "request" && event.get("parent").is_none() => {
                self.requests.push(event.clone());
            }
            "message_ended" if event.get("parent").is_none() => {
                let usage = event.get("usage").filter(|usage| usage["scope"] == "request");
                self.requests.extend(usage.cloned());
            }
            "turn_ended" => {
                self.ends += 1;
                self.usage = counted(self.usage, &event["usage"]);
                self.count_stated(event);
                let models = event["by_model"].as_array();
                // An agent that counts by model has already counted a turn without such counts.
                if models.is_none() && (!self.counts_models || event.get("synthetic").is_some()) {
                    self.usage_of_models = counted(self.usage_of_models, &event["usage"]);
                }
                for usage in models.into_iter().flatten() {
                    self.usage_of_models = counted(self.usage_of_models, usage);
                    self.counts_models = true;
                }
            }
            _ => {}
        }
    }
}

impl Summary {
    /// Adds the counts that an agent states for a turn, unless they are estimates.
    fn count_stated(&mut self, ended: &Value) {
        let requests = std::mem::take(&mut self.requests);
        let own = ended.get("usage").cloned().into_iter().collect();
        let models = ended["by_model"].as_array().cloned().unwrap_or_default();
        let of = |usages: &[Value], name: &str| -> Option<u64> {
            usages.iter().filter_map(|usage| usage[name].as_u64()).reduce(|one, two| one + two)
        };
        let names = ["input", "cache_read", "cache_write", "output", "total"];
        let any = |usages: &&Vec<Value>| names.iter().any(|name| of(usages, name) > Some(0));
        let Some(stated) = [&own, &models, &requests].into_iter().find(any).cloned() else {
            return;
        };
        let (input, output) = (of(&stated, "input"), of(&stated, "output"));
        let truncated = stated == requests && ended["outcome"] != "completed";
        let estimated = truncated || stated.iter().any(|usage| usage["estimated"] == true);
        let zero = input == Some(0) && output == Some(0);
        if input.is_some() && output.is_some() && !estimated && !zero {
            let cached = of(&stated, "cache_read");
            self.usage_stated = sum(self.usage_stated, input, cached, output);
        }
    }
}

type Counts = Option<(u64, u64, u64)>;

fn sum(before: Counts, input: Option<u64>, cached: Option<u64>, output: Option<u64>) -> Counts {
    if input.is_none() && output.is_none() {
        return before;
    }
    let before = before.unwrap_or_default();
    let (input, cached, output) = (input.unwrap_or(0), cached.unwrap_or(0), output.unwrap_or(0));
    Some((before.0 + input, before.1 + cached, before.2 + output))
}

/// The counts, increased by those of one of our own events.
fn counted(before: Counts, usage: &Value) -> Counts {
    let count = |name: &str| usage[name].as_u64();
    sum(before, count("input"), count("cache_read"), count("output"))
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a string")).to_owned()
}

/// The text of an output: a string as it is, blocks joined line by line, anything else as JSON.
pub fn flat_text(value: &Value) -> String {
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

/// The answer to a call: its output, and its error unless the output contains it.
fn answer_text(output: String, error: String) -> String {
    match () {
        () if error.contains(&output) => error,
        () if output.contains(&error) => output,
        () => format!("{output}\n{error}"),
    }
}

/// JSON with its fields in one order; any other text as it is.
fn normal(text: String) -> String {
    fn sorted(value: Value) -> Value {
        match value {
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.into_iter().collect();
                fields.sort_by(|one, two| one.0.cmp(&two.0));
                fields.into_iter().map(|(name, value)| (name, sorted(value))).collect()
            }
            Value::Array(list) => list.into_iter().map(sorted).collect(),
            other => other,
        }
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(value) if value.is_object() || value.is_array() => sorted(value).to_string(),
        _ => text,
    }
}

/// Whether this is a step of a plan: it has a description and a status.
fn is_step(step: &Value) -> bool {
    let has = |names: &[&str]| names.iter().any(|name| step.get(name).is_some());
    has(&["content", "description", "text", "step"]) && has(&["status", "completed"])
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

fn acp_input(update: &Value) -> Value {
    update.get("rawInput").cloned().unwrap_or_else(|| Value::Object(Default::default()))
}
