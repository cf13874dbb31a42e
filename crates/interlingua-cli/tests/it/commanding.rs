//! Commands on standard input: several prompts, decisions, answers, and lines that are none.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout};

use serde_json::Value;

use crate::support::command;

/// An agent that speaks Claude's protocol, and reacts to words of its prompt.
const TALKER: &str = r#"
say() { printf '%s\n' '{"type":"assistant","message":{"id":"m'$n'","role":"assistant","content":[{"type":"text","text":"'"$1"'"}]},"session_id":"s1","uuid":"u'$n'"}'; }
end() { echo '{"type":"result","subtype":"'$1'","is_error":'$2',"terminal_reason":"'$3'","result":"","session_id":"s1","uuid":"r'$n'"}'; }
request() { echo '{"type":"control_request","request_id":"q'$n'","request":{"subtype":"can_use_tool","tool_name":"'$1'","input":'"$2"',"tool_use_id":"c'$n'"}}'; }
n=0
while read -r line; do
  case $line in
    *'"subtype":"interrupt"'*) end error_during_execution true aborted_streaming; continue;;
    *'"behavior":"allow"'*) say yes; end success false completed; continue;;
    *'"control_response"'*) say no; end success false completed; continue;;
    *'"type":"user"'*) ;;
    *) continue;;
  esac
  n=$((n+1))
  case $line in
    *wait*) say begins;;
    *spawn*) env -i setsid sleep 1000 & say started;;
    *touch*) request Bash '{"command":"touch x"}';;
    *ask*) request AskUserQuestion '{"questions":[{"question":"Which?","options":[{"label":"Red"},{"label":"Blue"}]}]}';;
    *) text=${line#*content\":\"}; say "${text%%\"*}"; end success false completed;;
  esac
done"#;

/// The description of that agent.
pub(crate) fn talker(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (script, path) =
        (folder.join(format!("{name}-talker.sh")), folder.join(format!("{name}-talker.toml")));
    std::fs::write(&script, TALKER).unwrap();
    let text = format!(
        "command = \"/bin/sh\"\narguments = [{:?}]\ndialect = \"claude\"\nprompt = \"protocol\"\n",
        script.display().to_string()
    );
    std::fs::write(&path, text).unwrap();
    path
}

/// A session that a program controls.
struct Controlled {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    events: Vec<Value>,
}

impl Controlled {
    fn start(name: &str, arguments: &[&str]) -> Self {
        let path = talker(name).display().to_string();
        let arguments = [&[arguments[0], &path], &arguments[1..]].concat();
        let mut child = command(&arguments).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, stdin, stdout, events: Vec::new() }
    }

    fn send(&mut self, line: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_ref()).unwrap();
        stdin.write_all(b"\n").unwrap();
    }

    /// Waits for an event of a kind.
    fn until(&mut self, kind: &str) {
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "{:?}", self.events);
            let event: Value = serde_json::from_str(&line).unwrap();
            let found = event["type"] == kind;
            self.events.push(event);
            if found {
                return;
            }
        }
    }

    /// The text of the model, the outcomes of the turns, the exit code, and standard error.
    fn end(mut self) -> (String, Vec<String>, Option<i32>, String) {
        drop(self.stdin.take());
        let lines = self.stdout.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap());
        self.events.extend(lines);
        let output = self.child.wait_with_output().unwrap();
        let text = self.events.iter().filter(|event| event["type"] == "block");
        let text = text.map(|event| event["text"].as_str().unwrap_or_default()).collect();
        let ends = self.events.iter().filter(|event| event["type"] == "turn_ended");
        let outcomes = ends.map(|event| event["outcome"].as_str().unwrap().to_owned()).collect();
        (text, outcomes, output.status.code(), String::from_utf8(output.stderr).unwrap())
    }
}

#[test]
fn prompts_follow_each_other() {
    for arguments in [&["chat"][..], &["run", "--input", "json"]] {
        let mut session = Controlled::start("follow", arguments);
        session.send(r#"{"prompt":"one"}"#);
        session.send(r#"{"prompt":"two"}"#);
        session.until("turn_ended");
        session.until("turn_ended");
        session.send(r#"{"prompt":"three"}"#);
        let (text, outcomes, code, _) = session.end();
        assert_eq!((&*text, code), ("onetwothree", Some(0)));
        assert_eq!(outcomes, ["completed"; 3]);
    }
}

#[test]
fn a_chat_may_begin_with_a_prompt() {
    let mut session = Controlled::start("begins", &["chat", "one"]);
    session.until("turn_ended");
    session.send(r#"{"prompt":"two"}"#);
    let (text, outcomes, ..) = session.end();
    assert_eq!((&*text, outcomes.len()), ("onetwo", 2));
}

/// A run with a prompt ends with its turn, unless another prompt follows.
#[test]
fn a_second_prompt_makes_a_run_a_conversation() {
    let mut session = Controlled::start("second", &["run", "wait"]);
    session.until("block");
    session.send(r#"{"prompt":"two"}"#);
    session.send(r#"{"interrupt":true}"#);
    session.until("turn_ended");
    session.until("turn_ended");
    session.send(r#"{"prompt":"three"}"#);
    let (text, outcomes, code, _) = session.end();
    assert_eq!((&*text, code), ("beginstwothree", Some(0)));
    assert_eq!(outcomes, ["cancelled", "completed", "completed"]);
    let mut alone = Controlled::start("alone", &["run", "one"]);
    // Standard input stays open.
    alone.until("session_ended");
    assert_eq!(alone.end().1, ["completed"]);
}

#[test]
fn a_request_is_named_by_its_id_or_its_tool_call() {
    let mut session = Controlled::start("named", &["chat"]);
    session.send(r#"{"prompt":"touch it"}"#);
    session.until("permission_requested");
    session.send(r#"{"request":"nonsense","decision":"allow"}"#);
    session.send(r#"{"call":"c1","decision":"allow"}"#);
    session.until("turn_ended");
    session.send(r#"{"prompt":"ask me"}"#);
    session.until("question_asked");
    session.send(r#"{"request":"q2","answer":"Green"}"#);
    session.send(r#"{"request":"q2","answer":"Blue"}"#);
    session.until("turn_ended");
    let (text, _, code, stderr) = session.end();
    assert_eq!((&*text, code), ("yesyes", Some(0)));
    assert!(
        stderr.contains("no request or tool call `nonsense`") && stderr.contains("q1"),
        "{stderr}"
    );
}

#[test]
fn the_end_of_the_input_declines_what_waits() {
    for prompt in ["touch it", "ask me"] {
        let mut session = Controlled::start("declines", &["chat"]);
        session.send(serde_json::json!({ "prompt": prompt }).to_string());
        session.until(if prompt == "ask me" { "question_asked" } else { "permission_requested" });
        let (text, outcomes, code, _) = session.end();
        assert_eq!((&*text, outcomes, code), ("no", vec!["completed".to_owned()], Some(0)));
    }
}

#[test]
fn a_line_that_is_no_command_costs_only_itself() {
    let mut session = Controlled::start("lines", &["chat"]);
    session.send(b"{\"prompt\":\"\xff\"}");
    session.send("not json");
    session.send("");
    session.send(r#"{"promt":"x"}"#);
    session.send(r#"{"prompt":"one"}"#);
    let (text, _, code, stderr) = session.end();
    assert_eq!((&*text, code), ("one", Some(0)));
    assert_eq!(stderr.matches("a line of standard input was ignored").count(), 3, "{stderr}");
    assert!(stderr.contains("not valid UTF-8") && stderr.contains("promt"), "{stderr}");
}

/// A host that sends the mode of another version still has a session, with the safest mode.
#[test]
fn a_mode_that_is_not_known_is_the_default_one() {
    let mut session = Controlled::start("modes", &["chat", "--permission-mode", "auto"]);
    session.send(r#"{"mode":"yolo"}"#);
    session.until("notice");
    let notice = session.events.last().unwrap()["text"].as_str().unwrap().to_owned();
    assert!(notice.contains("`yolo` is not a permission mode"), "{notice}");
    assert!(notice.contains("accept-edits"), "{notice}");
    // What the mode `auto` allows has to be asked now.
    session.send(r#"{"prompt":"touch it"}"#);
    session.until("permission_requested");
    let (text, _, code, stderr) = session.end();
    assert_eq!((&*text, code), ("no", Some(0)), "{stderr}");
}

#[test]
fn a_session_is_closed_at_once() {
    let mut session = Controlled::start("closed", &["chat"]);
    session.send(r#"{"prompt":"wait"}"#);
    session.until("block");
    session.send(r#"{"prompt":"never"}"#);
    session.send(r#"{"close":true}"#);
    session.until("session_ended");
    let (text, outcomes, code, _) = session.end();
    assert_eq!((&*text, code), ("begins", Some(130)));
    assert_eq!(outcomes, ["cancelled"]);
}

/// Whatever an agent started, and whatever it cleared, ends with the command.
#[test]
#[allow(clippy::panic, reason = "the test has failed")]
fn nothing_survives_two_sessions_that_are_killed() {
    let mut sessions: Vec<_> =
        ["killed-one", "killed-two"].map(|name| Controlled::start(name, &["chat"])).into();
    for session in &mut sessions {
        session.send(r#"{"prompt":"spawn"}"#);
        session.until("block");
    }
    let marks: Vec<_> = sessions.iter().map(|session| session.child.id()).collect();
    let below = |pid: u32| {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        children.unwrap_or_default().split(' ').filter_map(|child| child.parse().ok()).collect()
    };
    let mut living: Vec<u32> = marks.iter().flat_map(|pid| below(*pid)).collect();
    let mut at = 0;
    while let Some(pid) = living.get(at).copied() {
        living.extend::<Vec<u32>>(below(pid));
        at += 1;
    }
    // For each: the guard, the shell, and what it started, at least.
    assert!(living.len() >= 6, "{living:?}");
    for mut session in sessions {
        session.child.kill().unwrap();
        session.child.wait().unwrap();
    }
    let is_alive = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    // The system ends them as soon as it can; nothing reports when that is done.
    for _ in 0..200 {
        living.retain(is_alive);
        if living.is_empty() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{living:?} are alive");
}

/// An agent that is a process is started again with the id of its own session.
#[test]
fn a_session_of_a_process_is_continued_and_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let (work, state) = (folder.path().join("work"), folder.path().join("state"));
    std::fs::create_dir(&work).unwrap();
    let (script, description) = (folder.path().join("agent.sh"), folder.path().join("agent.toml"));
    let says = r#"read -r line; id=${2:-first}
echo '{"type":"system","subtype":"init","session_id":"'$id'","model":"m","cwd":"/w","tools":[],"uuid":"i"}'
echo '{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"session '$id' '$#'"}]},"session_id":"'$id'","uuid":"u"}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"'$id'","uuid":"r"}'
cat > /dev/null"#;
    std::fs::write(&script, says).unwrap();
    let text = format!(
        "command = \"/bin/sh\"\narguments = [{:?}, \"--resume\", \"{{session}}\"]\ndialect = \"claude\"\nprompt = \"protocol\"\n",
        script.display().to_string()
    );
    std::fs::write(&description, text).unwrap();
    let chat = |folder: &std::path::Path, arguments: &[&str]| {
        let mut chat = command(&["chat", description.to_str().unwrap(), "hello", "--to", "text"]);
        chat.args(arguments).arg("--cwd").arg(folder).env("XDG_STATE_HOME", &state);
        let output = chat.stdin(std::process::Stdio::null()).output().unwrap();
        let all = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        (output.status.code(), all.concat())
    };
    for (arguments, said) in [
        (&[][..], "session first 0"),
        (&["--continue"], "session first 2"),
        (&["--resume", "other"], "session other 2"),
        // The last one is continued.
        (&["--continue"], "session other 2"),
    ] {
        let (code, shown) = chat(&work, arguments);
        assert!(code == Some(0) && shown.contains(said), "{arguments:?}: {shown}");
    }
    let (code, shown) = chat(folder.path(), &["--continue"]);
    assert!(code == Some(2) && shown.contains("there is no session of"), "{shown}");
}
