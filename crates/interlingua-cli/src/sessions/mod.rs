//! `interlingua sessions`: lists, shows, follows, continues and deletes sessions, in the store of this
//! machine or on a server.

mod arguments;
mod follow;
pub(crate) mod local;
mod remote;
mod source;

use std::io::{self, IsTerminal, Write};

use anyhow::{Result, bail};
use interlingua::dialect::{self, Dialect};
use interlingua::event::Outcome;
use interlingua_sessions::{CommandState, IdempotencyKey, SessionId};
use serde_json::Value;

pub(crate) use arguments::SessionsArguments;
use arguments::{SendArguments, SessionsCommand, ShowArguments};
use follow::{Shown, Until};
use source::Source;

use crate::report::on_one_line;
use crate::{FINDINGS, SUCCESS};

/// Runs the command; returns its exit code.
pub(crate) fn run(arguments: &SessionsArguments) -> Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(async {
        let mut source = Source::open(arguments.server.as_deref(), arguments.store.as_ref())?;
        let done = execute(&mut source, arguments).await;
        source.end().await;
        done
    });
    runtime.shutdown_background();
    code
}

async fn execute(source: &mut Source, arguments: &SessionsArguments) -> Result<u8> {
    match &arguments.command {
        None | Some(SessionsCommand::List) => list(source, arguments.json).await,
        Some(SessionsCommand::Show(show)) => self::show(source, show, Until::Now).await,
        Some(SessionsCommand::Follow(show)) => self::show(source, show, Until::Closed).await,
        Some(SessionsCommand::Send(send)) => self::send(source, send).await,
        Some(SessionsCommand::Delete { ids }) => delete(source, ids).await,
    }
}

async fn list(source: &Source, as_json: bool) -> Result<u8> {
    let sessions = source.list().await?;
    let mut out = io::stdout().lock();
    for session in sessions {
        if as_json {
            writeln!(out, "{session}")?;
            continue;
        }
        let text = |name: &str| on_one_line(field(&session, name));
        let (id, agent, model, state) = (text("id"), text("agent"), text("model"), text("state"));
        let model = if model.is_empty() { model } else { format!(" {model}") };
        writeln!(out, "{id}  {agent}{model}, {state}")?;
        for line in [text("cwd"), text("title")].iter().filter(|line| !line.is_empty()) {
            writeln!(out, "    {line}")?;
        }
    }
    Ok(SUCCESS)
}

/// Prints a session.
async fn show(source: &mut Source, arguments: &ShowArguments, until: Until) -> Result<u8> {
    let session = source.find(&arguments.id).await?;
    let shown = shown(&session, arguments.to, arguments.verbose)?;
    shown.follow(source, field(&session, "id"), 0, until).await?;
    Ok(SUCCESS)
}

/// Sends a command, and shows the turn of a prompt.
async fn send(source: &mut Source, arguments: &SendArguments) -> Result<u8> {
    let session = source.find(&arguments.id).await?;
    let id = field(&session, "id").to_owned();
    let command = arguments.command()?;
    let key = match &arguments.key {
        Some(key) => IdempotencyKey::new(key.clone())?,
        None => IdempotencyKey::new(SessionId::random()?.to_string())?,
    };
    let end = end_of(source, &id).await?;
    let acknowledged = source.command(&id, &key, &command).await?;
    if let CommandState::Refused { reason } | CommandState::Unknown { reason } = acknowledged.state
    {
        bail!("{reason}");
    }
    if arguments.no_wait || arguments.prompt.is_none() {
        return Ok(SUCCESS);
    }
    let shown = shown(&session, arguments.to, arguments.verbose)?;
    let outcome = shown.follow(source, &id, end, Until::Turn(key, command)).await?;
    Ok(if outcome == Some(Outcome::Completed) { SUCCESS } else { FINDINGS })
}

/// The number of entries of a log.
async fn end_of(source: &Source, id: &str) -> Result<u64> {
    let mut next = 0;
    loop {
        let page = source.read(id, next, false).await?;
        next = page.next;
        if page.up_to_date {
            return Ok(next);
        }
    }
}

async fn delete(source: &Source, ids: &[String]) -> Result<u8> {
    let mut found = Vec::new();
    for id in ids {
        found.push(source.find(id).await?);
    }
    for session in found {
        source.delete(field(&session, "id")).await?;
    }
    Ok(SUCCESS)
}

/// How a session is shown. At a terminal, `text` is replaced by a view of it.
fn shown(session: &Value, to: Option<&'static Dialect>, verbose: bool) -> Result<Shown> {
    let text = dialect::named("text")?;
    let to = to.unwrap_or(text);
    let to = Some(to).filter(|to| to.name != text.name || !io::stdout().is_terminal());
    let id_seed = session.get("idSeed").and_then(Value::as_u64).unwrap_or_default();
    Shown::new(to, id_seed, verbose)
}

fn field<'s>(session: &'s Value, name: &str) -> &'s str {
    session.get(name).and_then(Value::as_str).unwrap_or_default()
}
