//! The commands of a chat, which begin with a slash.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use interlingua_agents::permission::{Mode, visible};

/// A command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SlashCommand {
    Model(String),
    Mode(Mode),
    Cost,
    Diff,
    Save(PathBuf),
    Help,
    Exit,
}

pub(super) const HELP: &str = "\
/model NAME   another model for the following turns
/mode MODE    what the agent may do: default, interactive, accept-edits, auto, deny, plan
/cost         the tokens and the cost so far
/diff         what has changed in the folder, by git
/save FILE    saves the session so far, as events
/exit         ends the session (also Ctrl-D, or Ctrl-C at an empty line)
Alt-Enter, Ctrl-J or a backslash at the end of a line begin another line. Ctrl-C stops a turn.";

const NAMES: [&str; 7] = ["/model ", "/mode ", "/cost", "/diff", "/save ", "/help", "/exit"];

impl SlashCommand {
    /// Reads a line. It is a prompt, and not a command, unless it begins with a slash and one word of
    /// letters: a path is a prompt.
    pub(super) fn read(line: &str) -> Option<Result<Self, String>> {
        let rest = line.trim().strip_prefix('/')?;
        let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if !name.chars().all(|letter| letter.is_ascii_lowercase()) || name.is_empty() {
            return None;
        }
        let argument = argument.trim();
        let needs = |what: &str| Err(format!("/{name} needs {what}"));
        Some(match (name, argument) {
            ("model", "") => needs("the name of a model"),
            ("model", model) => Ok(Self::Model(model.to_owned())),
            ("mode", word) => match Mode::ALL.into_iter().find(|mode| mode.as_str() == word) {
                Some(mode) => Ok(Self::Mode(mode)),
                None => {
                    let all: Vec<_> = Mode::ALL.iter().map(|mode| mode.as_str()).collect();
                    needs(&format!("one of the modes: {}", all.join(", ")))
                }
            },
            ("save", "") => needs("the name of a file"),
            ("save", path) => Ok(Self::Save(PathBuf::from(path))),
            ("cost", "") => Ok(Self::Cost),
            ("diff", "") => Ok(Self::Diff),
            ("help", "") => Ok(Self::Help),
            ("exit" | "quit", "") => Ok(Self::Exit),
            ("cost" | "diff" | "help" | "exit" | "quit", _) => {
                Err(format!("/{name} takes no argument"))
            }
            _ => Err(format!("there is no command /{name}; /help lists them")),
        })
    }
}

/// The commands and modes that begin like a line.
pub(super) fn completions(line: &str) -> Vec<&'static str> {
    const MODES: [&str; 6] = [
        "/mode default",
        "/mode interactive",
        "/mode accept-edits",
        "/mode auto",
        "/mode deny",
        "/mode plan",
    ];
    let names = NAMES.into_iter().chain(MODES.into_iter().filter(|_| line.starts_with("/mode ")));
    names.filter(|name| !line.is_empty() && name.starts_with(line) && *name != line).collect()
}

/// The changes in a folder, as lines that cannot control the terminal.
pub(super) fn diff(folder: &Path) -> Vec<String> {
    let text = match git(folder, &["rev-parse", "--is-inside-work-tree"]) {
        Err(problem) => format!("git cannot be run: {problem}"),
        Ok((false, _)) => "this folder is not in a git repository".to_owned(),
        Ok((true, _)) => {
            let new = git(folder, &["ls-files", "--others", "--exclude-standard"]);
            let new = new.map(|(_, new)| new).unwrap_or_default();
            let new: String = new.lines().map(|path| format!("new file: {path}\n")).collect();
            changes(folder) + &new
        }
    };
    match text.trim_end() {
        "" => vec!["nothing has changed".to_owned()],
        text => text.lines().map(|line| visible(line).into_owned()).collect(),
    }
}

/// What has changed since the last commit, or, if there is none, since files were staged.
fn changes(folder: &Path) -> String {
    let safe = ["diff", "--no-ext-diff", "--no-textconv", "--no-color"];
    match git(folder, &[&safe[..], &["HEAD"]].concat()) {
        Ok((true, changes)) => changes,
        _ => git(folder, &safe).map(|(_, changes)| changes).unwrap_or_default(),
    }
}

/// Runs git, whose settings in a repository must not make it run other programs. Returns whether it
/// succeeded, and what it printed.
fn git(folder: &Path, arguments: &[&str]) -> std::io::Result<(bool, String)> {
    let safe = ["--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];
    let mut command = Command::new("git");
    command.args(safe).args(arguments).current_dir(folder).stdin(Stdio::null());
    let done = command.output()?;
    Ok((done.status.success(), String::from_utf8_lossy(&done.stdout).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<Result<SlashCommand, String>> {
        SlashCommand::read(line)
    }

    #[test]
    fn commands_are_told_from_prompts() {
        assert_eq!(read("/model gpt 5"), Some(Ok(SlashCommand::Model("gpt 5".to_owned()))));
        assert_eq!(read(" /mode plan "), Some(Ok(SlashCommand::Mode(Mode::Plan))));
        assert_eq!(read("/save a b.jsonl"), Some(Ok(SlashCommand::Save("a b.jsonl".into()))));
        assert_eq!(read("/quit"), Some(Ok(SlashCommand::Exit)));
        for prompt in ["fix it", "/usr/bin/env is missing", "//", "/", "/Users", "a /cost"] {
            assert_eq!(read(prompt), None, "{prompt}");
        }
        for wrong in ["/model", "/mode yolo", "/modle x", "/cost now", "/save"] {
            assert!(read(wrong).unwrap().is_err(), "{wrong}");
        }
    }

    #[test]
    fn commands_are_completed() {
        assert_eq!(completions("/mo"), ["/model ", "/mode "]);
        assert_eq!(completions("/mode a"), ["/mode accept-edits", "/mode auto"]);
        assert!(completions("").is_empty() && completions("/exit").is_empty());
        for mode in Mode::ALL {
            assert!(HELP.contains(mode.as_str()), "{mode}");
            let whole = format!("/mode {mode}");
            assert!(completions("/mode ").contains(&&*whole), "{mode}");
        }
    }

    /// A repository could run a program through its settings.
    #[test]
    fn a_diff_runs_nothing_and_controls_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments);
            git.current_dir(folder.path()).output().is_ok_and(|done| done.status.success())
        };
        if !git(&["init", "--quiet"]) {
            return;
        }
        assert_eq!(diff(folder.path()), ["nothing has changed"]);
        std::fs::write(folder.path().join("a"), "one\n").unwrap();
        assert!(git(&["add", "a"]) && git(&["commit", "--quiet", "--message", "a"]));
        let ran = folder.path().join("ran");
        let runs = format!("touch {}", ran.display());
        assert!(git(&["config", "diff.external", &runs]) && git(&["config", "core.pager", &runs]));
        assert!(git(&["config", "core.fsmonitor", &runs]));
        std::fs::write(folder.path().join("a"), "two\u{1b}[2J\n").unwrap();
        std::fs::write(folder.path().join("b"), "").unwrap();
        let lines = diff(folder.path());
        assert!(lines.contains(&"+two\\e[2J".to_owned()), "{lines:?}");
        assert!(lines.contains(&"new file: b".to_owned()), "{lines:?}");
        assert!(!ran.exists(), "the repository ran a program");
    }
}
