//! Copilot through its screen: the guesses must agree with the script.

use std::path::PathBuf;
use std::pin::Pin;

use fake_model::{Action, Reply, Script};
use interlingua_agents::permission::Mode;
use interlingua_agents::{Request, Stop};

use crate::home::{Home, RunReport, exists};
use crate::situations::{Outcome, expect, succeeded};

type Situation = fn(PathBuf) -> Pin<Box<dyn Future<Output = Outcome>>>;

pub(crate) const SCREENS: &[(&str, Situation)] = &[
    ("a_command", |program| Box::pin(a_command(program))),
    ("a_command_that_is_allowed", |program| Box::pin(allowed(program))),
    ("a_command_that_is_denied", |program| Box::pin(denied(program))),
    ("interrupted", |program| Box::pin(interrupted(program))),
    ("not_signed_in", |program| Box::pin(not_signed_in(program))),
];

async fn runs(program: PathBuf, script: Script, mode: Mode) -> Result<(RunReport, Home), String> {
    let home = Home::new("copilot", program, script)?;
    let request = Request { screen: true, ..home.request(mode) };
    let report = home.run(&request).await?;
    report.lawful()?;
    let is_announced = report.of("notice").iter().any(|it| it.to_string().contains("guess"));
    expect(is_announced, "there is no notice that it is a guess", &report)?;
    Ok((report, home))
}

async fn a_command(program: PathBuf) -> Outcome {
    let script = Script::new()
        .reply(
            Reply::text("I look.\n\n- one\n- two")
                .then_action(Action::Shell { command: "echo seen; exit 3".into() }),
        )
        .reply(Reply::text("It did not work."));
    let (report, home) = runs(program, script, Mode::Auto).await?;
    succeeded(&report, &home)?;
    let text = report.text();
    expect(
        text == "I look.\n\n• one\n• twoIt did not work.",
        "the text is not the expected one",
        &report,
    )?;
    let started = report.of("tool_started");
    expect(
        started.len() == 1 && started[0]["name"] == "Bash",
        "there was not exactly one call",
        &report,
    )?;
    expect(started[0]["input"]["command"] == "echo seen; exit 3", "the command", &report)?;
    let ended = report.of("tool_ended")[0];
    let right = ended["status"] == "failed" && ended["exit_code"] == 3 && ended["output"] == "seen";
    expect(right, "the result of the command is wrong", &report)
}

async fn allowed(program: PathBuf) -> Outcome {
    let (report, home) = runs(program, touches(), Mode::Ask).await?;
    succeeded(&report, &home)?;
    expect(exists(&home.work().join("made")), "the command did not run", &report)?;
    let resolved = report.of("permission_resolved");
    let right = resolved.len() == 1 && resolved[0]["decision"] == "allowed";
    expect(right, "there was not exactly one allowed request", &report)?;
    expect(report.text() == "Done.", "the text is not the expected one", &report)
}

async fn denied(program: PathBuf) -> Outcome {
    let (report, home) = runs(program, touches(), Mode::Deny).await?;
    expect(!exists(&home.work().join("made")), "the command ran", &report)?;
    let ended = report.of("tool_ended");
    let right = ended.len() == 1 && ended[0]["status"] == "denied";
    expect(right, "the call was not denied", &report)?;
    expect(report.text() == "Done.", "the turn did not continue", &report)
}

fn touches() -> Script {
    Script::new().reply(Reply::shell("touch made")).reply(Reply::text("Done."))
}

async fn interrupted(program: PathBuf) -> Outcome {
    let script = Script::new().reply(Reply::shell("tail -f /dev/null")).any_stream();
    let home = Home::new("copilot", program, script)?;
    let request = Request { screen: true, ..home.request(Mode::Auto) };
    let report = home
        .watched(&request, |event, handle| {
            if event["type"] == "tool_started" {
                let handle = handle.clone();
                tokio::spawn(async move { handle.stop(Stop::Interrupted).await });
            }
        })
        .await?;
    report.lawful()?;
    expect(report.outcome() == "cancelled", "the turn was not cancelled", &report)?;
    expect(report.ended.code() == 130, "the exit code is not 130", &report)?;
    // It exited by itself, not by a signal: it understood the keys.
    expect(report.ended.exit.code == Some(0), "it did not exit by itself", &report)
}

async fn not_signed_in(program: PathBuf) -> Outcome {
    let script = Script::new().reply(Reply::error(401, "the key is wrong")).repeat_last();
    let (report, _) = runs(program, script.any_stream(), Mode::Auto).await?;
    expect(report.outcome() == "failed", "the turn did not fail", &report)?;
    let end = report.of("turn_ended")[0];
    expect(end["class"] == "authentication", "the cause is not reported", &report)
}
