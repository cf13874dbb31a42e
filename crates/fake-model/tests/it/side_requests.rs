//! Which requests take a reply of the script, and what the others get.

use fake_model::{Kind, Reply, Script};
use serde_json::{Value, json};

use crate::support::bodies::whole_request;
use crate::support::{Said, Wire, ask, found, model, post, request, start, story};

fn without_tools(wire: Wire) -> (String, Value) {
    let (path, mut body) = request(wire, &[Said::User("Make a title")]);
    body.as_object_mut().unwrap().remove("tools");
    (path, body)
}

#[test]
fn a_request_without_tools_takes_no_reply() {
    for wire in Wire::ALL {
        let model = model([Reply::text("main")]);
        let (path, body) = without_tools(wire);
        let side = post(&model, &path, &body);
        assert_eq!(story(wire, &side).text, "A side answer", "{wire:?}");
        assert_eq!(story(wire, &ask(&model, wire)).text, "main", "{wire:?}");
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

/// Gemini CLI asks how hard a task is before it chooses a model, and takes no score below 1.
#[test]
fn an_answer_fits_the_schema_that_is_asked_for() {
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
        let text = story(wire, &post(&model([]), &path, &body)).text;
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected, "{wire:?}");
    }
}

#[test]
fn a_forced_tool_is_called() {
    for wire in Wire::ALL {
        let model = model([]);
        let (path, mut body) = request(wire, &[Said::User("Hello")]);
        match wire {
            Wire::Responses => body["tool_choice"] = json!({"type": "function", "name": "bash"}),
            Wire::Chat => body["tool_choice"] = json!({"function": {"name": "bash"}}),
            Wire::Messages => body["tool_choice"] = json!({"type": "tool", "name": "bash"}),
            Wire::Gemini => {
                let config = json!({"mode": "ANY", "allowedFunctionNames": ["bash"]});
                body["toolConfig"] = json!({"functionCallingConfig": config});
            }
        }
        let story = story(wire, &post(&model, &path, &body));
        assert_eq!(story.calls[0].1, "bash", "{wire:?}");
        assert_eq!(story.calls[0].2, json!({"command": "A side answer"}));
        assert_eq!(model.requests()[0].kind, Kind::Side("one tool is forced"));
        assert!(model.tool_results().is_empty());
    }
}

/// Claude offers all its tools when it compacts, and asks twice if it gets no summary.
#[test]
fn a_compaction_of_claude_gets_a_summary() {
    let words = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.";
    let said = [Said::User("Hello"), Said::Model("Hi"), Said::User(words)];
    let (path, body) = request(Wire::Messages, &said);
    let model = model([Reply::text("main")]);
    let text = story(Wire::Messages, &post(&model, &path, &body)).text;
    assert!(text.contains("<summary>A side answer</summary>"));
    assert_eq!(model.requests()[0].kind, Kind::Side("claude: compaction"));
}

#[test]
fn a_used_up_script_says_so() {
    for wire in Wire::ALL {
        let model = model([Reply::text("one")]);
        ask(&model, wire);
        assert_eq!(story(wire, &ask(&model, wire)).text, "(script exhausted)");
        assert_eq!(found(&model), ["script-exhausted"]);
        assert_eq!(model.requests()[1].kind, Kind::Main(None));
    }
}

/// Claude runs sub-agents beside the main conversation, and their requests come in any order.
#[test]
fn a_reply_may_be_kept_for_a_sub_agent() {
    for wire in Wire::ALL {
        let model = model([
            Reply::text("main one"),
            Reply::text("sub one").only_for("Look around"),
            Reply::text("main two"),
        ]);
        let say = |prompt| {
            let (path, body) = request(wire, &[Said::User(prompt)]);
            story(wire, &post(&model, &path, &body)).text
        };
        assert_eq!(say("Please: Look around."), "sub one", "{wire:?}");
        assert_eq!([say("Hello"), say("Hello")], ["main one", "main two"], "{wire:?}");
        assert_eq!(say("Look around."), "(script exhausted)", "{wire:?}");
    }
}

#[test]
fn the_last_reply_repeats_if_told_so() {
    let script = Script::new().reply(Reply::text("one")).reply(Reply::text("two")).repeat_last();
    let model = start(script);
    let texts: Vec<String> =
        (0..4).map(|_| story(Wire::Chat, &ask(&model, Wire::Chat)).text).collect();
    assert_eq!(texts, ["one", "two", "two", "two"]);
    assert_eq!(found(&model), Vec::<&str>::new());
}

#[test]
fn a_side_request_may_come_without_a_stream() {
    for wire in Wire::ALL {
        let (path, mut body) = whole_request(wire, &[Said::User("Make a title")]);
        body.as_object_mut().unwrap().remove("tools");
        let model = model([]);
        assert!(post(&model, &path, &body).body.contains("A side answer"), "{wire:?}");
        assert_eq!(found(&model), Vec::<&str>::new());
    }
}
