//! Formats values on one line: a tool call with the most important value of its input, the answer
//! of a call, counts and durations.

use std::fmt::Write;

use super::screen::shown;
use crate::event::{ToolEnded, ToolKind, ToolStatus, Usage};
use crate::json::read::{self, Field, Flaw, Record};
use crate::json::{Json, Text, record};

/// The maximum length of a line, in characters.
pub(super) const LINE: usize = 120;
/// The maximum length of a call, in characters, without the mark in front of it.
const CALL: usize = LINE - 2;

/// The input fields that describe a call best, in order of preference.
const KEY_FIELDS: &[&str] = &[
    "command",
    "pattern",
    "file_path",
    "filePath",
    "fileName",
    "absolute_path",
    "notebook_path",
    "path",
    "dir_path",
    "query",
    "url",
    "subject",
    "description",
    "prompt",
    "skill",
];

/// Puts text on one line with at most `limit` characters.
pub(super) fn one_line(text: &str, limit: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    for character in shown(text.trim()) {
        let character = if character.is_whitespace() { ' ' } else { character };
        if character == ' ' && line.ends_with(' ') {
            continue;
        }
        if length == limit {
            line.pop();
            line.push('…');
            break;
        }
        line.push(character);
        length += 1;
    }
    line
}

/// A call on one line.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// The name of the tool and the most important value of the input.
    pub(super) line: String,
    /// The name of the tool and the files that it changes, if the line does not contain them.
    pub(super) files: Option<String>,
    /// The input contains more than the line.
    pub(super) more: bool,
}

/// The most important value of a call's input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyValue<'a> {
    /// The field that contains it; empty if the value is the whole input, or a question.
    pub field: &'static str,
    /// The value: a text, or JSON.
    pub text: Text<'a>,
}

/// Finds the value that describes a call best: its command, its path, its pattern.
pub fn key_value<'a>(input: &'a Json<'_>) -> Option<KeyValue<'a>> {
    if matches!(input.get(), "{}" | "null") {
        return None;
    }
    let summary = read::record_of::<InputSummary<'_>>(input).unwrap_or_default();
    let (field, json) = match &summary.best {
        Some((rank, value)) => (KEY_FIELDS.get(*rank).copied().unwrap_or_default(), value.get()),
        None => match summary.first_question() {
            Some(question) => {
                return Some(KeyValue { field: "", text: question.clone().into_owned() });
            }
            None => ("", input.get()),
        },
    };
    let value = Json::from_text(json.to_owned())?;
    let text = value.as_text().unwrap_or(Text::plain(value.get())).into_owned();
    Some(KeyValue { field, text })
}

/// Formats a call: the name of the tool and the most important value of the input.
pub(super) fn call(name: &str, kind: &ToolKind, input: Option<&Json<'_>>) -> Call {
    let name_alone = || Call { line: one_line(name, CALL), files: None, more: false };
    let Some(input) = input.filter(|input| !matches!(input.get(), "{}" | "null")) else {
        return name_alone();
    };
    let summary = read::record_of::<InputSummary<'_>>(input).unwrap_or_default();
    let value = match &summary.best {
        Some((_, value)) => value,
        None if let Some(question) = summary.first_question() => &Json::from(question),
        // The plan, the files and the answer have lines of their own.
        None if matches!(kind, ToolKind::Plan | ToolKind::Edit | ToolKind::Answer) => {
            let paths = summary.changes.iter().filter_map(|change| change.path.as_ref());
            let paths: Vec<_> = paths.map(Text::to_plain).collect();
            let files = (!paths.is_empty()).then(|| format!("{name}: {}", paths.join(", ")));
            return Call { files: files.map(|files| one_line(&files, CALL)), ..name_alone() };
        }
        None => input,
    };
    let text = value.as_text().unwrap_or(Text::plain(value.get()));
    let line = one_line(&format!("{name}: {}", text.to_plain().trim()), CALL);
    let more = summary.fields > 1 || line.ends_with('…');
    Call { line, files: None, more }
}

record! {
    /// A file that a call changes.
    struct Change<'a> {
        path: text "path",
    }
}

record! {
    /// A question to the user, in the forms that agents use.
    struct Question<'a> {
        question: text "question" | "text" | "prompt",
    }
}

/// What is shown of the input of a call.
#[derive(Debug, Clone, Default)]
struct InputSummary<'a> {
    /// The most important value, and its rank in [`KEY_FIELDS`].
    best: Option<(usize, Json<'a>)>,
    fields: usize,
    changes: Vec<Change<'a>>,
    questions: Vec<Question<'a>>,
}

impl<'a> InputSummary<'a> {
    /// The first question of a call that asks the user.
    fn first_question(&self) -> Option<&Text<'a>> {
        self.questions.iter().find_map(|question| question.question.as_ref())
    }
}

impl<'a> Record<'a> for InputSummary<'a> {
    fn field(&mut self, name: &str, value: Field<'_, 'a>) -> Result<(), Flaw> {
        self.fields += 1;
        match name {
            "changes" => return value.records(&mut self.changes),
            "questions" => return value.records(&mut self.questions),
            _ => {}
        }
        let rank = KEY_FIELDS.iter().position(|field| *field == name);
        let best = self.best.as_ref().map_or(usize::MAX, |(rank, _)| *rank);
        match rank.filter(|rank| *rank <= best) {
            Some(rank) => {
                if let Some(value) = value.json()? {
                    self.best = Some((rank, value));
                }
                Ok(())
            }
            None => value.skip(),
        }
    }
}

/// Formats an answer. The flag is set if the answer contains more than the line.
pub(super) fn answer(ended: &ToolEnded<'_>, text: &str) -> (String, bool) {
    let text = text.trim();
    let adds_nothing = |line: &&str| line.trim().is_empty() || is_exit_code(line, ended.exit_code);
    let mut rest = text.lines().skip_while(adds_nothing);
    let first = rest.next().unwrap_or_default();
    let further = rest.count();
    let mut line = match (state(ended), first.is_empty()) {
        (Some(state), true) => state,
        (Some(state), false) => one_line(&format!("{state}: {first}"), LINE),
        (None, true) => "done".to_owned(),
        (None, false) => one_line(first, LINE),
    };
    let more = further > 0 || line.ends_with('…');
    if further > 0 {
        let lines = if further == 1 { "line" } else { "lines" };
        let cut = if line.ends_with('…') { "" } else { " …" };
        let _ = write!(line, "{cut} (+{further} {lines})");
    }
    (line, more)
}

/// Whether a line contains only the exit code, which is shown anyway.
fn is_exit_code(line: &str, code: Option<i64>) -> bool {
    let number =
        line.trim().strip_prefix("Exit code").map(|rest| rest.trim_start_matches([':', ' ']));
    number.is_some_and(|number| code.is_some_and(|code| number == code.to_string()))
}

/// The status of a call that did not succeed.
fn state(ended: &ToolEnded<'_>) -> Option<String> {
    let word = match &ended.status {
        ToolStatus::Completed => None,
        status => Some(word(status.as_str())),
    };
    let code = ended.exit_code.filter(|code| *code != 0).map(|code| format!("exit code {code}"));
    match (word, code) {
        (Some(word), Some(code)) => Some(format!("{word}, {code}")),
        (word, code) => word.or(code),
    }
}

/// A word of the event model, or of an agent, with spaces in place of underscores.
pub(super) fn word(word: &str) -> String {
    one_line(&word.replace('_', " "), 40)
}

/// The tokens that were used, if they are known.
pub fn tokens(usage: &Usage<'_>) -> Option<String> {
    let about = if usage.estimated { "about " } else { "" };
    let cached = usage.cache_read.filter(|cached| *cached > 0);
    let cached = cached.map(|it| format!(" ({} cached)", grouped(it))).unwrap_or_default();
    let counts = match (usage.input_total(), usage.output) {
        (Some(input), Some(output)) => {
            format!("{} tokens in{cached}, {} out", grouped(input), grouped(output))
        }
        (Some(input), None) => format!("{} tokens in{cached}", grouped(input)),
        (None, Some(output)) => format!("{} tokens out", grouped(output)),
        (None, None) => format!("{} tokens", grouped(usage.total?)),
    };
    Some(format!("{about}{counts}"))
}

/// A number with thousands separators.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A duration, for a person to read.
pub fn duration(ms: u64) -> String {
    let (tenths, seconds) = (ms.saturating_add(50) / 100, ms.saturating_add(500) / 1000);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..59_950 => format!("{}.{} s", tenths / 10, tenths % 10),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_of(name: &str, input: &str) -> String {
        let input = Json::from_text(input.to_owned()).unwrap();
        call(name, &ToolKind::default(), Some(&input)).line
    }

    #[test]
    fn a_call_shows_the_most_important_value_of_its_input() {
        assert_eq!(
            line_of("Bash", r#"{"description":"d","command":"echo\n  hi"}"#),
            "Bash: echo hi"
        );
        assert_eq!(line_of("Grep", r#"{"path":"src","pattern":"fn x"}"#), "Grep: fn x");
        assert_eq!(line_of("mcp__sum", r#"{"a":1,"b":[2]}"#), r#"mcp__sum: {"a":1,"b":[2]}"#);
        assert_eq!(line_of("Now", "{}"), "Now");
        assert_eq!(line_of("Bash", r#"{"command":["a","b"]}"#), r#"Bash: ["a","b"]"#);
    }

    #[test]
    fn the_most_important_value_has_the_name_of_its_field() {
        let value = |input: &str| {
            let input = Json::from_text(input.to_owned()).unwrap();
            key_value(&input).map(|it| (it.field, it.text.to_string()))
        };
        let command = value(r#"{"description":"d","command":"a\nb"}"#);
        assert_eq!(command, Some(("command", "a\nb".to_owned())));
        let question = value(r#"{"questions":[{"question":"Which?"}]}"#);
        assert_eq!(question, Some(("", "Which?".to_owned())));
        assert_eq!(value(r#"{"a":1}"#), Some(("", r#"{"a":1}"#.to_owned())));
        assert_eq!(value("{}"), None);
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let line = line_of("Read", &format!(r#"{{"path":"{}"}}"#, "日".repeat(300)));
        assert_eq!(line.chars().count(), CALL);
        assert!(line.ends_with("日…"));
    }

    #[test]
    fn an_answer_shows_its_status_and_its_first_line() {
        let failed =
            ToolEnded { status: ToolStatus::Failed, exit_code: Some(2), ..ToolEnded::default() };
        assert_eq!(
            answer(&failed, "\nno\nb\nc\n"),
            ("failed, exit code 2: no … (+2 lines)".to_owned(), true)
        );
        assert_eq!(
            answer(&failed, "Exit code 2\nout\nerr"),
            ("failed, exit code 2: out … (+1 line)".to_owned(), true)
        );
        assert_eq!(answer(&failed, "Exit code: 2").0, "failed, exit code 2");
        assert_eq!(answer(&ToolEnded::default(), " "), ("done".to_owned(), false));
        assert_eq!(answer(&ToolEnded::default(), "one\n"), ("one".to_owned(), false));
    }

    #[test]
    fn counts_and_durations_are_readable() {
        let usage = Usage {
            input: Some(234),
            cache_read: Some(1_000_000),
            output: Some(5),
            ..Usage::default()
        };
        assert_eq!(tokens(&usage).unwrap(), "1,000,234 tokens in (1,000,000 cached), 5 out");
        assert_eq!(tokens(&Usage::default()), None);
        assert_eq!(
            [9, 1_199, 3_450, 59_960, 125_000].map(duration),
            ["9 ms", "1.2 s", "3.5 s", "1 min 0 s", "2 min 5 s"]
        );
    }
}
