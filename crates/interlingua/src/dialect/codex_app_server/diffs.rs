//! Diffs in the format of Git.
//!
//! A call reports a diff for each file that it changed. After every request, the program reports
//! the diff of the whole turn again, as one text: only files that no call has reported are new.

use crate::dialect::Emitter;
use crate::event::{FileChange, FileChangeKind, FilesChanged};
use crate::json::{Json, Text};

/// The files whose changes were emitted in the current turn.
#[derive(Debug, Default)]
pub(super) struct ReportedFiles {
    paths: Vec<String>,
    diff: String,
}

impl ReportedFiles {
    pub(super) fn add(&mut self, path: &Text<'_>) {
        self.paths.push(path.to_plain().into_owned());
    }

    pub(super) fn clear(&mut self) {
        self.paths.clear();
        self.diff.clear();
    }

    /// Emits the changes of a diff that were not emitted before.
    pub(super) fn emit_new_changes(&mut self, diff: &Text<'_>, out: &mut Emitter<'_, '_>) {
        let mut new = Vec::new();
        if diff.body() != self.diff {
            diff.body().clone_into(&mut self.diff);
            let plain = diff.to_plain();
            let changes = sections(&plain).into_iter().map(parse_section);
            new.extend(changes.filter(|change| !self.contains(&change.path)));
            self.paths.extend(new.iter().map(|change| change.path.to_string()));
            if !new.is_empty() {
                return out.emit(FilesChanged { call: None, changes: new });
            }
        }
        out.native("turn/diff/updated without changes");
    }

    /// Whether the change of a file was emitted. The diff contains its path relative to the root of
    /// the repository.
    fn contains(&self, path: &Text<'_>) -> bool {
        let path = path.to_plain();
        let same = |emitted: &String| {
            emitted.strip_suffix(&*path).is_some_and(|root| root.is_empty() || root.ends_with('/'))
        };
        self.paths.iter().any(same)
    }
}

/// The diff of a file that a call changed. For an added or deleted file, the agent reports the
/// content instead.
pub(super) fn as_diff<'a>(kind: &FileChangeKind, reported: Json<'a>) -> Option<Json<'a>> {
    let is_added = match kind {
        FileChangeKind::Add => true,
        FileChangeKind::Delete => false,
        _ => return Some(reported),
    };
    let Some(content) = reported.as_text() else { return Some(reported) };
    let content = content.to_plain();
    let lines = match content.split_inclusive('\n').count() {
        0 => return None,
        1 => "1".to_owned(),
        count => format!("1,{count}"),
    };
    let (mut diff, sign) = match is_added {
        true => (format!("@@ -0,0 +{lines} @@\n"), '+'),
        false => (format!("@@ -{lines} +0,0 @@\n"), '-'),
    };
    for line in content.split_inclusive('\n') {
        diff.push(sign);
        diff.push_str(line);
    }
    if !content.ends_with('\n') {
        diff.push_str("\n\\ No newline at end of file\n");
    }
    Some(Json::from(&Text::from(diff)).into_owned())
}

/// The sections of a diff, one for each file.
fn sections(diff: &str) -> Vec<&str> {
    let mut starts: Vec<usize> =
        diff.match_indices("\ndiff --git ").map(|(at, _)| at + 1).collect();
    if diff.starts_with("diff --git ") {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([diff.len()]);
    starts.iter().zip(ends).filter_map(|(start, end)| diff.get(*start..end)).collect()
}

fn parse_section(section: &str) -> FileChange<'_> {
    // Only the lines before the first hunk name the file.
    let head = section.find("\n@@").and_then(|at| section.get(..at)).unwrap_or(section);
    let after = |start: &str| head.lines().find_map(|line| line.strip_prefix(start));
    let (from, to) = (after("rename from "), after("rename to "));
    let kind = if head.contains("\nnew file mode ") {
        FileChangeKind::Add
    } else if head.contains("\ndeleted file mode ") {
        FileChangeKind::Delete
    } else if to.is_some() {
        FileChangeKind::Move
    } else {
        FileChangeKind::Update
    };
    let path = to.or(after("+++ b/")).or(after("--- a/")).or_else(|| path_in_first_line(head));
    FileChange {
        path: Text::plain(path.unwrap_or_default()),
        old_path: from.map(Text::plain),
        kind,
        diff: Some(Json::from(&Text::plain(section))),
    }
}

/// The path in `diff --git a/PATH b/PATH`.
fn path_in_first_line(head: &str) -> Option<&str> {
    let names = head.lines().next()?.strip_prefix("diff --git a/")?;
    names.get(names.len() / 2..)?.strip_prefix(" b/").or_else(|| names.rsplit(" b/").next())
}
