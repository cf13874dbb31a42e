//! Tool calls are the same however a server states their ids, indexes and names, and wherever their
//! arguments are cut.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::records::of_type;
use crate::support::{self, translate_lines};

/// How a server states a property of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stated {
    /// In the first piece.
    Once,
    Everywhere,
    /// In the first piece, and then an empty one, or the same for all calls.
    Blank,
    Late,
    Never,
}

const STATED: [Stated; 5] =
    [Stated::Once, Stated::Everywhere, Stated::Blank, Stated::Late, Stated::Never];

#[derive(Debug, Clone)]
struct Call {
    name: &'static str,
    arguments: String,
    cuts: Vec<prop::sample::Index>,
}

impl Call {
    fn pieces(&self) -> Vec<&str> {
        let ends: Vec<usize> = self.arguments.char_indices().map(|(at, _)| at).collect();
        let mut cuts: Vec<usize> = self.cuts.iter().map(|cut| *cut.get(&ends)).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let mut rest = &*self.arguments;
        let mut pieces = Vec::new();
        for cut in cuts.iter().rev() {
            let (before, after) = rest.split_at(*cut);
            pieces.insert(0, after);
            rest = before;
        }
        pieces.insert(0, rest);
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }

    /// The pieces of a call as a server sends them.
    fn sent(&self, number: usize, id: Stated, index: Stated, repeats_name: bool) -> Vec<Value> {
        let own_id = format!("call_{number}");
        let mut sent = Vec::new();
        let pieces = self.pieces();
        let last = pieces.len() - 1;
        for (at, piece) in pieces.iter().enumerate() {
            let mut function = Map::from_iter([("arguments".to_owned(), json!(piece))]);
            if at == 0 || repeats_name {
                function.insert("name".to_owned(), json!(self.name));
            }
            let mut call = json!({ "function": function });
            match (id, at) {
                (Stated::Once | Stated::Blank, 0) | (Stated::Everywhere, _) => {
                    call["id"] = json!(own_id);
                }
                (Stated::Blank, _) => call["id"] = json!(""),
                _ => {}
            }
            match (index, at) {
                (Stated::Everywhere, _) => call["index"] = json!(number),
                (Stated::Once, 0) => call["index"] = json!(number),
                (Stated::Blank, _) => call["index"] = json!(0),
                (Stated::Late, 1..) => call["index"] = json!(number),
                _ => {}
            }
            sent.push(call);
            if id == Stated::Late && at == last {
                let mut late = json!({ "id": own_id });
                if index == Stated::Everywhere {
                    late["index"] = json!(number);
                }
                sent.push(late);
            }
        }
        sent
    }
}

fn chunk(delta: &Value, reason: Option<&str>) -> String {
    json!({
        "id": "c", "object": "chat.completion.chunk", "model": "m",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
    })
    .to_string()
}

/// The ids, names and inputs of the calls that are read, and the outcome of the turn.
fn read(lines: &[String]) -> (Vec<(String, String, Value)>, String) {
    let records = translate_lines("openai-chat", "events", lines).records();
    let whole = |event: &&Value| {
        event.get("input").is_some()
            && ["tool_started", "tool_input"].iter().any(|it| event["type"] == *it)
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let calls = records
        .iter()
        .filter(whole)
        .map(|event| (text(&event["call"]), text(&event["name"]), event["input"].clone()));
    let outcome = text(&of_type(&records, "turn_ended")[0]["outcome"]);
    (calls.collect(), outcome)
}

fn arguments() -> impl Strategy<Value = String> {
    let word = "[a-z{}\\[\\]\"\\\\ é🎉]{0,8}";
    prop::collection::btree_map("[a-z]{1,4}", word, 0..3)
        .prop_map(|fields| serde_json::to_string(&fields).unwrap())
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let name = prop_oneof![Just("read"), Just("write")];
    let cuts = prop::collection::vec(any::<prop::sample::Index>(), 0..5);
    let call = (name, arguments(), cuts).prop_map(|(name, arguments, cuts)| Call {
        name,
        arguments,
        cuts,
    });
    prop::collection::vec(call, 1..4)
}

proptest! {
    #![proptest_config(support::cases(400))]

    #[test]
    fn every_server_gives_the_same_calls(
        calls in calls(),
        id in prop::sample::select(&STATED[..]),
        index in prop::sample::select(&STATED[..]),
        repeats_name in any::<bool>(),
        in_one_chunk in any::<bool>(),
    ) {
        let pieces: Vec<Value> = calls
            .iter()
            .enumerate()
            .flat_map(|(number, call)| call.sent(number, id, index, repeats_name))
            .collect();
        let mut lines: Vec<String> = if in_one_chunk {
            vec![chunk(&json!({ "tool_calls": pieces }), None)]
        } else {
            pieces.iter().map(|piece| chunk(&json!({ "tool_calls": [piece] }), None)).collect()
        };
        lines.push(chunk(&json!({}), Some("tool_calls")));
        let (read, outcome) = read(&lines);
        prop_assert_eq!(outcome, "waiting_for_client");
        let expected: Vec<_> = calls
            .iter()
            .map(|call| (call.name.to_owned(), serde_json::from_str::<Value>(&call.arguments).unwrap()))
            .collect();
        let content: Vec<_> = read.iter().map(|it| (it.1.clone(), it.2.clone())).collect();
        prop_assert_eq!(content, expected);
        if id != Stated::Never {
            let ids: Vec<_> = read.iter().map(|it| it.0.clone()).collect();
            let expected: Vec<_> = (0..calls.len()).map(|number| format!("call_{number}")).collect();
            prop_assert_eq!(ids, expected);
        }
    }

    /// The pieces of parallel calls may alternate if each of them names its call.
    #[test]
    fn pieces_of_parallel_calls_may_alternate(calls in calls(), by_id in any::<bool>()) {
        let (id, index) =
            if by_id { (Stated::Everywhere, Stated::Never) } else { (Stated::Once, Stated::Everywhere) };
        let sent: Vec<_> =
            calls.iter().enumerate().map(|(number, call)| call.sent(number, id, index, false)).collect();
        let longest = sent.iter().map(Vec::len).max().unwrap();
        let mut lines = Vec::new();
        for at in 0..longest {
            for piece in sent.iter().filter_map(|pieces| pieces.get(at)) {
                lines.push(chunk(&json!({ "tool_calls": [piece] }), None));
            }
        }
        lines.push(chunk(&json!({}), Some("tool_calls")));
        let inputs: Vec<_> = read(&lines).0.into_iter().map(|call| call.2).collect();
        let expected: Vec<Value> =
            calls.iter().map(|call| serde_json::from_str(&call.arguments).unwrap()).collect();
        prop_assert_eq!(inputs, expected);
    }
}

#[test]
fn arguments_may_be_cut_between_any_two_characters() {
    let arguments = r#"{"a":"\ud83c\udf89 \"é🎉\" \\","b":[1,{"c":"}"}]}"#;
    let expected: Value = serde_json::from_str(arguments).unwrap();
    for (cut, _) in arguments.char_indices() {
        let (one, two) = arguments.split_at(cut);
        let start = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": one}}]});
        let rest = json!({"tool_calls": [{"index": 0, "function": {"arguments": two}}]});
        let lines =
            [chunk(&start, None), chunk(&rest, None), chunk(&json!({}), Some("tool_calls"))];
        assert_eq!(read(&lines).0, [("a".to_owned(), "f".to_owned(), expected.clone())], "{cut}");
    }
}

fn one_call(function: Value, reason: &str) -> (Vec<(String, String, Value)>, String) {
    let call =
        json!({"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": function}]});
    read(&[chunk(&call, None), chunk(&json!({}), Some(reason))])
}

#[test]
fn no_arguments_mean_an_empty_object() {
    for arguments in [json!(""), json!(null), json!("null"), json!(" "), json!({})] {
        let (calls, outcome) = one_call(json!({"name": "f", "arguments": arguments}), "tool_calls");
        assert_eq!(calls, [("a".to_owned(), "f".to_owned(), json!({}))], "{arguments}");
        assert_eq!(outcome, "waiting_for_client");
    }
    let (calls, _) = one_call(json!({"name": "f"}), "stop");
    assert_eq!(calls[0].2, json!({}));
}

#[test]
fn an_object_in_place_of_the_text_is_the_input() {
    let (calls, _) = one_call(json!({"name": "f", "arguments": {"a": [1, "x"]}}), "tool_calls");
    assert_eq!(calls[0].2, json!({"a": [1, "x"]}));
}

/// SDKs deliver the half input of a call that the limit of tokens cut as if it were complete.
#[test]
fn a_call_that_is_cut_by_the_limit_has_no_input() {
    for arguments in ["", "{\"a\": ", "{\"a\": \"half"] {
        let (calls, outcome) = one_call(json!({"name": "f", "arguments": arguments}), "length");
        assert_eq!((calls, &*outcome), (vec![], "limit_reached"), "{arguments}");
    }
}

#[test]
fn a_call_whose_arguments_are_no_json_is_abandoned() {
    let call = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"a\":1}{\"b\":2}"}}]});
    let lines = [chunk(&call, None), chunk(&json!({}), Some("tool_calls"))];
    let records = translate_lines("openai-chat", "events", &lines).records();
    assert_eq!(of_type(&records, "tool_ended")[0]["status"], "abandoned");
    assert_eq!(of_type(&records, "turn_ended")[0]["outcome"], "failed");
    assert!(of_type(&records, "tool_input").iter().all(|event| event.get("input").is_none()));
}

/// Ollama states `stop` although there are calls.
#[test]
fn the_client_runs_calls_whatever_the_reason_unless_the_response_was_stopped() {
    let outcome = |reason| one_call(json!({"name": "f", "arguments": "{}"}), reason).1;
    for reason in ["tool_calls", "stop", "function_call", "eos", "something_new"] {
        assert_eq!(outcome(reason), "waiting_for_client", "{reason}");
    }
    assert_eq!(outcome("length"), "limit_reached");
    assert_eq!(outcome("content_filter"), "refused");
    assert_eq!(outcome("error"), "failed");
}

#[test]
fn the_text_of_a_custom_tool_is_streamed_as_json() {
    let piece = |custom: Value| json!({"tool_calls": [{"index": 0, "id": "a", "type": "custom", "custom": custom}]});
    let lines = [
        chunk(&piece(json!({"name": "patch", "input": "*** \"a\"\n"})), None),
        chunk(&piece(json!({"input": "+b"})), None),
        chunk(&json!({}), Some("tool_calls")),
    ];
    assert_eq!(read(&lines).0[0].2, json!({"input": "*** \"a\"\n+b"}));
    let records = translate_lines("openai-chat", "events", &lines).records();
    let deltas = of_type(&records, "tool_input_delta");
    let text: String = deltas.iter().map(|delta| delta["text"].as_str().unwrap()).collect();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({"input": "*** \"a\"\n+b"}));
}

#[test]
fn arguments_over_several_lines_become_one_line() {
    let (calls, _) = one_call(json!({"name": "f", "arguments": "{\n  \"a\": 1\r\n}"}), "stop");
    assert_eq!(calls[0].2, json!({"a": 1}));
}

#[test]
fn half_of_a_surrogate_pair_in_arguments_costs_nothing_else() {
    let arguments = r#"{"a":"x\ud83d","a":"y\ud83d"}"#;
    let (calls, outcome) = one_call(json!({"name": "f", "arguments": arguments}), "stop");
    assert_eq!((&calls[0].2, &*outcome), (&json!({"a": "y\u{fffd}"}), "waiting_for_client"));
}
