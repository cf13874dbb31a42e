//! Things put on one line: the most telling value of a tool's input, counts, times and sizes.

use std::fmt::Write;

use super::screen::shown;
use crate::event::{ToolEnded, ToolKind, ToolStatus, Usage};
use crate::json::read::{self, Field, Flaw, Record};
use crate::json::{Json, Text, record};

/// The longest line of ours, in characters.
pub(super) const LINE: usize = 120;
/// The longest name of a call, in characters: a mark stands before it.
const CALL: usize = LINE - 2;

/// What tells most about a call, best first.
const TELLING: &[&str] = &[
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

/// Text on one line of at most so many characters.
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
    /// Its name and its most telling value.
    pub(super) line: String,
    /// What to call it when its line stands further up, where that says more than the line.
    pub(super) files: Option<String>,
    /// The input says more than the line.
    pub(super) more: bool,
}

/// A call by its name and its most telling value.
pub(super) fn call(name: &str, kind: &ToolKind, input: Option<&Json<'_>>) -> Call {
    let name_alone = || Call { line: one_line(name, CALL), files: None, more: false };
    let Some(input) = input.filter(|input| !matches!(input.get(), "{}" | "null")) else {
        return name_alone();
    };
    let telling = read::record_of::<Telling<'_>>(input).unwrap_or_default();
    let value = match &telling.best {
        Some((_, value)) => value,
        None if let Some(question) = telling.asks() => &Json::from(question),
        // The plan, the files and the answer are shown in their own right.
        None if matches!(kind, ToolKind::Plan | ToolKind::Edit | ToolKind::Answer) => {
            let paths = telling.changes.iter().filter_map(|change| change.path.as_ref());
            let paths: Vec<_> = paths.map(Text::to_plain).collect();
            let files = (!paths.is_empty()).then(|| format!("{name}: {}", paths.join(", ")));
            return Call { files: files.map(|files| one_line(&files, CALL)), ..name_alone() };
        }
        None => input,
    };
    let text = value.as_text().unwrap_or(Text::plain(value.get()));
    let line = one_line(&format!("{name}: {}", text.to_plain().trim()), CALL);
    let more = telling.fields > 1 || line.ends_with('…');
    Call { line, files: None, more }
}

record! {
    /// One file that a call changes.
    struct Change<'a> {
        path: text "path",
    }
}

record! {
    /// One question, as agents put them.
    pub(super) struct Question<'a> {
        question: text "question" | "text" | "prompt",
    }
}

#[derive(Debug, Clone, Default)]
struct Telling<'a> {
    best: Option<(usize, Json<'a>)>,
    fields: usize,
    changes: Vec<Change<'a>>,
    questions: Vec<Question<'a>>,
}

impl<'a> Telling<'a> {
    /// The first question of a call that asks.
    fn asks(&self) -> Option<&Text<'a>> {
        self.questions.iter().find_map(|question| question.question.as_ref())
    }
}

impl<'a> Record<'a> for Telling<'a> {
    fn field(&mut self, name: &str, value: Field<'_, 'a>) -> Result<(), Flaw> {
        self.fields += 1;
        match name {
            "changes" => return value.records(&mut self.changes),
            "questions" => return value.records(&mut self.questions),
            _ => {}
        }
        let place = TELLING.iter().position(|telling| *telling == name);
        let best = self.best.as_ref().map_or(usize::MAX, |(place, _)| *place);
        match place.filter(|place| *place <= best) {
            Some(place) => {
                if let Some(value) = value.json()? {
                    self.best = Some((place, value));
                }
                Ok(())
            }
            None => value.skip(),
        }
    }
}

/// The line of an answer; the flag says that the answer says more than the line.
pub(super) fn answer(ended: &ToolEnded<'_>, text: &str) -> (String, bool) {
    let text = text.trim();
    let says_nothing = |line: &&str| line.trim().is_empty() || is_exit_code(line, ended.exit_code);
    let mut rest = text.lines().skip_while(says_nothing);
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

/// Whether a line says no more than the exit code, which is told anyway.
fn is_exit_code(line: &str, code: Option<i64>) -> bool {
    let told =
        line.trim().strip_prefix("Exit code").map(|rest| rest.trim_start_matches([':', ' ']));
    told.is_some_and(|told| code.is_some_and(|code| told == code.to_string()))
}

/// How a call went, unless it went well.
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

/// A word of the event model, or of an agent, as people write it.
pub(super) fn word(word: &str) -> String {
    one_line(&word.replace('_', " "), 40)
}

/// Tokens that were used, as far as they are known.
pub(super) fn tokens(usage: &Usage<'_>) -> Option<String> {
    let about = if usage.estimated { "about " } else { "" };
    let cached = usage.cache_read.filter(|cached| *cached > 0);
    let cached = cached.map(|it| format!(" ({} cached)", grouped(it))).unwrap_or_default();
    let told = match (usage.input_total(), usage.output) {
        (Some(input), Some(output)) => {
            format!("{} tokens in{cached}, {} out", grouped(input), grouped(output))
        }
        (Some(input), None) => format!("{} tokens in{cached}", grouped(input)),
        (None, Some(output)) => format!("{} tokens out", grouped(output)),
        (None, None) => format!("{} tokens", grouped(usage.total?)),
    };
    Some(format!("{about}{told}"))
}

/// A number with its thousands apart.
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

/// A time that passed.
pub(super) fn duration(ms: u64) -> String {
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
    fn a_call_shows_what_tells_most() {
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
    fn a_long_line_is_cut_between_characters() {
        let line = line_of("Read", &format!(r#"{{"path":"{}"}}"#, "日".repeat(300)));
        assert_eq!(line.chars().count(), CALL);
        assert!(line.ends_with("日…"));
    }

    #[test]
    fn an_answer_shows_its_first_line_and_how_it_went() {
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
    fn counts_and_times_read_well() {
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
