//! What can happen to an agent, and what has to come of it.

use std::path::{Path, PathBuf};
use std::pin::Pin;

use fake_model::{Action, Cut, Reply, Script};
use interlingua::check::Checker;
use interlingua::dialect::Dialect;
use interlingua::framing::Limits;
use interlingua::{Exit, Source, Translator};
use interlingua_agents::permission::Mode;
use interlingua_agents::{Control, Request, Stop};
use tokio::sync::mpsc::Sender;

use crate::home::{Home, Told, exists};

pub(crate) type Outcome = Result<(), String>;
type Situation = fn(&'static str, PathBuf) -> Pin<Box<dyn Future<Output = Outcome>>>;

macro_rules! situations {
    ($($name:ident),+ $(,)?) => {
        pub(crate) const SITUATIONS: &[(&str, Situation)] =
            &[$((stringify!($name), |agent, program| Box::pin($name(agent, program)))),+];
    };
}

situations![
    plain_text,
    a_tool,
    several_tools,
    a_tool_that_fails,
    permission_allowed,
    permission_denied,
    interrupted_in_text,
    interrupted_in_a_tool,
    not_signed_in,
    rate_limit_then_success,
    cut_connection,
    a_megabyte_of_tool_output,
    a_long_prompt,
    a_prompt_that_looks_like_a_flag,
    an_unknown_session,
    a_bad_flag,
    resumed,
    resumed_where_somebody_is_asked,
    resumed_in_another_mode,
    the_same_turn_in_every_dialect,
];

/// What cannot happen to an agent.
const CANNOT: &[(&str, &str)] = &[
    // It asks nobody, and is refused where somebody is to be asked.
    ("codex-exec", "permission_allowed"),
    ("codex-exec", "resumed_where_somebody_is_asked"),
    ("codex-exec", "resumed_in_another_mode"),
    // It tells a text when it is whole, and not at all if it never was.
    ("codex-exec", "interrupted_in_text"),
];

pub(crate) fn can(agent: &str, situation: &str) -> bool {
    !CANNOT.contains(&(agent, situation))
}

/// Where nobody is asked, and where somebody is, if the agent can ask.
pub(crate) fn modes(agent: &str) -> Vec<Mode> {
    let asks = can(agent, "permission_allowed");
    if asks { vec![Mode::Auto, Mode::Ask] } else { vec![Mode::Auto] }
}

/// Says what is wrong, with all that is known.
pub(crate) fn expect(holds: bool, what: &str, told: &Told) -> Outcome {
    if holds {
        return Ok(());
    }
    let stderr = told.ended.exit.stderr.as_deref().unwrap_or_default();
    Err(format!("{what}\n{:#?}\n{:?}\nstderr: {stderr}", told.kinds(), told.ended))
}

/// A turn that went well: completed, lawful, and nobody left behind.
pub(crate) fn went_well(told: &Told, home: &Home) -> Outcome {
    expect(told.outcome() == "completed", "the turn was not completed", told)?;
    expect(told.ended.code() == 0, "the exit code is not 0", told)?;
    told.lawful()?;
    let findings = home.model.findings();
    expect(findings.is_empty(), &format!("the model found {findings:?}"), told)
}

async fn plain_text(agent: &'static str, program: PathBuf) -> Outcome {
    let script = Script::new().reply(Reply::text("Hel").then_text("lo.").usage(100, 20));
    let home = Home::new(agent, program, script)?;
    let told = home.run(&home.request(Mode::Auto)).await?;
    went_well(&told, &home)?;
    expect(told.text() == "Hello.", "the text is not the script's", &told)?;
    expect(told.ended.orphans == 0, "processes were left behind", &told)
}

async fn a_tool(agent: &'static str, program: PathBuf) -> Outcome {
    let script =
        Script::new().reply(Reply::shell("echo from-the-shell")).reply(Reply::text("Done."));
    let home = Home::new(agent, program, script)?;
    let told = home.run(&home.request(Mode::Auto)).await?;
    went_well(&told, &home)?;
    expect(told.text() == "Done.", "the text is not the script's", &told)?;
    expect(told.of("tool_started").len() == 1, "there was one call", &told)?;
    expect(told.outputs().contains("from-the-shell"), "the output is lost", &told)?;
    let results = home.model.tool_results();
    let answered = |text: &str| {
        results.iter().any(|it| it.text.as_deref().is_some_and(|it| it.contains(text)))
    };
    expect(answered("from-the-shell"), &format!("the model was told {results:?}"), &told)
}

async fn several_tools(agent: &'static str, program: PathBuf) -> Outcome {
    let two = Reply::shell("echo one").then_action(Action::Shell { command: "echo two".into() });
    let script =
        Script::new().reply(two).reply(Reply::shell("echo three")).reply(Reply::text("Done."));
    let home = Home::new(agent, program, script)?;
    let told = home.run(&home.request(Mode::Auto)).await?;
    went_well(&told, &home)?;
    expect(told.of("tool_started").len() == 3, "there were three calls", &told)?;
    let outputs = told.outputs();
    let all = ["one", "two", "three"].iter().all(|word| outputs.contains(word));
    expect(all, "an output is lost", &told)
}

async fn a_tool_that_fails(agent: &'static str, program: PathBuf) -> Outcome {
    let script = Script::new().reply(Reply::shell("echo oops; exit 3")).reply(Reply::text("Done."));
    let home = Home::new(agent, program, script)?;
    let told = home.run(&home.request(Mode::Auto)).await?;
    went_well(&told, &home)?;
    let ended = told.of("tool_ended");
    // Gemini's stream says that it went well; its log has the exit code.
    let failed = ended.iter().all(|call| call["status"] == "failed" || call["exit_code"] == 3);
    expect(failed, "the call did not fail", &told)?;
    expect(told.outputs().contains("oops"), "the output is lost", &told)
}

async fn permission_allowed(agent: &'static str, program: PathBuf) -> Outcome {
    let (told, home, made) = touches(agent, program, Mode::Ask).await?;
    went_well(&told, &home)?;
    expect(exists(&made), "the command did not run", &told)?;
    // Codex runs in its sandbox what needs no permission there.
    let asked = !told.of("permission_requested").is_empty() || agent == "codex";
    expect(asked, "nobody was asked", &told)?;
    let resolved = told.of("permission_resolved");
    let allowed = resolved.iter().all(|resolved| resolved["decision"] == "allowed");
    expect(
        allowed && resolved.len() == told.of("permission_requested").len(),
        "a decision is missing",
        &told,
    )
}

async fn permission_denied(agent: &'static str, program: PathBuf) -> Outcome {
    let (told, _home, made) = touches(agent, program, Mode::Deny).await?;
    told.lawful()?;
    expect(!exists(&made), "the command ran", &told)?;
    let ended = told.of("tool_ended");
    let refused = ended.iter().all(|call| call["status"] != "completed" || agent == "codex");
    expect(refused, "the call went well", &told)
}

async fn touches(
    agent: &'static str,
    program: PathBuf,
    mode: Mode,
) -> Result<(Told, Home, PathBuf), String> {
    let script = Script::new().reply(Reply::shell("touch made")).reply(Reply::text("Done."));
    let home = Home::new(agent, program, script.any_stream())?;
    let made = home.work().join("made");
    let told = home.run(&home.request(mode)).await?;
    Ok((told, home, made))
}

async fn interrupted_in_text(agent: &'static str, program: PathBuf) -> Outcome {
    let script =
        Script::new().reply(Reply::text("Begins. ").then_gate("text").then_text("Never said."));
    let home = Home::new(agent, program, script)?;
    // OpenCode's stream tells a text when it is whole; in its other protocol it comes as it is said.
    let mode = if agent == "opencode" { Mode::Ask } else { Mode::Auto };
    let mut stopped = false;
    let told = home
        .watched(&home.request(mode), |event, controls| {
            let speaks =
                event["kind"] == "text" && event["text"].as_str().is_some_and(|it| !it.is_empty());
            if speaks && !std::mem::replace(&mut stopped, true) {
                let _ = controls.try_send(Control::Stop(Stop::Interrupted));
            }
        })
        .await?;
    told.lawful()?;
    expect(told.outcome() == "cancelled", "the turn was not cancelled", &told)?;
    expect(told.ended.code() == 130, "the exit code is not 130", &told)?;
    expect(told.text().trim_end() == "Begins.", "what had been said does not stay", &told)
}

async fn interrupted_in_a_tool(agent: &'static str, program: PathBuf) -> Outcome {
    let script = Script::new()
        .reply(Reply::shell("echo $$ > pid; echo > running; tail -f /dev/null"))
        .reply(Reply::text("Done."));
    let home = Home::new(agent, program, script)?;
    let (pid, running) = (home.work().join("pid"), home.work().join("running"));
    make_fifo(&running)?;
    let mode = if agent == "opencode" { Mode::Ask } else { Mode::Auto };
    let (request, mut waits) = (home.request(mode), false);
    let told = home
        .watched(&request, |event, controls| {
            if event["type"] == "tool_started" && !std::mem::replace(&mut waits, true) {
                std::thread::spawn(when_it_runs(running.clone(), controls.clone()));
            }
        })
        .await?;
    told.lawful()?;
    expect(told.ended.code() == 130, "the exit code is not 130", &told)?;
    expect(told.outcome() == "cancelled", "the turn was not cancelled", &told)?;
    let pid = std::fs::read_to_string(&pid).unwrap_or_default();
    let alive = exists(&PathBuf::from(format!("/proc/{}", pid.trim())));
    expect(!pid.trim().is_empty() && !alive, &format!("the command {pid} is alive"), &told)
}

/// A named pipe, which the command opens when it has said who it is.
fn make_fifo(path: &Path) -> Outcome {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    let made = made.map_err(|error| error.to_string())?;
    if made.success() { Ok(()) } else { Err("mkfifo failed".to_owned()) }
}

/// Interrupts the run once the command runs.
fn when_it_runs(running: PathBuf, controls: Sender<Control>) -> impl FnOnce() + Send {
    move || {
        // This waits for the command. If it never runs, the deadline of the run ends the situation.
        let told = std::fs::read(running);
        // A run that is over cannot be controlled.
        let _ = told.map(|_| controls.blocking_send(Control::Stop(Stop::Interrupted)));
    }
}

async fn not_signed_in(agent: &'static str, program: PathBuf) -> Outcome {
    let script = Script::new().reply(Reply::error(401, "the key is wrong")).repeat_last();
    let home = Home::new(agent, program, script.any_stream())?;
    let told = home.run(&home.request(Mode::Auto)).await?;
    told.lawful()?;
    expect(told.outcome() == "failed", "the turn did not fail", &told)?;
    expect(told.ended.code() == 1, "the exit code is not 1", &told)?;
    let said = told.of("turn_ended")[0].to_string() + &format!("{:?}", told.of("error"));
    let named = said.contains("401")
        || said.contains("the key is wrong")
        || said.contains("authentication");
    expect(named, "the cause is not told", &told)
}

async fn rate_limit_then_success(agent: &'static str, program: PathBuf) -> Outcome {
    let script = Script::new()
        .reply(Reply::error(429, "slow down").retry_after(1))
        .reply(Reply::text("Hello."));
    let home = Home::new(agent, program, script.any_stream())?;
    let told = home.run(&home.request(Mode::Auto)).await?;
    told.lawful()?;
    expect(told.outcome() == "completed", "the turn was not completed", &told)?;
    expect(told.text() == "Hello.", "the text is not the script's", &told)
}

async fn cut_connection(agent: &'static str, program: PathBuf) -> Outcome {
    let cut = Reply::text("Hel").then_text("lo.").cut(Cut::InText);
    let script = Script::new().reply(cut).reply(Reply::text("Hello.")).repeat_last();
    let home = Home::new(agent, program, script.any_stream())?;
    let told = home.run(&home.request(Mode::Auto)).await?;
    told.lawful()?;
    // Gemini does not try again, and says so.
    let failed = agent == "gemini" && told.outcome() == "failed" && told.ended.code() == 1;
    let completed = told.outcome() == "completed" && told.text().ends_with("Hello.");
    expect(failed || completed, "neither a failure nor the whole text", &told)
}

async fn a_megabyte_of_tool_output(agent: &'static str, program: PathBuf) -> Outcome {
    let much = "head -c 1000000 /dev/zero | tr '\\0' x; echo the-end";
    let script = Script::new().reply(Reply::shell(much)).reply(Reply::text("Done."));
    let home = Home::new(agent, program, script)?;
    let told = home.run(&home.request(Mode::Auto)).await?;
    went_well(&told, &home)?;
    expect(told.text() == "Done.", "the text is not the script's", &told)?;
    // How much of it an agent shows is its own choice; that it says something is not.
    expect(told.outputs().contains("xxxxxxxx"), "the output is lost", &told)
}

/// A prompt that is too long for an argument, and for a pipe that nobody reads yet.
async fn a_long_prompt(agent: &'static str, program: PathBuf) -> Outcome {
    // Copilot and Qwen count what they send, and suppose that a model they do not know takes less.
    let bytes = if ["copilot", "qwen"].contains(&agent) { 300_000 } else { 1_000_000 };
    let words = "Do as the script says. ";
    let prompt = words.repeat(bytes / words.len()) + "That was the prompt.";
    for mode in modes(agent) {
        let home = Home::new(agent, program.clone(), Script::new().reply(Reply::text("Done.")))?;
        let request = Request { prompt: prompt.clone(), ..home.request(mode) };
        let told = home.run(&request).await?;
        went_well(&told, &home)?;
        expect(told.text() == "Done.", "the text is not the script's", &told)?;
        let asked = home.model.main_requests();
        let whole = asked.iter().any(|it| it.body.to_string().contains(&prompt));
        expect(whole, "the model was not told the whole prompt", &told)?;
    }
    Ok(())
}

async fn a_prompt_that_looks_like_a_flag(agent: &'static str, program: PathBuf) -> Outcome {
    for mode in modes(agent) {
        let home = Home::new(agent, program.clone(), Script::new().reply(Reply::text("Done.")))?;
        let request = Request { prompt: "--help me".into(), ..home.request(mode) };
        let told = home.run(&request).await?;
        went_well(&told, &home)?;
        let asked = home.model.main_requests();
        let heard = asked.iter().any(|it| it.body.to_string().contains("--help me"));
        expect(heard, "the model was not told the prompt", &told)?;
    }
    Ok(())
}

/// The agent's own words say what is wrong.
async fn an_unknown_session(agent: &'static str, program: PathBuf) -> Outcome {
    let id = "01234567-89ab-7def-8123-456789abcdef";
    for mode in modes(agent) {
        let home = Home::new(agent, program.clone(), Script::new().any_stream())?;
        let told = home.run(&Request { resume: Some(id.into()), ..home.request(mode) }).await?;
        let said = failed_with_words(&told)?.to_lowercase();
        let words = ["session", "conversation", "thread", "rollout"];
        let named = words.iter().any(|word| said.contains(word));
        expect(named, "the cause does not say what was not found", &told)?;
    }
    Ok(())
}

async fn a_bad_flag(agent: &'static str, program: PathBuf) -> Outcome {
    for mode in modes(agent) {
        let home = Home::new(agent, program.clone(), Script::new().any_stream())?;
        let flags = vec!["--no-such-flag".to_owned()];
        let told = home.run(&Request { flags, ..home.request(mode) }).await?;
        let said = failed_with_words(&told)?;
        // Copilot takes it for a prompt without quotes; OpenCode says how it is called, and no more.
        let words = ["--no-such-flag", "no-such-flag", "Invalid command format", "Options:"];
        let named = words.iter().any(|word| said.contains(word));
        expect(named, "the cause does not say what was wrong", &told)?;
    }
    Ok(())
}

/// Why a turn failed, in all words that its end has for it.
fn failed_with_words(told: &Told) -> Result<String, String> {
    told.lawful()?;
    expect(told.outcome() == "failed", "the turn did not fail", told)?;
    expect(told.ended.code() == 1, "the exit code is not 1", told)?;
    let stop = told.ended.stop.as_ref().map(|stop| format!("{stop:?}"));
    Ok(told.of("turn_ended")[0].to_string() + &stop.unwrap_or_default())
}

async fn resumed(agent: &'static str, program: PathBuf) -> Outcome {
    resumes(agent, program, Mode::Auto, Mode::Auto).await
}

async fn resumed_where_somebody_is_asked(agent: &'static str, program: PathBuf) -> Outcome {
    resumes(agent, program, Mode::Ask, Mode::Ask).await
}

/// Many agents speak another protocol then.
async fn resumed_in_another_mode(agent: &'static str, program: PathBuf) -> Outcome {
    resumes(agent, program, Mode::Auto, Mode::Ask).await
}

async fn resumes(
    agent: &'static str,
    program: PathBuf,
    first_mode: Mode,
    second_mode: Mode,
) -> Outcome {
    let script = Script::new().reply(Reply::text("First.")).reply(Reply::text("Second."));
    let home = Home::new(agent, program, script)?;
    let first = home.run(&home.request(first_mode)).await?;
    went_well(&first, &home)?;
    let id = first.session().ok_or("no session was told")?.to_owned();
    let resume = Some(id.clone());
    let second = home.run(&Request { resume, ..home.request(second_mode) }).await?;
    went_well(&second, &home)?;
    expect(second.text() == "Second.", "the text is not the script's", &second)?;
    expect(second.session() == Some(&id), "it is another session", &second)?;
    let asked = home.model.main_requests();
    let remembers = asked.last().is_some_and(|it| it.body.to_string().contains("First."));
    expect(remembers, "the model was not told what was said before", &second)
}

/// The same prompt and script give the same turn, whoever runs it and however it is written.
async fn the_same_turn_in_every_dialect(agent: &'static str, program: PathBuf) -> Outcome {
    let script = Script::new()
        .reply(Reply::text("Look.").then_action(Action::Shell { command: "echo seen".into() }))
        .reply(Reply::text("Done."));
    let home = Home::new(agent, program, script)?;
    let record = home.work().join("record");
    let told = home.recorded(&home.request(Mode::Auto), &record).await?;
    went_well(&told, &home)?;
    expect(told.text() == "Look.Done.", "the text is not the script's", &told)?;
    expect(told.of("tool_started").len() == 1, "there was one call", &told)?;
    let bytes = std::fs::read(&record).map_err(|error| error.to_string())?;
    for to in interlingua::dialect::ALL.iter().copied().filter(|to| to.encoder.is_some()) {
        let written = translated(&bytes, None, to)?;
        let text = String::from_utf8_lossy(&written);
        for word in ["Look.", "Done.", "echo seen"] {
            expect(text.contains(word), &format!("{}: {word} is not in\n{text}", to.name), &told)?;
        }
        if to.rules.is_some() {
            let mut checker = Checker::new(to, Limits::default());
            checker.push(&written);
            let findings = checker.finish(&Exit { code: Some(0), ..Exit::default() });
            expect(findings.is_empty(), &format!("{}: {findings:?}", to.name), &told)?;
        }
    }
    Ok(())
}

/// The bytes of a dialect that is given or recognised, as another one.
pub(crate) fn translated(
    bytes: &[u8],
    from: Option<&'static Dialect>,
    to: &'static Dialect,
) -> Result<Vec<u8>, String> {
    let from = from.map_or(Source::Recognise, Source::from);
    let translator = Translator::new(from, to, interlingua::Options::default());
    let mut translator = translator.map_err(|error| error.to_string())?;
    let mut written = translator.push(bytes, None).to_vec();
    written.extend_from_slice(
        &translator.finish(&Exit { code: Some(0), ..Exit::default() }, None).bytes,
    );
    Ok(written)
}
