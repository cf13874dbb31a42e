//! The lines of less frequent events: `!` for notices, `?` for input that could not be read, `|`
//! for output of the agent outside its records.

use super::line::{self, LINE, one_line};
use crate::dialect::Output;
use crate::dialect::tools::kind_of;
use crate::event::{
    Artifact, Compacted, Data, Error, ErrorClass, Event, Limit, PermissionRequested,
    PermissionResolved, Question, QuestionAnswered, QuestionAsked, Retry, SessionStarted,
    SessionUpdated, SubagentEnded, SubagentStarted, Unparsed,
};
use crate::json::{Json, Text};

/// The lines of an event. An event that is of no use to a person has none; it is counted as lost,
/// unless other lines contain what it reports.
pub(super) fn of(event: &Event<'_>, out: &mut Output) -> Vec<String> {
    let line = out.line();
    match &event.data {
        Data::SessionStarted(started) => session_started(started).into_iter().collect(),
        Data::SessionUpdated(update) => session_updated(update, out).into_iter().collect(),
        Data::PermissionRequested(request) => vec![permission_requested(request)],
        Data::PermissionResolved(resolved) => vec![permission_resolved(resolved)],
        Data::QuestionAsked(asked) => questions(asked),
        Data::QuestionAnswered(answered) => vec![question_answered(answered)],
        Data::Limit(limit) => limit_line(limit, out).into_iter().collect(),
        Data::Retry(retry) => vec![retry_line(retry)],
        Data::Error(error) => vec![error_line(error)],
        Data::Notice(notice) => vec![format!("! {}", notice.text)],
        Data::Interrupted(_) => vec!["! interrupted".to_owned()],
        Data::Compacted(compacted) => vec![compacted_line(compacted)],
        Data::SubagentStarted(started) => subagent_started(started, out).into_iter().collect(),
        Data::SubagentEnded(ended) => vec![subagent_ended(ended)],
        Data::Artifact(artifact) => vec![artifact_line(artifact)],
        Data::Unknown(unknown) => {
            vec![format!("? line {line}: unknown record: {}", quoted(&unknown.name))]
        }
        Data::Unparsed(unparsed) => vec![unparsed_line(line, unparsed)],
        Data::Log(log) => {
            let text = one_line(&log.text.to_plain(), LINE);
            if text.is_empty() { Vec::new() } else { vec![format!("| {text}")] }
        }
        Data::ToolProgress(progress) if progress.output.is_some() => {
            out.lost("output of running tools");
            Vec::new()
        }
        Data::Native(_) => {
            out.lost("records without a meaning outside their protocol");
            Vec::new()
        }
        // Other events structure the stream, or contain parts of what other lines show completely.
        _ => Vec::new(),
    }
}

fn session_started(started: &SessionStarted<'_>) -> Option<String> {
    let SessionStarted { agent, version, model, cwd, id, .. } = started;
    session_line([agent, version, model, cwd], id)
}

fn session_updated(update: &SessionUpdated<'_>, out: &mut Output) -> Option<String> {
    if update.sandbox.is_some() || update.snapshot.is_some() || update.relay.is_some() {
        out.lost("host facts (sandbox, relay)");
    }
    let SessionUpdated { agent, version, model, cwd, id, .. } = update;
    session_line([agent, version, model, cwd], id)
}

fn session_line(facts: [&Option<Text<'_>>; 4], session: &Option<Text<'_>>) -> Option<String> {
    let facts = facts.into_iter().flatten().filter(|fact| !fact.is_empty());
    let session = session.as_ref().filter(|id| !id.is_empty()).map(|id| format!("session {id}"));
    let facts: Vec<_> = facts.map(ToString::to_string).chain(session).collect();
    (!facts.is_empty()).then(|| format!("● {}", facts.join(" · ")))
}

fn permission_requested(request: &PermissionRequested<'_>) -> String {
    let description = request.description.as_ref().map(Text::to_plain);
    let line = match &request.tool {
        Some(tool) => {
            let call = line::call(&tool.to_plain(), &kind_of(tool), request.input.as_ref());
            call.files.unwrap_or(call.line)
        }
        None => match description {
            Some(words) => return format!("! permission requested: {words}"),
            None => return "! permission requested".to_owned(),
        },
    };
    // Many agents describe a call by repeating its input.
    let value = line.split_once(": ").map_or(&*line, |(_, value)| value);
    let adds_detail =
        |words: &str| !words.is_empty() && !words.contains(value) && !line.contains(words);
    match description.filter(|words| adds_detail(words)) {
        Some(words) => format!("! permission requested: {line} ({words})"),
        None => format!("! permission requested: {line}"),
    }
}

fn permission_resolved(resolved: &PermissionResolved<'_>) -> String {
    let tool = after_colon(resolved.tool.as_ref());
    let reason = resolved.reason.as_ref().filter(|reason| !reason.is_empty());
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    format!("! permission {}{tool}{reason}", line::word(resolved.decision.as_str()))
}

/// The lines of questions: each question, and its options with their numbers.
fn questions(asked: &QuestionAsked<'_>) -> Vec<String> {
    let server = asked.server.as_ref().filter(|server| !server.is_empty());
    let server = server.map(|server| format!(" of {server}")).unwrap_or_default();
    let mut lines = Vec::new();
    if let Some(message) = asked.message.as_ref().filter(|message| !message.is_empty()) {
        lines.push(format!("! question{server}: {message}"));
    }
    for question in &asked.questions {
        lines.push(format!("! question{server}: {}{}", question.text, how_to_answer(question)));
        for (number, option) in (1..).zip(&question.options) {
            let label = one_line(&option.label.to_plain(), LINE / 2);
            let description = option.description.as_ref().filter(|text| !text.is_empty());
            let description = description.map(|text| format!(" ({text})")).unwrap_or_default();
            lines.push(format!("! {number}. {label}{description}"));
        }
    }
    if let Some(url) = &asked.url {
        lines.push(format!("! open {url}"));
    }
    if lines.is_empty() { vec!["! the agent asks a question".to_owned()] } else { lines }
}

/// How a question can be answered, if that is not one of its options.
fn how_to_answer(question: &Question<'_>) -> &'static str {
    match (question.secret, question.multiple, question.free_text) {
        (true, _, _) => " (the answer is a secret)",
        (_, true, true) => " (several answers, or your own)",
        (_, true, false) => " (several answers)",
        (_, false, true) if !question.options.is_empty() => " (or your own answer)",
        _ => "",
    }
}

fn question_answered(answered: &QuestionAnswered<'_>) -> String {
    let reason = answered.reason.as_ref().filter(|reason| !reason.is_empty());
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    if answered.declined {
        return format!("! the question was not answered{reason}");
    }
    let values = answered.answers.iter().flat_map(|answer| &answer.values);
    let values: Vec<_> = values.map(Text::to_plain).collect();
    match &answered.form {
        Some(form) => format!("! answer: {}{reason}", form.get()),
        None if values.is_empty() => format!("! the question was answered{reason}"),
        None => format!("! answer: {}{reason}", values.join(", ")),
    }
}

/// The line of a limit that is reached or almost reached.
fn limit_line(limit: &Limit<'_>, out: &mut Output) -> Option<String> {
    let status = limit.status.as_ref()?;
    if *status == "allowed" {
        out.lost("limits that are not reached");
        return None;
    }
    let name = limit.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    Some(format!("! limit{name}: {}", line::word(&status.to_plain())))
}

fn retry_line(retry: &Retry<'_>) -> String {
    let mut line = "! retrying".to_owned();
    let message = retry.message.as_ref().map(Text::to_plain).unwrap_or_default();
    match (retry.attempt, retry.of) {
        // Some agents count the attempts in their message.
        (Some(attempt), Some(of)) if message.contains(&format!("{attempt}/{of}")) => {}
        (Some(attempt), Some(of)) => line.push_str(&format!(" (attempt {attempt} of {of})")),
        (Some(attempt), None) => line.push_str(&format!(" (attempt {attempt})")),
        (None, _) => {}
    }
    if let Some(delay) = retry.delay_ms {
        line.push_str(&format!(" in {}", line::duration(delay)));
    }
    line + &class(&retry.class, retry.http_status)
        + &message_beyond_class(&retry.class, retry.message.as_ref())
}

fn error_line(error: &Error<'_>) -> String {
    let class = class(&error.class, error.http_status);
    format!("! error{class}{}", message_beyond_class(&error.class, Some(&error.message)))
}

fn class(class: &ErrorClass, http_status: Option<u64>) -> String {
    let word = (*class != ErrorClass::Unspecified).then(|| line::word(class.as_str()));
    let status = http_status.map(|status| format!("HTTP {status}"));
    let facts: Vec<String> = word.into_iter().chain(status).collect();
    if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) }
}

/// The message of a failure, unless it only repeats the class.
fn message_beyond_class(class: &ErrorClass, message: Option<&Text<'_>>) -> String {
    after_colon(message.filter(|message| **message != *class.as_str()))
}

fn compacted_line(compacted: &Compacted<'_>) -> String {
    match (compacted.tokens_before, compacted.tokens_after) {
        (Some(before), Some(after)) => {
            format!("! the conversation was compacted from {before} to {after} tokens")
        }
        (Some(before), None) => {
            format!("! the conversation was compacted from {before} tokens")
        }
        _ => "! the conversation was compacted".to_owned(),
    }
}

/// The line of a sub-agent that no call started. Otherwise the call has a line already.
fn subagent_started(started: &SubagentStarted<'_>, out: &mut Output) -> Option<String> {
    if started.prompt.is_some() {
        out.lost("prompts of sub-agents");
    }
    if started.call.is_some() {
        return None;
    }
    let kind = started.kind.as_ref().map_or("agent".into(), Text::to_plain);
    Some(format!("▹ {kind}{}", after_colon(started.description.as_ref())))
}

fn subagent_ended(ended: &SubagentEnded<'_>) -> String {
    let status = ended.status.as_ref().map_or("done".into(), |it| line::word(&it.to_plain()));
    format!("▹ sub-agent {status}{}", after_colon(ended.summary.as_ref()))
}

fn artifact_line(artifact: &Artifact<'_>) -> String {
    let label = artifact.label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
    format!("+ {}{label}", artifact.path)
}

fn unparsed_line(line: u64, unparsed: &Unparsed<'_>) -> String {
    let text = unparsed.text.as_ref().map(Text::to_plain).unwrap_or_default();
    if text.is_empty() {
        return format!("? line {line}: {}", unparsed.message);
    }
    format!("? line {line}: {}: {}", unparsed.message, one_line(&text, LINE / 2))
}

fn after_colon(text: Option<&Text<'_>>) -> String {
    text.filter(|text| !text.is_empty()).map(|text| format!(": {text}")).unwrap_or_default()
}

fn quoted(name: &Text<'_>) -> String {
    Json::from(name).get().to_owned()
}
