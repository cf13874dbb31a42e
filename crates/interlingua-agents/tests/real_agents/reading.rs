//! What the tools of an agent read: secrets only if the user allows it, everything else inside the
//! folder without a question.

use std::path::{Path, PathBuf};
use std::pin::Pin;

use fake_model::{Action, Reply, Script};
use interlingua_agents::permission::Mode;
use serde_json::{Value, json};

use crate::home::{Home, RunReport};
use crate::situations::{Outcome, expect};

type Situation = fn(&'static str, PathBuf) -> Pin<Box<dyn Future<Output = Outcome>>>;

macro_rules! situations {
    ($($name:ident),+ $(,)?) => {
        pub(crate) const READING: &[(&str, Situation)] =
            &[$((stringify!($name), |agent, program| Box::pin($name(agent, program)))),+];
    };
}

situations![a_secret_is_not_read, a_secret_is_not_found, plain_files_are_read_unasked];

const SECRET: &str = "TOKEN=the-value-of-the-secret";
const PLAIN: &str = "the content of a plain file";

/// A call that searches the contents of all files, if the agent has a tool for it.
fn search(agent: &str, pattern: &str) -> Option<Reply> {
    Some(match agent {
        "gemini" | "qwen" => Reply::call("grep_search", json!({"pattern": pattern})),
        "copilot" => Reply::call("grep", json!({"pattern": pattern, "output_mode": "content"})),
        // Claude and Codex search with commands, and OpenCode with a program that it downloads.
        _ => return None,
    })
}

/// Runs calls in a folder with a secret or without one. No user can be asked.
async fn run(
    agent: &'static str,
    program: PathBuf,
    mode: Mode,
    has_secret: bool,
    calls: impl FnOnce(&Path) -> Vec<Reply>,
) -> Result<(RunReport, Home), String> {
    let script = |work: &Path| {
        let calls = calls(work).into_iter();
        calls.fold(Script::new(), Script::reply).reply(Reply::text("Done.")).any_stream()
    };
    let home = Home::scripted(agent, program, script)?;
    let write = |name: &str, text: &str| std::fs::write(home.work().join(name), text);
    let secrets = [".env", "server.key"].into_iter().filter(|_| has_secret);
    let mut files = secrets.map(|name| (name, SECRET)).chain([("plain.txt", PLAIN)]);
    files.try_for_each(|(name, text)| write(name, text)).map_err(|error| error.to_string())?;
    let live = home.open_without_user(&home.request(mode)).await?;
    live.prompt("Read it.").await?;
    let report = live.finish(|_, _| {}).await?;
    report.lawful()?;
    Ok((report, home))
}

fn read(path: &Path) -> Reply {
    Reply::action(Action::Read { path: path.display().to_string() })
}

/// Whether a text has reached the model.
fn reached_model(home: &Home, text: &str) -> bool {
    home.model.requests().iter().any(|request| request.body.to_string().contains(text))
}

async fn a_secret_is_not_read(agent: &'static str, program: PathBuf) -> Outcome {
    for (name, mode) in [(".env", Mode::Deny), ("server.key", Mode::Ask)] {
        let calls = |work: &Path| vec![read(&work.join(name))];
        let (report, home) = run(agent, program.clone(), mode, true, calls).await?;
        expect(!report.of("tool_started").is_empty(), "there was no call", &report)?;
        expect(!reached_model(&home, SECRET), "the model received the secret", &report)?;
        let refused = report.of("permission_resolved");
        let refused = refused.iter().any(|resolved| resolved["decision"] != "allowed");
        // Gemini refuses to read `.env` by itself.
        expect(refused || name == ".env", "nothing was refused", &report)?;
    }
    Ok(())
}

async fn a_secret_is_not_found(agent: &'static str, program: PathBuf) -> Outcome {
    let Some(call) = search(agent, "TOKEN") else { return Ok(()) };
    let (report, home) = run(agent, program, Mode::Deny, true, |_| vec![call]).await?;
    expect(!report.of("tool_started").is_empty(), "there was no call", &report)?;
    expect(!reached_model(&home, SECRET), "the model received the secret", &report)
}

async fn plain_files_are_read_unasked(agent: &'static str, program: PathBuf) -> Outcome {
    let calls = |work: &Path| {
        let reads = [read(&work.join("plain.txt"))].into_iter();
        reads.chain(search(agent, "plain")).collect()
    };
    let (report, home) = run(agent, program, Mode::Ask, false, calls).await?;
    expect(report.outcome() == "completed", "the turn was not completed", &report)?;
    let denied = |resolved: &&&Value| resolved["decision"] != "allowed";
    let denied = report.of("permission_resolved").iter().filter(denied).count();
    expect(denied == 0, "the user would have been asked", &report)?;
    let results = home.model.tool_results();
    let read =
        |it: &fake_model::ToolResult| it.text.as_deref().is_some_and(|it| it.contains(PLAIN));
    expect(results.iter().all(read), &format!("the model received {results:?}"), &report)
}
