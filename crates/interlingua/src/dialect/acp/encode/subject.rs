//! The title of a call and the files it works on, derived from its input.

use super::paths::WorkingFolder;
use crate::event::ToolKind;
use crate::json::read;
use crate::json::write::Object;
use crate::json::{Json, Text, record};

record! {
    /// The fields of an input from which the title and the locations are made.
    struct SubjectFields<'a> {
        command: text "command" | "cmd",
        path: text "file_path" | "path" | "absolute_path" | "filePath" | "notebook_path" | "fileName",
        pattern: text "pattern" | "query" | "url",
        title: text "title" | "description",
        changes: records<Changed> "changes",
    }
}

record! {
    /// One of several changed files, as Codex writes it.
    struct Changed<'a> {
        path: text "path",
    }
}

/// The title and the files of a call.
pub(super) struct Subject<'a> {
    title: Option<Text<'a>>,
    path: Option<Text<'a>>,
    changed: Vec<Text<'a>>,
}

impl<'a> Subject<'a> {
    pub(super) fn of(kind: &ToolKind, input: Option<&'a Json<'_>>) -> Self {
        let fields = input.and_then(read::record_of::<SubjectFields<'a>>).unwrap_or_default();
        let SubjectFields { command, path, pattern, title, changes } = fields;
        let path = path.filter(|path| !path.is_empty());
        let changed: Vec<_> = changes.into_iter().filter_map(|change| change.path).collect();
        let title = match kind {
            ToolKind::Execute => command,
            _ => path.clone().or_else(|| title_of(&changed)).or(pattern).or(title),
        };
        Self { title: title.filter(|title| !title.is_empty()), path, changed }
    }

    /// Sets the title if the input gives none.
    pub(super) fn with_default_title(mut self, title: &'a Text<'_>) -> Self {
        self.title.get_or_insert_with(|| title.borrowed());
        self
    }

    /// Writes the title, the locations and the input. Without a title, the call keeps its earlier
    /// one.
    pub(super) fn write(
        &self,
        update: &mut Object<'_>,
        input: Option<&Json<'_>>,
        folder: &WorkingFolder,
    ) {
        update.text_if("title", self.title.as_ref());
        let mut locations = self.path.iter().chain(&self.changed);
        let mut locations = locations.by_ref().filter_map(|path| folder.absolute(path)).peekable();
        if locations.peek().is_some() {
            update.objects("locations", locations, |location, path| {
                location.text("path", &path);
            });
        }
        update.json_if("rawInput", input);
    }

    /// Whether the title contains this text.
    pub(super) fn title_contains(&self, text: &Text<'_>) -> bool {
        self.title.as_ref().is_some_and(|title| title.to_plain().contains(&*text.to_plain()))
    }
}

/// The first of several files, and the number of the others.
fn title_of<'a>(paths: &[Text<'a>]) -> Option<Text<'a>> {
    let first = paths.first()?;
    match paths.len() - 1 {
        0 => Some(first.clone()),
        more => Some(Text::from(format!("{first} and {more} more"))),
    }
}
