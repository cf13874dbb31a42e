//! No event is dropped because its id was used before: native ids are unique within one run of an
//! agent at best, and emitted ids are unique within the session.

use std::collections::BTreeSet;

use interlingua::event::{Data, Event, ToolEnded};
use interlingua::json::{Json, Text};
use interlingua::{
    EntryRef, Exit, ReadOptions, Reader, RepairKind, Source, StreamEnd, dialect as dialects,
};

use crate::support::{translate_lines, written};

/// Two runs of one Codex thread, appended to one file: the second lost its command and its answer.
const TWO_RUNS: [&str; 10] = [
    r#"{"type":"thread.started","thread_id":"t"}"#,
    r#"{"type":"turn.started"}"#,
    r#"{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"echo one","aggregated_output":"one\n","exit_code":0,"status":"completed"}}"#,
    r#"{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Answer one."}}"#,
    r#"{"type":"turn.completed","usage":{"input_tokens":100,"output_tokens":20}}"#,
    r#"{"type":"thread.started","thread_id":"t"}"#,
    r#"{"type":"turn.started"}"#,
    r#"{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"echo two","aggregated_output":"two\n","exit_code":0,"status":"completed"}}"#,
    r#"{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Answer two."}}"#,
    r#"{"type":"turn.completed","usage":{"input_tokens":300,"output_tokens":60}}"#,
];

struct Run {
    events: Vec<(u64, Event<'static>)>,
    repairs: Vec<RepairKind>,
}

fn read(dialect: &str, lines: &[&str]) -> Run {
    let mut reader = reader(dialect);
    let mut events = Vec::new();
    let mut keep = |entry: EntryRef<'_>| events.push((entry.epoch, entry.to_owned().event));
    let input = lines.iter().flat_map(|line| [line, "\n"]).collect::<String>();
    reader.push(input.as_bytes(), None, &mut keep).unwrap();
    let report = reader.finish(&Exit::default(), None, &mut keep).unwrap();
    assert!(report.account.frames.add_up() && report.account.events.add_up());
    let repairs = report.repairs.counts().map(|(kind, _)| kind).collect();
    Run { events, repairs }
}

fn reader(dialect: &str) -> Reader {
    Reader::new(Source::named(dialect).unwrap(), ReadOptions::default()).unwrap()
}

impl Run {
    /// The calls: the ids under which they are emitted, and their outputs.
    fn calls(&self) -> Vec<(String, String)> {
        let ended = self.events.iter().filter_map(|(_, event)| match &event.data {
            Data::ToolEnded(ended) => {
                let output = ended.output.as_ref().map(|output| output.get().to_owned());
                Some((ended.call.to_string(), output.unwrap_or_default()))
            }
            _ => None,
        });
        ended.collect()
    }

    fn texts(&self) -> Vec<String> {
        let texts = self.events.iter().filter_map(|(_, event)| match &event.data {
            Data::Block(block) => Some(block.text.to_string()),
            _ => None,
        });
        texts.collect()
    }

    fn ids(&self) -> Vec<String> {
        let started = self.events.iter().filter_map(|(_, event)| match &event.data {
            Data::ToolStarted(started) => Some(started.call.to_string()),
            _ => None,
        });
        started.collect()
    }
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(one, two)| (one.to_string(), two.to_string())).collect()
}

#[test]
fn a_second_run_in_one_file_is_another_epoch() {
    let run = read("codex", &TWO_RUNS);
    assert_eq!(run.calls(), owned(&[("item_0", r#""one\n""#), ("item_0-2", r#""two\n""#)]));
    assert_eq!(run.texts(), ["Answer one.", "Answer two."]);
    assert_eq!(run.repairs, [RepairKind::CallIdReused]);
    let epochs: BTreeSet<_> = run.events.iter().map(|(epoch, _)| *epoch).collect();
    assert_eq!(epochs, BTreeSet::from([0, 1]));
}

#[test]
fn counts_continue_in_a_second_run() {
    let run = read("codex", &TWO_RUNS);
    let usage = run.events.iter().filter_map(|(_, event)| match &event.data {
        Data::TurnEnded(ended) => ended.usage.as_ref().map(|usage| (usage.input, usage.output)),
        _ => None,
    });
    assert_eq!(usage.collect::<Vec<_>>(), [(Some(100), Some(20)), (Some(200), Some(40))]);
}

/// Counts accumulate within one session of the agent.
#[test]
fn counts_of_another_session_start_from_zero() {
    let mut lines = TWO_RUNS;
    lines[5] = r#"{"type":"thread.started","thread_id":"another"}"#;
    let run = read("codex", &lines);
    let usage = run.events.iter().filter_map(|(_, event)| match &event.data {
        Data::TurnEnded(ended) => ended.usage.as_ref().map(|usage| (usage.input, usage.output)),
        _ => None,
    });
    assert_eq!(usage.collect::<Vec<_>>(), [(Some(100), Some(20)), (Some(300), Some(60))]);
}

#[test]
fn every_writer_has_both_runs() {
    for to in written() {
        let text = translate_lines("codex", to.name, &TWO_RUNS).text();
        for word in ["Answer one.", "Answer two."] {
            assert_eq!(text.matches(word).count().min(1), 1, "{}: {word}\n{text}", to.name);
        }
    }
    let yume = translate_lines("codex", "yume", &TWO_RUNS).records();
    let inits = yume.iter().filter(|record| record["subtype"] == "init").count();
    assert_eq!(inits, 1, "`yume` introduces a session once");
}

#[test]
fn the_event_carries_the_native_id_too() {
    let run = read("codex", &TWO_RUNS);
    let native: Vec<_> = run
        .events
        .iter()
        .filter_map(|(_, event)| match &event.data {
            Data::ToolStarted(started) => Some(started.native_call.as_ref().map(Text::to_string)),
            _ => None,
        })
        .collect();
    assert_eq!(native, [None, Some("item_0".to_owned())]);
}

#[test]
fn a_run_that_is_restarted_within_a_turn_ends_its_turn_and_its_calls() {
    let started = r#"{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"echo one","aggregated_output":"","exit_code":null,"status":"in_progress"}}"#;
    let lines = [&TWO_RUNS[..2], &[started], &TWO_RUNS[5..]].concat();
    let run = read("codex", &lines);
    assert_eq!(run.calls(), owned(&[("item_0", ""), ("item_0-2", r#""two\n""#)]));
    let ends = run.events.iter().filter(|(_, event)| matches!(event.data, Data::TurnEnded(_)));
    assert_eq!(ends.count(), 2);
    assert!(run.repairs.contains(&RepairKind::TurnNotEnded));
}

/// In each dialect: the same id for another call, after the first one was answered.
#[test]
fn a_call_after_the_answer_is_another_call_even_if_it_is_identical() {
    let gemini = [
        r#"{"type":"init","session_id":"s","model":"m"}"#,
        r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"c","parameters":{"command":"date"}}"#,
        r#"{"type":"tool_result","tool_id":"c","status":"success","output":"one"}"#,
        r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"c","parameters":{"command":"date"}}"#,
        r#"{"type":"tool_result","tool_id":"c","status":"success","output":"two"}"#,
    ];
    let yume = [
        r#"{"type":"system","subtype":"init","session_id":"s","model":"m","cwd":"/","permissionMode":"default","tools":[]}"#,
        r#"{"type":"tool_use","id":"c","name":"Bash","input":{"command":"date"}}"#,
        r#"{"type":"tool_result","tool_use_id":"c","content":"one"}"#,
        r#"{"type":"tool_use","id":"c","name":"Bash","input":{"command":"date"}}"#,
        r#"{"type":"tool_result","tool_use_id":"c","content":"two"}"#,
    ];
    let agent_event = [
        r#"{"type":"session.started","eventId":"1","agentId":"a","agentType":"google-gemini","teamMetadata":{},"timestamp":1}"#,
        r#"{"type":"tool.started","toolName":"sh","toolId":"c","input":{"command":"date"},"eventId":"2","agentId":"a","agentType":"google-gemini","teamMetadata":{},"timestamp":1}"#,
        r#"{"type":"tool.completed","toolId":"c","output":"one","eventId":"3","agentId":"a","agentType":"google-gemini","teamMetadata":{},"timestamp":1}"#,
        r#"{"type":"tool.started","toolName":"sh","toolId":"c","input":{"command":"date"},"eventId":"4","agentId":"a","agentType":"google-gemini","teamMetadata":{},"timestamp":1}"#,
        r#"{"type":"tool.completed","toolId":"c","output":"two","eventId":"5","agentId":"a","agentType":"google-gemini","teamMetadata":{},"timestamp":1}"#,
    ];
    let streams =
        [("gemini", &gemini), ("giselle", &gemini), ("yume", &yume), ("agent-event", &agent_event)];
    for (dialect, lines) in streams {
        let run = read(dialect, lines);
        let calls = owned(&[("c", r#""one""#), ("c-2", r#""two""#)]);
        assert_eq!(run.calls(), calls, "{dialect}");
        assert!(run.repairs.contains(&RepairKind::CallIdReused), "{dialect}");
    }
}

#[test]
fn a_record_that_starts_and_answers_a_call_is_a_repetition_only_if_it_is_identical() {
    let other = TWO_RUNS[2].replace("echo one", "echo three").replace(r"one\n", r"three\n");
    let lines = [TWO_RUNS[0], TWO_RUNS[1], TWO_RUNS[2], TWO_RUNS[2], &other, TWO_RUNS[4]];
    let run = read("codex", &lines);
    assert_eq!(run.calls(), owned(&[("item_0", r#""one\n""#), ("item_0-2", r#""three\n""#)]));
}

#[test]
fn a_second_answer_is_a_repetition_only_if_it_is_identical() {
    let call = r#"{"type":"tool_use","tool_name":"sh","tool_id":"c","parameters":{}}"#;
    let answer = |output: &str| {
        format!(r#"{{"type":"tool_result","tool_id":"c","status":"success","output":"{output}"}}"#)
    };
    let (one, two) = (answer("one"), answer("two"));
    let run = read("gemini", &[call, &one, &one]);
    assert_eq!(run.repairs, [RepairKind::TurnNotEnded]);
    let run = read("gemini", &[call, &one, &two]);
    assert!(run.repairs.contains(&RepairKind::AnswerTooLate));
    let late = run.events.iter().filter_map(|(_, event)| match &event.data {
        Data::Native(native) => native.raw.as_ref().map(|raw| raw.get().to_owned()),
        _ => None,
    });
    assert_eq!(late.collect::<Vec<_>>(), [r#""two""#]);
}

/// Regression: a generated id hid a real one.
#[test]
fn a_generated_id_never_equals_a_real_one() {
    let unnamed = r#"{"type":"tool_use","tool_name":"sh","parameters":{"command":"a"}}"#;
    let answer = r#"{"type":"tool_result","status":"success","output":"a"}"#;
    let named = r#"{"type":"tool_use","tool_name":"sh","tool_id":"call_gemini_1","parameters":{"command":"b"}}"#;
    let named_answer =
        r#"{"type":"tool_result","tool_id":"call_gemini_1","status":"success","output":"b"}"#;
    for lines in [[unnamed, answer, named, named_answer], [named, named_answer, unnamed, answer]] {
        let run = read("gemini", &lines);
        let different: BTreeSet<_> = run.ids().into_iter().collect();
        assert_eq!((run.calls().len(), different.len()), (2, 2), "{different:?}");
    }
}

/// The complete block has the length of the first, and another text.
#[test]
fn a_block_repeats_another_by_its_content_not_by_its_length() {
    let message = |text: &str| {
        format!(
            r#"{{"type":"item.completed","item":{{"id":"item_1","type":"agent_message","text":"{text}"}}}}"#
        )
    };
    let (one, two) = (message("yes, do it"), message("no, do not"));
    let run = read("codex", &[TWO_RUNS[0], TWO_RUNS[1], &one, &one, &two]);
    assert_eq!(run.texts(), ["yes, do it", "no, do not"]);
}

#[test]
fn another_stream_of_a_session_is_another_epoch() {
    let mut reader = reader("codex");
    let mut entries = Vec::new();
    let mut keep = |entry: EntryRef<'_>| entries.push(entry.to_owned());
    let run = |range: std::ops::Range<usize>| {
        TWO_RUNS[range].iter().flat_map(|line| [line, "\n"]).collect::<String>()
    };
    reader.push(run(0..5).as_bytes(), None, &mut keep).unwrap();
    let codex = Source::from(dialects::find("codex").unwrap());
    let error = reader.next_stream(codex).unwrap_err();
    assert_eq!(error, interlingua::Error::StreamNotEnded);
    reader.end_stream(StreamEnd::Exit(&Exit::default()), None, &mut keep).unwrap();
    reader.next_stream(codex).unwrap();
    reader.push(run(5..10).as_bytes(), None, &mut keep).unwrap();
    reader.finish(&Exit::default(), None, &mut keep).unwrap();
    let sequence: Vec<_> = entries.iter().map(|entry| entry.sequence).collect();
    assert_eq!(sequence, (0..entries.len() as u64).collect::<Vec<_>>());
    let ids: Vec<_> = entries
        .iter()
        .filter_map(|entry| match &entry.event.data {
            Data::ToolStarted(started) => Some((entry.epoch, started.call.to_string())),
            _ => None,
        })
        .collect();
    assert_eq!(ids, [(0, "item_0".to_owned()), (1, "item_0-2".to_owned())]);
    let ended = |entry: &&interlingua::Entry| matches!(entry.event.data, Data::SessionEnded(_));
    assert_eq!(entries.iter().filter(ended).count(), 1);
}

/// A turn of a model API consists of several responses, between which its tools are run.
#[test]
fn a_turn_may_continue_in_the_next_stream() {
    let mut reader = reader("gemini");
    let mut kinds = Vec::new();
    let mut keep = |entry: EntryRef<'_>| kinds.push(entry.event.data.kind());
    let call =
        b"{\"type\":\"tool_use\",\"tool_name\":\"sh\",\"tool_id\":\"c\",\"parameters\":{}}\n";
    reader.push(call, None, &mut keep).unwrap();
    reader.end_stream(StreamEnd::TurnGoesOn, None, &mut keep).unwrap();
    reader.next_stream(Source::named("gemini").unwrap()).unwrap();
    let output = Json::from_text(r#""done""#.to_owned());
    let answer = ToolEnded { call: Text::plain("c"), output, ..ToolEnded::default() };
    reader.emit(Event::new(answer), None, &mut keep).unwrap();
    reader.push(b"{\"type\":\"result\",\"status\":\"success\"}\n", None, &mut keep).unwrap();
    reader.finish(&Exit::default(), None, &mut keep).unwrap();
    let turn = ["turn_started", "tool_started", "tool_ended", "turn_ended"];
    assert_eq!(kinds, [&["session_started"], &turn[..], &["session_ended"]].concat());
}
