//! `interlingua run`: runs an agent with a prompt.

use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use interlingua::dialect::{self, Dialect, EncodeOptions};
use interlingua_agents::agent::program::Program;
use interlingua_agents::agent::{ALL, Agent, Launch};
use interlingua_agents::permission::{Mode, Policy};
use interlingua_agents::process::{Guard, adopt_orphans};
use interlingua_agents::{
    Config, Consumer, Control, Ended, Error, Options, Recorder, Request, Stop,
};
use tokio::sync::mpsc;

use crate::arguments::RunArguments;
use crate::{GUARD, answers, report, suggest};

/// The number of lines of standard error that are shown for an agent without output.
const STDERR_LINES: usize = 8;

/// Runs the command; returns its exit code.
pub(crate) fn run(arguments: &RunArguments) -> Result<u8> {
    let config = match &arguments.config {
        Some(path) => Config::read(path)?,
        None => Config::default(),
    };
    let mode = arguments.permission_mode.or(config.mode).unwrap_or_default();
    let (prompt, from_stdin) = prompt(arguments)?;
    let policy = Policy { mode, rules: config.rules };
    let mut launch = launch(arguments, policy.launch_mode(), prompt)?;
    launch.command.isolation = arguments.isolation;
    launch.command.guard = guard();
    let mut options = options(arguments, policy, config.answer)?;
    adopt_orphans();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let (controls, taken) = mpsc::channel(16);
        if !from_stdin {
            options.questions = Some(answers::answer(controls.clone()));
        }
        watch_consumer(controls.clone());
        forward_signals(controls);
        interlingua_agents::run(launch, options, Box::new(Stdout(io::stdout())), taken).await
    })?;
    report_end(&ended);
    Ok(ended.code())
}

/// The guard of a run: this program, started once more.
pub(crate) fn guard() -> Option<Guard> {
    let program = std::env::current_exe().ok()?;
    Some(Guard { program, arguments: vec![GUARD.into()] })
}

/// The prompt, and whether it was read from standard input.
fn prompt(arguments: &RunArguments) -> Result<(String, bool)> {
    if let Some(prompt) = &arguments.asked {
        return Ok((prompt.clone(), false));
    }
    match arguments.prompt.as_deref() {
        Some("-") | None => {
            if arguments.prompt.is_none() && io::stdin().is_terminal() {
                bail!(
                    "the prompt is missing: give it as an argument, or use `-` to type it and end it with Ctrl-D"
                );
            }
            let mut prompt = String::new();
            io::stdin().lock().read_to_string(&mut prompt).context("standard input")?;
            Ok((prompt, true))
        }
        Some(prompt) => Ok((prompt.to_owned(), false)),
    }
}

fn launch(arguments: &RunArguments, mode: Mode, prompt: String) -> Result<Launch> {
    let request = Request {
        model: arguments.model.clone(),
        folder: arguments.cwd.clone(),
        resume: arguments.resume.clone(),
        mode,
        environment: arguments.env.clone(),
        program: arguments.program.clone(),
        flags: arguments.flags.clone(),
        exec: arguments.exec,
        screen: arguments.screen,
        ..Request::new(prompt)
    };
    let name = &*arguments.agent;
    if let Some(agent) = Agent::find(name) {
        return agent.launch(&request).map_err(with_advice);
    }
    let path = Path::new(name);
    if path.extension().is_some_and(|ending| ending == "toml") {
        return Program::read(path)?.launch(&request).map_err(with_advice);
    }
    let known: Vec<_> = ALL.iter().map(|agent| agent.name).collect();
    let near = suggest::similar(name, known.iter().map(|known| (*known, &[][..])));
    let meant = match near.as_slice() {
        [] => ".".to_owned(),
        near => format!("; did you mean {}?", near.join(" or ")),
    };
    bail!(
        "no agent is called `{name}`{meant} The agents are {}, and any program that a .toml file describes",
        known.join(", ")
    )
}

/// Adds the argument that corrects an error.
fn with_advice(error: Error) -> anyhow::Error {
    let advice = match &error {
        Error::EmptyPrompt => "`-` reads it from standard input",
        Error::NoFolder(_) => "set it with --cwd",
        Error::NoScreen { .. } => "leave out --screen",
        _ => return error.into(),
    };
    anyhow::anyhow!("{error} ({advice})")
}

fn options(arguments: &RunArguments, policy: Policy, answer: Option<Duration>) -> Result<Options> {
    let mut options = Options::new(target(arguments)?);
    options.policy = policy;
    options.translate.encode = EncodeOptions {
        partial: arguments.partial,
        team: arguments.team.team(),
        ..EncodeOptions::default()
    };
    options.deadlines.run = arguments.timeout;
    if let Some(silence) = arguments.idle_timeout {
        options.deadlines.silence = Some(silence);
    }
    if let Some(answer) = answer {
        options.deadlines.answer = answer;
    }
    if let Some(path) = &arguments.record {
        let create = if arguments.force { Recorder::replace } else { Recorder::create };
        options.record = Some(create(path).map_err(|problem| match problem.kind() {
            io::ErrorKind::AlreadyExists => anyhow::anyhow!("{problem} (--force overwrites it)"),
            _ => problem.into(),
        })?);
    }
    Ok(options)
}

/// The dialect to write: `text` at a terminal, else `events`.
fn target(arguments: &RunArguments) -> Result<&'static Dialect> {
    let default = if io::stdout().is_terminal() { "text" } else { "events" };
    arguments.to.or_else(|| dialect::find(default)).context("no dialect to write")
}

/// The standard output of this process.
struct Stdout(io::Stdout);

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Consumer for Stdout {
    /// A pipe that is writable has room for the 4096 bytes that are required here.
    #[cfg(unix)]
    fn is_ready(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut watched = [PollFd::new(&self.0, PollFlags::OUT)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut watched, Some(&now)).is_ok()
            && watched.iter().any(|it| it.revents() == PollFlags::OUT)
    }
}

/// Stops the run on SIGINT, SIGTERM or SIGHUP (Ctrl-C on Windows).
///
/// The signals are caught before the agent is started. A shell lets its background jobs ignore
/// SIGINT, which the agent would inherit; a signal that is caught here has its default action there.
fn forward_signals(controls: mpsc::Sender<Control>) {
    #[cfg(unix)]
    {
        use interlingua_agents::process::is_hangup_ignored;
        use tokio::signal::unix::{SignalKind, signal};
        let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
        // With `nohup`, the run has to survive its terminal.
        if !is_hangup_ignored() {
            kinds.push(SignalKind::hangup());
        }
        tokio::spawn(suspend_with_us(controls.clone()));
        for kind in kinds {
            let (Ok(mut signals), controls) = (signal(kind), controls.clone()) else { continue };
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    if controls.send(Control::Stop(Stop::Interrupted)).await.is_err() {
                        return;
                    }
                }
            });
        }
    }
    #[cfg(not(unix))]
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            if controls.send(Control::Stop(Stop::Interrupted)).await.is_err() {
                return;
            }
        }
    });
}

/// Suspends the run when Ctrl-Z suspends this process, and resumes it with this process.
#[cfg(unix)]
async fn suspend_with_us(controls: mpsc::Sender<Control>) {
    use rustix::process::{Signal, getpid, kill_process};
    use tokio::signal::unix::{SignalKind, signal};
    let stop = SignalKind::from_raw(Signal::TSTP.as_raw());
    let Ok(mut signals) = signal(stop) else { return };
    while signals.recv().await.is_some() {
        let (done, mut suspended) = mpsc::channel(1);
        // Without a run, only this process is suspended.
        if controls.send(Control::Suspend(done)).await.is_ok() {
            let _ = suspended.recv().await;
        }
        // This call returns when the process is continued.
        let _ = kill_process(getpid(), Signal::STOP);
        let _ = controls.send(Control::Resume).await;
    }
}

/// Stops the run when the reader of a pipe closes it, even while there is nothing to write.
fn watch_consumer(controls: mpsc::Sender<Control>) {
    #[cfg(unix)]
    if !io::stdout().is_terminal() {
        std::thread::spawn(move || {
            use rustix::event::{PollFd, PollFlags, poll};
            let stdout = io::stdout();
            let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
            // No events are requested, so only an error or a hang-up is reported.
            let polled = poll(&mut watched, None);
            let closed = PollFlags::ERR | PollFlags::HUP;
            if polled.is_ok() && watched.iter().any(|it| it.revents().intersects(closed)) {
                // The run may have ended already.
                let _ = controls.blocking_send(Control::Stop(Stop::ConsumerGone));
            }
        });
    }
    #[cfg(not(unix))]
    drop(controls);
}

/// Reports why the run ended, for dialects that cannot express it.
fn report_end(ended: &Ended) {
    if let Some(why) = &ended.recording {
        report::print_line(&format!("interlingua: the recording is incomplete: {why}"));
    }
    match &ended.stop {
        Some(Stop::GaveUp(why)) => {
            report::print_line(&format!("interlingua: the run was given up: {why}"))
        }
        Some(Stop::TimedOut(what)) => report::print_line(&format!("interlingua: {what}")),
        Some(Stop::OutputFailed(why)) => {
            report::print_line(&format!("interlingua: the output could not be written: {why}"));
        }
        Some(Stop::Interrupted | Stop::ConsumerGone) => {}
        None if ended.code() != 0 && ended.silent => {
            report::print_line(
                "interlingua: the agent exited without output; the end of its standard error:",
            );
            let stderr = ended.exit.stderr.as_deref().unwrap_or("(nothing)");
            let lines: Vec<_> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
            let last = lines.len().saturating_sub(STDERR_LINES);
            lines.iter().skip(last).for_each(|line| report::print_line(line));
        }
        None => {}
    }
}
