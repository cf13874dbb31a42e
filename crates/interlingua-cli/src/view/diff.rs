//! Shows how a file changed: which lines were added and removed, and some around them.
//!
//! Agents report changes as unified diffs, as hunks, as the text before and after, or only in the
//! input of the tool that made them.

use interlingua::event::{FileChange, FileChangeKind};
use interlingua::json::{Json, Text};
use serde::Deserialize;
use similar::{ChangeTag, TextDiff};

use super::clean;
use super::style::{Line, Style};
use super::width;

/// The lines of a diff that are shown unless everything is.
const FOLDED: usize = 20;
/// The unchanged lines around a change.
const CONTEXT: usize = 3;

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Diff {
    lines: Vec<(Tag, String)>,
    pub(crate) added: usize,
    pub(crate) removed: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    Added,
    Removed,
    Same,
    /// Lines are left out here.
    Gap,
}

/// A hunk, as Claude reports it.
#[derive(Debug, Deserialize)]
struct Hunk<'a> {
    #[serde(borrow)]
    lines: Vec<Text<'a>>,
}

/// The text before and after, as the Agent Client Protocol reports it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Texts<'a> {
    #[serde(borrow)]
    old_text: Option<Text<'a>>,
    #[serde(borrow)]
    new_text: Option<Text<'a>>,
}

/// The input of a tool that changes a file, in the forms that agents use.
#[derive(Debug, Default, Deserialize)]
struct EditInput<'a> {
    #[serde(borrow, alias = "oldString", alias = "old_str", alias = "oldText")]
    old_string: Option<Text<'a>>,
    #[serde(borrow, alias = "newString", alias = "new_str", alias = "newText")]
    new_string: Option<Text<'a>>,
    #[serde(borrow, alias = "file_text")]
    content: Option<Text<'a>>,
    #[serde(borrow, default)]
    edits: Vec<Edit<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct Edit<'a> {
    #[serde(borrow, alias = "oldString", alias = "oldText")]
    old_string: Option<Text<'a>>,
    #[serde(borrow, alias = "newString", alias = "newText")]
    new_string: Option<Text<'a>>,
}

impl Diff {
    /// The diff of a reported change, if the report has one.
    pub(crate) fn of_change(change: &FileChange<'_>) -> Option<Self> {
        let diff = change.diff.as_ref()?;
        if let Some(text) = diff.as_text() {
            return Some(Self::of_unified(&text.to_plain(), &change.kind));
        }
        if let Some(hunks) = diff.read::<Vec<Hunk<'_>>>() {
            return Some(Self::of_hunks(&hunks));
        }
        let texts = diff.read::<Texts<'_>>()?;
        let text = |text: &Option<Text<'_>>| text.as_ref().map(|it| it.to_plain().into_owned());
        let (old, new) = (text(&texts.old_text), text(&texts.new_text));
        Some(Self::between(&old.unwrap_or_default(), &new.unwrap_or_default()))
    }

    /// The diff that follows from the input of a tool.
    pub(crate) fn of_input(input: &Json<'_>) -> Option<Self> {
        let input = input.read::<EditInput<'_>>()?;
        let plain = |text: &Text<'_>| text.to_plain().into_owned();
        if let Some(content) = &input.content {
            return Some(Self::between("", &plain(content)));
        }
        let whole = Edit { old_string: input.old_string, new_string: input.new_string };
        let mut all = Self::default();
        for edit in std::iter::once(whole).chain(input.edits) {
            let (old, new) = (edit.old_string.as_ref(), edit.new_string.as_ref());
            if old.is_some() || new.is_some() {
                let text = |text: Option<&Text<'_>>| text.map(plain).unwrap_or_default();
                all.append(Self::between(&text(old), &text(new)));
            }
        }
        (!all.lines.is_empty()).then_some(all)
    }

    fn between(old: &str, new: &str) -> Self {
        let mut all = Self::default();
        let diff = TextDiff::from_lines(old, new);
        for group in diff.grouped_ops(CONTEXT) {
            let mut part = Self::default();
            for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
                let tag = match change.tag() {
                    ChangeTag::Insert => Tag::Added,
                    ChangeTag::Delete => Tag::Removed,
                    ChangeTag::Equal => Tag::Same,
                };
                part.push(tag, change.value());
            }
            all.append(part);
        }
        all
    }

    fn of_hunks(hunks: &[Hunk<'_>]) -> Self {
        let mut all = Self::default();
        for hunk in hunks {
            let mut part = Self::default();
            hunk.lines.iter().for_each(|line| part.push_marked(&line.to_plain()));
            all.append(part);
        }
        all
    }

    fn of_unified(text: &str, kind: &FileChangeKind) -> Self {
        if !text.lines().any(|line| line.starts_with("@@")) {
            // Some agents give the content of a file that is new or gone.
            return match kind {
                FileChangeKind::Delete => Self::between(text, ""),
                _ => Self::between("", text),
            };
        }
        let mut all = Self::default();
        let mut part = Self::default();
        for line in text.lines().skip_while(|line| !line.starts_with("@@")) {
            if line.starts_with("@@") {
                all.append(std::mem::take(&mut part));
            } else {
                part.push_marked(line);
            }
        }
        all.append(part);
        all
    }

    fn push_marked(&mut self, line: &str) {
        let mut letters = line.chars();
        let tag = match letters.next() {
            Some('+') => Tag::Added,
            Some('-') => Tag::Removed,
            // `\ No newline at end of file`
            Some('\\') => return,
            _ => Tag::Same,
        };
        self.push(tag, letters.as_str());
    }

    fn push(&mut self, tag: Tag, line: &str) {
        match tag {
            Tag::Added => self.added += 1,
            Tag::Removed => self.removed += 1,
            Tag::Same | Tag::Gap => {}
        }
        let line = line.strip_suffix('\n').unwrap_or(line);
        self.lines.push((tag, line.to_owned()));
    }

    fn append(&mut self, other: Self) {
        if other.lines.is_empty() {
            return;
        }
        if !self.lines.is_empty() {
            self.lines.push((Tag::Gap, String::new()));
        }
        self.added += other.added;
        self.removed += other.removed;
        self.lines.extend(other.lines);
    }

    /// Appends the counts, such as `+12 −3`.
    pub(crate) fn counts(&self, line: &mut Line) {
        if self.added > 0 {
            line.push(format!(" +{}", self.added), Style::GREEN);
        }
        if self.removed > 0 {
            line.push(format!(" −{}", self.removed), Style::RED);
        }
    }

    /// The lines of the diff; a long one is folded, unless everything is shown.
    pub(crate) fn lines(&self, columns: usize, everything: bool) -> Vec<Line> {
        let folds = !everything && self.lines.len() > FOLDED + 1;
        let shown = if folds { FOLDED } else { self.lines.len() };
        let columns = if everything { usize::MAX } else { columns };
        let mut lines: Vec<Line> =
            self.lines.iter().take(shown).map(|(tag, text)| line(*tag, text, columns)).collect();
        if folds {
            lines.push(super::calls::folded(self.lines.len() - shown));
        }
        lines
    }
}

fn line(tag: Tag, text: &str, columns: usize) -> Line {
    let text = clean::text(text);
    let text = width::shortened(&clean::expand_tabs(&text), columns.saturating_sub(6).max(10));
    match tag {
        Tag::Added => Line::new(format!("  + {text}"), Style::GREEN),
        Tag::Removed => Line::new(format!("  - {text}"), Style::RED),
        Tag::Same => Line::new(format!("    {text}"), Style::DIM),
        Tag::Gap => Line::new("  ⋯", Style::DIM),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::style::Palette;

    fn shown(diff: &Diff) -> Vec<String> {
        diff.lines(80, false).iter().map(|line| line.to_terminal(Palette::None)).collect()
    }

    fn change(diff: &str) -> FileChange<'static> {
        FileChange { diff: Json::from_text(diff.to_owned()), ..FileChange::default() }
    }

    #[test]
    fn all_forms_of_a_change_look_the_same() {
        let forms = [
            r#""@@ -1,2 +1,2 @@\n one\n-two\n+three\n\\ No newline at end of file""#,
            r#""Index: x\n=====\n--- x\n+++ x\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n""#,
            r#"[{"oldStart":1,"lines":[" one","-two","+three"]}]"#,
            r#"{"oldText":"one\ntwo\n","newText":"one\nthree\n"}"#,
        ];
        for form in forms {
            let diff = Diff::of_change(&change(form)).unwrap();
            assert_eq!(shown(&diff), ["    one", "  - two", "  + three"], "{form}");
            assert_eq!((diff.added, diff.removed), (1, 1));
        }
        let input = r#"{"file_path":"x","old_string":"two","new_string":"three"}"#;
        let input = Json::from_text(input.to_owned()).unwrap();
        assert_eq!(shown(&Diff::of_input(&input).unwrap()), ["  - two", "  + three"]);
        let input = Json::from_text(r#"{"content":"a\nb\n"}"#.to_owned()).unwrap();
        assert_eq!(shown(&Diff::of_input(&input).unwrap()), ["  + a", "  + b"]);
        let input = Json::from_text(r#"{"command":"ls"}"#.to_owned()).unwrap();
        assert_eq!(Diff::of_input(&input), None);
    }

    #[test]
    fn hunks_are_apart_and_a_long_diff_is_folded() {
        let old: String = (0..60).map(|line| format!("{line}\n")).collect();
        let new = old.replace("5\n", "five\n");
        let diff = Diff::between(&old, &new);
        let lines = shown(&diff);
        assert!(lines.contains(&"  ⋯".to_owned()));
        assert_eq!(lines.len(), FOLDED + 1);
        assert!(lines.last().unwrap().starts_with("  … +"), "{lines:?}");
        assert!(diff.lines(80, true).len() > FOLDED + 1);
    }
}
