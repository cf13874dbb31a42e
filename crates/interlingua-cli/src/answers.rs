//! Answers permission requests: a user at the terminal, or a program on standard input.

use std::io::{self, BufRead, IsTerminal};
use std::sync::Arc;
use std::sync::Mutex;

use interlingua_agents::permission::Decision;
use interlingua_agents::{Control, Question};
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::{question, report, terminal_input};

/// Starts to answer, and returns the sender for questions. It must not be used if standard input
/// provides the prompt.
pub(crate) fn answer(controls: mpsc::Sender<Control>) -> mpsc::UnboundedSender<Question> {
    let (questions, asked) = mpsc::unbounded_channel();
    let at_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    std::thread::spawn(move || {
        if at_terminal {
            at_the_terminal(asked, &controls);
        } else {
            on_standard_input(asked, &controls);
        }
    });
    questions
}

/// Asks the user, one question after the other.
fn at_the_terminal(mut asked: mpsc::UnboundedReceiver<Question>, controls: &mpsc::Sender<Control>) {
    while let Some(question) = asked.blocking_recv() {
        let Some(decision) = ask(&question) else { continue };
        let request = question.request.id;
        if controls.blocking_send(Control::Decide { request, decision }).is_err() {
            return;
        }
    }
}

/// Asks one question, until the user answers it or the answer is no longer needed.
fn ask(question: &Question) -> Option<Decision> {
    let shown = question::Question::new(&question.request);
    shown.short().iter().for_each(|line| report::print_shown(line));
    // Input from before the question appeared is not an answer to it.
    terminal_input::discard();
    loop {
        report::ask("Allow? [y]es, [n]o, [e]xplain:");
        let Some(line) = terminal_input::line_while(|| question.is_pending()) else {
            if question.is_pending() {
                return Some(denied());
            }
            report::print_line("");
            report::print_line("The request no longer needs an answer.");
            return None;
        };
        match line.trim() {
            "y" | "Y" | "yes" | "Yes" => return Some(Decision::Allow),
            "n" | "N" | "no" | "No" => return Some(denied()),
            "e" | "E" | "explain" => {
                shown.complete().iter().for_each(|line| report::print_shown(line));
            }
            _ => report::print_line("Please answer y, n or e."),
        }
    }
}

fn denied() -> Decision {
    Decision::Deny("the user denied it".to_owned())
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

/// Reads answers as JSON lines. At the end of the input, all pending requests are denied.
fn on_standard_input(
    mut asked: mpsc::UnboundedReceiver<Question>,
    controls: &mpsc::Sender<Control>,
) {
    let open: Arc<Mutex<Option<Vec<String>>>> = Arc::new(Mutex::new(Some(Vec::new())));
    let (seen, sender) = (open.clone(), controls.clone());
    std::thread::spawn(move || {
        while let Some(Question { request, .. }) = asked.blocking_recv() {
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
                "this line is not an answer ({error}); write {{\"request\":\"ID\",\"decision\":\"allow\"}} or \"deny\": {line}"
            )),
        }
    }
    let left = open.lock().ok().and_then(|mut open| open.take());
    left.into_iter().flatten().for_each(|request| deny(controls, request));
}

fn deny(controls: &mpsc::Sender<Control>, request: String) {
    let decision = Decision::Deny("standard input ended without an answer".to_owned());
    // The run may have ended already.
    let _ = controls.blocking_send(Control::Decide { request, decision });
}
