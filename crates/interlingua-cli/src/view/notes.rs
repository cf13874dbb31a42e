//! Lines about less frequent events: errors, retries, notices.

use interlingua::dialect::text::duration;
use interlingua::event::{
    Compacted, Error, ErrorClass, Limit, Notice, QuestionAnswered, Retry, Severity,
};
use interlingua::json::Text;

use super::clean;
use super::style::{Line, Span, Style};
use super::width;
use super::wrap::wrap;

/// The maximum number of lines of a note.
const LINES: usize = 4;

/// A note: a mark, and a text of a few lines.
pub(crate) fn note(mark: &str, text: &str, style: Style, columns: usize) -> Vec<Line> {
    let limit = columns.saturating_mul(LINES);
    let text = clean::one_line(text, limit);
    let indent = Line::new("  ", Style::PLAIN);
    let mark = Line::new(format!("{mark} "), style);
    let body = if style == Style::DIM { Style::DIM } else { Style::PLAIN };
    let lines = wrap(&[Span::new(text, body)], columns.saturating_sub(2)).into_iter().take(LINES);
    let prefix = |index| if index == 0 { &mark } else { &indent };
    lines.enumerate().map(|(index, line)| line.after(prefix(index))).collect()
}

pub(crate) fn error(error: &Error<'_>, columns: usize) -> Vec<Line> {
    let message = error.message.to_plain();
    let text = match error.class != ErrorClass::Unspecified && *message == *error.class.as_str() {
        true => class(&error.class, error.http_status),
        false => message.into_owned(),
    };
    note("✗", &text, Style::RED, columns)
}

pub(crate) fn retry(retry: &Retry<'_>, columns: usize) -> Vec<Line> {
    let mut text = "retrying".to_owned();
    let message = retry.message.as_ref().map(Text::to_plain).unwrap_or_default();
    match (retry.attempt, retry.of) {
        // Some agents count the attempts in their message.
        (Some(attempt), Some(of)) if message.contains(&format!("{attempt}/{of}")) => {}
        (Some(attempt), Some(of)) => text.push_str(&format!(", attempt {attempt} of {of}")),
        (Some(attempt), None) => text.push_str(&format!(", attempt {attempt}")),
        (None, _) => {}
    }
    if let Some(delay) = retry.delay_ms {
        text.push_str(&format!(" in {}", duration(delay)));
    }
    let class = class(&retry.class, retry.http_status);
    for fact in [class.as_str(), &*message].into_iter().filter(|fact| !fact.is_empty()) {
        text.push_str(&format!(" · {fact}"));
    }
    let text = clean::one_line(&text, columns);
    let text = width::shortened(&text, columns.saturating_sub(2));
    vec![Line::new("↻ ", Style::YELLOW).with(text, Style::PLAIN)]
}

fn class(class: &ErrorClass, http_status: Option<u64>) -> String {
    let word = (*class != ErrorClass::Unspecified).then(|| class.as_str().replace('_', " "));
    let status = http_status.map(|status| format!("HTTP {status}"));
    word.into_iter().chain(status).collect::<Vec<_>>().join(", ")
}

pub(crate) fn notice(notice: &Notice<'_>, columns: usize) -> Vec<Line> {
    let (mark, style) = match notice.severity {
        Severity::Error => ("✗", Style::RED),
        Severity::Warning => ("!", Style::YELLOW),
        _ => ("·", Style::DIM),
    };
    note(mark, &notice.text.to_plain(), style, columns)
}

/// The line of a limit that is reached or almost reached.
pub(crate) fn limit(limit: &Limit<'_>, columns: usize) -> Option<Vec<Line>> {
    let status = limit.status.as_ref().filter(|status| **status != "allowed")?;
    let name = limit.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let text = format!("limit{name}: {}", status.to_plain().replace('_', " "));
    Some(note("!", &text, Style::YELLOW, columns))
}

pub(crate) fn compacted(compacted: &Compacted<'_>, columns: usize) -> Vec<Line> {
    let text = match (compacted.tokens_before, compacted.tokens_after) {
        (Some(before), Some(after)) => {
            format!("the conversation was compacted from {before} to {after} tokens")
        }
        _ => "the conversation was compacted".to_owned(),
    };
    note("·", &text, Style::DIM, columns)
}

/// What the user answered to the questions of the agent.
pub(super) fn answered(answered: &QuestionAnswered<'_>) -> String {
    let answers = answered.answers.iter().map(|answer| {
        let values = answer.values.iter().map(|value| value.to_plain().into_owned());
        values.collect::<Vec<_>>().join(", ")
    });
    let answers: Vec<_> = answers.filter(|values| !values.is_empty()).collect();
    match (answered.declined, answers.as_slice()) {
        (true, _) => "not answered".to_owned(),
        (false, []) => "answered".to_owned(),
        (false, answers) => format!("answered: {}", answers.join("; ")),
    }
}
