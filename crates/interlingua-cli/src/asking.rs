//! Asks the user at the terminal what an agent wants: a permission, or an answer to a question.

use interlingua_agents::permission::{Always, Decision, PermissionRequest};
use interlingua_agents::{Handle, InputRequest, Question, QuestionRequest, Refused, Wanted};
use serde_json::{Map, Value, json};

use crate::{question, report, terminal_input};

/// The question after the description of a permission request.
pub(crate) const ALLOW: &str = "Allow? [y]es, [a]lways, [n]o, [e]xplain:";

/// The user's answer.
#[derive(Debug)]
pub(crate) struct Reply {
    request: String,
    given: Given,
}

#[derive(Debug)]
enum Given {
    Decision(Decision),
    Always(Always),
    Answer(Value),
    Declined(String),
}

impl Reply {
    /// Sends the answer to the session.
    pub(crate) async fn send(self, handle: &Handle) -> Result<u64, Refused> {
        let request = &self.request;
        match self.given {
            Given::Decision(decision) => handle.decide(request, decision).await,
            Given::Answer(answer) => handle.answer(request, answer).await,
            Given::Declined(reason) => handle.decline(request, &reason).await,
            Given::Always(always) => {
                let refused = match handle.allow_always(request, always).await {
                    Err(Refused::NotSupported(why)) => why,
                    done => return done,
                };
                report::print_line(&format!("It is allowed only this time: {refused}"));
                handle.decide(request, Decision::Allow).await
            }
        }
    }
}

/// Asks one question, until the user answers it or the answer is no longer needed.
pub(crate) fn ask(asked: &InputRequest) -> Option<Reply> {
    report::print_shown("");
    let given = match &asked.wanted {
        Wanted::Permission(request) => ask_for_permission(asked, request)?,
        Wanted::Answer(request) => ask_questions(asked, request)?,
        _ => Given::Declined("this command cannot show such a request".to_owned()),
    };
    Some(Reply { request: asked.id().to_owned(), given })
}

fn ask_for_permission(asked: &InputRequest, request: &PermissionRequest) -> Option<Given> {
    let (shown, mut at) = (question::Question::new(request, terminal_input::screen()), 0);
    shown.short().iter().for_each(|line| report::print_shown(line));
    loop {
        let Some(line) = read_line(ALLOW, asked)? else {
            return Some(Given::Decision(denied()));
        };
        match line.trim() {
            "y" | "Y" | "yes" | "Yes" => return Some(Given::Decision(Decision::Allow)),
            "n" | "N" | "no" | "No" => return Some(Given::Decision(denied())),
            "a" | "A" | "always" | "Always" => return ask_for_pattern(asked, request),
            "e" | "E" | "explain" => {
                let (page, next) = shown.page(at, terminal_input::screen());
                page.iter().for_each(|line| report::print_shown(line));
                at = next;
            }
            other => match other.strip_prefix("n ").or_else(|| other.strip_prefix("no ")) {
                Some(reason) => {
                    return Some(Given::Decision(Decision::Deny(reason.trim().to_owned())));
                }
                None => report::print_line(
                    "Please answer y, a, n or e. A reason may follow: n use the other branch",
                ),
            },
        }
    }
}

/// Asks for how much "always" should cover.
fn ask_for_pattern(asked: &InputRequest, request: &PermissionRequest) -> Option<Given> {
    let tool = if request.tool.is_empty() { "this tool" } else { &request.tool };
    report::print_line(
        "For the rest of this session. Enter allows exactly this again; a pattern such as `git *` allows more.",
    );
    report::print_line(&format!(
        "The word `tool` allows everything that {tool} can do, unless a rule denies it."
    ));
    let line = read_line("Pattern:", asked)?.unwrap_or_default();
    Some(Given::Always(match line.trim() {
        "" => Always::Same,
        "tool" => Always::Tool,
        pattern => Always::Matching(pattern.to_owned()),
    }))
}

fn denied() -> Decision {
    Decision::Deny("the user denied it".to_owned())
}

fn ask_questions(asked: &InputRequest, request: &QuestionRequest) -> Option<Given> {
    question::introduction(request).iter().for_each(|line| report::print_shown(line));
    let declined = || Given::Declined("the user did not want to answer".to_owned());
    if request.schema.is_some() {
        let Some(line) = read_line("A JSON object, or nothing to decline:", asked)? else {
            return Some(declined());
        };
        return Some(match serde_json::from_str::<Value>(&line) {
            Ok(form @ Value::Object(_)) => Given::Answer(form),
            _ => declined(),
        });
    }
    let mut answers = Map::new();
    for question in &request.questions {
        question::lines(question).iter().for_each(|line| report::print_shown(line));
        let Some(chosen) = choose(asked, question)? else { return Some(declined()) };
        answers.insert(question.id.clone(), json!(chosen));
    }
    Some(Given::Answer(Value::Object(answers)))
}

/// Reads the answer to one question: numbers of options, or text. An empty line declines.
fn choose(asked: &InputRequest, question: &Question) -> Option<Option<Vec<String>>> {
    let help = match (question.options.is_empty(), question.multiple) {
        (true, _) => "Your answer, or nothing to decline:",
        (false, false) => "A number or your own words, or nothing to decline:",
        (false, true) => "Numbers such as 1,3 or your own words, or nothing to decline:",
    };
    loop {
        if question.secret {
            terminal_input::hide_line();
        }
        let line = read_line(help, asked);
        if terminal_input::show() {
            report::print_shown("");
        }
        let Some(line) = line? else { return Some(None) };
        if line.trim().is_empty() {
            return Some(None);
        }
        match chosen(question, line.trim()) {
            Some(chosen) => return Some(Some(chosen)),
            None => report::print_line("Please answer with the number of one of the options."),
        }
    }
}

/// The answers that a line stands for.
fn chosen(question: &Question, line: &str) -> Option<Vec<String>> {
    let label = |number: &str| {
        let number = number.trim().parse::<usize>().ok()?.checked_sub(1)?;
        question.options.get(number).map(|(label, _)| label.clone())
    };
    let parts: Vec<_> = if question.multiple { line.split(',').collect() } else { vec![line] };
    let labels: Option<Vec<_>> = parts.into_iter().map(label).collect();
    let is_label = question.options.iter().any(|(label, _)| label == line);
    let own = question.free_text || question.options.is_empty() || is_label;
    labels.or_else(|| own.then(|| vec![line.to_owned()]))
}

/// Asks for a line, when everything that it is about has been shown. The outer `None` means that the
/// answer is no longer needed, the inner one that there is no more input.
fn read_line(question: &str, asked: &InputRequest) -> Option<Option<String>> {
    // Input from before the question appeared is not an answer to it.
    terminal_input::discard();
    report::ask(question);
    match terminal_input::line_while(|| asked.is_pending()) {
        Some(line) => Some(Some(line)),
        None if asked.is_pending() => Some(None),
        None => {
            report::print_line("");
            report::print_line("The request no longer needs an answer.");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(multiple: bool, free_text: bool) -> Question {
        let options = vec![("Red".to_owned(), None), ("Blue".to_owned(), None)];
        Question { options, multiple, free_text, ..Question::default() }
    }

    #[test]
    fn options_are_chosen_by_their_numbers() {
        let one = question(false, false);
        assert_eq!(chosen(&one, "2"), Some(vec!["Blue".to_owned()]));
        assert_eq!(chosen(&one, "Red"), Some(vec!["Red".to_owned()]));
        for wrong in ["0", "3", "1,2", "green"] {
            assert_eq!(chosen(&one, wrong), None, "{wrong}");
        }
        let both = Some(vec!["Red".to_owned(), "Blue".to_owned()]);
        assert_eq!(chosen(&question(true, false), "1, 2"), both);
        assert_eq!(chosen(&question(false, true), "green"), Some(vec!["green".to_owned()]));
    }
}
