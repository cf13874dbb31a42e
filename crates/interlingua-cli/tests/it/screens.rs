//! What a real terminal shows: `translate --to text` and a live run, in tmux.
//!
//! The rows of a recording have to be those of the terminal emulator with which the view is tested, and
//! everything else that of a reviewed file. `UPDATE_SCREENS=1` writes the files; look at them with `cat`.

use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A tmux server of its own.
pub(crate) struct Tmux {
    name: String,
}

impl Tmux {
    /// Starts a server. It has a session of its own, because a server exits with its last one, and
    /// the next command could reach it then.
    pub(crate) fn start(purpose: &str) -> Self {
        let tmux = Self { name: format!("interlingua-{purpose}-{}", std::process::id()) };
        let started = tmux.run(&["new-session", "-d", "-s", "kept", "cat"]);
        assert!(started.status.success(), "{started:?}");
        tmux
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.args(["-u", "-L", &self.name, "-f", "/dev/null"]).args(arguments);
        command.env_remove("NO_COLOR").env_remove("TMUX").env("SHELL", "/bin/sh");
        command.output().unwrap()
    }

    /// The whole screen of a command that has ended, with what scrolled off.
    fn screen_of(&self, command: &str, width: u16, escapes: bool) -> String {
        let done = format!("tmux -L {} wait-for -S done", self.name);
        let command = format!("{command}; {done}; exec cat");
        let width = width.to_string();
        let session = ["new-session", "-d", "-s", "shown", "-x", &width, "-y", "24"];
        let started = self.run(&[&session[..], &["/bin/sh", "-c", &command]].concat());
        assert!(started.status.success(), "{started:?}");
        assert!(self.run(&["wait-for", "done"]).status.success());
        let mut capture = vec!["capture-pane", "-t", "shown", "-p", "-S", "-"];
        if escapes {
            capture.push("-e");
        }
        let screen = self.run(&capture).stdout;
        self.run(&["kill-session", "-t", "shown"]);
        trimmed(&String::from_utf8(screen).unwrap())
    }

    /// The screen of a command that still runs, once it shows a text. A terminal has no event for that.
    #[allow(clippy::panic, reason = "the test has failed")]
    pub(crate) fn screen_with(&self, text: &str) -> String {
        let mut screen = String::new();
        for _ in 0..600 {
            let shown = self.run(&["capture-pane", "-t", "live", "-p", "-S", "-"]).stdout;
            screen = trimmed(&String::from_utf8(shown).unwrap());
            if screen.contains(text) {
                return screen;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("{text:?} is not shown: {screen}");
    }
}

/// The rows without the blanks at their ends.
fn trimmed(screen: &str) -> String {
    let rows: Vec<&str> = screen.lines().map(str::trim_end).collect();
    rows.join("\n").trim_end().to_owned() + "\n"
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-L", &self.name, "kill-server"]).output();
    }
}

#[allow(clippy::print_stdout, reason = "a test that did not run has to be seen")]
pub(crate) fn is_installed() -> bool {
    let found = Command::new("tmux").arg("-V").output().is_ok();
    if !found {
        println!("SKIPPED screens in tmux: tmux is not installed");
    }
    found
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn compare(file: &str, actual: &str) {
    let path: PathBuf = folder().join("tests/screens").join(file);
    if std::env::var_os("UPDATE_SCREENS").is_some() {
        std::fs::write(&path, actual).unwrap();
    }
    assert_eq!(actual, std::fs::read_to_string(&path).unwrap_or_default(), "{file}");
}

/// The same rows with the shortest escape sequences, whatever the version of tmux writes.
fn normal(screen: &str, width: u16) -> String {
    let size = |number| NonZeroU16::new(number).unwrap();
    let height = u16::try_from(screen.lines().count() + 1).unwrap();
    let mut parser = vt100::Parser::new(size(height), size(width), 0);
    parser.process(screen.replace('\n', "\r\n").as_bytes());
    let rows: Vec<String> = parser.screen().rows_formatted(0, width).collect();
    rows.join("\u{1b}[m\n").trim_end().to_owned() + "\n"
}

fn translate(session: &str, flags: &str) -> String {
    let program = env!("CARGO_BIN_EXE_interlingua");
    let session = folder().join(session);
    format!("HOME=/nowhere {program} translate --to text {flags} {}", session.display())
}

#[test]
fn tmux_shows_what_the_emulator_shows() {
    if !is_installed() {
        return;
    }
    let tmux = Tmux::start("rows");
    let sessions = [
        ("fix-a-test", "tests/sessions/fix-a-test.jsonl"),
        ("parallel-tools", "../../transcripts/codex/tool-parallel/input.jsonl"),
        ("interrupted", "../../transcripts/claude/interrupt-control/input.jsonl"),
        ("plan", "../../transcripts/acp/opencode-todos/input.jsonl"),
    ];
    for (name, path) in sessions {
        for width in [80, 200] {
            let screen = tmux.screen_of(&translate(path, ""), width, false);
            let expected = folder().join(format!("tests/screens/{name}-{width}.txt"));
            assert_eq!(screen, std::fs::read_to_string(expected).unwrap(), "{name}, {width}");
        }
    }
}

#[test]
fn tmux_shows_colours() {
    if !is_installed() {
        return;
    }
    let tmux = Tmux::start("colours");
    let command = translate("tests/sessions/fix-a-test.jsonl", "");
    compare("fix-a-test-80.ansi", &normal(&tmux.screen_of(&command, 80, true), 80));
    // Bold and the like are no colours; 39 and 49 are the terminal's own.
    let uncoloured = tmux.screen_of(&format!("NO_COLOR=1 {command}"), 80, true);
    let numbers = uncoloured.split("\u{1b}[").skip(1).filter_map(|it| it.split_once('m'));
    let mut numbers = numbers.flat_map(|(numbers, _)| numbers.split(';'));
    let is_colour = |number: &str| {
        number.parse::<u8>().is_ok_and(|it| matches!(it, 30..=38 | 40..=48 | 90..=107))
    };
    assert!(uncoloured.contains("\u{1b}[1m") && !numbers.any(is_colour), "{uncoloured:?}");
    let plain = tmux.screen_of(&format!("TERM=dumb {command}"), 80, true);
    assert_eq!(
        plain,
        std::fs::read_to_string(folder().join("tests/screens/fix-a-test-80.txt")).unwrap()
    );
}

/// An agent that runs a command until the pipe `go` is opened, asks about an edit, and reports with a
/// table and wide characters.
const AGENT: &str = r###"
read -r prompt
cat <<'END'
{"type":"system","subtype":"init","session_id":"01234567-s","model":"model-1","cwd":"/srv/parser","tools":["Bash","Edit"],"uuid":"i"}
{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"I run the tests (試験) first."},{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"make test NAMES='解析 読み取り' JOBS=4"}}]},"session_id":"01234567-s","uuid":"u1"}
END
cat go
cat <<'END'
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"1 failed: 解析\nmake: *** [test] Error 1","is_error":true}]},"session_id":"01234567-s","uuid":"u2"}
{"type":"assistant","message":{"id":"m2","role":"assistant","content":[{"type":"tool_use","id":"c2","name":"Edit","input":{"file_path":"/srv/parser/take.mjs","old_string":"const limit = 3;\nreturn input.slice(0, limit);\n","new_string":"// 上限は四です。\nconst limit = 4;\nreturn input.slice(0, limit);\n"}}]},"session_id":"01234567-s","uuid":"u3"}
{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Edit","input":{"file_path":"/srv/parser/take.mjs","old_string":"const limit = 3;\nreturn input.slice(0, limit);\n","new_string":"// 上限は四です。\nconst limit = 4;\nreturn input.slice(0, limit);\n"},"tool_use_id":"c2"}}
END
read -r answer
cat <<'END'
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"done"}]},"session_id":"01234567-s","uuid":"u4"}
{"type":"assistant","message":{"id":"m3","role":"assistant","content":[{"type":"text","text":"## 結果\n\nThe limit was **too small**, so a line of four bytes was cut. 全角文字は二桁の幅を取るので、折り返しの位置も表の罫線も、文字の数ではなく桁の数で決まります。\n\n| 項目 | state | note |\n|---|:-:|--:|\n| 読み取り | done | 12 |\n| write | `open` | 全角 |\n\n1. run `make`\n2. 二番目\n"}]},"session_id":"01234567-s","uuid":"u5"}
{"type":"result","subtype":"success","is_error":false,"duration_ms":65000,"num_turns":3,"result":"","session_id":"01234567-s","uuid":"r","usage":{"input_tokens":1200,"output_tokens":80}}
END
cat > /dev/null
"###;

/// A screen without what depends on time: the frame of a spinner, and for how long something runs.
pub(crate) fn timeless(screen: &str) -> String {
    let row = |row: &str| {
        let row = row.replace(|letter| ('\u{2801}'..='\u{28ff}').contains(&letter), "⠋");
        let is_time =
            |fact: &&str| fact.strip_suffix(" s").is_some_and(|it| it.parse::<u32>().is_ok());
        let facts: Vec<&str> = row.split(" · ").filter(|fact| !is_time(fact)).collect();
        facts.join(" · ") + "\n"
    };
    screen.lines().map(row).collect()
}

/// A call that runs, a question about an edit, and Markdown with a table and wide characters.
#[test]
fn tmux_shows_a_live_run() {
    if !is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("agent.sh"), format!("cd {}\n{AGENT}", path(""))).unwrap();
    let description = format!(
        "command = \"/bin/sh\"\narguments = [{:?}]\ndialect = \"claude\"\nprompt = \"protocol\"\n",
        path("agent.sh")
    );
    std::fs::write(path("agent.toml"), description).unwrap();
    let program = env!("CARGO_BIN_EXE_interlingua");
    let command = format!(
        "HOME=/nowhere {program} run {} 'fix the test' --cwd /; echo exit code $?; exec cat",
        path("agent.toml")
    );
    for width in ["80", "200"] {
        let made = Command::new("mkfifo").arg(path("go")).status();
        assert!(made.unwrap().success());
        let tmux = Tmux::start(&format!("live-{width}"));
        let session = ["new-session", "-d", "-s", "live", "-x", width, "-y", "40"];
        let started = tmux.run(&[&session[..], &["/bin/sh", "-c", &command]].concat());
        assert!(started.status.success(), "{started:?}");
        let running = tmux.screen_with(" Running");
        compare(&format!("live-running-{width}.txt"), &timeless(&running));
        std::fs::write(path("go"), "").unwrap();
        let asked = tmux.screen_with("Allow?");
        compare(&format!("live-asked-{width}.txt"), &timeless(&asked));
        tmux.run(&["send-keys", "-t", "live", "y", "Enter"]);
        let ended = tmux.screen_with("exit code 0");
        compare(&format!("live-ended-{width}.txt"), &timeless(&ended));
        std::fs::remove_file(path("go")).unwrap();
    }
}
