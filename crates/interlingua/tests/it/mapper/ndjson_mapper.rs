//! The scenarios that the document on NDJSON mapping lists, in the shapes that the AI SDK accepts.

use interlingua::framing::extract_json_objects;
use interlingua::mapper::{Mapped, NdjsonMapper};
use serde_json::{Value, json};

fn push(mapper: &mut NdjsonMapper, event: Value) -> (Vec<Value>, Mapped) {
    let mut mapped = mapper.push(event.to_string().as_bytes());
    assert_eq!(mapped.len(), 1, "one event, one result");
    read(mapped.remove(0))
}

fn read(mapped: Mapped) -> (Vec<Value>, Mapped) {
    (mapped.parts.iter().map(|part| serde_json::from_str(part).unwrap()).collect(), mapped)
}

fn kinds(parts: &[Value]) -> Vec<&str> {
    parts.iter().map(|part| part["type"].as_str().unwrap()).collect()
}

#[test]
fn text_only_stream() {
    let mut mapper = NdjsonMapper::new();
    let (parts, mapped) = push(&mut mapper, json!({"type":"init","session_id":"s1"}));
    assert_eq!(kinds(&parts), ["response-metadata"]);
    assert_eq!(mapped.session.agent_session_id.as_deref(), Some("s1"));

    let hello = json!({"type":"message","role":"assistant","content":"Hello ","delta":true});
    let (parts, _) = push(&mut mapper, hello);
    assert_eq!(kinds(&parts), ["text-start", "text-delta"]);
    assert_eq!(parts[1]["delta"], "Hello ");

    let world = json!({"type":"message","role":"assistant","content":"world!","delta":true});
    let (parts, _) = push(&mut mapper, world);
    assert_eq!(kinds(&parts), ["text-delta"]);

    let (parts, _) = read(mapper.finish());
    assert_eq!(kinds(&parts), ["text-end", "finish"]);
    assert_eq!(parts[1]["finishReason"]["unified"], "stop");
}

#[test]
fn relay_tool_call_interruption() {
    let mut mapper = NdjsonMapper::new();
    let filling = json!({"type":"message","role":"assistant","content":"Filling ","delta":true});
    push(&mut mapper, filling);
    let request =
        json!({"type":"snapshot_request","requestId":"req-1","instruction":"Fill the login form"});
    let (parts, mapped) = push(&mut mapper, request.clone());
    assert_eq!(kinds(&parts), ["text-end", "tool-call", "finish"]);
    assert_eq!(
        (&parts[1]["toolCallId"], &parts[1]["toolName"]),
        (&json!("req-1"), &json!("getFormSnapshot"))
    );
    assert_eq!(parts[1]["input"], r#"{"instruction":"Fill the login form"}"#);
    assert_eq!(parts[2]["finishReason"]["unified"], "tool-calls");
    assert_eq!(mapped.session.pending_request_id.as_deref(), Some("req-1"));
    let actual: Value = serde_json::from_str(&mapped.relay_request.unwrap()).unwrap();
    assert_eq!(actual, request);
}

#[test]
fn extract_json_objects_handles_partial_buffers() {
    assert_eq!(
        extract_json_objects("{\"a\":1}\n{\"b\":2}\n{\"c\":"),
        (vec!["{\"a\":1}", "{\"b\":2}"], "{\"c\":")
    );
}

#[test]
fn an_execute_request_is_a_tool_call() {
    let request = json!({
        "type":"execute_request","requestId":"r2",
        "actions":[{"action":"click","fieldId":"bt:ok"}],"fields":[]
    });
    let (parts, _) = push(&mut NdjsonMapper::new(), request);
    assert_eq!(kinds(&parts), ["tool-call", "finish"]);
    let input: Value = serde_json::from_str(parts[0]["input"].as_str().unwrap()).unwrap();
    assert_eq!(input, json!({"actions":[{"action":"click","fieldId":"bt:ok"}],"fields":[]}));
    assert_eq!(parts[0]["toolName"], "executeFormActions");
    assert!(parts[0].get("providerExecuted").is_none());
}

#[test]
fn host_records_update_the_session() {
    let mut mapper = NdjsonMapper::new();
    let (parts, mapped) = push(&mut mapper, json!({"type":"sandbox","sandbox_id":"sbx_1"}));
    assert_eq!(kinds(&parts), ["response-metadata"]);
    assert_eq!(mapped.session.sandbox_id.as_deref(), Some("sbx_1"));
    let relay = json!({"type":"relay.session","sessionId":"r1","token":"t1","relayUrl":"https://relay.example"});
    let (parts, mapped) = push(&mut mapper, relay);
    assert!(parts.is_empty());
    assert_eq!(mapped.session.relay_session_id.as_deref(), Some("r1"));
    assert_eq!(mapped.session.relay_token.as_deref(), Some("t1"));
    assert_eq!(mapped.session.relay_url.as_deref(), Some("https://relay.example"));
    assert!(!format!("{mapped:?}").contains("t1\""), "a token is never printed");
}

/// Scenario 2.
#[test]
fn an_init_gives_the_session_and_the_model_in_one_part() {
    let init = json!({"type":"init","session_id":"s1","modelId":"m"});
    let (parts, mapped) = push(&mut NdjsonMapper::new(), init);
    assert_eq!(kinds(&parts), ["response-metadata"]);
    assert_eq!(parts[0]["modelId"], "m");
    assert_eq!(mapped.session.agent_session_id.as_deref(), Some("s1"));
}

/// Scenario 5.
#[test]
fn a_snapshot_has_no_parts() {
    let snapshot = json!({"type":"snapshot","snapshot_id":"snap_1"});
    let (parts, mapped) = push(&mut NdjsonMapper::new(), snapshot);
    assert!(parts.is_empty(), "{parts:?}");
    assert_eq!(mapped.relay_request, None);
}

#[test]
fn records_that_the_table_hides_are_not_mapped() {
    let mut mapper = NdjsonMapper::new();
    for hidden in [
        json!({"type":"message","role":"user","content":"hi"}),
        json!({"type":"tool_use","tool_name":"list_directory","tool_id":"t1","parameters":{}}),
        json!({"type":"tool_result","tool_id":"t1","status":"success","output":"x"}),
        json!({"type":"stderr","content":"noise"}),
    ] {
        let (parts, _) = push(&mut mapper, hidden.clone());
        assert!(parts.is_empty(), "{hidden} gives {parts:?}");
    }
}

#[test]
fn a_complete_message_closes_the_open_block_and_is_a_block_of_its_own() {
    let mut mapper = NdjsonMapper::new();
    push(&mut mapper, json!({"type":"message","role":"assistant","content":"a","delta":true}));
    let message = json!({"type":"message","role":"assistant","content":"b"});
    let (parts, _) = push(&mut mapper, message);
    assert_eq!(kinds(&parts), ["text-end", "text-start", "text-delta", "text-end"]);
}

/// Regression: a paused stream was finished twice, first with `tool-calls`, then with `stop`.
#[test]
fn a_pause_is_finished_once() {
    let mut mapper = NdjsonMapper::new();
    push(&mut mapper, json!({"type":"snapshot_request","requestId":"req-1","instruction":"x"}));
    assert!(mapper.finish().parts.is_empty());
}

/// Regression: records after a request in the same chunk were lost.
#[test]
fn records_after_a_request_in_the_same_chunk_are_kept() {
    let chunk = concat!(
        r#"{"type":"snapshot_request","requestId":"req-1","instruction":"x"}"#,
        "\n",
        r#"{"type":"message","role":"assistant","content":"after","delta":true}"#,
        "\n"
    );
    let mut mapper = NdjsonMapper::new();
    let mapped = mapper.push(chunk.as_bytes());
    let results: Vec<_> = mapped.into_iter().map(read).collect();
    let [(request, asked), (after, goes_on)] = &results[..] else { panic!("{results:?}") };
    assert_eq!(kinds(request), ["tool-call", "finish"]);
    let record = r#"{"type":"snapshot_request","requestId":"req-1","instruction":"x"}"#;
    assert_eq!(asked.relay_request.as_deref(), Some(record));
    assert_eq!((&after.last().unwrap()["delta"], &goes_on.relay_request), (&json!("after"), &None));
}

/// Regression: a failed run was finished with `stop` and no usage.
#[test]
fn a_failed_run_is_an_error_with_its_usage() {
    let mut mapper = NdjsonMapper::new();
    let result = json!({
        "type":"result","status":"error","error":{"type":"unknown","message":"quota"},
        "stats":{"total_tokens":30,"input_tokens":20,"output_tokens":10,"cached":0,"input":20}
    });
    let (parts, _) = push(&mut mapper, result);
    assert_eq!(kinds(&parts), ["error", "finish"]);
    assert_eq!(parts[1]["finishReason"]["unified"], "error");
    assert_eq!(parts[1]["usage"]["inputTokens"]["total"], 20);
}

#[test]
fn the_session_id_is_never_used_as_the_model() {
    let (parts, _) =
        push(&mut NdjsonMapper::new(), json!({"type":"init","session_id":"s","modelId":"m"}));
    assert_eq!(parts[0]["modelId"], "m");
}

/// Regression: a stream without text was finished with an error.
#[test]
fn an_empty_stream_is_finished_with_stop() {
    let mut mapper = NdjsonMapper::new();
    let (parts, _) = read(mapper.finish());
    assert_eq!(kinds(&parts), ["finish"]);
    assert_eq!(parts[0]["finishReason"]["unified"], "stop");
    let (_, mapped) = push(&mut mapper, json!({"type":"init","session_id":"s1"}));
    assert_eq!(mapped.session.agent_session_id.as_deref(), Some("s1"));
    let (parts, _) = read(mapper.finish());
    assert_eq!(kinds(&parts), ["finish"]);
    assert_eq!(parts[0]["finishReason"]["unified"], "stop");
}
