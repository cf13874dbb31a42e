//! The rules of a stream of the Responses API, as OpenAI documents it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::check::{Findings, Rules};

/// The rules of `openai-responses`.
#[derive(Debug, Default)]
pub(super) struct OpenAiResponsesRules {
    state: State,
    /// The number that the next event must have.
    next_number: Option<u64>,
    items: BTreeMap<u64, Item>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Begins,
    Open,
    Ended,
}

#[derive(Debug, Default)]
struct Item {
    id: String,
    kind: String,
    done: bool,
    /// The texts and arguments that were streamed, by the kind of event and the number of the part.
    streamed: BTreeMap<(String, u64), String>,
}

impl Rules for OpenAiResponsesRules {
    fn record(&mut self, record: &Value, findings: &mut Findings) {
        let kind = record.get("type").and_then(Value::as_str).unwrap_or_default();
        if kind.is_empty() {
            whole(record, findings);
            return;
        }
        self.number(kind, record, findings);
        if kind == "error" {
            let text = record.get("message").is_some_and(Value::is_string);
            findings.require(text, "error-fields", "the error has no message of its own");
            self.state = State::Ended;
            return;
        }
        let Some(name) = kind.strip_prefix("response.") else {
            findings.add("known-type", format!("{kind:?} is no event of this API"));
            return;
        };
        self.order(name, findings);
        match name {
            "created" | "queued" | "in_progress" => {
                check_response(record, None, findings);
            }
            "completed" | "incomplete" | "failed" => {
                check_response(record, Some(name), findings);
                self.end(name, record, findings);
            }
            "output_item.added" => self.added(record, findings),
            "output_item.done" => self.item_done(record, findings),
            _ => self.inside(name, record, findings),
        }
    }

    fn done(&mut self, findings: &mut Findings) {
        findings.add("no-done", "this API has no `[DONE]`");
    }

    fn finish(&mut self, findings: &mut Findings) {
        let message = "the response has no last event";
        findings.require(self.state != State::Open, "end-missing", message);
    }
}

impl OpenAiResponsesRules {
    fn number(&mut self, kind: &str, record: &Value, findings: &mut Findings) {
        let Some(number) = record.get("sequence_number").and_then(Value::as_u64) else {
            findings.add("sequence", format!("`{kind}` has no `sequence_number`"));
            return;
        };
        if kind == "response.created" {
            self.next_number = None;
        }
        if let Some(next) = self.next_number {
            let message = format!("the number is {number}, and {next} is the next");
            findings.require(number == next, "sequence", message);
        }
        self.next_number = Some(number.saturating_add(1));
    }

    fn order(&mut self, name: &str, findings: &mut Findings) {
        if name == "created" {
            let message = "the response before it has no last event";
            findings.require(self.state != State::Open, "end-missing", message);
            self.state = State::Open;
            self.items.clear();
            return;
        }
        match self.state {
            State::Begins => findings.add("created-first", format!("`{name}` is before `created`")),
            State::Ended => findings.add("end-last", format!("`{name}` follows the last event")),
            State::Open => return,
        }
        self.state = State::Open;
    }

    fn added(&mut self, record: &Value, findings: &mut Findings) {
        let Some(index) = index_of(record, findings) else { return };
        let next = self.items.len() as u64;
        findings.require(index == next, "item-order", format!("item {index} is not the next"));
        let item = Item {
            id: text(record, "/item/id"),
            kind: text(record, "/item/type"),
            ..Item::default()
        };
        self.items.insert(index, item);
    }

    fn item_done(&mut self, record: &Value, findings: &mut Findings) {
        let Some(index) = index_of(record, findings) else { return };
        let Some(item) = self.items.get_mut(&index) else {
            findings.add("item-order", format!("item {index} was not added"));
            return;
        };
        findings.require(!item.done, "item-order", format!("item {index} was done before"));
        item.done = true;
        let same = item.id == text(record, "/item/id") && item.kind == text(record, "/item/type");
        findings.require(same, "item-same", format!("item {index} has another id or type"));
        let calls = ["function_call", "custom_tool_call"].contains(&&*item.kind);
        let named =
            !text(record, "/item/call_id").is_empty() && !text(record, "/item/name").is_empty();
        findings.require(!calls || named, "call-fields", "a call has no `call_id` or no `name`");
    }

    /// Checks an event of an item.
    fn inside(&mut self, name: &str, record: &Value, findings: &mut Findings) {
        let Some(index) = index_of(record, findings) else { return };
        let Some(item) = self.items.get_mut(&index) else {
            findings.add("item-order", format!("`{name}` is of item {index}, which was not added"));
            return;
        };
        findings.require(!item.done, "item-order", format!("`{name}` follows the end of its item"));
        let id = text(record, "/item_id");
        findings.require(id == item.id, "item-same", format!("`{name}` names another item"));
        let mut part = ["content_index", "summary_index"].iter();
        let part = part.find_map(|field| record.get(*field)?.as_u64()).unwrap_or(0);
        if let Some(what) = name.strip_suffix(".delta") {
            let streamed = item.streamed.entry((what.to_owned(), part)).or_default();
            streamed.push_str(&text(record, "/delta"));
        } else if let Some(what) = name.strip_suffix(".done")
            && let Some(streamed) = item.streamed.get(&(what.to_owned(), part))
        {
            let fields = ["text", "refusal", "arguments", "input", "code"].iter();
            let whole = fields.filter_map(|field| record.get(*field)?.as_str()).next();
            let same = whole.is_none_or(|whole| whole == streamed);
            findings.require(same, "deltas-sum", format!("`{name}` differs from its deltas"));
        }
    }

    fn end(&mut self, name: &str, record: &Value, findings: &mut Findings) {
        self.state = State::Ended;
        if name == "failed" {
            let message = record.pointer("/response/error/message").is_some_and(Value::is_string);
            findings.require(message, "error-fields", "the error of the response has no message");
            return;
        }
        let output =
            record.pointer("/response/output").and_then(Value::as_array).map_or(0, Vec::len);
        let streamed = self.items.len();
        let message = format!("{streamed} items were streamed, and the response has {output}");
        findings.require(output == streamed, "output-complete", message);
        let open = self.items.iter().filter(|(_, item)| !item.done);
        for (index, _) in open {
            let fits = name == "incomplete";
            findings.require(fits, "item-done", format!("item {index} was never done"));
        }
        let usage = record.pointer("/response/usage").unwrap_or(&Value::Null);
        check_usage(usage, findings);
    }
}

fn whole(record: &Value, findings: &mut Findings) {
    if record.get("error").is_some_and(Value::is_object) && record.get("object").is_none() {
        let text = record.pointer("/error/message").is_some_and(Value::is_string);
        findings.require(text, "error-fields", "`error` has no message");
        return;
    }
    let response = record.get("object").is_some_and(|object| object == "response");
    findings.require(response, "known-type", "this is neither an event nor a response");
}

fn check_response(record: &Value, status: Option<&str>, findings: &mut Findings) {
    let id = !text(record, "/response/id").is_empty();
    findings.require(id, "response-fields", "the response has no id");
    if let Some(status) = status {
        let same = text(record, "/response/status") == status;
        findings.require(same, "response-fields", format!("the status is not {status:?}"));
    }
    if status == Some("incomplete") {
        let reason = text(record, "/response/incomplete_details/reason");
        findings.require(!reason.is_empty(), "incomplete-reason", "there is no reason");
    }
}

fn check_usage(usage: &Value, findings: &mut Findings) {
    let count = |path: &str| usage.pointer(path).and_then(Value::as_u64);
    let (Some(input), Some(output)) = (count("/input_tokens"), count("/output_tokens")) else {
        findings.add("usage-fields", "the response has no counts");
        return;
    };
    let total = count("/total_tokens").is_none_or(|total| total == input.saturating_add(output));
    findings.require(total, "usage-sum", "`total_tokens` is not the sum of the counts");
    let within = |part: &str, whole: u64| count(part).is_none_or(|part| part <= whole);
    let cached = within("/input_tokens_details/cached_tokens", input);
    findings.require(cached, "usage-sum", "more tokens were cached than there are");
    let reasoning = within("/output_tokens_details/reasoning_tokens", output);
    findings.require(reasoning, "usage-sum", "there is more reasoning than output");
}

fn index_of(record: &Value, findings: &mut Findings) -> Option<u64> {
    let index = record.get("output_index").and_then(Value::as_u64);
    findings.require(index.is_some(), "item-fields", "the event has no `output_index`");
    index
}

fn text(record: &Value, path: &str) -> String {
    record.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
}
