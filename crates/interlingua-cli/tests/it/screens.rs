//! What a real terminal shows: `translate --to text` in tmux.
//!
//! The rows have to be those of the terminal emulator with which the view is tested, and the
//! colours those of a reviewed file. `UPDATE_SCREENS=1` writes the files; look at them with `cat`.

use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A tmux server of its own.
struct Tmux {
    name: String,
}

impl Tmux {
    /// Starts a server. It has a session of its own, because a server exits with its last one, and
    /// the next command could reach it then.
    fn start(purpose: &str) -> Self {
        let tmux = Self { name: format!("interlingua-{purpose}-{}", std::process::id()) };
        let started = tmux.run(&["new-session", "-d", "-s", "kept", "cat"]);
        assert!(started.status.success(), "{started:?}");
        tmux
    }

    fn run(&self, arguments: &[&str]) -> Output {
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
        let screen = String::from_utf8(screen).unwrap();
        let rows: Vec<&str> = screen.lines().map(str::trim_end).collect();
        rows.join("\n").trim_end().to_owned() + "\n"
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-L", &self.name, "kill-server"]).output();
    }
}

#[allow(clippy::print_stdout, reason = "a test that did not run has to be seen")]
fn is_installed() -> bool {
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
