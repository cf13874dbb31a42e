//! A strict script compares each request with the one before it, and with the answer in between.

use fake_model::{ChatForm, Cut, GeminiForm, Reply, Script, SignaturePlace};
use serde_json::{Value, json};

use crate::support::turns::{Turns, list};
use crate::support::{Client, Entry, Wire, found, post, request, start};

const NOTHING: [&str; 0] = [];

/// Reasoning, text and parallel calls.
fn reply() -> Reply {
    Reply::new()
        .then_reasoning("Let me ")
        .then_reasoning("see.")
        .then_redacted_reasoning()
        .then_text("I ")
        .then_text("look.")
        .then_call("bash", json!({"command": "ls"}))
        .then_call("bash", json!({"command": "pwd"}))
}

fn changed(wire: Wire, change: impl FnOnce(&mut Value)) -> Vec<&'static str> {
    Turns::new(wire, reply()).send_changed(change)
}

#[test]
fn an_answer_that_comes_back_as_it_was_raises_nothing() {
    for wire in Wire::ALL {
        for reply in [reply(), Reply::text("Hi"), Reply::new().then_reasoning("r").then_text("t")] {
            let turns = Turns::new(wire, reply);
            assert_eq!(turns.send(), NOTHING, "{wire:?}");
            assert_eq!(turns.send(), NOTHING, "{wire:?}: a repeated request");
        }
    }
}

/// An agent that was interrupted may continue before the server has noticed that it closed the
/// connection.
#[test]
fn an_answer_that_waits_at_a_gate_may_come_back_in_part() {
    let reply = Reply::text("One, ").then_gate("counting").then_text("two.");
    let script = Script::new().strict().any_stream().reply(reply).reply(Reply::text("Bye."));
    let model = start(script);
    let (path, first) = request(Wire::Messages, &[Entry::User("Count")]);
    let mut client = Client::new(&model);
    client.send(&path, &first);
    client.read_until("One, ");
    let mut second = first.clone();
    let messages = second["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": [{"type": "text", "text": "One, "}]}));
    messages.push(json!({"role": "user", "content": "and now?"}));
    post(&model, &path, &second);
    assert_eq!(found(&model), NOTHING);
}

#[test]
fn marks_for_the_cache_are_no_change() {
    let findings = changed(Wire::Messages, |body| {
        body["messages"][0]["content"] =
            json!([{"type": "text", "text": "Hello", "cache_control": {"type": "ephemeral"}}]);
        body["tools"][0]["cache_control"] = json!({"type": "ephemeral"});
    });
    assert_eq!(findings, NOTHING);
}

#[test]
fn a_changed_system_prompt_is_found() {
    for (wire, change) in [
        (Wire::Responses, json!({"instructions": "It is noon."})),
        (Wire::Messages, json!({"system": "It is noon."})),
        (Wire::Gemini, json!({"systemInstruction": {"parts": [{"text": "It is noon."}]}})),
    ] {
        let findings = changed(wire, |body| {
            body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        });
        assert_eq!(findings, ["system-changed"], "{wire:?}");
    }
    let model = start(Script::new().strict().reply(Reply::text("a")).repeat_last());
    let (path, body) = request(Wire::Chat, &[Entry::User("Hello")]);
    for system in ["It is noon.", "It is one."] {
        let messages = json!([{"role": "system", "content": system}, body["messages"][0]]);
        let mut body = body.clone();
        body["messages"] = messages;
        post(&model, &path, &body);
    }
    assert_eq!(found(&model), ["system-changed"]);
}

#[test]
fn changed_tools_are_found() {
    for wire in Wire::ALL {
        let pointer = match wire {
            Wire::Responses => "/tools/0/description",
            Wire::Chat => "/tools/0/function/description",
            Wire::Messages => "/tools/0/description",
            Wire::Gemini => "/tools/0/functionDeclarations/0/description",
        };
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let findings =
            changed(wire, |body| body.pointer_mut(parent).unwrap()[name] = json!("another"));
        assert_eq!(findings, ["tools-changed"], "{wire:?}");
    }
}

/// Structured output and tools exclude each other with some of its models.
#[test]
fn gemini_may_leave_out_all_tools_for_one_request() {
    let mut turns = Turns::new(Wire::Gemini, Reply::text("Hi"));
    let tools = turns.second.as_object_mut().unwrap().remove("tools").unwrap();
    turns.second["generationConfig"] = json!({"responseMimeType": "application/json"});
    assert_eq!(turns.send(), NOTHING);
    turns.second["tools"] = tools;
    assert_eq!(turns.send(), NOTHING);
    turns.second["tools"][0]["functionDeclarations"][0]["name"] = json!("sh");
    assert_eq!(turns.send(), ["tools-changed"]);
}

#[test]
fn a_changed_earlier_message_is_found() {
    for wire in Wire::ALL {
        let turns = Turns::new(wire, reply());
        assert_eq!(turns.send(), NOTHING);
        let mut third = turns.second.clone();
        let last = third[list(wire)].as_array_mut().unwrap().last_mut().unwrap();
        match wire {
            Wire::Responses => last["output"] = json!("rainy"),
            Wire::Chat => last["content"] = json!("rainy"),
            Wire::Messages => last["content"][0]["content"] = json!("rainy"),
            Wire::Gemini => {
                last["parts"][0]["functionResponse"]["response"]["output"] = json!("rainy");
            }
        }
        post(&turns.model, &turns.path, &third);
        assert_eq!(found(&turns.model), ["history-changed"], "{wire:?}");
    }
}

#[test]
fn a_shorter_request_is_a_branch_and_both_branches_go_on() {
    for wire in Wire::ALL {
        let turns = Turns::new(wire, reply());
        turns.send();
        post(&turns.model, &turns.path, &turns.first);
        assert_eq!(turns.send(), NOTHING, "{wire:?}");
    }
}

#[test]
fn a_cut_answer_may_be_left_out_or_kept_in_part() {
    for wire in Wire::ALL {
        for kept in [false, true] {
            let cut = reply().cut(Cut::InCall);
            let model =
                start(Script::new().strict().any_stream().reply(cut).reply(Reply::text("b")));
            let (path, mut body) = request(wire, &[Entry::User("Hello")]);
            if wire == Wire::Responses {
                body["tools"][0]["strict"] = json!(false);
            }
            post(&model, &path, &body);
            let messages = body[list(wire)].as_array_mut().unwrap();
            if kept {
                messages.push(match wire {
                    Wire::Gemini => json!({"role": "model", "parts": [{"text": "I look."}]}),
                    _ => json!({"role": "assistant", "content": "I look."}),
                });
            }
            messages.push(match wire {
                Wire::Gemini => json!({"role": "user", "parts": [{"text": "Go on"}]}),
                _ => json!({"role": "user", "content": "Go on"}),
            });
            post(&model, &path, &body);
            assert_eq!(found(&model), NOTHING, "{wire:?} {kept}");
        }
    }
}

#[test]
fn a_changed_text_or_call_is_found() {
    for (wire, text, input, other) in [
        (Wire::Responses, "/input/3/content/0/text", "/input/4/arguments", json!("{\"a\":1}")),
        (
            Wire::Chat,
            "/messages/1/content",
            "/messages/1/tool_calls/0/function/arguments",
            json!("{\"a\":1}"),
        ),
        (
            Wire::Messages,
            "/messages/1/content/2/text",
            "/messages/1/content/3/input",
            json!({"a": 1}),
        ),
        (
            Wire::Gemini,
            "/contents/1/parts/0/text",
            "/contents/1/parts/2/functionCall/args",
            json!({"a": 1}),
        ),
    ] {
        for (pointer, value) in [(text, json!("I do not.")), (input, other)] {
            let findings = changed(wire, |body| *body.pointer_mut(pointer).unwrap() = value);
            assert_eq!(findings, ["reply-changed"], "{wire:?} {pointer}");
        }
    }
}

#[test]
fn a_missing_signature_is_found() {
    let remove = |pointer: &'static str, field: &'static str| {
        move |body: &mut Value| {
            body.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(field);
        }
    };
    let drop_first = |body: &mut Value| {
        body["messages"][1]["content"].as_array_mut().unwrap().remove(0);
    };
    assert_eq!(changed(Wire::Messages, drop_first), ["signature-missing"]);
    let drop_item = |body: &mut Value| {
        body["input"].as_array_mut().unwrap().remove(1);
    };
    assert_eq!(changed(Wire::Responses, drop_item), ["signature-missing"]);
    let first_call = remove("/contents/1/parts/1", "thoughtSignature");
    assert_eq!(changed(Wire::Gemini, first_call), ["signature-missing"]);
    let reasoning = remove("/messages/1", "reasoning_content");
    assert_eq!(changed(Wire::Chat, reasoning), ["signature-missing"]);
}

#[test]
fn a_changed_signature_or_signed_text_is_found() {
    for (wire, pointer) in [
        (Wire::Messages, "/messages/1/content/0/signature"),
        (Wire::Messages, "/messages/1/content/0/thinking"),
        (Wire::Messages, "/messages/1/content/1/data"),
        (Wire::Responses, "/input/1/encrypted_content"),
        (Wire::Responses, "/input/1/summary/0/text"),
        (Wire::Gemini, "/contents/1/parts/1/thoughtSignature"),
        (Wire::Chat, "/messages/1/reasoning_content"),
    ] {
        let findings = changed(wire, |body| *body.pointer_mut(pointer).unwrap() = json!("AAAA"));
        assert_eq!(findings, ["signature-changed"], "{wire:?} {pointer}");
    }
}

#[test]
fn a_misplaced_signature_is_found() {
    let swap = |pointer: &'static str, one: usize, two: usize| {
        move |body: &mut Value| {
            body.pointer_mut(pointer).unwrap().as_array_mut().unwrap().swap(one, two);
        }
    };
    let thinking = swap("/messages/1/content", 0, 1);
    assert_eq!(changed(Wire::Messages, thinking), ["signature-misplaced"]);
    assert_eq!(changed(Wire::Responses, swap("/input", 1, 2)), ["signature-misplaced"]);
    let to_second_call = |body: &mut Value| {
        let parts = &mut body["contents"][1]["parts"];
        let signature = parts[1].as_object_mut().unwrap().remove("thoughtSignature").unwrap();
        parts[2]["thoughtSignature"] = signature;
    };
    let findings = changed(Wire::Gemini, to_second_call);
    assert_eq!(findings, ["signature-missing", "signature-misplaced"]);
    let renamed = |body: &mut Value| {
        let message = body["messages"][1].as_object_mut().unwrap();
        let text = message.remove("reasoning_content").unwrap();
        message.insert("reasoning".to_owned(), text);
    };
    assert_eq!(changed(Wire::Chat, renamed), ["signature-missing", "signature-misplaced"]);
}

#[test]
fn a_thinking_block_after_a_call_is_found() {
    let findings = changed(Wire::Messages, |body| {
        let content = body["messages"][1]["content"].as_array_mut().unwrap();
        let thinking = content.remove(0);
        content.push(thinking);
    });
    assert_eq!(findings, ["text-after-call", "signature-misplaced"]);
}

/// Anthropic binds thinking to what came before it, so that it must not survive a compaction.
#[test]
fn a_signature_in_another_conversation_is_found() {
    let findings = changed(Wire::Messages, |body| {
        body["messages"][0]["content"] = json!("A summary of what happened.");
    });
    assert_eq!(findings, ["signature-misplaced", "signature-misplaced"]);
}

#[test]
fn gemini_wants_a_signature_of_text_on_its_own_part() {
    let text = Reply::text("Hel").then_text("lo");
    let form = |signature| GeminiForm { signature, ..GeminiForm::default() };
    let stream = "/v1beta/models/m:streamGenerateContent?alt=sse";
    for (place, good, merged) in [
        (SignaturePlace::LastPart, vec!["Hel", "lo"], vec!["Hello"]),
        (SignaturePlace::EmptyPart, vec!["Hel", "lo", ""], vec!["Hello"]),
    ] {
        for (parts, expected) in [(good, NOTHING.to_vec()), (merged, vec!["signature-misplaced"])] {
            let reply = text.clone().gemini(form(place));
            let model = start(Script::new().strict().reply(reply).reply(Reply::text("b")));
            let (_, mut body) = request(Wire::Gemini, &[Entry::User("Hello")]);
            post(&model, stream, &body);
            let mut parts: Vec<Value> = parts.iter().map(|text| json!({"text": text})).collect();
            parts.last_mut().unwrap()["thoughtSignature"] = json!("fakeSign00000000");
            let contents = body["contents"].as_array_mut().unwrap();
            contents.push(json!({"role": "model", "parts": parts}));
            contents.push(json!({"role": "user", "parts": [{"text": "And?"}]}));
            post(&model, stream, &body);
            assert_eq!(found(&model), expected, "{place:?}");
        }
    }
}

#[test]
fn details_of_reasoning_come_back_unchanged() {
    let form = ChatForm {
        reasoning_field: "reasoning".to_owned(),
        reasoning_details: true,
        ..ChatForm::default()
    };
    assert_eq!(Turns::new(Wire::Chat, reply().chat(form.clone())).send(), NOTHING);
    let findings = Turns::new(Wire::Chat, reply().chat(form)).send_changed(|body| {
        body["messages"][1]["reasoning_details"][0]["signature"] = json!("AAAA");
    });
    assert_eq!(findings, ["signature-changed"]);
}

#[test]
fn a_message_of_responses_keeps_its_id_and_its_phase() {
    for field in ["id", "status", "phase"] {
        let findings = changed(Wire::Responses, |body| {
            body["input"][3].as_object_mut().unwrap().remove(field);
        });
        assert_eq!(findings, ["reply-changed"], "{field}");
    }
}

/// The answer that was cut would excuse everything.
#[test]
fn a_repeated_request_is_compared_with_its_last_answer() {
    let script = Script::new().strict().any_stream();
    let script = script.reply(reply().cut(Cut::InText)).reply(reply()).reply(Reply::text("b"));
    let model = start(script);
    let (path, mut body) = request(Wire::Messages, &[Entry::User("Hello")]);
    post(&model, &path, &body);
    post(&model, &path, &body);
    let text = json!({"type": "text", "text": "I look."});
    let call = |id: &str, command: &str| {
        let input = json!({"command": command});
        json!({"type": "tool_use", "id": id, "name": "bash", "input": input})
    };
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
    let messages = body["messages"].as_array_mut().unwrap();
    let calls = json!([text, call("call_0003", "ls"), call("call_0004", "pwd")]);
    messages.push(json!({"role": "assistant", "content": calls}));
    let results = json!([result("call_0003"), result("call_0004")]);
    messages.push(json!({"role": "user", "content": results}));
    post(&model, &path, &body);
    assert_eq!(found(&model), ["signature-missing", "signature-missing"]);
}
