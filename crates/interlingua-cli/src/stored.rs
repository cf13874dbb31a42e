//! `interlingua sessions`: the stored sessions of model APIs.
//!
//! Each is a file of Interlingua's own events, below the user's data folder.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use interlingua::event::Data;
use interlingua::{EntryRef, Exit, ReadOptions, Reader, Source};
use serde_json::json;

use crate::SUCCESS;
use crate::arguments::{SessionsArguments, SessionsCommand};
use crate::report::on_one_line;

/// The longest prompt that a list shows.
const SHOWN: usize = 60;

/// Runs the command; returns its exit code.
pub(crate) fn run(arguments: &SessionsArguments) -> Result<u8> {
    match &arguments.command {
        None => list(arguments.json),
        Some(SessionsCommand::Show { id }) => show(id),
        Some(SessionsCommand::Delete { ids }) => delete(ids),
    }
}

/// The folder with the files of sessions, if this user has one.
pub(crate) fn folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let data = set("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || set("HOME").or_else(|| set("USERPROFILE")).map(PathBuf::from);
    let data = data.or_else(|| home().map(|home| home.join(".local/share")))?;
    Some(data.join("interlingua").join("sessions"))
}

/// The file of a session, by its id or the beginning of it.
pub(crate) fn find(id: &str) -> Result<PathBuf> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    let named = |path: &&PathBuf| name(path).starts_with(id);
    let all = if !id.is_empty() && id.chars().all(is_plain) { files()? } else { Vec::new() };
    if let Some(exact) = all.iter().find(|path| name(path) == id) {
        return Ok(exact.clone());
    }
    match all.iter().filter(named).collect::<Vec<_>>()[..] {
        [one] => Ok(one.clone()),
        [] => bail!("there is no stored session {id:?}: `interlingua sessions` lists them"),
        _ => bail!("several stored sessions begin with {id:?}: give more of the id"),
    }
}

fn name(path: &Path) -> String {
    path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The files of all sessions, the newest first.
fn files() -> Result<Vec<PathBuf>> {
    let Some(folder) = folder() else { return Ok(Vec::new()) };
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(problem) => return Err(problem).with_context(|| folder.display().to_string()),
    };
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut files: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .map(|path| (changed(&path), path))
        .collect();
    files.sort();
    Ok(files.into_iter().rev().map(|(_, path)| path).collect())
}

fn changed(path: &Path) -> SystemTime {
    let changed = path.metadata().and_then(|found| found.modified());
    changed.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// What a list shows of a session.
#[derive(Default)]
struct Summary {
    agent: String,
    model: String,
    folder: String,
    first_prompt: String,
    turns: u64,
}

impl Summary {
    fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        let mut summary = Self::default();
        let mut reader = Reader::new(Source::named("events")?, ReadOptions::default())?;
        let mut sink = |entry: EntryRef<'_>| summary.take(&entry.event.data);
        let Ok(_) = reader.push(&bytes, None, &mut sink);
        let Ok(_) = reader.finish(&Exit::default(), None, &mut sink);
        Ok(summary)
    }

    fn take(&mut self, data: &Data<'_>) {
        let text = |text: &Option<interlingua::json::Text<'_>>| {
            text.as_ref().map(ToString::to_string).unwrap_or_default()
        };
        match data {
            Data::SessionStarted(started) => {
                self.agent = text(&started.agent);
                self.model = text(&started.model);
                self.folder = text(&started.cwd);
            }
            Data::UserMessage(message) if self.first_prompt.is_empty() => {
                self.first_prompt = message.text.to_string();
            }
            Data::TurnStarted(_) => self.turns += 1,
            _ => {}
        }
    }
}

fn list(as_json: bool) -> Result<u8> {
    let mut out = io::stdout().lock();
    for path in files()? {
        let summary = Summary::read(&path)?;
        let Summary { agent, model, folder, first_prompt, turns } = &summary;
        if as_json {
            let session = json!({
                "id": name(&path),
                "agent": agent,
                "model": model,
                "folder": folder,
                "first_prompt": first_prompt,
                "turns": turns,
                "file": path.display().to_string(),
            });
            writeln!(out, "{session}")?;
            continue;
        }
        let prompt: String = on_one_line(first_prompt).chars().take(SHOWN).collect();
        writeln!(out, "{}  {agent} {model}, {turns} turns", name(&path))?;
        writeln!(out, "    {}", on_one_line(folder))?;
        writeln!(out, "    {prompt}")?;
    }
    Ok(SUCCESS)
}

/// Prints a session as text.
fn show(id: &str) -> Result<u8> {
    let path = find(id)?;
    let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
    let text = interlingua::dialect::named("text")?;
    let options = interlingua::Options::default();
    let mut translator = interlingua::Translator::new(Source::named("events")?, text, options)?;
    let mut out = io::stdout().lock();
    out.write_all(translator.push(&bytes, None))?;
    out.write_all(&translator.finish(&Exit::default(), None).bytes)?;
    Ok(SUCCESS)
}

fn delete(ids: &[String]) -> Result<u8> {
    let paths: Vec<_> = ids.iter().map(|id| find(id)).collect::<Result<_>>()?;
    for path in paths {
        fs::remove_file(&path).with_context(|| path.display().to_string())?;
    }
    Ok(SUCCESS)
}
