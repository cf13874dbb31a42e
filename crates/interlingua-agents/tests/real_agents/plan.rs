//! The mode `plan`, with every agent that has it: it reads and changes nothing, until the user
//! approves a plan.

use std::path::{Path, PathBuf};
use std::pin::Pin;

use fake_model::{Action, Reply, Script};
use interlingua_agents::permission::Mode;
use serde_json::{Value, json};

use crate::home::{Home, RunReport, exists};
use crate::situations::{Outcome, expect};

type Situation = fn(&'static str, PathBuf) -> Pin<Box<dyn Future<Output = Outcome>>>;

macro_rules! situations {
    ($($name:ident),+ $(,)?) => {
        pub(crate) const PLAN: &[(&str, Situation)] =
            &[$((stringify!($name), |agent, program| Box::pin($name(agent, program)))),+];
    };
}

situations![
    a_file_is_read,
    a_file_is_not_written,
    a_command_is_not_run,
    no_branch_is_made,
    no_prompt_is_planned,
    a_plan_approved,
    a_plan_not_approved,
];

pub(crate) fn can(agent: &str, situation: &str) -> bool {
    // An unattended run of Codex has no such mode.
    agent != "codex-exec"
        && (!situation.starts_with("a_plan") || presents(agent).is_some())
        // The others have no tools for it.
        && (!situation.starts_with("no_") || ["claude", "qwen"].contains(&agent))
}

/// Runs a session in the mode `plan` in which the model tries an action.
async fn tries(
    agent: &'static str,
    program: PathBuf,
    action: impl FnOnce(&Path) -> Action,
) -> Result<(RunReport, Home), String> {
    let home = Home::scripted(agent, program, |work| {
        let script = Script::new().reply(Reply::action(action(work)));
        script.reply(Reply::text("Done.")).repeat_last().any_stream()
    })?;
    let given = home.work().join("given");
    std::fs::write(given, "the given text").map_err(|error| error.to_string())?;
    let report = home.run(&home.request(Mode::Plan)).await?;
    report.lawful()?;
    expect(report.of("turn_ended").len() == 1, "there was not one turn", &report)?;
    expect(report.outcome() != "failed", "the turn failed", &report)?;
    Ok((report, home))
}

async fn a_file_is_read(agent: &'static str, program: PathBuf) -> Outcome {
    let read = |work: &Path| Action::Read { path: work.join("given").display().to_string() };
    let (report, home) = tries(agent, program, read).await?;
    let results = home.model.tool_results();
    let found = format!("{results:?}").contains("the given text");
    expect(found, &format!("the model received {results:?}"), &report)?;
    expect(report.text() == "Done.", "the text is not the script's", &report)
}

async fn a_file_is_not_written(agent: &'static str, program: PathBuf) -> Outcome {
    let write = |work: &Path| {
        let path = work.join("made").display().to_string();
        Action::Write { path, content: "text".to_owned() }
    };
    let (report, home) = tries(agent, program, write).await?;
    expect(!exists(&home.work().join("made")), "the file was written", &report)
}

async fn a_command_is_not_run(agent: &'static str, program: PathBuf) -> Outcome {
    let touch = |_: &Path| Action::Shell { command: "touch made".to_owned() };
    let (report, home) = tries(agent, program, touch).await?;
    expect(!exists(&home.work().join("made")), "the command ran", &report)
}

/// Claude and Qwen made a branch and a folder for it, in this mode as well, without asking.
async fn no_branch_is_made(agent: &'static str, program: PathBuf) -> Outcome {
    let tool = if agent == "claude" { "EnterWorktree" } else { "enter_worktree" };
    let script = Script::new().reply(Reply::call(tool, json!({"name": "elsewhere"})));
    let script = script.reply(Reply::text("Done.")).repeat_last();
    let home = Home::new(agent, program, script.any_stream())?;
    home.be_repository()?;
    git(&home, &["commit", "--quiet", "--allow-empty", "--message", "first"])?;
    let before = git(&home, &["branch", "--list", "--all"])?;
    let live = home.open_without_user(&home.request(Mode::Plan)).await?;
    live.prompt("Make it.").await?;
    let report = live.finish(|_, _| {}).await?;
    report.lawful()?;
    let asked = report.of("permission_requested").iter().any(|it| it["tool"] == tool);
    expect(asked, "the branch was not asked about", &report)?;
    let after = git(&home, &["branch", "--list", "--all"])?;
    expect(before == after, &format!("there are branches: {after}"), &report)?;
    expect(git(&home, &["worktree", "list"])?.lines().count() == 1, "a folder was made", &report)
}

/// A prompt for later would run when nobody expects it.
async fn no_prompt_is_planned(agent: &'static str, program: PathBuf) -> Outcome {
    let tool = if agent == "claude" { "CronCreate" } else { "cron_create" };
    let input = json!({"cron": "*/5 * * * *", "prompt": "Do it again.", "recurring": true});
    let script = Script::new().reply(Reply::call(tool, input)).reply(Reply::text("Done."));
    let home = Home::new(agent, program, script.repeat_last().any_stream())?;
    let live = home.open_without_user(&home.request(Mode::Plan)).await?;
    live.prompt("Plan it.").await?;
    let report = live.finish(|_, _| {}).await?;
    report.lawful()?;
    let resolved = report.of("permission_resolved");
    let denied = resolved.iter().any(|it| it["tool"] == tool && it["decision"] != "allowed");
    expect(denied, "the prompt was not asked about", &report)
}

/// Runs git in the working folder.
fn git(home: &Home, arguments: &[&str]) -> Result<String, String> {
    let mut git = std::process::Command::new("git");
    git.args(["-c", "user.name=Test", "-c", "user.email=test@example.org"]).args(arguments);
    let output = git.current_dir(home.work()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The call with which an agent asks for the approval of its plan. The others have none: OpenCode's
/// and Copilot's are not offered, Codex plans in words, and Gemini's needs a file outside of the
/// folder.
fn presents(agent: &str) -> Option<Reply> {
    let tool = match agent {
        "claude" => "ExitPlanMode",
        "qwen" => "exit_plan_mode",
        _ => return None,
    };
    Some(Reply::call(tool, json!({"plan": "# Plan"})))
}

/// A home in which the model asks for the approval of its plan, and then acts.
fn home_with_plan(agent: &'static str, program: PathBuf) -> Result<Home, String> {
    let plan = presents(agent).ok_or("the agent does not ask about its plan")?;
    let acts = Reply::shell("touch made");
    let script = Script::new().reply(plan).reply(acts).reply(Reply::text("Done.")).repeat_last();
    Home::new(agent, program, script.any_stream())
}

/// An approved plan ends the mode: what follows is neither denied nor allowed, but asked.
async fn a_plan_approved(agent: &'static str, program: PathBuf) -> Outcome {
    let home = home_with_plan(agent, program)?;
    let mut live = home.open(&home.request(Mode::Plan), None).await?;
    live.prompt("one").await?;
    // Qwen requests a permission, which the session is given.
    if agent == "claude" {
        let asked = live.next_question().await?;
        let answered = live.handle.answer(asked.id(), json!("Approve")).await;
        answered.map_err(|refused| refused.to_string())?;
    }
    let report = live.finish(|_, _| {}).await?;
    report.lawful()?;
    expect(report.outcome() == "completed", "the turn was not completed", &report)?;
    let left = |event: &&Value| event["permission_mode"] == "default";
    expect(report.of("session_updated").iter().any(left), "the mode is still plan", &report)?;
    let asked = report.of("permission_requested");
    let is_command = asked.last().is_some_and(|it| it.to_string().contains("touch made"));
    expect(is_command, "the command was not asked about", &report)?;
    expect(exists(&home.work().join("made")), "the command did not run", &report)
}

/// Without an approval the mode stays, and nothing is changed.
async fn a_plan_not_approved(agent: &'static str, program: PathBuf) -> Outcome {
    let home = home_with_plan(agent, program)?;
    let live = home.open_without_user(&home.request(Mode::Plan)).await?;
    live.prompt("one").await?;
    let report = live.finish(|_, _| {}).await?;
    report.lawful()?;
    expect(report.outcome() != "failed", "the turn failed", &report)?;
    let left = |event: &&Value| event["permission_mode"] == "default";
    expect(!report.of("session_updated").iter().any(left), "the mode was left", &report)?;
    expect(!exists(&home.work().join("made")), "the command ran", &report)
}
