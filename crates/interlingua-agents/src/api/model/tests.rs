//! Recorded and generated responses, however they are split: the answer is the same, and it has the
//! calls that the dialect of the API reads.

use std::path::{Path, PathBuf};

use interlingua::event::{Data, Executor, Outcome};
use interlingua::framing::{Body, Limits};
use interlingua::json::Json;
use interlingua::{EntryRef, Exit, ReadOptions, Reader};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};

use super::{AnswerEnd, ApiKind, Collected, arguments};
use crate::api::history::{Answer, AnswerCall, CallResult, Content, Item, NativeAnswer};

const APIS: [ApiKind; 4] = [ApiKind::Anthropic, ApiKind::Responses, ApiKind::Chat, ApiKind::Gemini];

/// The recorded responses of an API: their names and their bytes.
fn recorded(api: ApiKind) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../transcripts");
    let cases = std::fs::read_dir(folder.join(api.dialect_name())).unwrap();
    let mut cases: Vec<PathBuf> = cases.map(|case| case.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() > 10, "{api:?}");
    let read = |case: PathBuf| {
        let bytes = std::fs::read(case.join("input.jsonl")).unwrap();
        (case.display().to_string(), bytes)
    };
    cases.into_iter().map(read).collect()
}

/// The answer in a response that arrives in chunks.
fn collect<'c>(
    api: ApiKind,
    chunks: impl IntoIterator<Item = &'c [u8]>,
    end: AnswerEnd,
) -> Collected {
    let mut framing = api.dialect().unwrap().framing.at_start(Limits::default());
    let mut collector = api.api().collector(0);
    let mut record = |body: &Body<'_>| {
        if let Body::Text(frame) = body {
            collector.record(frame.event, frame.text);
        }
    };
    for chunk in chunks {
        framing.push(chunk, &mut |frame| record(&frame.body));
    }
    framing.finish(&mut |frame| record(&frame.body));
    collector.answer(end)
}

/// Cuts bytes at some positions.
fn cut<'b>(bytes: &'b [u8], positions: &[prop::sample::Index]) -> Vec<&'b [u8]> {
    let mut positions: Vec<_> = positions.iter().map(|at| at.index(bytes.len().max(1))).collect();
    positions.sort_unstable();
    let (mut chunks, mut start) = (Vec::new(), 0);
    for at in positions {
        chunks.push(&bytes[start..at]);
        start = at;
    }
    chunks.push(&bytes[start..]);
    chunks
}

/// The names and the inputs of the calls that the dialect reads, if the response did not fail.
fn calls_read(api: ApiKind, bytes: &[u8]) -> Option<Vec<(String, Value)>> {
    let mut reader = Reader::new(api.dialect().unwrap().into(), ReadOptions::default()).unwrap();
    let (mut calls, mut outcome) = (Vec::new(), None);
    let mut sink = |entry: EntryRef<'_>| match &entry.event.data {
        Data::ToolStarted(started) if started.executor != Executor::Provider => {
            let input = started.input.as_ref();
            calls.extend(input.map(|input| (started.name.to_string(), value(input))));
        }
        Data::ToolInput(tool) if tool.executor != Executor::Provider => {
            calls.extend(tool.input.as_ref().map(|input| (tool.name.to_string(), value(input))));
        }
        Data::TurnEnded(ended) => outcome = Some(ended.outcome.clone()),
        _ => {}
    };
    let Ok(_) = reader.push(bytes, None, &mut sink);
    let Ok(_) = reader.finish(&Exit::default(), None, &mut sink);
    let is_proper = matches!(outcome, Some(Outcome::Completed | Outcome::WaitingForClient));
    is_proper.then_some(calls)
}

fn value(json: &Json<'_>) -> Value {
    serde_json::from_str(json.get()).unwrap()
}

fn calls_collected(collected: &Collected) -> Vec<(String, Value)> {
    collected.answer.calls().map(|call| (call.name.clone(), call.input.clone())).collect()
}

#[test]
fn every_byte_may_be_a_chunk() {
    for api in APIS {
        for (name, bytes) in recorded(api) {
            for end in [AnswerEnd::Complete, AnswerEnd::AtLimit, AnswerEnd::Cut] {
                let whole = format!("{:?}", collect(api, [&*bytes], end));
                let pieces = format!("{:?}", collect(api, bytes.chunks(1), end));
                assert_eq!(pieces, whole, "{name}");
            }
        }
    }
}

/// Numbers with more digits than a float has, and the order of fields, changed when an answer was
/// parsed and written again.
#[test]
fn the_input_of_a_call_is_sent_back_as_the_model_wrote_it() {
    const INPUT: &str = r#"{"n":12345678901234567890123,"x":1.0,"a":[-0.0,1E5]}"#;
    let quoted = serde_json::to_string(INPUT).unwrap();
    let pieces = INPUT.split_at(20);
    let [first, second] = [pieces.0, pieces.1].map(|it| serde_json::to_string(it).unwrap());
    let streams = [
        (
            ApiKind::Anthropic,
            INPUT,
            format!(
                "data: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"Read\",\"input\":{{}}}}}}\n\n\
                 data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"input_json_delta\",\"partial_json\":{first}}}}}\n\n\
                 data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"input_json_delta\",\"partial_json\":{second}}}}}\n\n\
                 data: {{\"type\":\"content_block_stop\",\"index\":0}}\n\n"
            ),
        ),
        (
            ApiKind::Anthropic,
            INPUT,
            format!(
                "{{\"type\":\"message\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"Read\",\"input\":{INPUT}}}],\"stop_reason\":\"tool_use\"}}"
            ),
        ),
        (
            ApiKind::Gemini,
            INPUT,
            format!(
                "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"functionCall\":{{\"name\":\"Read\",\"args\":{INPUT}}},\"thoughtSignature\":\"s\"}}]}}}}]}}\n\n"
            ),
        ),
        (
            ApiKind::Chat,
            &*quoted,
            format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"c\",\"function\":{{\"name\":\"Read\",\"arguments\":{quoted}}}}}]}},\"finish_reason\":\"tool_calls\"}}]}}\n\n"
            ),
        ),
        (
            ApiKind::Responses,
            &*quoted,
            format!(
                "data: {{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"Read\",\"arguments\":{quoted}}}}}\n\n"
            ),
        ),
    ];
    for (api, expected, stream) in streams {
        let Collected { answer, messages, .. } =
            collect(api, [stream.as_bytes()], AnswerEnd::Complete);
        let native = Some(NativeAnswer { api, model: "m".to_owned(), messages });
        let item = Item::Answer(Answer { native, ..answer });
        let sent: String =
            api.api().messages(&item, None, "m").iter().map(|it| it.get().to_owned()).collect();
        assert!(sent.contains(expected), "{api:?}: {sent}");
    }
}

#[test]
fn the_calls_are_those_that_the_dialect_reads() {
    let (mut compared, mut differences) = (0, Vec::new());
    for api in APIS {
        for (name, bytes) in recorded(api) {
            let text = String::from_utf8_lossy(&bytes);
            let has_several =
                ["two-responses", "compatible-calls"].iter().any(|it| name.ends_with(it));
            // Tools that take free text are never offered.
            if has_several || text.contains("\"custom_tool_call\"") {
                continue;
            }
            let Some(read) = calls_read(api, &bytes) else { continue };
            compared += read.len();
            let collected = calls_collected(&collect(api, [&*bytes], AnswerEnd::Complete));
            if collected != read {
                differences.push((name, collected, read));
            }
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
    assert!(compared > 10, "{compared}");
}

/// The recording has a response of several servers each.
#[test]
fn the_calls_of_compatible_servers_are_those_that_the_dialect_reads() {
    let all = recorded(ApiKind::Chat);
    let (_, bytes) = all.iter().find(|(name, _)| name.ends_with("compatible-calls")).unwrap();
    let text = std::str::from_utf8(bytes).unwrap();
    for (id, count) in [("chatcmpl-1", 2), ("chatcmpl-2", 2), ("chatcmpl-3", 1)] {
        let lines = text.lines().filter(|line| line.contains(id));
        let response: String = lines.map(|line| format!("{line}\n\n")).collect();
        let read = calls_read(ApiKind::Chat, response.as_bytes()).unwrap();
        assert_eq!(read.len(), count, "{id}");
        let collected = collect(ApiKind::Chat, [response.as_bytes()], AnswerEnd::Complete);
        assert_eq!(calls_collected(&collected), read, "{id}");
    }
}

/// Servers leave inputs out, or write them in an older form.
#[test]
fn unusual_calls_are_those_that_the_dialect_reads() {
    let gemini = |call: Value| {
        let candidate =
            json!({"content": {"parts": [{"functionCall": call}]}, "finishReason": "STOP"});
        format!("data: {}\n\n", json!({"candidates": [candidate], "modelVersion": "m"}))
    };
    let chat = |delta: Value| {
        let chunk = |delta: Value, reason: Value| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
            format!(
                "data: {}\n\n",
                json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]})
            )
        };
        chunk(delta, Value::Null) + &chunk(json!({}), "tool_calls".into()) + "data: [DONE]\n\n"
    };
    let function = |arguments: Value| {
        chat(
            json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "Read", "arguments": arguments}}]}),
        )
    };
    let streams = [
        (ApiKind::Gemini, gemini(json!({"name": "Read"}))),
        (ApiKind::Gemini, gemini(json!({"name": "Read", "args": null}))),
        (ApiKind::Gemini, gemini(json!({"name": "Read", "args": {}}))),
        (ApiKind::Chat, function("".into())),
        (ApiKind::Chat, function("null".into())),
        (ApiKind::Chat, function(Value::Null)),
        (ApiKind::Chat, function(json!({"a": 1}))),
        (ApiKind::Chat, chat(json!({"function_call": {"name": "Read", "arguments": "{\"a\":1}"}}))),
    ];
    for (api, stream) in streams {
        let read = calls_read(api, stream.as_bytes()).unwrap();
        assert_eq!(read.len(), 1, "{stream}");
        let collected = collect(api, [stream.as_bytes()], AnswerEnd::Complete);
        assert_eq!(calls_collected(&collected), read, "{stream}");
    }
}

/// The pieces of the calls of a stream of Chat Completions, as some server writes them.
#[derive(Debug, Clone)]
struct ChatCalls {
    calls: Vec<Vec<String>>,
    index: Index,
    repeated_ids: bool,
    repeated_names: bool,
}

#[derive(Debug, Clone, Copy)]
enum Index {
    Counted,
    Zero,
    Missing,
    /// Only in the pieces after the first one of a call.
    Late,
    /// Only in the first piece of a call.
    Early,
}

impl ChatCalls {
    fn stream(&self) -> String {
        let mut stream = String::new();
        let mut write = |chunk: Value| stream += &format!("data: {chunk}\n\n");
        for (number, pieces) in self.calls.iter().enumerate() {
            for (at, piece) in pieces.iter().enumerate() {
                let is_first = at == 0;
                let mut function = json!({"arguments": piece});
                if is_first || self.repeated_names {
                    function["name"] = "Read".into();
                }
                let mut call = json!({"function": function});
                if is_first || self.repeated_ids {
                    call["id"] = format!("call_{number}").into();
                }
                match self.index {
                    Index::Counted => call["index"] = number.into(),
                    Index::Zero => call["index"] = 0.into(),
                    Index::Late if !is_first => call["index"] = number.into(),
                    Index::Early if is_first => call["index"] = number.into(),
                    Index::Missing | Index::Late | Index::Early => {}
                }
                let delta = json!({"tool_calls": [call]});
                write(json!({"id": "c", "model": "m", "object": "chat.completion.chunk",
                    "choices": [{"index": 0, "delta": delta, "finish_reason": null}]}));
            }
        }
        write(json!({"id": "c", "model": "m", "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}));
        stream + "data: [DONE]\n\n"
    }

    fn expected(&self) -> Vec<(String, Value)> {
        let input = |pieces: &Vec<String>| serde_json::from_str(&pieces.concat()).unwrap();
        self.calls.iter().map(|pieces| ("Read".to_owned(), input(pieces))).collect()
    }
}

/// The arguments of a call, split between any two characters.
fn arguments_in_pieces() -> impl Strategy<Value = Vec<String>> {
    let text = prop::sample::select(vec!["", "a.txt", "ä\"b\\ c", "{}[]", "line\nline", "🦀"]);
    let input = (text, any::<u8>()).prop_map(|(text, number)| {
        json!({"file_path": text, "limit": number, "inner": {"list": [text, null]}}).to_string()
    });
    (input, prop::collection::vec(any::<prop::sample::Index>(), 0..8)).prop_map(|(text, places)| {
        let mut places: Vec<_> =
            places.iter().map(|place| text.floor_char_boundary(place.index(text.len()))).collect();
        places.sort_unstable();
        let (mut pieces, mut start) = (Vec::new(), 0);
        for place in places {
            pieces.push(text[start..place].to_owned());
            start = place;
        }
        pieces.push(text[start..].to_owned());
        pieces
    })
}

fn chat_calls() -> impl Strategy<Value = ChatCalls> {
    let index = prop::sample::select(vec![
        Index::Counted,
        Index::Zero,
        Index::Missing,
        Index::Late,
        Index::Early,
    ]);
    let calls = prop::collection::vec(arguments_in_pieces(), 1..4);
    (calls, index, any::<bool>(), any::<bool>()).prop_map(
        |(calls, index, repeated_ids, repeated_names)| {
            // A name without an id or an index would begin another call.
            let repeated_names = repeated_names && repeated_ids;
            ChatCalls { calls, index, repeated_ids, repeated_names }
        },
    )
}

proptest! {
    // The same cases in every run.
    #![proptest_config(ProptestConfig {
        cases: 64,
        rng_seed: RngSeed::Fixed(7),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_split_gives_the_same_answer(
        positions in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        for api in APIS {
            for (name, bytes) in recorded(api) {
                let whole = format!("{:?}", collect(api, [&*bytes], AnswerEnd::Complete));
                let pieces = format!("{:?}", collect(api, cut(&bytes, &positions), AnswerEnd::Complete));
                prop_assert_eq!(pieces, whole, "{}", name);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        rng_seed: RngSeed::Fixed(7),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn calls_of_chat_completions_are_complete_whatever_their_index(calls in chat_calls()) {
        let stream = calls.stream();
        let collected = collect(ApiKind::Chat, [stream.as_bytes()], AnswerEnd::Complete);
        prop_assert_eq!(calls_collected(&collected), calls.expected());
        prop_assert_eq!(calls_read(ApiKind::Chat, stream.as_bytes()), Some(calls.expected()));
    }
}

/// Some servers name calls `functions.Read:0`, and would not find a result under another name.
#[test]
fn a_result_has_the_id_that_its_call_has_in_the_request() {
    let id = "functions.Read:0";
    let call = AnswerCall {
        id: id.to_owned(),
        unnamed: false,
        name: "Read".to_owned(),
        input: json!({}),
        malformed: false,
    };
    let results = Item::Results(vec![CallResult::refused(&call, "no")]);
    for api in [ApiKind::Anthropic, ApiKind::Responses, ApiKind::Chat] {
        let answer =
            |native| Item::Answer(Answer { content: vec![Content::Call(call.clone())], native });
        let own = NativeAnswer { api, model: "m".to_owned(), messages: Vec::new() };
        let sent = |before: &Item| {
            let messages = api.api().messages(&results, Some(before), "m");
            messages.iter().map(|message| message.get()).collect::<String>()
        };
        assert!(sent(&answer(Some(own))).contains(id), "{api:?}");
        assert!(sent(&answer(None)).contains("functions_Read_0"), "{api:?}");
    }
}

#[test]
fn arguments_are_read_as_the_dialects_read_them() {
    for text in ["", " ", "null"] {
        assert_eq!(arguments(text), Some(json!({})), "{text:?}");
    }
    assert_eq!(arguments("{\"a\":\"x\ny\"}"), Some(json!({"a": "x\ny"})));
    assert!(arguments(r#"{"a":"\ud83d"}"#).is_some());
    for text in ["7", "{\"a\":", "[1]"] {
        assert_eq!(arguments(text), None, "{text:?}");
    }
}

/// Gemini rejects a history in which only one of the two has an id.
#[test]
fn a_call_of_gemini_has_an_id_exactly_if_its_result_has_one() {
    for unnamed in [true, false] {
        let call = AnswerCall {
            id: "call_gemini_1".to_owned(),
            unnamed,
            name: "Read".to_owned(),
            input: json!({}),
            malformed: false,
        };
        let results = Item::Results(vec![CallResult::refused(&call, "no")]);
        let answer = Item::Answer(Answer { content: vec![Content::Call(call)], native: None });
        let sent = |item: &Item, before: Option<&Item>| -> Value {
            let messages = ApiKind::Gemini.api().messages(item, before, "m");
            serde_json::from_str(messages[0].get()).unwrap()
        };
        let made = sent(&answer, None)["parts"][0]["functionCall"]["id"].clone();
        let answered = sent(&results, Some(&answer));
        assert_eq!(made, answered["parts"][0]["functionResponse"]["id"]);
        assert_eq!(made.is_null(), unnamed);
    }
}

#[test]
fn reasoning_that_led_to_nothing_is_not_sent_back() {
    let mut collector = ApiKind::Anthropic.api().collector(0);
    let records = [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"Hm.","signature":"s"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c","name":"Write","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}"#,
    ];
    records.iter().for_each(|record| collector.record("", record));
    assert!(collector.answer(AnswerEnd::AtLimit).messages.is_empty());
}

/// Reasoning without its content is looked up at the provider, which has stored nothing.
#[test]
fn reasoning_without_its_encrypted_content_is_not_sent_back() {
    let reasoning = |content: Option<&str>| {
        let mut item = json!({"type": "reasoning", "id": "rs_1", "summary": [], "content": null});
        if let Some(content) = content {
            item["encrypted_content"] = content.into();
        }
        item
    };
    let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Hi.", "annotations": []}]});
    let collected = |done: Value, completed: Option<Value>| {
        let mut collector = ApiKind::Responses.api().collector(0);
        for (at, item) in [&done, &message].into_iter().enumerate() {
            let record =
                json!({"type": "response.output_item.done", "output_index": at, "item": item});
            collector.record("", &record.to_string());
        }
        let output: Vec<_> = completed.into_iter().flat_map(|it| [it, message.clone()]).collect();
        let record = json!({"type": "response.completed", "response": {"output": output}});
        collector.record("", &record.to_string());
        let sent = collector.answer(AnswerEnd::Complete).messages;
        sent.iter().map(|it| serde_json::from_str::<Value>(it.get()).unwrap()).collect::<Vec<_>>()
    };
    let whole = || reasoning(Some("abc"));
    for bare in [reasoning(None), reasoning(Some(""))] {
        assert_eq!(collected(bare.clone(), Some(bare.clone())), std::slice::from_ref(&message));
        assert_eq!(collected(bare.clone(), None), std::slice::from_ref(&message));
        // Only one of the two copies is complete.
        assert_eq!(collected(whole(), Some(bare.clone())), [whole(), message.clone()]);
        assert_eq!(collected(bare, Some(whole())), [whole(), message.clone()]);
    }
    assert_eq!(collected(whole(), None), [whole(), message.clone()]);
}

/// A copy of a long text in the form of its provider would double the history.
#[test]
fn an_answer_that_is_only_text_is_sent_back_without_a_copy_of_it() {
    let chat = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi \"}}]}\n\n\
                data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"there.\"},\"finish_reason\":\"stop\"}]}\n\n";
    let block = |start: &str, delta: &str| {
        format!(
            "data: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{start}}}\n\n\
             data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{delta}}}\n\n\
             data: {{\"type\":\"content_block_stop\",\"index\":0}}\n\n"
        )
    };
    let delta = r#"{"type":"text_delta","text":"there."}"#;
    let anthropic = block(r#"{"type":"text","text":"Hi "}"#, delta);
    let sent_text = json!([{"type": "text", "text": "Hi there."}]);
    for (api, stream, content) in
        [(ApiKind::Chat, chat, json!("Hi there.")), (ApiKind::Anthropic, &*anthropic, sent_text)]
    {
        let Collected { answer, messages, .. } =
            collect(api, [stream.as_bytes()], AnswerEnd::Complete);
        assert!(messages.is_empty(), "{api:?}: {messages:?}");
        let sent = api.api().messages(&Item::Answer(answer), None, "m");
        let sent: Value = serde_json::from_str(sent[0].get()).unwrap();
        assert_eq!(sent, json!({"role": "assistant", "content": content}), "{api:?}");
    }
    // Whatever else a block has is sent back as it was.
    let cited = block(r#"{"type":"text","text":"","citations":[]}"#, delta);
    let collected = collect(ApiKind::Anthropic, [cited.as_bytes()], AnswerEnd::Complete);
    assert!(collected.messages[0].get().contains("citations"));
}

/// DeepSeek rejects a message with calls that has no reasoning, also if the reasoning was empty or
/// belonged to another model.
#[test]
fn calls_of_deepseek_come_with_reasoning() {
    let call = AnswerCall {
        id: "c".to_owned(),
        unnamed: false,
        name: "Read".to_owned(),
        input: json!({}),
        malformed: false,
    };
    let field = |content: Content, model: &str| {
        let item = Item::Answer(Answer { content: vec![content], native: None });
        let messages = ApiKind::Chat.api().messages(&item, None, model);
        let message: Value = serde_json::from_str(messages[0].get()).unwrap();
        message.get("reasoning_content").cloned()
    };
    assert_eq!(field(Content::Call(call.clone()), "deepseek-reasoner"), Some(json!("")));
    assert_eq!(field(Content::Call(call), "gpt-6.1"), None);
    assert_eq!(field(Content::Text("Hi.".to_owned()), "deepseek-reasoner"), None);
}

#[test]
fn empty_reasoning_of_deepseek_comes_back_with_the_calls() {
    let chunk = |delta: Value, reason: Value| {
        let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
        format!("data: {chunk}\n\n")
    };
    let call = json!([{"index": 0, "id": "c", "function": {"name": "Read", "arguments": "{}"}}]);
    let stream = chunk(json!({"reasoning_content": ""}), Value::Null)
        + &chunk(json!({"tool_calls": call}), json!("tool_calls"));
    let collected = collect(ApiKind::Chat, [stream.as_bytes()], AnswerEnd::Complete);
    let message: Value = serde_json::from_str(collected.messages[0].get()).unwrap();
    assert_eq!(message["reasoning_content"], "", "{message}");
}
