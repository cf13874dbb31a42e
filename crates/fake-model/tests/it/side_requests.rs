//! The requests that take a reply of the script, and the answers to the others.

use fake_model::{Kind, Reply, Script};
use serde_json::{Value, json};

use crate::support::bodies::request_without_stream;
use crate::support::{Entry, Wire, ask, found, model, parsed_answer, post, request, start};

fn without_tools(wire: Wire) -> (String, Value) {
    let (path, mut body) = request(wire, &[Entry::User("Make a title")]);
    body.as_object_mut().unwrap().remove("tools");
    (path, body)
}

#[test]
fn a_request_without_tools_takes_no_reply() {
    for wire in Wire::ALL {
        let model = model([Reply::text("main")]);
        let (path, body) = without_tools(wire);
        let side = post(&model, &path, &body);
        assert_eq!(parsed_answer(wire, &side).text, "A side answer", "{wire:?}");
        assert_eq!(parsed_answer(wire, &ask(&model, wire)).text, "main", "{wire:?}");
        let kinds: Vec<Kind> = model.requests().into_iter().map(|request| request.kind).collect();
        assert_eq!(kinds, [Kind::Side("no tools"), Kind::Main(Some(0))]);
        assert_eq!(found(&model), Vec::<&str>::new());
    }
}

#[test]
fn tools_that_the_api_runs_are_not_tools_of_the_agent() {
    for (wire, tools) in [
        (Wire::Responses, json!([{"type": "web_search"}])),
        (Wire::Messages, json!([{"type": "web_search_20250305", "name": "web_search"}])),
        (Wire::Gemini, json!([{"googleSearch": {}}])),
    ] {
        let model = model([]);
        let (path, mut body) = without_tools(wire);
        body["tools"] = tools;
        post(&model, &path, &body);
        assert_eq!(model.requests()[0].kind, Kind::Side("no tools"), "{wire:?}");
    }
}

/// Gemini CLI asks for the difficulty of a task before it chooses a model, and accepts no score
/// below 1.
#[test]
fn an_answer_fits_the_requested_schema() {
    let schema = json!({"type": "OBJECT", "properties": {
        "reason": {"type": "STRING"}, "score": {"type": "INTEGER"},
        "choice": {"type": "string", "enum": ["flash", "pro"]}, "all": {"type": "array"},
        "sure": {"type": ["boolean", "null"]}, "either": {"anyOf": [{"type": "null"}]},
    }});
    let expected = json!({
        "reason": "A side answer", "score": 1, "choice": "flash", "all": [], "sure": false,
        "either": null,
    });
    for wire in Wire::ALL {
        let (path, mut body) = without_tools(wire);
        match wire {
            Wire::Responses => {
                body["text"] = json!({"format": {"type": "json_schema", "schema": schema}});
            }
            Wire::Chat => {
                let form = json!({"type": "json_schema", "json_schema": {"schema": schema}});
                body["response_format"] = form;
            }
            Wire::Messages => {
                let format = json!({"type": "json_schema", "schema": schema});
                body["output_config"] = json!({"format": format});
            }
            Wire::Gemini => body["generationConfig"] = json!({"responseJsonSchema": schema}),
        }
        let text = parsed_answer(wire, &post(&model([]), &path, &body)).text;
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected, "{wire:?}");
    }
}

#[test]
fn a_forced_tool_is_called() {
    for wire in Wire::ALL {
        let model = model([]);
        let (path, mut body) = request(wire, &[Entry::User("Hello")]);
        match wire {
            Wire::Responses => body["tool_choice"] = json!({"type": "function", "name": "bash"}),
            Wire::Chat => body["tool_choice"] = json!({"function": {"name": "bash"}}),
            Wire::Messages => body["tool_choice"] = json!({"type": "tool", "name": "bash"}),
            Wire::Gemini => {
                let config = json!({"mode": "ANY", "allowedFunctionNames": ["bash"]});
                body["toolConfig"] = json!({"functionCallingConfig": config});
            }
        }
        let parsed_answer = parsed_answer(wire, &post(&model, &path, &body));
        assert_eq!(parsed_answer.calls[0].1, "bash", "{wire:?}");
        assert_eq!(parsed_answer.calls[0].2, json!({"command": "A side answer"}));
        assert_eq!(model.requests()[0].kind, Kind::Side("one tool is forced"));
        assert!(model.tool_results().is_empty());
    }
}

/// Claude offers all its tools when it compacts, and repeats the request if it gets no summary.
#[test]
fn a_compaction_of_claude_gets_a_summary() {
    let words = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.";
    let entries = [Entry::User("Hello"), Entry::Model("Hi"), Entry::User(words)];
    let (path, body) = request(Wire::Messages, &entries);
    let model = model([Reply::text("main")]);
    let text = parsed_answer(Wire::Messages, &post(&model, &path, &body)).text;
    assert!(text.contains("<summary>A side answer</summary>"));
    assert_eq!(model.requests()[0].kind, Kind::Side("claude: compaction"));
}

#[test]
fn an_exhausted_script_is_reported() {
    for wire in Wire::ALL {
        let model = model([Reply::text("one")]);
        ask(&model, wire);
        assert_eq!(parsed_answer(wire, &ask(&model, wire)).text, "(script exhausted)");
        assert_eq!(found(&model), ["script-exhausted"]);
        assert_eq!(model.requests()[1].kind, Kind::Main(None));
    }
}

/// Claude runs sub-agents in parallel with the main conversation, so their requests arrive in any
/// order.
#[test]
fn a_reply_may_be_reserved_for_a_sub_agent() {
    for wire in Wire::ALL {
        let model = model([
            Reply::text("main one"),
            Reply::text("sub one").only_for("Look around"),
            Reply::text("main two"),
        ]);
        let reply_to = |prompt| {
            let (path, body) = request(wire, &[Entry::User(prompt)]);
            parsed_answer(wire, &post(&model, &path, &body)).text
        };
        assert_eq!(reply_to("Please: Look around."), "sub one", "{wire:?}");
        assert_eq!([reply_to("Hello"), reply_to("Hello")], ["main one", "main two"], "{wire:?}");
        assert_eq!(reply_to("Look around."), "(script exhausted)", "{wire:?}");
    }
}

#[test]
fn the_last_reply_repeats_if_the_script_says_so() {
    let script = Script::new().reply(Reply::text("one")).reply(Reply::text("two")).repeat_last();
    let model = start(script);
    let texts: Vec<String> =
        (0..4).map(|_| parsed_answer(Wire::Chat, &ask(&model, Wire::Chat)).text).collect();
    assert_eq!(texts, ["one", "two", "two", "two"]);
    assert_eq!(found(&model), Vec::<&str>::new());
}

#[test]
fn a_side_request_may_be_without_a_stream() {
    for wire in Wire::ALL {
        let (path, mut body) = request_without_stream(wire, &[Entry::User("Make a title")]);
        body.as_object_mut().unwrap().remove("tools");
        let model = model([]);
        assert!(post(&model, &path, &body).body.contains("A side answer"), "{wire:?}");
        assert_eq!(found(&model), Vec::<&str>::new());
    }
}

/// An agent without tools has no other requests.
#[test]
fn structured_output_is_scripted() {
    let value = json!({"sunny": true});
    for wire in Wire::ALL {
        let script = Script::new().without_side_requests().reply(Reply::json(value.clone()));
        let model = start(script);
        let (path, mut body) = request(wire, &[Entry::User("Hello")]);
        body.as_object_mut().unwrap().remove("tools");
        let response = post(&model, &path, &body);
        let text = parsed_answer(wire, &response).text;
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value, "{wire:?}");
    }
}
