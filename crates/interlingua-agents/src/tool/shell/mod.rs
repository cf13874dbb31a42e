//! `Bash`, `BashOutput` and `KillShell`: commands of the model.
//!
//! A command runs with the same mechanisms as agents (`process`), so that none of its processes
//! survives it, and in a sandbox (`super::sandbox`), where there is one.
//!
//! | module | what it knows |
//! |---|---|
//! | `running` | a command with its processes, from its start to its certain end |
//! | `background` | commands that outlive their call |
//! | `scratch` | the private folder of a session |
//! | `output` | what is shown of an output, and the file with all of it |
//! | `plain` | output as plain text |

mod background;
mod output;
mod plain;
mod running;
mod scratch;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use interlingua::event::ToolStatus;
use serde::Deserialize;
use serde_json::json;

use super::place::Roots;
use super::sandbox::Support;
use super::writable::Writable;
use super::{Call, Content, Failure, Outcome, Settings, parsed};
use crate::Error;
use crate::process;
use background::Backgrounds;
use output::Output;
pub(super) use output::shortened;
use running::{Cleanups, End, Running};
pub(super) use scratch::Scratch;
use scratch::ScratchFile;

/// The time limit of a command, if the call names none, and the longest that it may name.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// Devices that a sandboxed command may write to. Terminals are not among them: a command could
/// write to those of other programs of the user.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The shell, and the commands that run in the background.
#[derive(Debug)]
pub(super) struct Shell {
    scratch: Scratch,
    support: Support,
    /// What commands may write to, if they have a sandbox.
    writable: Option<Writable>,
    numbers: AtomicU64,
    backgrounds: Backgrounds,
    cleanups: Cleanups,
}

#[derive(Debug, Deserialize)]
struct Input {
    command: String,
    timeout: Option<u64>,
    run_in_background: Option<bool>,
}

impl Shell {
    /// A shell whose commands may write to the folders and the caches.
    pub(super) fn new(scratch: Scratch, settings: &Settings, roots: &Roots) -> Result<Self, Error> {
        let sandbox = settings.sandbox.as_ref().filter(|_| cfg!(target_os = "linux"));
        let support = sandbox.map_or(Support::None, super::Sandbox::support);
        let writable = match support {
            Support::Landlock(_) => {
                let opened = writable(&scratch, settings, roots);
                let path = roots.folder().to_owned();
                Some(opened.map_err(|problem| Error::NotPrepared { path, problem })?)
            }
            Support::None => None,
        };
        Ok(Self {
            scratch,
            support,
            writable,
            numbers: AtomicU64::new(1),
            backgrounds: Backgrounds::default(),
            cleanups: Cleanups::default(),
        })
    }

    /// A new file for a result that is too long for the model.
    pub(super) fn result_file(&self) -> io::Result<ScratchFile> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.scratch.create_output(&format!("result_{number}.txt"))
    }

    pub(super) fn enforcement(&self, settings: &Settings) -> Vec<String> {
        let mut sentences = self.support.sentences(settings.network);
        for program in self.writable.iter().flat_map(Writable::replaceable) {
            sentences.push(format!(
                "Commands can write to {}, which starts them: one that replaces it while another one starts \
                 escapes from the sandbox.",
                program.display()
            ));
        }
        if cfg!(target_os = "linux") && settings.guard.is_none() {
            sentences.push(
                "Processes of a command that clear their environment and leave its process group \
                 may survive it, because there is no guard."
                    .to_owned(),
            );
        }
        if cfg!(all(unix, not(target_os = "linux"))) {
            sentences.push(
                "Processes of a command that leave its process group may survive it.".to_owned(),
            );
        }
        sentences
    }

    /// Runs one of the tools.
    pub(super) async fn run(
        &self,
        name: &str,
        call: &Call,
        settings: &Settings,
        progress: &mut (dyn FnMut(&str) + Send),
    ) -> Outcome {
        match name {
            "Bash" => self.bash(&parsed(&call.input)?, settings, progress).await,
            "BashOutput" => self.backgrounds.output(&parsed(&call.input)?),
            "KillShell" => self.backgrounds.kill(&parsed(&call.input)?).await,
            other => Err(Failure(format!("there is no tool `{other}`"))),
        }
    }

    async fn bash(
        &self,
        input: &Input,
        settings: &Settings,
        progress: &mut (dyn FnMut(&str) + Send),
    ) -> Outcome {
        if input.command.trim().is_empty() || input.command.contains('\0') {
            return Err(Failure("`command` is empty, or contains a NUL character".to_owned()));
        }
        if input.run_in_background == Some(true) {
            self.backgrounds.check_room()?;
        }
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let name = format!("command_{number}.txt");
        let file = self.scratch.create_output(&name).map_err(|problem| {
            let folder = self.scratch.outputs().display();
            Failure(format!("{name} could not be created in {folder}: {problem}"))
        })?;
        let path = file.path.clone();
        let mut output = Output::new(file);
        if input.run_in_background == Some(true) {
            output.keep_file();
        }
        let command = self.command(input, settings).map_err(|problem| {
            Failure(format!("the sandbox could not be prepared, so nothing ran: {problem}"))
        })?;
        let running = Running::start(&command, output, &self.cleanups).await;
        let running = running.map_err(|problem| {
            Failure(format!("{} could not be started: {problem}", command.program.display()))
        })?;
        if input.run_in_background == Some(true) {
            return Ok(self.backgrounds.add(running, &path));
        }
        let named = input.timeout.filter(|limit| *limit > 0).map(Duration::from_millis);
        let timeout = named.unwrap_or(DEFAULT_TIMEOUT).min(MAX_TIMEOUT);
        Ok(finished(running.finish(timeout, progress).await, timeout))
    }

    /// The command as a process.
    fn command(&self, input: &Input, settings: &Settings) -> io::Result<process::Command> {
        let shell = self.scratch.shell.clone().into_os_string();
        let shell = [shell, "-c".into(), (&input.command).into()];
        let mut words = Vec::new();
        if let (Some(sandbox), Some(writable)) = (&settings.sandbox, &self.writable) {
            words.push(sandbox.program.clone().into_os_string());
            words.extend(sandbox.arguments.iter().cloned());
            words.extend(writable.limits(settings.network)?.to_arguments());
        }
        words.extend(shell);
        let mut words = words.into_iter();
        let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        Ok(process::Command {
            program: words.next().unwrap_or_default().into(),
            arguments: words.collect(),
            environment: vec![
                set("TERM", "dumb"),
                set("NO_COLOR", "1"),
                set("GIT_TERMINAL_PROMPT", "0"),
                set("TMPDIR", &self.scratch.temporary.display().to_string()),
            ],
            without: settings.hidden_variables.clone(),
            folder: settings.folder.clone(),
            isolation: settings.isolation,
            guard: settings.guard.clone(),
            ..process::Command::default()
        })
    }

    /// Ends all commands.
    pub(super) async fn close(&self) {
        self.backgrounds.close().await;
        self.cleanups.done().await;
    }
}

/// Opens what commands may write to. The folders are those of the file tools, whatever their paths
/// lead to by now.
fn writable(scratch: &Scratch, settings: &Settings, roots: &Roots) -> io::Result<Writable> {
    let mut folders = roots.writable()?;
    folders.push(scratch.open_temporary()?);
    let others = settings.caches.iter().cloned().chain(DEVICES.iter().map(PathBuf::from));
    let sandbox = settings.sandbox.as_ref().map(|sandbox| sandbox.program.clone());
    let guard = settings.guard.as_ref().map(|guard| guard.program.clone());
    Writable::new(folders, others, sandbox.into_iter().chain(guard))
}

/// The result of a command that ran in the foreground.
fn finished(mut end: End, timeout: Duration) -> super::Output {
    let shown = end.output.shown();
    let shown = if shown.trim().is_empty() { "(no output)" } else { shown.trim_end() };
    let mut text = match (end.timed_out, end.description()) {
        (true, _) => format!(
            "The command timed out after {} ms, and was ended with all its processes.\n{shown}",
            timeout.as_millis()
        ),
        (false, Some(description)) => format!("{description}\n{shown}"),
        (false, None) => shown.to_owned(),
    };
    if end.survivors > 0 && !end.timed_out {
        text.push_str(&format!(
            "\n({} processes that the command left behind were ended; use `run_in_background` for \
             a command that has to go on)",
            end.survivors
        ));
    }
    let status = match (end.timed_out, end.code) {
        (true, _) => ToolStatus::TimedOut,
        (false, Some(0)) => ToolStatus::Completed,
        (false, _) => ToolStatus::Failed,
    };
    let mut output = super::Output::of(status, vec![Content::Text(text)]);
    output.exit_code = end.code;
    output.structured = Some(json!({
        "exit_code": end.code,
        "timed_out": end.timed_out,
        "output_file": end.output.path(),
    }));
    output
}

/// The shell of this system: bash, or else sh.
fn program() -> Option<PathBuf> {
    let found = |name: &str| {
        let folders = std::env::var_os("PATH")?;
        std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| is_usable(path))
    };
    match cfg!(windows) {
        true => found("bash.exe"),
        false => found("bash")
            .or_else(|| found("sh"))
            .or_else(|| Some(PathBuf::from("/bin/sh")).filter(|path| path.is_file())),
    }
}

/// Whether a program is a shell for this system. On Windows, the one of the system would run in a
/// Linux of its own, with other paths.
fn is_usable(path: &Path) -> bool {
    let foreign = |name: &std::ffi::OsStr| {
        name.eq_ignore_ascii_case("system32") || name.eq_ignore_ascii_case("windowsapps")
    };
    path.is_absolute() && path.is_file() && !(cfg!(windows) && path.iter().any(foreign))
}
