//! `chat` as a person sees it, in tmux: prompts, questions, Ctrl-C, commands.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};

use crate::commanding::talker;

/// A terminal with the command in it.
struct Screen {
    socket: String,
    folder: tempfile::TempDir,
    /// What runs in it.
    chat: String,
}

impl Screen {
    /// Starts a chat; `None` if there is no tmux.
    #[allow(clippy::print_stdout, reason = "a test that did not run has to be seen")]
    fn start(name: &str, arguments: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let chat = format!(
            "XDG_STATE_HOME={} {} chat {} {arguments}; echo exit code $?; cat",
            folder.path().display(),
            env!("CARGO_BIN_EXE_interlingua"),
            talker(name).display()
        );
        let socket = format!("interlingua-{name}-{}", std::process::id());
        let screen = Self { socket, folder, chat };
        let session = ["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24"];
        let started = screen.tmux(&[&session[..], &[&screen.chat]].concat());
        if started.is_none() {
            println!("SKIPPED a chat in a terminal: tmux cannot be run");
        }
        started.map(|_| screen)
    }

    fn tmux(&self, arguments: &[&str]) -> Option<String> {
        let mut tmux = Command::new("tmux");
        tmux.args(["-L", &self.socket]).args(arguments).stdin(Stdio::null());
        let done = tmux.output().ok().filter(|done| done.status.success())?;
        Some(String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// Starts the same chat once more, with an empty screen.
    fn start_again(&self) {
        self.tmux(&["respawn-pane", "-k", &self.chat]).unwrap();
    }

    /// Saves the session with a command of the chat; returns its events.
    fn saved(&self) -> String {
        let path = self.folder.path().join("saved.jsonl");
        self.keys(&["/save ", &path.display().to_string(), "Enter"]);
        self.until("saved to");
        std::fs::read_to_string(path).unwrap()
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat()).unwrap();
    }

    /// Waits until the screen shows a text; a terminal has no event for that.
    #[allow(clippy::panic, reason = "the test has failed")]
    fn until(&self, text: &str) -> String {
        for _ in 0..600 {
            let shown = self.tmux(&["capture-pane", "-p"]).unwrap_or_default();
            if shown.contains(text) {
                return shown;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("{text:?} is not shown: {}", self.tmux(&["capture-pane", "-p"]).unwrap_or_default());
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_chat_has_several_turns() {
    let Some(screen) = Screen::start("turns", "") else { return };
    screen.until("›");
    screen.keys(&["hello", "Enter"]);
    screen.until("hello\n\n");
    screen.keys(&["touch it", "Enter"]);
    screen.until("Allow? [y]es, [a]lways, [n]o, [e]xplain:");
    screen.keys(&["y", "Enter"]);
    screen.until("yes");
    screen.keys(&["ask me", "Enter"]);
    let question = screen.until("A number or your own words");
    assert!(question.contains("1. Red") && question.contains("2. Blue"), "{question}");
    screen.keys(&["2", "Enter"]);
    screen.until("answered: Blue");
    screen.keys(&["/cost", "Enter"]);
    screen.until("3 turns");
    screen.keys(&["/exit", "Enter"]);
    screen.until("exit code 0");
}

/// How a chat that waits for a prompt is ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outside {
    Signal(Signal),
    /// The terminal is closed.
    NoTerminal,
}

/// Starts a chat at a terminal of its own; returns the terminal, the chat, and the terminal's modes
/// before.
fn at_terminal(name: &str, folder: &Path) -> (File, Child, LocalModes) {
    with_terminal(name, folder, |_| {})
}

/// The same, with other streams.
fn with_terminal(
    name: &str,
    folder: &Path,
    redirect: impl FnOnce(&mut Command),
) -> (File, Child, LocalModes) {
    // The chat must not inherit it, or the terminal could not be closed.
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let side = || File::options().read(true).write(true).open(&path).unwrap();
    let mut command = Command::new("setsid");
    command.args(["--ctty", env!("CARGO_BIN_EXE_interlingua"), "chat"]);
    command.arg(talker(name)).env("XDG_STATE_HOME", folder);
    command.stdin(side()).stdout(side()).stderr(side());
    redirect(&mut command);
    let before = tcgetattr(&master).unwrap().local_modes;
    // The command has the other ends of the terminal, too, and is dropped here.
    let chat = command.spawn().unwrap();
    (File::from(master), chat, before)
}

/// Reads what a terminal shows until it satisfies a condition.
fn read_until(master: &mut File, done: impl Fn(&str) -> bool) -> String {
    let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
    while !done(&String::from_utf8_lossy(&seen)) {
        let length = master.read(&mut buffer).unwrap();
        seen.extend_from_slice(&buffer[..length]);
    }
    String::from_utf8_lossy(&seen).into_owned()
}

/// What was typed between the end of a turn and the next line was shown twice, and its Enter key began
/// another line instead of sending the prompt.
#[test]
fn a_prompt_that_is_typed_as_soon_as_a_turn_ends_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let (mut master, mut chat, _) = at_terminal("at-once", folder.path());
    read_until(&mut master, |seen| seen.contains('›'));
    for turn in 0..20 {
        master.write_all(format!("turn {turn}\r").as_bytes()).unwrap();
        // The line that ends a turn.
        read_until(&mut master, |seen| seen.contains("— "));
    }
    // As soon as the turn has ended, Ctrl-C would still be for it; the editor has to be there.
    master.write_all(b"half a line").unwrap();
    read_until(&mut master, |seen| seen.contains("half a line"));
    // One clears the line, the other one quits.
    master.write_all(b"\x03\x03").unwrap();
    assert_eq!(chat.wait().unwrap().code(), Some(0));
}

/// It waited for a person who was never asked, and ignored what was typed.
#[test]
fn commands_may_be_typed_if_the_output_is_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let (mut master, mut chat, _) = with_terminal("typed-json", folder.path(), |command| {
        command.stdout(Stdio::piped());
    });
    // The second is the end of the input.
    master.write_all(b"{\"prompt\":\"hello\"}\n\x04").unwrap();
    let mut written = String::new();
    chat.stdout.take().unwrap().read_to_string(&mut written).unwrap();
    assert!(written.contains(r#""text":"hello""#), "{written}");
    assert_eq!(chat.wait().unwrap().code(), Some(0));
}

/// The line editor and a reader of commands shared the terminal, and no question was seen.
#[test]
fn a_chat_needs_standard_error_for_its_questions() {
    let folder = tempfile::tempdir().unwrap();
    let (_master, chat, _) = with_terminal("no-stderr", folder.path(), |command| {
        command.stderr(Stdio::piped());
    });
    let ended = chat.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let shown = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(shown.contains("standard error"), "{shown}");
}

/// Only the line editor was awaited, so a chat survived these signals until Enter was pressed.
#[test]
fn a_chat_that_waits_for_a_prompt_can_be_ended_from_outside() {
    let folder = tempfile::tempdir().unwrap();
    let signals = [Signal::TERM, Signal::HUP].map(Outside::Signal);
    for outside in signals.into_iter().chain([Outside::NoTerminal]) {
        let (mut master, mut chat, before) = at_terminal("outside", folder.path());
        read_until(&mut master, |seen| seen.contains('›'));
        assert_ne!(tcgetattr(&master).unwrap().local_modes, before);
        match outside {
            Outside::Signal(signal) => {
                let pid = Pid::from_raw(i32::try_from(chat.id()).unwrap()).unwrap();
                kill_process(pid, signal).unwrap();
                assert_eq!(chat.wait().unwrap().code(), Some(130), "{outside:?}");
                assert_eq!(tcgetattr(&master).unwrap().local_modes, before, "{outside:?}");
            }
            Outside::NoTerminal => {
                drop(master);
                assert_eq!(chat.wait().unwrap().code(), Some(130), "{outside:?}");
            }
        }
    }
}

#[test]
fn a_chat_may_begin_with_a_prompt() {
    let Some(screen) = Screen::start("begins-chat", "hello") else { return };
    screen.until("hello\n\n");
    screen.until("›");
    screen.keys(&["/exit", "Enter"]);
    screen.until("exit code 0");
}

#[test]
fn control_c_stops_a_turn_and_at_an_empty_line_quits() {
    let Some(screen) = Screen::start("control-c", "") else { return };
    screen.until("›");
    screen.keys(&["wait", "Enter"]);
    screen.until("begins");
    screen.keys(&["C-c"]);
    screen.until("Cancelled");
    screen.keys(&["once more", "Enter"]);
    screen.until("once more\n\n");
    // Before the editor shows it, Ctrl-C would still be for the turn.
    screen.keys(&["half a line"]);
    screen.until("› half a line");
    screen.keys(&["C-c"]);
    screen.keys(&["C-c"]);
    screen.until("exit code");
}

/// What was typed during a turn once appeared in the middle of the rows that are redrawn.
#[test]
fn the_terminal_does_not_show_what_is_typed_during_a_turn() {
    let Some(screen) = Screen::start("ahead", "") else { return };
    screen.until("›");
    screen.keys(&["wait", "Enter"]);
    screen.until("begins");
    // Ctrl-C also discards what was typed before it.
    screen.keys(&["typed ahead", "C-c"]);
    let shown = screen.until("Cancelled");
    assert!(!shown.contains("typed ahead"), "{shown}");
    screen.keys(&["half a line"]);
    screen.until("› half a line");
    screen.keys(&["C-c", "C-c"]);
    screen.until("exit code");
    screen.keys(&["visible again"]);
    screen.until("visible again");
}

#[test]
fn a_prompt_that_is_typed_during_a_turn_is_the_next_one() {
    let Some(screen) = Screen::start("typed-ahead", "") else { return };
    screen.until("›");
    screen.keys(&["first", "Enter", "second", "Enter", "third", "Enter"]);
    screen.until("third\n\n");
    screen.keys(&["/cost", "Enter"]);
    screen.until("3 turns");
}

#[test]
fn a_prompt_may_have_several_lines() {
    let Some(screen) = Screen::start("lines", "") else { return };
    screen.until("›");
    screen.keys(&["first", "C-j", "second", "Enter"]);
    screen.until("—");
    let saved = screen.saved();
    assert!(saved.contains(r"first\nsecond"), "{saved}");
}

/// A terminal marks what is pasted, so that its line ends send nothing.
#[test]
fn a_pasted_text_is_one_prompt() {
    let Some(screen) = Screen::start("paste", "") else { return };
    screen.until("›");
    screen.tmux(&["set-buffer", "first pasted\nsecond pasted\n"]).unwrap();
    screen.tmux(&["paste-buffer", "-p"]).unwrap();
    let shown = screen.until("second pasted");
    assert!(!shown.contains('—'), "it was sent: {shown}");
    screen.keys(&["Enter"]);
    screen.until("—");
    let saved = screen.saved();
    assert!(saved.contains(r"first pasted\nsecond pasted"), "{saved}");
    assert_eq!(saved.matches(r#""type":"turn_ended""#).count(), 1, "{saved}");
}

#[test]
fn the_history_is_kept_for_the_next_chat() {
    let Some(screen) = Screen::start("history", "") else { return };
    screen.until("›");
    screen.keys(&["a prompt to remember", "Enter"]);
    screen.until("a prompt to remember\n\n");
    screen.keys(&["/exit", "Enter"]);
    screen.until("exit code 0");
    screen.start_again();
    screen.until("›");
    screen.keys(&["Up", "Up"]);
    screen.until("› a prompt to remember");
}

#[test]
fn the_model_and_the_mode_can_be_changed() {
    let Some(screen) = Screen::start("changes", "") else { return };
    screen.until("›");
    screen.keys(&["hello", "Enter"]);
    screen.until("hello\n\n");
    screen.keys(&["/model another-one", "Enter"]);
    screen.keys(&["/mode auto", "Enter"]);
    screen.keys(&["touch it", "Enter"]);
    let shown = screen.until("yes");
    assert!(!shown.contains("Allow?"), "{shown}");
    let saved = screen.saved();
    assert!(saved.contains(r#""model":"another-one""#), "{saved}");
    assert!(saved.contains(r#""permission_mode":"auto""#), "{saved}");
}

#[test]
fn the_changes_in_the_folder_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let git = Command::new("git").args(["init", "--quiet"]).arg(folder.path()).status();
    if !git.is_ok_and(|status| status.success()) {
        return;
    }
    std::fs::write(folder.path().join("fresh.txt"), "new").unwrap();
    let arguments = format!("--cwd {}", folder.path().display());
    let Some(screen) = Screen::start("diff", &arguments) else { return };
    screen.until("›");
    screen.keys(&["/diff", "Enter"]);
    screen.until("new file: fresh.txt");
}
