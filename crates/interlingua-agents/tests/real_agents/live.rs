//! Several turns in one session, with every agent: whatever happened in the first one, the next
//! prompt works, and the laws hold for the whole session.

use std::path::PathBuf;
use std::pin::Pin;

use fake_model::{Reply, Script};
use interlingua_agents::permission::Mode;
use interlingua_agents::{Prompt, Request};
use serde_json::json;

use crate::home::{Home, Live, RunReport, exists};
use crate::situations::{Outcome, command_runs, expect, make_fifo};

type Situation = fn(&'static str, PathBuf) -> Pin<Box<dyn Future<Output = Outcome>>>;

macro_rules! situations {
    ($($name:ident),+ $(,)?) => {
        pub(crate) const LIVE: &[(&str, Situation)] =
            &[$((stringify!($name), |agent, program| Box::pin($name(agent, program)))),+];
    };
}

situations![
    two_prompts,
    a_prompt_during_a_turn,
    a_prompt_that_joins_while_text_streams,
    a_prompt_after_an_interrupt_in_text,
    a_prompt_after_an_interrupted_command,
    a_prompt_after_a_denied_permission,
    a_prompt_after_a_failed_turn,
    another_model_for_the_second_turn,
    another_mode_for_the_second_turn,
    closed_during_a_turn,
    a_session_without_a_prompt,
    a_question_answered,
    a_question_unanswered,
];

/// The situations that do not apply to an agent.
const CANNOT: &[(&str, &str)] = &[
    // It requests no permissions, and rejects modes that would require it.
    ("codex-exec", "a_prompt_after_a_denied_permission"),
    ("codex-exec", "another_mode_for_the_second_turn"),
    // It prints a text only once it is complete.
    ("codex-exec", "a_prompt_after_an_interrupt_in_text"),
];

pub(crate) fn can(agent: &str, situation: &str) -> bool {
    let asks = !situation.starts_with("a_question") || question(agent).is_some();
    // The others have a request for it, which is accepted or refused.
    let joins = situation != "a_prompt_that_joins_while_text_streams" || agent == "claude";
    asks && joins && !CANNOT.contains(&(agent, situation))
}

/// The call of a tool that asks the user for a colour, if an agent has one.
fn question(agent: &str) -> Option<Reply> {
    let labels = ["Red", "Blue"];
    let options = labels.map(|label| json!({"label": label, "description": "A colour."}));
    let question = json!({"question": COLOUR, "header": "Colour", "options": options,
        "multiSelect": false});
    let named = json!({"id": "colour", "question": COLOUR, "header": "Colour", "options": options});
    let plain = json!({"question": COLOUR, "header": "Colour", "options": options});
    Some(match agent {
        "copilot" => Reply::call("ask_user", json!({"question": COLOUR, "choices": labels})),
        "codex" => Reply::call("request_user_input", json!({"questions": [named]})),
        "opencode" => Reply::call("question", json!({"questions": [plain]})),
        "claude" => Reply::call("AskUserQuestion", json!({"questions": [question]})),
        "qwen" => Reply::call("ask_user_question", json!({"questions": [question]})),
        _ => return None,
    })
}

const COLOUR: &str = "Which colour?";

/// The outcomes of the live turns.
fn outcomes(report: &RunReport) -> Vec<&str> {
    let live = report.of("turn_ended").into_iter().filter(|ended| ended["replay"] != true);
    live.filter_map(|ended| ended["outcome"].as_str()).collect()
}

/// Checks the laws and the outcomes of a session.
fn check(report: &RunReport, expected: &[&str]) -> Outcome {
    report.lawful()?;
    let found = outcomes(report);
    expect(found == expected, &format!("the turns ended as {found:?}"), report)?;
    expect(report.ended.orphans == 0, "processes were left behind", report)
}

async fn two_prompts(agent: &'static str, program: PathBuf) -> Outcome {
    let script = Script::new().reply(Reply::text("First.")).reply(Reply::text("Second."));
    let home = Home::new(agent, program, script)?;
    let mut live = home.open(&home.request(Mode::Auto), None).await?;
    live.prompt("one").await?;
    live.until_turns(1).await?;
    live.prompt("two").await?;
    let report = live.finish(|_, _| {}).await?;
    check(&report, &["completed", "completed"])?;
    expect(report.text() == "First.Second.", "the text is not the script's", &report)?;
    expect(report.ended.code() == 0, "the exit code is not 0", &report)?;
    let asked = home.model.main_requests();
    let remembers = asked.last().is_some_and(|it| it.body.to_string().contains("First."));
    expect(remembers, "the model did not receive the history", &report)?;
    // One process is one epoch. Only an unattended run takes one prompt per process.
    let epochs = report.events.iter().filter_map(|event| event["epoch"].as_u64()).max();
    let expected = if agent.ends_with("-exec") { 1 } else { 0 };
    expect(epochs.unwrap_or(0) == expected, "there was not one process", &report)?;
    let findings = home.model.findings();
    expect(findings.is_empty(), &format!("the model found {findings:?}"), &report)
}

/// Three agents would cancel the turn, and the others would merge the prompt into it.
async fn a_prompt_during_a_turn(agent: &'static str, program: PathBuf) -> Outcome {
    let first = Reply::shell("echo > running; cat go");
    let script =
        Script::new().reply(first).reply(Reply::text("First.")).reply(Reply::text("Second."));
    let home = Home::new(agent, program, script)?;
    let (running, go) = (home.work().join("running"), home.work().join("go"));
    make_fifo(&running)?;
    make_fifo(&go)?;
    let mut live = home.open(&home.request(Mode::Auto), None).await?;
    live.prompt("one").await?;
    drive(&mut live, command_runs(running)).await?;
    live.prompt("two").await?;
    std::thread::spawn(move || std::fs::write(go, "x"));
    let report = live.finish(|_, _| {}).await?;
    check(&report, &["completed", "completed"])?;
    expect(report.text() == "First.Second.", "the text is not the script's", &report)
}

/// Claude begins a turn of its own for it, which is not that of the prompt in the queue.
async fn a_prompt_that_joins_while_text_streams(agent: &'static str, program: PathBuf) -> Outcome {
    let first = Reply::text("First, ").then_gate("text").then_text("and its end.");
    let script =
        Script::new().reply(first).reply(Reply::text("Second.")).reply(Reply::text("Third."));
    let home = Home::new(agent, program, script)?;
    let mut live = home.open(&home.request(Mode::Auto), None).await?;
    live.prompt("one").await?;
    let speaks = |event: &serde_json::Value| event["text"] == "First, ";
    live.until("the first text", speaks).await?;
    let joined = live.handle.prompt(Prompt::joining("two")).await;
    joined.map_err(|refused| refused.to_string())?;
    live.prompt("three").await?;
    home.model.gate("text").open();
    let report = live.finish(|_, _| {}).await?;
    check(&report, &["completed", "completed", "completed"])?;
    expect(report.text() == "First, and its end.Second.Third.", "the text differs", &report)?;
    let asked = home.model.main_requests();
    let has_three = asked.get(1).is_some_and(|it| it.body.to_string().contains("three"));
    expect(!has_three, "the third prompt was sent too early", &report)
}

/// Takes entries and allows requests until something else has happened.
async fn drive(live: &mut Live<'_>, until: impl Future<Output = ()>) -> Outcome {
    tokio::pin!(until);
    let mut ignore = |_: &serde_json::Value, _: &interlingua_agents::Handle| {};
    loop {
        tokio::select! {
            () = &mut until => return Ok(()),
            more = live.step(&mut ignore) => {
                if !more {
                    return Err(format!("the session ended: {:?}", live.events));
                }
            }
        }
    }
}

async fn a_prompt_after_an_interrupt_in_text(agent: &'static str, program: PathBuf) -> Outcome {
    let begins = Reply::text("Begins. ").then_gate("text").then_text("Never said.");
    let script = Script::new().reply(begins).reply(Reply::text("Second."));
    let home = Home::new(agent, program, script.any_stream())?;
    let mut live = home.open(&home.request(Mode::Auto), None).await?;
    live.prompt("one").await?;
    let speaks = |event: &serde_json::Value| {
        event["kind"] == "text" && event["text"].as_str().is_some_and(|it| !it.is_empty())
    };
    live.until("the first text", speaks).await?;
    live.handle.interrupt().await.map_err(|refused| refused.to_string())?;
    live.until_turns(1).await?;
    live.prompt("two").await?;
    let report = live.finish(|_, _| {}).await?;
    check(&report, &["cancelled", "completed"])?;
    expect(report.text().ends_with("Second."), "the second text is lost", &report)
}

/// The command is dead when the turn has ended, and before the next prompt.
async fn a_prompt_after_an_interrupted_command(agent: &'static str, program: PathBuf) -> Outcome {
    let endless = Reply::shell("echo $$ > pid; echo > running; tail -f /dev/null");
    let script = Script::new().reply(endless).reply(Reply::text("Second."));
    let home = Home::new(agent, program, script.any_stream())?;
    let (pid, running) = (home.work().join("pid"), home.work().join("running"));
    make_fifo(&running)?;
    let mut live = home.open(&home.request(Mode::Auto), None).await?;
    live.prompt("one").await?;
    drive(&mut live, command_runs(running)).await?;
    live.handle.interrupt().await.map_err(|refused| refused.to_string())?;
    live.until_turns(1).await?;
    live.prompt("two").await?;
    live.until_turns(2).await?;
    let pid = std::fs::read_to_string(&pid).unwrap_or_default();
    let alive = home.runs("tail -f /dev/null");
    let report = live.finish(|_, _| {}).await?;
    check(&report, &["cancelled", "completed"])?;
    expect(report.text() == "Second.", "the second text is lost", &report)?;
    expect(!pid.trim().is_empty() && !alive, &format!("the command {pid} is alive"), &report)
}

async fn a_prompt_after_a_denied_permission(agent: &'static str, program: PathBuf) -> Outcome {
    let script =
        Script::new().reply(Reply::shell("touch made")).reply(Reply::text("Done.")).repeat_last();
    let home = Home::new(agent, program, script.any_stream())?;
    let mut live = home.open(&home.request(Mode::Deny), None).await?;
    live.prompt("one").await?;
    live.until_turns(1).await?;
    live.prompt("two").await?;
    let report = live.finish(|_, _| {}).await?;
    report.lawful()?;
    let found = outcomes(&report);
    expect(found.len() == 2 && found[1] == "completed", &format!("{found:?}"), &report)?;
    expect(!exists(&home.work().join("made")), "the command ran", &report)?;
    expect(report.text().ends_with("Done."), "the second text is lost", &report)
}

async fn a_prompt_after_a_failed_turn(agent: &'static str, program: PathBuf) -> Outcome {
    // Agents do not retry a request that was bad. Claude retries it, but gives up on a wrong key.
    let status = if agent == "claude" { 401 } else { 400 };
    let fails = Reply::error(status, "the request is bad").until("the first turn has ended");
    let script = Script::new().reply(fails).reply(Reply::text("Second."));
    let home = Home::new(agent, program, script.any_stream())?;
    let mut live = home.open(&home.request(Mode::Auto), None).await?;
    live.prompt("one").await?;
    live.until_turns(1).await?;
    home.model.gate("the first turn has ended").open();
    live.prompt("two").await?;
    let report = live.finish(|_, _| {}).await?;
    check(&report, &["failed", "completed"])?;
    expect(report.text().ends_with("Second."), "the second text is lost", &report)
}

async fn another_model_for_the_second_turn(agent: &'static str, program: PathBuf) -> Outcome {
    let script = Script::new().reply(Reply::text("First.")).reply(Reply::text("Second."));
    let home = Home::new(agent, program, script)?;
    let mut live = home.open(&home.request(Mode::Auto), None).await?;
    live.prompt("one").await?;
    live.until_turns(1).await?;
    let model = home.another_model();
    live.handle.set_model(model).await.map_err(|refused| refused.to_string())?;
    live.prompt("two").await?;
    let report = live.finish(|_, _| {}).await?;
    check(&report, &["completed", "completed"])?;
    let asked = home.model.main_requests();
    let name = model.rsplit('/').next().unwrap_or(model);
    let used = |at: usize| asked.get(at).is_some_and(|it| format!("{it:?}").contains(name));
    expect(!used(0), "the first turn used the other model", &report)?;
    expect(used(asked.len().saturating_sub(1)), "the second turn did not use it", &report)
}

/// What is allowed in the first turn is denied in the second.
async fn another_mode_for_the_second_turn(agent: &'static str, program: PathBuf) -> Outcome {
    let script = Script::new()
        .reply(Reply::shell("touch first"))
        .reply(Reply::text("First."))
        .reply(Reply::shell("touch second"))
        .reply(Reply::text("Second."));
    let home = Home::new(agent, program, script.any_stream())?;
    let mut live = home.open(&home.request(Mode::Auto), None).await?;
    live.prompt("one").await?;
    live.until_turns(1).await?;
    live.handle.set_mode(Mode::Deny).await.map_err(|refused| refused.to_string())?;
    live.prompt("two").await?;
    let report = live.finish(|_, _| {}).await?;
    report.lawful()?;
    expect(outcomes(&report).len() == 2, "there were not two turns", &report)?;
    expect(exists(&home.work().join("first")), "the first command did not run", &report)?;
    expect(!exists(&home.work().join("second")), "the second command ran", &report)
}

async fn closed_during_a_turn(agent: &'static str, program: PathBuf) -> Outcome {
    let script = Script::new().reply(Reply::shell("echo > running; tail -f /dev/null"));
    let home = Home::new(agent, program, script.any_stream())?;
    let running = home.work().join("running");
    make_fifo(&running)?;
    let mut live = home.open(&home.request(Mode::Auto), None).await?;
    live.prompt("one").await?;
    live.prompt("two").await?;
    drive(&mut live, command_runs(running)).await?;
    live.handle.close().await.map_err(|refused| refused.to_string())?;
    let report = live.rest(|_, _| {}).await?;
    report.lawful()?;
    expect(outcomes(&report) == ["cancelled"], "the turn was not cancelled", &report)
}

async fn a_session_without_a_prompt(agent: &'static str, program: PathBuf) -> Outcome {
    let home = Home::new(agent, program, Script::new().any_stream())?;
    let live = home.open(&Request { ..home.request(Mode::Auto) }, None).await?;
    let report = live.finish(|_, _| {}).await?;
    report.lawful()?;
    expect(outcomes(&report).is_empty(), "there was a turn", &report)?;
    expect(report.ended.code() == 0, "the exit code is not 0", &report)
}

/// The user is asked once, and the model receives the answer.
async fn a_question_answered(agent: &'static str, program: PathBuf) -> Outcome {
    let asks = question(agent).ok_or("the agent has no questions")?;
    let script = Script::new().reply(asks).reply(Reply::text("Done."));
    let home = Home::new(agent, program, script.any_stream())?;
    let mut live = home.open(&home.request(Mode::Ask), None).await?;
    live.prompt("one").await?;
    let asked = live.next_question().await?;
    let answered = live.handle.answer(asked.id(), json!("Blue")).await;
    answered.map_err(|refused| refused.to_string())?;
    let report = live.finish(|_, _| {}).await?;
    check(&report, &["completed"])?;
    let asked = report.of("question_asked");
    expect(asked.len() == 1, "there was not one question", &report)?;
    let questions = &asked[0]["questions"];
    expect(questions[0]["text"] == COLOUR, "it is not the script's question", &report)?;
    let labels = (&questions[0]["options"][0]["label"], &questions[0]["options"][1]["label"]);
    expect(labels == (&json!("Red"), &json!("Blue")), "the choices are not the script's", &report)?;
    let answers = report.of("question_answered");
    let is_blue = answers.len() == 1 && answers[0]["answers"][0]["values"] == json!(["Blue"]);
    expect(is_blue, "the answer was not emitted once", &report)?;
    received(&home, &report, "Blue")
}

/// The model is not left waiting, and does not take the silence for an answer.
async fn a_question_unanswered(agent: &'static str, program: PathBuf) -> Outcome {
    let asks = question(agent).ok_or("the agent has no questions")?;
    let script = Script::new().reply(asks).reply(Reply::text("Done."));
    let home = Home::new(agent, program, script.any_stream())?;
    let live = home.open_without_user(&home.request(Mode::Ask)).await?;
    live.prompt("one").await?;
    let report = live.finish(|_, _| {}).await?;
    check(&report, &["completed"])?;
    // Codex warns about a feature under development, which is the one that lets it ask.
    let warned = report.of("notice").iter().any(|it| it.to_string().contains("nder-development"));
    expect(!warned, "the user was warned about the feature", &report)?;
    let counts = (report.of("question_asked").len(), report.of("question_answered").len());
    expect(counts == (1, 1), "there was not one question and its end", &report)?;
    received(&home, &report, "no one is available")
}

/// Checks what the model received in answer to its question, and that it went on.
fn received(home: &Home, report: &RunReport, words: &str) -> Outcome {
    let results = home.model.tool_results();
    let found = results.iter().any(|result| format!("{result:?}").contains(words));
    expect(found, &format!("the model received {results:?}"), report)?;
    expect(report.text() == "Done.", "the text is not the script's", report)
}
