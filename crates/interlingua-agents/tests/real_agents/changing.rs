//! What the tools of an agent change: files by a tool, files by a command, the configuration of the
//! user, and processes that outlive the agent.

use std::path::{Path, PathBuf};
use std::pin::Pin;

use fake_model::{Action, Reply, Script};
use interlingua_agents::permission::Mode;

use crate::home::{Home, RunReport, exists};
use crate::situations::{Outcome, expect, make_fifo};

type Situation = fn(&'static str, PathBuf) -> Pin<Box<dyn Future<Output = Outcome>>>;

macro_rules! situations {
    ($($name:ident),+ $(,)?) => {
        pub(crate) const CHANGING: &[(&str, Situation)] =
            &[$((stringify!($name), |agent, program| Box::pin($name(agent, program)))),+];
    };
}

situations![
    a_write_needs_a_permission,
    edits_are_accepted_and_commands_are_not,
    the_configuration_of_the_user_stays_as_it_is,
    a_process_without_an_environment_does_not_survive,
];

/// The situations that apply to one agent only.
pub(crate) fn can(agent: &str, situation: &str) -> bool {
    match situation {
        // The others have no such setting.
        "a_process_without_an_environment_does_not_survive" => agent == "codex",
        // It asks nothing.
        _ => agent != "codex-exec",
    }
}

pub(crate) fn write(path: &Path) -> Reply {
    Reply::action(Action::Write { path: path.display().to_string(), content: "new\n".to_owned() })
}

/// Runs calls in a session in which no user can be asked.
async fn unattended(home: &Home, mode: Mode) -> Result<RunReport, String> {
    let live = home.open_without_user(&home.request(mode)).await?;
    live.prompt("Change it.").await?;
    let report = live.finish(|_, _| {}).await?;
    report.lawful()?;
    Ok(report)
}

async fn a_write_needs_a_permission(agent: &'static str, program: PathBuf) -> Outcome {
    for mode in [Mode::Ask, Mode::Deny] {
        let script = |work: &Path| Script::new().reply(write(&work.join("made.txt")));
        let script = |work: &Path| script(work).reply(Reply::text("Done.")).any_stream();
        let home = Home::scripted(agent, program.clone(), script)?;
        let report = unattended(&home, mode).await?;
        expect(!report.of("tool_started").is_empty(), "there was no call", &report)?;
        expect(!exists(&home.work().join("made.txt")), "the file was written", &report)?;
        let asked = !report.of("permission_requested").is_empty();
        expect(asked, "no permission was requested", &report)?;
    }
    Ok(())
}

async fn edits_are_accepted_and_commands_are_not(agent: &'static str, program: PathBuf) -> Outcome {
    let script = |work: &Path| {
        let (edit, removal) = (write(&work.join("made.txt")), Reply::shell("rm made.txt"));
        Script::new().reply(edit).reply(removal).reply(Reply::text("Done.")).any_stream()
    };
    let home = Home::scripted(agent, program, script)?;
    let report = unattended(&home, Mode::AcceptEdits).await?;
    expect(report.of("tool_started").len() == 2, "there were not exactly two calls", &report)?;
    let made = std::fs::read_to_string(home.work().join("made.txt")).unwrap_or_default();
    expect(made == "new\n", "the file was not written, or removed", &report)?;
    let decisions = report.of("permission_resolved");
    let denied = decisions.iter().filter(|it| it["decision"] != "allowed").count();
    expect(denied == 1, "the command was not asked about", &report)
}

/// Codex marked the folder as trusted, and some agents store that something is always allowed.
async fn the_configuration_of_the_user_stays_as_it_is(
    agent: &'static str,
    program: PathBuf,
) -> Outcome {
    let script = |work: &Path| {
        let calls = [Reply::shell("touch a"), write(&work.join("made.txt"))].into_iter();
        calls.fold(Script::new(), Script::reply).reply(Reply::text("Done.")).any_stream()
    };
    let home = Home::scripted(agent, program, script)?;
    let before = home.configuration().map_err(|error| error.to_string())?;
    // The user allows everything.
    let report = home.run(&home.request(Mode::Ask)).await?;
    report.lawful()?;
    expect(exists(&home.work().join("made.txt")), "the file was not written", &report)?;
    let after = home.configuration().map_err(|error| error.to_string())?;
    expect(before == after, &format!("before: {before:?}\nafter: {after:?}"), &report)
}

/// Without the environment, the mark of a run is lost, and with a session of its own, the group.
async fn a_process_without_an_environment_does_not_survive(
    agent: &'static str,
    program: PathBuf,
) -> Outcome {
    let escapes = "env -i setsid sh -c 'echo > started; exec sleep 1000' > alive & cat started";
    let script = Script::new().reply(Reply::shell(escapes)).reply(Reply::text("Done."));
    let home = Home::new(agent, program, script)?;
    home.add_configuration("\n[shell_environment_policy]\ninherit = \"core\"\n")
        .map_err(|error| error.to_string())?;
    let (alive, started) = (home.work().join("alive"), home.work().join("started"));
    make_fifo(&alive)?;
    make_fifo(&started)?;
    let (sender, ended) = tokio::sync::oneshot::channel();
    // It is read to its end, which is when no process holds it.
    std::thread::spawn(move || sender.send(std::fs::read(alive).is_ok()));
    let report = home.run(&home.request(Mode::Auto)).await?;
    expect(report.outcome() == "completed", "the turn was not completed", &report)?;
    let ended = tokio::time::timeout(crate::home::RUN_TIMEOUT, ended).await;
    expect(ended.is_ok(), "a process survived", &report)
}
