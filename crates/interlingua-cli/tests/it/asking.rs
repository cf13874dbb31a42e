//! Permission requests at a terminal: what the user sees, and which input counts as an answer.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::support::command;

/// A command whose standard input and standard error are a terminal.
struct AtTerminal {
    master: File,
    child: Child,
    seen: String,
}

impl AtTerminal {
    /// Starts Claude Code, played by a script, with `typed` waiting in the terminal.
    fn start(name: &str, script: &[&str], arguments: &[&str], typed: &str) -> Self {
        let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.sh"));
        std::fs::write(&program, format!("#!/bin/sh\n{}\n", script.join("\n"))).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let side = || File::options().read(true).write(true).open(&path).unwrap();
        let mut master = File::from(master);
        let (stdin, stderr) = (side(), side());
        master.write_all(typed.as_bytes()).unwrap();
        let child = command(&["run", "claude", "do it", "--to", "events", "--program"])
            .arg(program)
            .args(arguments)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        Self { master, child, seen: String::new() }
    }

    /// Reads the terminal until these words appear; returns what appeared up to them.
    fn until(&mut self, words: &str) -> String {
        let mut buffer = [0; 4096];
        loop {
            if let Some(at) = self.seen.find(words) {
                let rest = self.seen.split_off(at + words.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            let length = self.master.read(&mut buffer).unwrap();
            self.seen.push_str(&String::from_utf8_lossy(buffer.get(..length).unwrap()));
        }
    }

    fn answer(&mut self, line: &str) {
        self.master.write_all(line.as_bytes()).unwrap();
    }

    /// The events of the stream.
    fn events(self) -> Vec<serde_json::Value> {
        let output = self.child.wait_with_output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The decisions in the stream, in their order.
    fn decisions(self) -> Vec<String> {
        let events = self.events().into_iter();
        let decision = |event: serde_json::Value| match event.get("type")?.as_str()? {
            "permission_resolved" => event.get("decision")?.as_str().map(str::to_owned),
            _ => None,
        };
        events.filter_map(decision).collect()
    }
}

/// A request for permission to run a command, which is a JSON string literal.
fn request(id: &str, command: &str) -> String {
    let request = format!(
        r#"{{"type":"control_request","request_id":"{id}","request":{{"subtype":"can_use_tool","tool_name":"Bash","input":{{"command":{command}}},"tool_use_id":"{id}"}}}}"#
    );
    format!("cat <<'END'\n{request}\nEND\nread answer")
}

const RESULT: &str = r#"echo '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s","uuid":"u3"}'; cat > /dev/null"#;

#[test]
fn the_whole_command_is_shown_before_it_is_allowed() {
    let words = "x ".repeat(200);
    let asks = request("r1", &format!(r#""git status {words}; \\\nrm b.txt\u202e\r""#));
    let mut run = AtTerminal::start("whole", &["read prompt", &asks, RESULT], &[], "");
    let question = run.until("Allow? [y]es, [a]lways, [n]o, [e]xplain:").replace("\r\n", "\n");
    // A row that continues a line has a mark.
    let question = question.replace("\n  ↪ ", "");
    let expected = format!("  $ git status {words}; \\\n  > rm b.txt\\u{{202e}}\\r\n");
    assert!(question.contains(&expected), "{question}");
    run.answer("what\n");
    run.until("Please answer y, a, n or e.");
    run.until("[e]xplain:");
    run.answer("y\n");
    assert_eq!(run.decisions(), ["allowed"]);
}

#[test]
fn a_long_request_is_shown_on_demand() {
    let lines: String = (0..60).map(|line| format!("touch {line}\\n")).collect();
    let asks = request("r1", &format!("\"{lines}\""));
    let mut run = AtTerminal::start("long", &["read prompt", &asks, RESULT], &[], "");
    let short = run.until("[e]xplain:");
    assert!(short.contains("more lines would be allowed too") && !short.contains("touch 59"));
    // One screen after another: a terminal of unknown size has 24 rows.
    let mut pages = Vec::new();
    while !pages.iter().any(|page: &String| page.contains("  > touch 59")) {
        run.answer("e\n");
        pages.push(run.until("[e]xplain:"));
        assert!(pages.last().unwrap().lines().count() <= 25, "{pages:?}");
    }
    let shown = pages.concat();
    assert!((1..60).all(|line| shown.contains(&format!("  > touch {line}\r"))), "{shown}");
    run.answer("n\n");
    assert_eq!(run.decisions(), ["denied"]);
}

#[test]
fn input_from_before_the_question_is_no_answer() {
    let asks = request("r1", r#""rm x""#);
    let mut run = AtTerminal::start("early", &["read prompt", &asks, RESULT], &[], "y\ny\ny\n");
    run.until("[e]xplain:");
    run.answer("n\n");
    assert_eq!(run.decisions(), ["denied"]);
}

/// The rest of what is typed at one question must not answer the next one, which was not shown yet.
#[test]
fn input_from_before_the_next_question_is_no_answer_to_it() {
    let options = r#""options":[{"label":"Red"},{"label":"Blue"}]"#;
    let questions = format!(
        r#"{{"questions":[{{"question":"Inside?",{options}}},{{"question":"Outside?",{options}}}]}}"#
    );
    let asks = request("q1", r#""""#).replace("Bash", "AskUserQuestion");
    let asks = asks.replace(r#"{"command":""}"#, &questions);
    let mut run = AtTerminal::start("two-questions", &["read prompt", &asks, RESULT], &[], "");
    run.until("nothing to decline:");
    run.answer("1\n2\n");
    run.until("Outside?");
    run.until("nothing to decline:");
    run.answer("1\n");
    let events = run.events();
    let answered = events.iter().find(|event| event["type"] == "question_answered").unwrap();
    let answers = answered["answers"].to_string();
    assert!(answers.contains("Red") && !answers.contains("Blue"), "{answered}");
}

#[test]
fn input_from_before_the_pattern_is_asked_for_is_no_pattern() {
    let asks = [request("r1", r#""rm x""#), request("r2", r#""touch b""#)].join("\n");
    let mut run = AtTerminal::start("early-pattern", &["read prompt", &asks, RESULT], &[], "");
    run.until("[e]xplain:");
    run.answer("a\ntool\n");
    run.until("Pattern:");
    run.answer("\n");
    assert!(run.until("[e]xplain:").contains("touch b"));
    run.answer("n\n");
    assert_eq!(run.decisions(), ["allowed", "denied"]);
}

/// In `auto`, Gemini was started with `--approval-mode yolo`, requested nothing, and no rule could
/// deny anything.
#[test]
fn an_agent_asks_also_in_auto() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (program, seen) = (folder.join("gemini.sh"), folder.join("gemini.arguments"));
    std::fs::write(&program, format!("#!/bin/sh\necho \"$@\" > {}\n", seen.display())).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let arguments = ["run", "gemini", "do it", "--permission-mode", "auto", "--program"];
    command(&arguments).arg(&program).output().unwrap();
    let started_with = std::fs::read_to_string(&seen).unwrap();
    assert!(started_with.contains("--acp") && started_with.contains("--policy"), "{started_with}");
    assert!(!started_with.contains("yolo"), "{started_with}");
}

#[test]
fn always_covers_the_same_command_and_a_pattern_more() {
    let same = [request("r1", r#""rm x""#), request("r2", r#""rm x""#)].join("\n");
    let more = [request("r3", r#""touch a""#), request("r4", r#""touch b""#)].join("\n");
    let mut run = AtTerminal::start("always", &["read prompt", &same, &more, RESULT], &[], "");
    run.until("[e]xplain:");
    run.answer("a\n");
    run.until("Pattern:");
    run.answer("\n");
    // The second request is not asked about.
    assert!(run.until("[e]xplain:").contains("touch a"));
    run.answer("a\n");
    run.until("Pattern:");
    run.answer("touch *\n");
    assert_eq!(run.decisions(), ["allowed"; 4]);
}

/// No pattern allows `env`, which runs other programs.
#[test]
fn always_may_cover_the_tool() {
    let asks = [request("r1", r#""rm x""#), request("r2", r#""env touch b""#)].join("\n");
    let mut run = AtTerminal::start("always-tool", &["read prompt", &asks, RESULT], &[], "");
    run.until("[e]xplain:");
    run.answer("a\n");
    let shown = run.until("Pattern:");
    assert!(shown.contains("The word `tool` allows everything that Bash can do"), "{shown}");
    run.answer("tool\n");
    assert_eq!(run.decisions(), ["allowed"; 2]);
}

#[test]
fn a_denial_may_have_a_reason() {
    let asks = request("r1", r#""rm x""#);
    let shows = r#"case $answer in *"use git"*) echo reason >&2;; esac"#;
    let mut run = AtTerminal::start("reason", &["read prompt", &asks, shows, "exit 3"], &[], "");
    run.until("[e]xplain:");
    run.answer("n use git\n");
    let output = run.child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("\"reason\":\"use git\""), "{stdout}");
    assert!(stdout.contains("the last error was: reason"), "{stdout}");
}

#[test]
fn a_question_that_timed_out_leaves_the_next_answer_alone() {
    let config = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("timed-out.toml");
    std::fs::write(&config, "[permissions]\nanswer-within-seconds = 1\n").unwrap();
    let (first, second) = (request("r1", r#""rm x""#), request("r2", r#""touch y""#));
    let script = ["read prompt", &first, &second, RESULT];
    let arguments = ["--config", config.to_str().unwrap()];
    let mut run = AtTerminal::start("timed-out", &script, &arguments, "");
    run.until("[e]xplain:");
    run.until("The request no longer needs an answer.");
    run.until("[e]xplain:");
    run.answer("y\n");
    assert_eq!(run.decisions(), ["denied", "allowed"]);
}
