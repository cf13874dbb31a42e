//! Differences, in the form of Git.
//!
//! A call tells that of each file it changed. The program tells that of the whole turn again after
//! every request, as one text: only files that no call has told are news.

use crate::dialect::Emitter;
use crate::event::{FileChange, FileChangeKind, FilesChanged};
use crate::json::{Json, Text};

/// The files whose change was told in the turn at hand.
#[derive(Debug, Default)]
pub(super) struct ToldFiles {
    paths: Vec<String>,
    diff: String,
}

impl ToldFiles {
    pub(super) fn add(&mut self, path: &Text<'_>) {
        self.paths.push(path.to_plain().into_owned());
    }

    pub(super) fn clear(&mut self) {
        self.paths.clear();
        self.diff.clear();
    }

    /// Tells the files of a difference that were not told before.
    pub(super) fn compare(&mut self, diff: &Text<'_>, out: &mut Emitter<'_, '_>) {
        let mut news = Vec::new();
        if diff.body() != self.diff {
            diff.body().clone_into(&mut self.diff);
            let plain = diff.to_plain();
            let changes = sections(&plain).into_iter().map(change);
            news.extend(changes.filter(|change| !self.knows(&change.path)));
            self.paths.extend(news.iter().map(|change| change.path.to_string()));
            if !news.is_empty() {
                return out.emit(FilesChanged { call: None, changes: news });
            }
        }
        out.native("turn/diff/updated that says nothing new");
    }

    /// Whether a file was told; the difference names it from the root of its repository.
    fn knows(&self, path: &Text<'_>) -> bool {
        let path = path.to_plain();
        let same = |told: &String| {
            told.strip_suffix(&*path).is_some_and(|root| root.is_empty() || root.ends_with('/'))
        };
        self.paths.iter().any(same)
    }
}

/// The difference that a call tells of a file. Of a file that is new or gone it tells the content.
pub(super) fn of_change<'a>(kind: &FileChangeKind, told: Json<'a>) -> Option<Json<'a>> {
    let added = match kind {
        FileChangeKind::Add => true,
        FileChangeKind::Delete => false,
        _ => return Some(told),
    };
    let Some(content) = told.as_text() else { return Some(told) };
    let content = content.to_plain();
    let lines = match content.split_inclusive('\n').count() {
        0 => return None,
        1 => "1".to_owned(),
        count => format!("1,{count}"),
    };
    let (mut diff, sign) = match added {
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

/// The parts of a difference, one for each file.
fn sections(diff: &str) -> Vec<&str> {
    let mut starts: Vec<usize> =
        diff.match_indices("\ndiff --git ").map(|(at, _)| at + 1).collect();
    if diff.starts_with("diff --git ") {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([diff.len()]);
    starts.iter().zip(ends).filter_map(|(start, end)| diff.get(*start..end)).collect()
}

fn change(section: &str) -> FileChange<'_> {
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
    let path = to.or(after("+++ b/")).or(after("--- a/")).or_else(|| of_first_line(head));
    FileChange {
        path: Text::plain(path.unwrap_or_default()),
        old_path: from.map(Text::plain),
        kind,
        diff: Some(Json::from(&Text::plain(section))),
    }
}

/// The name in `diff --git a/NAME b/NAME`.
fn of_first_line(head: &str) -> Option<&str> {
    let names = head.lines().next()?.strip_prefix("diff --git a/")?;
    names.get(names.len() / 2..)?.strip_prefix(" b/").or_else(|| names.rsplit(" b/").next())
}
