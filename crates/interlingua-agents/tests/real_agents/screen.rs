//! Copilot by its screen: what is guessed there has to be what the script says.

use std::path::PathBuf;
use std::pin::Pin;

use fake_model::{Action, Reply, Script};
use interlingua_agents::permission::Mode;
use interlingua_agents::{Control, Request, Stop};

use crate::home::{Home, Told, exists};
use crate::situations::{Outcome, expect, went_well};

type Situation = fn(PathBuf) -> Pin<Box<dyn Future<Output = Outcome>>>;

pub(crate) const SCREENS: &[(&str, Situation)] = &[
    ("a_command", |program| Box::pin(a_command(program))),
    ("a_command_that_is_allowed", |program| Box::pin(allowed(program))),
    ("a_command_that_is_denied", |program| Box::pin(denied(program))),
    ("interrupted", |program| Box::pin(interrupted(program))),
    ("not_signed_in", |program| Box::pin(not_signed_in(program))),
];

async fn runs(program: PathBuf, script: Script, mode: Mode) -> Result<(Told, Home), String> {
    let home = Home::new("copilot", program, script)?;
    let request = Request { screen: true, ..home.request(mode) };
    let told = home.run(&request).await?;
    told.lawful()?;
    let says = told.of("notice").iter().any(|it| it.to_string().contains("guess"));
    expect(says, "it does not say that it is a guess", &told)?;
    Ok((told, home))
}

async fn a_command(program: PathBuf) -> Outcome {
    let script = Script::new()
        .reply(
            Reply::text("I look.\n\n- one\n- two")
                .then_action(Action::Shell { command: "echo seen; exit 3".into() }),
        )
        .reply(Reply::text("It did not work."));
    let (told, home) = runs(program, script, Mode::Auto).await?;
    went_well(&told, &home)?;
    let text = told.text();
    expect(text == "I look.\n\n• one\n• twoIt did not work.", "the text is another", &told)?;
    let started = told.of("tool_started");
    expect(started.len() == 1 && started[0]["name"] == "Bash", "there was one call", &told)?;
    expect(started[0]["input"]["command"] == "echo seen; exit 3", "the command", &told)?;
    let ended = told.of("tool_ended")[0];
    let right = ended["status"] == "failed" && ended["exit_code"] == 3 && ended["output"] == "seen";
    expect(right, "what the command gave back", &told)
}

async fn allowed(program: PathBuf) -> Outcome {
    let (told, home) = runs(program, touches(), Mode::Ask).await?;
    went_well(&told, &home)?;
    expect(exists(&home.work().join("made")), "the command did not run", &told)?;
    let resolved = told.of("permission_resolved");
    let right = resolved.len() == 1 && resolved[0]["decision"] == "allowed";
    expect(right, "somebody was asked once", &told)?;
    expect(told.text() == "Done.", "the text is another", &told)
}

async fn denied(program: PathBuf) -> Outcome {
    let (told, home) = runs(program, touches(), Mode::Deny).await?;
    expect(!exists(&home.work().join("made")), "the command ran", &told)?;
    let ended = told.of("tool_ended");
    let right = ended.len() == 1 && ended[0]["status"] == "denied";
    expect(right, "the call was not denied", &told)?;
    expect(told.text() == "Done.", "the turn did not go on", &told)
}

fn touches() -> Script {
    Script::new().reply(Reply::shell("touch made")).reply(Reply::text("Done."))
}

async fn interrupted(program: PathBuf) -> Outcome {
    let script = Script::new().reply(Reply::shell("tail -f /dev/null")).any_stream();
    let home = Home::new("copilot", program, script)?;
    let request = Request { screen: true, ..home.request(Mode::Auto) };
    let told = home
        .watched(&request, |event, controls| {
            if event["type"] == "tool_started" {
                let _ = controls.try_send(Control::Stop(Stop::Interrupted));
            }
        })
        .await?;
    told.lawful()?;
    expect(told.outcome() == "cancelled", "the turn was not cancelled", &told)?;
    expect(told.ended.code() == 130, "the exit code is not 130", &told)?;
    // By itself, and not by a signal: it understood the keys.
    expect(told.ended.exit.code == Some(0), "it did not end by itself", &told)
}

async fn not_signed_in(program: PathBuf) -> Outcome {
    let script = Script::new().reply(Reply::error(401, "the key is wrong")).repeat_last();
    let (told, _) = runs(program, script.any_stream(), Mode::Auto).await?;
    expect(told.outcome() == "failed", "the turn did not fail", &told)?;
    let end = told.of("turn_ended")[0];
    expect(end["class"] == "authentication", "the cause is not told", &told)
}
