//! Several prompts in one session: queueing, interrupts, questions, changes and restarts. A shell
//! script plays Claude Code.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use interlingua::event::{Data, Event, HostState};
use interlingua::json::Text;
use interlingua::{Continuation, Entry, ReadOptions};
use interlingua_agents::agent::{Delivery, Launch, Relaunch};
use interlingua_agents::driver::{AcpDriver, AcpSession, ClaudeDriver, PlainDriver};
use interlingua_agents::permission::{Always, Decision, Mode};
use interlingua_agents::process::Input;
use interlingua_agents::{
    Agent, InputRequest, Options, ProcessAgent, Prompt, Receipt, Recorder, Refused, Session, Wanted,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::*;

/// An agent that reacts to words of its prompt, and otherwise repeats it:
/// `wait` (until it is interrupted), `stubborn` (whatever happens), `die`, `touch` (asks for a
/// permission), `ask` (asks a question), `form` (a server asks for a form).
const TALKER: &str = r#"
say() { echo '{"type":"assistant","message":{"id":"m'$n'","role":"assistant","content":[{"type":"text","text":"'"$1"'"}]},"session_id":"s1","uuid":"u'$n'"}'; }
end() { echo '{"type":"result","subtype":"'$1'","is_error":'$2',"terminal_reason":"'$3'","result":"","session_id":"s1","uuid":"r'$n'"}'; }
request() { echo '{"type":"control_request","request_id":"q'$n'","request":{"subtype":"can_use_tool","tool_name":"'$1'","input":'"$2"',"tool_use_id":"c'$n'"}}'; }
n=0
while read -r line; do
  case $line in
    *'"subtype":"interrupt"'*) end error_during_execution true aborted_streaming; continue;;
    *'"control_response"'*)
      case $line in
        *'"behavior":"allow"'*'"answers"'*) say answered;;
        *'"behavior":"allow"'*) say allowed;;
        *) say "denied";;
      esac
      echo "$line" >&2; end success false completed; continue;;
    *'"type":"user"'*) ;;
    *) echo "$line" >&2; continue;;
  esac
  n=$((n+1))
  echo '{"type":"system","subtype":"init","session_id":"s1","model":"m","cwd":"/w","tools":[],"uuid":"i'$n'"}'
  case $line in
    *stubborn*) say begins; trap '' INT TERM; while :; do sleep 1000; done;;
    *wait*) say begins;;
    *die*) say begins; exit 7;;
    *touch*) request Bash '{"command":"touch x"}';;
    *form*) echo '{"type":"control_request","request_id":"q'$n'","request":{"subtype":"elicitation","mcp_server_name":"bank","message":"Who?","mode":"form","requested_schema":{"type":"object","properties":{"name":{"type":"string"},"pin":{"type":"string","format":"password"}}}}}';;
    *ask*) request AskUserQuestion '{"questions":[{"question":"Which?","options":[{"label":"Red"},{"label":"Blue"}]}]}';;
    *) text=${line#*content\":\"}; say "${text%%\"*}"; end success false completed;;
  esac
done"#;

fn talker() -> Launch {
    live(&[TALKER], "claude", Input::Open, Box::<ClaudeDriver>::default())
}

async fn open() -> Watched {
    Watched::open(ProcessAgent::new(talker()), options()).await
}

fn is_end(event: &Value) -> bool {
    event["type"] == "turn_ended"
}

fn outcomes(events: &[Value]) -> Vec<&str> {
    events.iter().filter(|event| is_end(event)).map(|it| it["outcome"].as_str().unwrap()).collect()
}

fn has_text(text: &str) -> impl Fn(&Value) -> bool {
    move |event: &Value| event["type"] == "block" && event["text"] == text
}

/// A session in which someone can be asked.
async fn open_with_user() -> (Watched, mpsc::UnboundedReceiver<InputRequest>) {
    let (requests, asked) = mpsc::unbounded_channel();
    let mut options = options();
    options.input_requests = Some(requests);
    (Watched::open(ProcessAgent::new(talker()), options).await, asked)
}

/// Claude Code begins a turn by itself when a command in the background has ended.
#[tokio::test]
async fn a_receipt_shows_which_turn_is_that_of_a_prompt() {
    let fifo = Fifo::new();
    let wait = fifo.wait_command();
    let own = format!(
        "*own*) say one; end success false completed; n=own; say own; {wait}; end success false completed;;"
    );
    let script = TALKER.replacen("*stubborn*)", &format!("{own}\n    *stubborn*)"), 1);
    let launch = live(&[&script], "claude", Input::Open, Box::<ClaudeDriver>::default());
    let mut session = Watched::open(ProcessAgent::new(launch), options()).await;
    let receipts = [(); 2].map(|()| Receipt::default());
    let prompt = |text: &str, receipt: &Receipt| Prompt::new(text).with_receipt(receipt);
    session.handle.prompt(prompt("own", &receipts[0])).await.unwrap();
    session.until(has_text("own")).await;
    session.handle.prompt(prompt("two", &receipts[1])).await.unwrap();
    assert_eq!(receipts[1].sequence(), None, "it waits for the end of the agent's own turn");
    fifo.release();
    session.until_seen(3, is_end).await;
    let numbers = |kind: &str| {
        let found = session.events.iter().filter(|event| event["type"] == kind);
        found.map(|event| event["sequence"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let [first, second] = receipts.map(|receipt| receipt.sequence().unwrap());
    let (starts, ends) = (numbers("turn_started"), numbers("turn_ended"));
    assert_eq!((starts.len(), ends.len()), (3, 3), "{:?}", session.events);
    assert!(first <= starts[0] && starts[1] < second, "{first}, {second}: {starts:?}");
    assert!(ends[1] < second && second <= starts[2], "{second}: {starts:?}, {ends:?}");
}

#[tokio::test]
async fn prompts_have_their_turns_one_after_the_other() {
    let mut session = open().await;
    session.handle.prompt("wait for me").await.unwrap();
    session.until(has_text("begins")).await;
    // They are queued, although the agent would take them now.
    session.handle.prompt("two").await.unwrap();
    session.handle.prompt("three").await.unwrap();
    session.handle.interrupt().await.unwrap();
    session.handle.finish().await.unwrap();
    let (ended, events) = session.end().await;
    assert_eq!(outcomes(&events), ["cancelled", "completed", "completed"]);
    assert_eq!((ended.code(), text(&events)), (0, "beginstwothree".to_owned()));
    let sequence: Vec<_> = events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequence, (0..events.len() as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_session_waits_for_prompts_without_a_turn() {
    let session = open().await;
    session.handle.finish().await.unwrap();
    let (ended, events) = session.end().await;
    assert_eq!((ended.code(), ended.outcome), (0, None));
    assert_eq!(outcomes(&events), [""; 0]);
}

#[tokio::test]
async fn every_command_is_answered() {
    let mut session = open().await;
    let handle = session.handle.clone();
    assert_eq!(handle.prompt(" \n").await, Err(Refused::EmptyPrompt));
    assert_eq!(handle.interrupt().await, Err(Refused::NoTurn));
    let refused = handle.decide("r9", Decision::Allow).await.unwrap_err();
    assert_eq!(refused, Refused::UnknownRequest { id: "r9".to_owned(), pending: Vec::new() });
    assert!(matches!(handle.set_model("-x").await, Err(Refused::NotSupported(_))));
    handle.prompt("one").await.unwrap();
    session.until(is_end).await;
    handle.close().await.unwrap();
    session.end().await;
    assert_eq!(handle.prompt("two").await, Err(Refused::Ended));
}

#[tokio::test]
async fn closing_cancels_the_turn_and_drops_what_waits() {
    let mut session = open().await;
    session.handle.prompt("wait").await.unwrap();
    session.handle.prompt("never").await.unwrap();
    session.until(has_text("begins")).await;
    session.handle.close().await.unwrap();
    let (ended, events) = session.end().await;
    assert_eq!((outcomes(&events), ended.code()), (vec!["cancelled"], 130));
    assert_eq!(text(&events), "begins");
}

/// The end of its input asks an agent to exit, and one that rests may take its time for that: a signal would
/// be recorded as its end, as it sometimes was for sessions of Qwen Code that rested.
#[tokio::test]
async fn an_agent_that_rests_is_closed_without_a_signal() {
    for is_patient in [true, false] {
        let (closing, exits) = (Fifo::new(), Fifo::new());
        let lines = [TALKER, &closing.signal_command(), &exits.wait_command(), "exit 0"];
        let launch = live(&lines, "claude", Input::Open, Box::<ClaudeDriver>::default());
        let mut options = options();
        options.deadlines.interrupt = Duration::ZERO;
        let mut session = Watched::open(ProcessAgent::new(launch), options).await;
        session.handle.prompt("one").await.unwrap();
        session.until(is_end).await;
        session.handle.close().await.unwrap();
        within(closing.signalled()).await;
        if is_patient {
            exits.release();
        } else {
            // A caller that does not want to wait closes it once more.
            session.handle.close().await.unwrap();
        }
        let (ended, events) = session.end().await;
        let expected = if is_patient { (Some(0), None) } else { (None, Some(15)) };
        assert_eq!((ended.exit.code, ended.exit.signal), expected);
        assert_eq!((outcomes(&events), ended.exit_overdue), (vec!["completed"], false));
    }
}

#[tokio::test]
async fn a_prompt_can_join_the_running_turn() {
    let mut session = open().await;
    session.handle.prompt("wait").await.unwrap();
    session.until(has_text("begins")).await;
    session.handle.prompt(Prompt::joining("also")).await.unwrap();
    session.until(has_text("also")).await;
    session.handle.finish().await.unwrap();
    assert_eq!(outcomes(&session.end().await.1), ["completed"]);
}

/// Claude gives a prompt a turn of its own if the turn that it should join ends before the next call.
/// Until that turn begins, the session is not idle.
#[tokio::test]
async fn a_prompt_that_came_too_late_to_join_has_the_next_turn() {
    let begin = Fifo::new();
    let say = r#"say() { echo '{"type":"assistant","message":{"id":"m'$1'","role":"assistant","content":[{"type":"text","text":"'$1'"}]},"session_id":"s","uuid":"u'$1'"}'; }"#;
    let end = r#"end() { echo '{"type":"result","subtype":"'$1'","is_error":'$2',"terminal_reason":"'$3'","result":"","session_id":"s","uuid":"r'$1'"}'; }"#;
    let take = r#"read -r joining; id=${joining##*\"uuid\":\"}; id=${id%%\"*}; lifecycle queued"#;
    let lifecycle = r#"lifecycle() { echo '{"type":"command_lifecycle","command_uuid":"'$id'","state":"'$1'","session_id":"s"}'; }"#;
    let own = format!("{}; lifecycle started; say also", begin.wait_command());
    let lines = [
        say,
        end,
        lifecycle,
        "read -r prompt; say first",
        take,
        "end success false completed",
        &own,
        "read -r interrupt; end error_during_execution true aborted_streaming; cat >/dev/null",
    ];
    let launch = live(&lines, "claude", Input::Open, Box::<ClaudeDriver>::default());
    let mut options = options();
    options.deadlines.interrupt = Duration::from_secs(60);
    let mut session = Watched::open(ProcessAgent::new(launch), options).await;
    session.handle.prompt("one").await.unwrap();
    session.until(has_text("first")).await;
    session.handle.prompt(Prompt::joining("also")).await.unwrap();
    session.until(is_end).await;
    // The turn that can be interrupted has not begun yet.
    session.handle.interrupt().await.unwrap();
    begin.release();
    session.handle.finish().await.unwrap();
    let (_, events) = session.end().await;
    assert_eq!(
        (outcomes(&events), text(&events)),
        (vec!["completed", "cancelled"], "firstalso".to_owned())
    );
}

/// An agent that can be restarted; keeps what each launch was made with.
fn restarted(launches: Arc<Mutex<Vec<Relaunch>>>) -> ProcessAgent {
    let first = Relaunch { model: Some("m1".to_owned()), ..Relaunch::default() };
    ProcessAgent::new(talker()).relaunched(first, move |next| {
        launches.lock().unwrap().push(next.clone());
        Ok(talker())
    })
}

#[tokio::test]
async fn an_agent_that_died_is_started_again_with_its_session() {
    let launches = Arc::new(Mutex::new(Vec::new()));
    let mut session = Watched::open(restarted(launches.clone()), options()).await;
    session.handle.prompt("die").await.unwrap();
    session.until(is_end).await;
    session.handle.prompt("again").await.unwrap();
    session.handle.finish().await.unwrap();
    let (ended, events) = session.end().await;
    assert_eq!(outcomes(&events), ["failed", "completed"]);
    assert_eq!((ended.code(), text(&events)), (0, "beginsagain".to_owned()));
    let launches = launches.lock().unwrap();
    assert_eq!(launches[0].resume.as_deref(), Some("s1"));
    assert_eq!(launches[0].model.as_deref(), Some("m1"), "the model stays the one requested");
    let epochs: Vec<_> = events.iter().filter_map(|event| event["epoch"].as_u64()).collect();
    assert_eq!(epochs.last(), Some(&1), "a new process is a new epoch");
    let notice = events.iter().find(|event| event["type"] == "notice").unwrap();
    assert!(notice["text"].as_str().unwrap().contains("exited with code 7"), "{notice}");
}

/// A log that a host stores is continued by one session after the other.
#[tokio::test]
async fn a_stored_log_is_continued() {
    let mut log: Vec<Entry> = Vec::new();
    for prompt in ["one", "two"] {
        let read = ReadOptions { id_seed: Some(7), ..ReadOptions::default() };
        let mut continuation = Continuation::new(read.clone()).unwrap();
        log.iter().for_each(|entry| continuation.push(entry.borrowed()));
        let reader = Some(continuation.into_reader());
        let options = Options { read, reader, ..options() };
        let agent = Box::new(ProcessAgent::new(talker()));
        let Session { handle, mut entries, .. } = agent.start(options).await.unwrap();
        let note = HostState { name: Text::plain("note"), raw: None };
        handle.emit(Event::new(note)).await.unwrap();
        handle.prompt(prompt).await.unwrap();
        match prompt {
            "one" => handle.finish().await.unwrap(),
            _ => {
                while let Some(batch) = within(entries.next()).await {
                    let ended = |entry: &Entry| matches!(entry.event.data, Data::TurnEnded(_));
                    let batch = batch.to_entries();
                    let has_ended = batch.iter().any(ended);
                    log.extend(batch);
                    if has_ended {
                        break;
                    }
                }
                handle.close().await.unwrap();
            }
        }
        while let Some(batch) = within(entries.next()).await {
            log.extend(&batch);
        }
    }
    assert!(log.iter().map(|entry| entry.sequence).eq(0..log.len() as u64));
    let kinds: Vec<_> = log.iter().map(|entry| entry.event.data.kind()).collect();
    let count = |kind: &str| kinds.iter().filter(|it| **it == kind).count();
    let counts = ["host_state", "session_started", "turn_started", "turn_ended"].map(count);
    assert_eq!(counts, [2, 1, 2, 2], "{kinds:?}");
    // Only a session that is closed has ended.
    assert_eq!((count("session_ended"), kinds.last()), (1, Some(&"session_ended")));
    assert_eq!(log.last().map(|entry| entry.epoch), Some(2), "each process is an epoch");
}

#[tokio::test]
async fn an_agent_that_ignores_an_interrupt_is_killed_and_the_next_prompt_works() {
    let launches = Arc::new(Mutex::new(Vec::new()));
    let mut session = Watched::open(restarted(launches), options()).await;
    session.handle.prompt("stubborn").await.unwrap();
    session.until(has_text("begins")).await;
    session.handle.interrupt().await.unwrap();
    session.until(is_end).await;
    session.handle.prompt("again").await.unwrap();
    session.handle.finish().await.unwrap();
    let (ended, events) = session.end().await;
    assert_eq!(outcomes(&events), ["cancelled", "completed"]);
    assert_eq!((ended.code(), text(&events)), (0, "beginsagain".to_owned()));
}

#[tokio::test]
async fn an_agent_with_one_prompt_per_process_is_one_session() {
    let launch = || {
        let driver = Box::<PlainDriver>::default();
        let lines = [BEGINS, "prompt=$(cat)", &MESSAGE.replace("hello", "'$prompt'"), COMPLETES];
        Launch { delivery: Delivery::Input, ..live(&lines, "codex", Input::Closed, driver) }
    };
    let agent = ProcessAgent::new(launch()).relaunched(Relaunch::default(), move |next| {
        assert_eq!(next.resume.as_deref(), Some("t1"));
        Ok(launch())
    });
    let session = Watched::open(agent, options()).await;
    session.handle.prompt("one").await.unwrap();
    session.handle.prompt("two").await.unwrap();
    session.handle.finish().await.unwrap();
    let (ended, events) = session.end().await;
    assert_eq!((ended.code(), text(&events)), (0, "onetwo".to_owned()));
    assert_eq!(outcomes(&events), ["completed", "completed"]);
    assert_eq!(kinds(&events).into_iter().filter(|kind| *kind == "session_ended").count(), 1);
    assert_eq!(events.last().unwrap()["epoch"], 1);
}

#[tokio::test]
async fn an_agent_that_cannot_be_started_again_refuses_the_prompt() {
    let session = Watched::start(script(&[BEGINS, COMPLETES]), options()).await;
    let handle = session.handle.clone();
    let (_, events) = session.end().await;
    assert_eq!(outcomes(&events), ["completed"]);
    assert_eq!(handle.prompt("again").await, Err(Refused::Ended));
}

async fn question(asked: &mut mpsc::UnboundedReceiver<InputRequest>) -> InputRequest {
    within(asked.recv()).await.unwrap()
}

#[tokio::test]
async fn a_question_is_answered() {
    let (session, mut asked) = open_with_user().await;
    session.handle.prompt("ask me").await.unwrap();
    let request = question(&mut asked).await;
    let Wanted::Answer(questions) = &request.wanted else { panic!("{request:?}") };
    assert_eq!(questions.questions[0].text, "Which?");
    let handle = &session.handle;
    let wrong = handle.decide(request.id(), Decision::Allow).await;
    assert!(matches!(wrong, Err(Refused::WrongAnswer { .. })));
    // By the id of the tool call, as interfaces know it.
    handle.answer("c1", json!("Blue")).await.unwrap();
    handle.finish().await.unwrap();
    let (ended, events) = session.end().await;
    assert_eq!(text(&events), "answered");
    let answered = events.iter().find(|event| event["type"] == "question_answered").unwrap();
    assert_eq!(answered["answers"][0]["values"], json!(["Blue"]));
    assert!(ended.exit.stderr.unwrap().contains(r#""answers":{"Which?":"Blue"}"#));
}

/// What is a secret in a form reaches the agent, and no event, entry or recording.
#[tokio::test]
async fn a_secret_answer_is_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let (requests, mut asked) = mpsc::unbounded_channel();
    let record = Some(Recorder::create(&folder.path().join("run.jsonl")).unwrap());
    let options = Options { record, input_requests: Some(requests), ..options() };
    let session = Watched::open(ProcessAgent::new(talker()), options).await;
    session.handle.prompt("form").await.unwrap();
    let request = question(&mut asked).await;
    let form = json!({"name": "me", "pin": "1\"2 3"});
    session.handle.answer(request.id(), form).await.unwrap();
    session.handle.finish().await.unwrap();
    let (ended, events) = session.end().await;
    assert!(ended.exit.stderr.unwrap().contains(r#""pin":"1\"2 3""#));
    let answered = events.iter().find(|event| event["type"] == "question_answered").unwrap();
    assert_eq!(answered["form"], json!({"name": "me"}));
    let recorded = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
    let recorded: String = recorded.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    // This agent itself prints on standard error what it receives.
    let events = events.into_iter().filter(|event| event["type"] != "session_ended");
    let shown = format!("{recorded}{}", Value::from_iter(events));
    assert!(recorded.contains("[secret]") && !shown.contains("2 3"), "{shown}");
}

/// Claude's question hung in every mode, and no deadline ended it.
#[tokio::test]
async fn a_question_that_no_one_can_answer_is_declined() {
    let (requests, asked) = mpsc::unbounded_channel();
    let gone = {
        let mut options = options();
        options.input_requests = Some(requests);
        drop(asked);
        options
    };
    let (requests, _asked) = mpsc::unbounded_channel();
    let mut silent = options();
    silent.input_requests = Some(requests);
    silent.deadlines.answer = Duration::from_millis(100);
    for options in [options(), gone, silent] {
        let session = Watched::open(ProcessAgent::new(talker()), options).await;
        session.handle.prompt("ask me").await.unwrap();
        session.handle.finish().await.unwrap();
        let (ended, events) = session.end().await;
        assert_eq!((ended.code(), text(&events)), (0, "denied".to_owned()));
        assert!(ended.exit.stderr.unwrap().contains("no one is available to answer"));
    }
}

#[tokio::test]
async fn a_user_who_leaves_declines_what_waits() {
    let (session, mut asked) = open_with_user().await;
    session.handle.prompt("touch it").await.unwrap();
    question(&mut asked).await;
    drop(asked);
    session.handle.finish().await.unwrap();
    let (_, events) = session.end().await;
    assert_eq!(text(&events), "denied");
}

#[tokio::test]
async fn always_holds_for_the_session() {
    let (mut session, mut asked) = open_with_user().await;
    session.handle.prompt("touch it").await.unwrap();
    let first = question(&mut asked).await;
    let refused = session
        .handle
        .allow_always(first.id(), Always::Matching("rm *".to_owned()))
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("`rm *` would not allow"), "{refused}");
    session.handle.allow_always(first.id(), Always::Same).await.unwrap();
    session.until(is_end).await;
    session.handle.prompt("touch it again").await.unwrap();
    session.handle.finish().await.unwrap();
    let (_, events) = session.end().await;
    assert_eq!(text(&events), "allowedallowed");
    assert!(asked.recv().await.is_none(), "the second request was not asked about");
}

#[tokio::test]
async fn another_mode_decides_what_waits() {
    let (session, mut asked) = open_with_user().await;
    session.handle.prompt("touch it").await.unwrap();
    let request = question(&mut asked).await;
    session.handle.set_mode(Mode::Auto).await.unwrap();
    assert!(!request.is_pending());
    session.handle.finish().await.unwrap();
    let (_, events) = session.end().await;
    assert_eq!(text(&events), "allowed");
    let updated = events.iter().find(|event| event["permission_mode"] == "auto");
    assert!(updated.is_some(), "{events:?}");
}

/// The protocol has no place for the reason of a denial, so the next prompt has it.
#[tokio::test]
async fn a_reason_that_the_protocol_loses_is_given_with_the_next_prompt() {
    let lines = [
        "read initialize; echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":1}}'",
        "read new; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"sessionId\":\"s\"}}'",
        r#"read prompt; echo '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"y","name":"Y","kind":"allow_once"},{"optionId":"n","name":"N","kind":"reject_once"}],"toolCall":{"toolCallId":"c","kind":"execute","rawInput":{"command":"rm x"}}}}'"#,
        r#"read answer; echo '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}'"#,
        r#"read -r prompt; printf '%s\n' "$prompt" >&2; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'; cat >/dev/null"#,
    ];
    let driver = Box::new(AcpDriver::new(AcpSession::default()));
    let (requests, mut asked) = mpsc::unbounded_channel();
    let mut options = options();
    options.input_requests = Some(requests);
    let launch = live(&lines, "acp", Input::Open, driver);
    let mut session = Watched::open(ProcessAgent::new(launch), options).await;
    session.handle.prompt("one").await.unwrap();
    let request = question(&mut asked).await;
    let reason = Decision::Deny("it is needed".to_owned());
    session.handle.decide(request.id(), reason).await.unwrap();
    session.until(is_end).await;
    session.handle.prompt("two").await.unwrap();
    session.handle.finish().await.unwrap();
    let (ended, _) = session.end().await;
    let stderr = ended.exit.stderr.unwrap();
    let expected = r"rm x), for this reason: it is needed\n\ntwo";
    assert!(stderr.contains(expected), "{stderr}");
}
