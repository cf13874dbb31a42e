//! `interlingua run`: runs an agent with a prompt.

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use interlingua::dialect::{self, Dialect, EncodeOptions};
use interlingua::{RawRecords, Writer};
use interlingua_agents::agent::program::Program;
use interlingua_agents::agent::{ALL, KnownAgent};
use interlingua_agents::api::provider::{self, Provider};
use interlingua_agents::permission::{Mode, Policy};
use interlingua_agents::process::adopt_orphans;
use interlingua_agents::{
    Agent, ClientToolOffer, Config, Ended, Error, Options, ProcessAgent, Prompt, Recorder, Refused,
    Request, Stop,
};
use tokio::sync::mpsc;

use crate::arguments::{InputForm, RunArguments, SessionArguments};
use crate::conversation::{Answers, Conversation, Display, REDRAW_INTERVAL, Until};
use crate::output::{Output, Stdout};
use crate::recent::{Recent, RecentRecorder};
use crate::signals::{OnInterrupt, Signals};
use crate::{client_tools, guard, model_api, remote, report, suggest};

/// The number of lines of standard error that are shown for an agent without output.
const STDERR_LINES: usize = 8;

/// Runs the command; returns its exit code.
pub(crate) fn run(arguments: &RunArguments) -> Result<u8> {
    let input = Input::of(&arguments.session)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    let started = Started::new(&resumed(&arguments.session)?)?;
    drop(entered);
    let files = arguments.session.of_api.attach.clone();
    let ended = runtime.block_on(converse(started, input, files))?;
    // A thread may still wait for a line of standard input.
    runtime.shutdown_background();
    report_end(&ended);
    Ok(ended.code())
}

/// The arguments, with the session that is continued.
pub(crate) fn resumed(arguments: &SessionArguments) -> Result<SessionArguments> {
    let mut arguments = arguments.clone();
    if arguments.continues {
        arguments.resume = Some(Recent::open().last(&arguments.agent, &arguments.cwd)?);
    }
    Ok(arguments)
}

async fn converse(started: Started, input: Input, files: Vec<PathBuf>) -> Result<Ended> {
    let stdin = match &input {
        Input::Stdin(_) => StdinUse::Prompt,
        Input::Prompt(_) => StdinUse::Answers,
        Input::Commands => StdinUse::Commands,
    };
    let mut conversation = started.start(stdin, OnInterrupt::Stop).await?;
    if let Input::Stdin(prompt) | Input::Prompt(prompt) = input {
        let prompt = Prompt::new(prompt).with_files(files);
        unless_ended(conversation.handle.prompt(prompt).await)?;
        // Another prompt on standard input takes this back.
        unless_ended(conversation.handle.finish().await)?;
    }
    conversation.show(Until::End).await;
    conversation.end().await.context("the session was aborted")
}

/// Whether a command was refused for another reason than the end of the session. A signal may stop the
/// session before its first prompt is sent; how it ended is shown then.
pub(crate) fn unless_ended(answer: Result<(), Refused>) -> Result<(), Refused> {
    answer.or_else(|refused| if refused == Refused::Ended { Ok(()) } else { Err(refused) })
}

/// What standard input is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StdinUse {
    /// It was the prompt, so no one can answer.
    Prompt,
    /// Answers and further commands. Without another prompt, the session ends with its first one.
    Answers,
    /// Commands, until it ends.
    Commands,
}

/// Where prompts come from.
enum Input {
    /// Standard input is the prompt, so no one can answer.
    Stdin(String),
    /// The prompt is an argument.
    Prompt(String),
    /// Standard input has commands, and the prompts are among them.
    Commands,
}

impl Input {
    fn of(arguments: &SessionArguments) -> Result<Self> {
        let prompt = match (&arguments.asked, arguments.prompt.as_deref()) {
            (Some(prompt), _) => prompt.clone(),
            (None, Some("-")) => return Self::from_stdin(),
            (None, Some(prompt)) => prompt.to_owned(),
            (None, None) if arguments.input == Some(InputForm::Json) => {
                return Ok(Self::Commands);
            }
            (None, None) if io::stdin().is_terminal() => bail!(
                "the prompt is missing: give it as an argument, or use `-` to type it and end it with Ctrl-D"
            ),
            (None, None) => return Self::from_stdin(),
        };
        if prompt.trim().is_empty() {
            bail!(
                "the prompt is empty: describe what the agent should do (`-` reads it from standard input)"
            );
        }
        Ok(Self::Prompt(prompt))
    }

    fn from_stdin() -> Result<Self> {
        let mut prompt = String::new();
        io::stdin().lock().read_to_string(&mut prompt).context("standard input")?;
        if prompt.trim().is_empty() {
            bail!(
                "the prompt is empty: describe what the agent should do (it was read from standard input)"
            );
        }
        Ok(Self::Stdin(prompt))
    }
}

/// A session that can be started: the agent, its options, and how its entries are shown.
pub(crate) struct Started {
    /// What to do if the user is not signed in, unless a file describes the agent.
    sign_in: Option<String>,
    agent: Box<dyn Agent>,
    /// Remembers the session, so that it can be continued.
    recent: Option<RecentRecorder>,
    options: Options,
    /// The dialect to write; without one, the session is shown to a person at the terminal.
    to: Option<&'static Dialect>,
    verbose: bool,
    encode: EncodeOptions,
}

impl Started {
    /// Checks the arguments. Nothing is started yet.
    pub(crate) fn new(arguments: &SessionArguments) -> Result<Self> {
        let config = match &arguments.config {
            Some(path) => Config::read(path)?,
            None => Config::default(),
        };
        let mode = arguments.permission_mode.or(config.mode).unwrap_or_default();
        let policy = Policy { mode, rules: config.rules };
        let (agent, is_stored) = agent(arguments, policy.mode)?;
        let to = target(arguments)?;
        let mut options = Options { policy, record: recorder(arguments)?, ..Options::default() };
        match to {
            // Records of the target dialect are passed through.
            Some(to) => options.read.raw_records = RawRecords::KeepOf(to),
            None => options.read_interval = REDRAW_INTERVAL,
        }
        options.deadlines.run = arguments.timeout;
        if let Some(silence) = arguments.idle_timeout {
            options.deadlines.silence = Some(silence);
        }
        if let Some(answer) = config.answer {
            options.deadlines.answer = answer;
        }
        if let Some(time) = config.client_tool {
            options.deadlines.client_tool = time;
        }
        let encode = EncodeOptions {
            partial: arguments.partial,
            team: arguments.team.team(),
            ..EncodeOptions::default()
        };
        let sign_in = sign_in_advice(&arguments.agent);
        // What is not stored cannot be continued.
        let recent = is_stored.then(|| Recent::open().recorder(&arguments.agent, &arguments.cwd));
        Ok(Self { sign_in, agent, recent, options, to, verbose: arguments.verbose, encode })
    }

    /// Starts the agent.
    pub(crate) async fn start(
        self,
        stdin: StdinUse,
        on_interrupt: OnInterrupt,
    ) -> Result<Conversation> {
        let Self { sign_in, agent, recent, mut options, to, verbose, mut encode } = self;
        adopt_orphans();
        let mut signals = Signals::catch();
        let answers = match stdin {
            StdinUse::Prompt => Answers::NoOne,
            StdinUse::Answers | StdinUse::Commands => {
                let (requests, asked) = mpsc::unbounded_channel();
                options.input_requests = Some(requests);
                match stdin {
                    StdinUse::Commands => Answers::by_commands(asked, false),
                    _ => Answers::from_stdin(asked),
                }
            }
        };
        // The start may wait for servers. What it has started ends when the future is dropped.
        let session = tokio::select! {
            session = agent.start(options) => session?,
            () = signals.received() => return Err(Interrupted.into()),
        };
        let stopped = signals.pass_on(&session.handle, on_interrupt);
        encode.id_seed = Some(session.id_seed);
        let (display, writer) = match to {
            Some(to) => (Display::Records, Some(Box::new(Writer::new(to, &encode)?))),
            None => (Display::at_terminal(verbose), None),
        };
        let output = Output::new(Box::new(Stdout(io::stdout())), writer);
        let mut conversation = Conversation::new(sign_in, session, (display, output), answers);
        conversation.recent = recent;
        conversation.stopped = stopped;
        Ok(conversation)
    }
}

/// The user has stopped the program before the session began.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("interrupted before the agent had started")
    }
}

impl std::error::Error for Interrupted {}

/// What to do if the user is not signed in.
fn sign_in_advice(name: &str) -> Option<String> {
    let (title, how) = match (KnownAgent::find(name), Provider::find(name)) {
        (Some(agent), _) => (agent.title, agent.how_to_sign_in.to_owned()),
        (None, Some(provider)) => (provider.title, provider.how_to_sign_in()),
        (None, None) => return None,
    };
    Some(format!("{title} is not signed in, or its key was not accepted: {how}"))
}

/// The agent, and whether its session can be continued.
fn agent(arguments: &SessionArguments, mode: Mode) -> Result<(Box<dyn Agent>, bool)> {
    if let Some(provider) = Provider::find(&arguments.agent) {
        let (agent, is_stored) = model_api::agent(provider, arguments)?;
        return Ok((Box::new(agent), is_stored));
    }
    if let [first, ..] = arguments.of_api.given()[..] {
        bail!("{first} is for model APIs, and {} is not one", arguments.agent);
    }
    if let Some(service) = remote::service(&arguments.agent)? {
        return Ok((Box::new(remote::agent(&service, arguments)?), true));
    }
    Ok((Box::new(process_agent(arguments, mode, client_tools::offer(arguments)?)?), true))
}

pub(crate) fn process_agent(
    arguments: &SessionArguments,
    mode: Mode,
    client_tools: Option<Arc<ClientToolOffer>>,
) -> Result<ProcessAgent> {
    let request = Request {
        model: arguments.model.clone(),
        folder: arguments.cwd.clone(),
        resume: arguments.resume.clone(),
        mode,
        environment: arguments.env.clone(),
        program: arguments.program.clone(),
        client_tools,
        mcp_program: guard::this_program(),
        flags: arguments.flags.clone(),
        trusts_folder: arguments.trust_folder,
        exec: arguments.exec,
        screen: arguments.screen,
        isolation: arguments.isolation,
        guard: guard::guard(),
    };
    let name = &*arguments.agent;
    if let Some(agent) = KnownAgent::find(name) {
        return agent.prepare(&request).map_err(with_advice);
    }
    let path = Path::new(name);
    if path.extension().is_some_and(|ending| ending == "toml") {
        return Program::read(path)?.prepare(&request).map_err(with_advice);
    }
    let programs = ALL.iter().map(|agent| agent.name);
    let known: Vec<_> = programs.chain(provider::ALL.iter().map(|it| it.name)).collect();
    let near = suggest::similar(name, known.iter().map(|known| (*known, &[][..])));
    let meant = match near.as_slice() {
        [] => ".".to_owned(),
        near => format!("; did you mean {}?", near.join(" or ")),
    };
    bail!(
        "no agent is called `{name}`{meant} The agents are {}, and any program or service that a .toml file describes",
        known.join(", ")
    )
}

/// Adds the argument that corrects an error.
fn with_advice(error: Error) -> anyhow::Error {
    let advice = match &error {
        Error::NoFolder(_) => "set it with --cwd",
        Error::NoScreen { .. } => "leave out --screen",
        _ => return error.into(),
    };
    anyhow::anyhow!("{error} ({advice})")
}

fn recorder(arguments: &SessionArguments) -> Result<Option<Recorder>> {
    let Some(path) = &arguments.record else { return Ok(None) };
    let create = if arguments.force { Recorder::replace } else { Recorder::create };
    let recorder = create(path).map_err(|problem| match problem.kind() {
        io::ErrorKind::AlreadyExists => anyhow::anyhow!("{problem} (--force overwrites it)"),
        _ => problem.into(),
    })?;
    Ok(Some(recorder))
}

/// The dialect to write. At a terminal, `text` is replaced by a view of it, and is the default; in a
/// pipe, `events` is.
fn target(arguments: &SessionArguments) -> Result<Option<&'static Dialect>> {
    match arguments.to {
        Some(to) if to.name == "text" && io::stdout().is_terminal() => Ok(None),
        None if io::stdout().is_terminal() => Ok(None),
        Some(to) => Ok(Some(to)),
        None => Ok(Some(dialect::named("events")?)),
    }
}

/// Reports why the run ended, for dialects that cannot express it.
pub(crate) fn report_end(ended: &Ended) {
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
        Some(_) => {}
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
