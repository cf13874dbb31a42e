//! Who answers when an agent asks: a person at the terminal, or a program on standard input.

use std::io::{self, BufRead, IsTerminal};
use std::sync::Arc;
use std::sync::Mutex;

use interlingua_agents::permission::{Decision, PermissionRequest};
use interlingua_agents::{Control, Question};
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::report;

/// Begins to answer; gives where questions go. Nobody can answer where standard input is taken.
/// Where the output is `shown` at the same terminal, what is asked for stands there already.
pub(crate) fn answer(
    controls: mpsc::Sender<Control>,
    shown: bool,
) -> mpsc::UnboundedSender<Question> {
    let (questions, asked) = mpsc::unbounded_channel();
    let at_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    std::thread::spawn(move || {
        if at_terminal {
            at_the_terminal(asked, &controls, shown);
        } else {
            on_standard_input(asked, &controls);
        }
    });
    questions
}

/// Asks a person, one question after the other.
fn at_the_terminal(
    mut asked: mpsc::UnboundedReceiver<Question>,
    controls: &mpsc::Sender<Control>,
    shown: bool,
) {
    while let Some(Question { request }) = asked.blocking_recv() {
        if !shown {
            report::say(&describe(&request));
        }
        report::ask("Allow it? [y/N]");
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        let yes = read.is_ok() && matches!(line.trim(), "y" | "Y" | "yes" | "Yes");
        let decision =
            if yes { Decision::Allow } else { Decision::Deny("the user said no".to_owned()) };
        if controls.blocking_send(Control::Decide { request: request.id, decision }).is_err() {
            return;
        }
    }
}

fn describe(request: &PermissionRequest) -> String {
    let tool = if request.tool.is_empty() { "a tool" } else { &request.tool };
    let what = request.description.as_deref().unwrap_or_default();
    let input = request.input.as_deref().unwrap_or_default();
    format!("The agent wants to use {tool}. {what} {input}")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    request: String,
    decision: Word,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Allow,
    Deny,
}

/// Takes answers as JSON lines. When they end, the answer to all that is still asked is no.
fn on_standard_input(
    mut asked: mpsc::UnboundedReceiver<Question>,
    controls: &mpsc::Sender<Control>,
) {
    let open: Arc<Mutex<Option<Vec<String>>>> = Arc::new(Mutex::new(Some(Vec::new())));
    let (seen, sender) = (open.clone(), controls.clone());
    std::thread::spawn(move || {
        while let Some(Question { request }) = asked.blocking_recv() {
            match seen.lock().as_deref_mut() {
                Ok(Some(open)) => open.push(request.id),
                _ => deny(&sender, request.id),
            }
        }
    });
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<Answer>(&line) {
            Ok(Answer { request, decision, reason }) => {
                if let Ok(Some(open)) = open.lock().as_deref_mut() {
                    open.retain(|asked| *asked != request);
                }
                let decision = match decision {
                    Word::Allow => Decision::Allow,
                    Word::Deny => Decision::Deny(reason.unwrap_or_else(|| "denied".to_owned())),
                };
                if controls.blocking_send(Control::Decide { request, decision }).is_err() {
                    return;
                }
            }
            Err(error) => report::warning(&format!(
                "this is no answer ({error}); it must be {{\"request\":\"ID\",\"decision\":\"allow\"}} or \"deny\": {line}"
            )),
        }
    }
    let left = open.lock().ok().and_then(|mut open| open.take());
    left.into_iter().flatten().for_each(|request| deny(controls, request));
}

fn deny(controls: &mpsc::Sender<Control>, request: String) {
    let decision = Decision::Deny("standard input ended without an answer".to_owned());
    // A run that is over needs no answer.
    let _ = controls.blocking_send(Control::Decide { request, decision });
}
