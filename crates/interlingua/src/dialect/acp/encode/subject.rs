//! What a call is about, for a person: a title, and the places it works on.

use super::place::Folder;
use crate::event::ToolKind;
use crate::json::read;
use crate::json::write::Object;
use crate::json::{Json, Text, record};

record! {
    /// What of an input says to a person what a call is about.
    struct Telling<'a> {
        command: text "command" | "cmd",
        path: text "file_path" | "path" | "absolute_path" | "filePath" | "notebook_path" | "fileName",
        pattern: text "pattern" | "query" | "url",
        title: text "title" | "description",
        changes: records<Changed> "changes",
    }
}

record! {
    /// One of several files, as Codex writes them.
    struct Changed<'a> {
        path: text "path",
    }
}

/// What a call is about.
pub(super) struct Subject<'a> {
    title: Option<Text<'a>>,
    path: Option<Text<'a>>,
    changed: Vec<Text<'a>>,
}

impl<'a> Subject<'a> {
    pub(super) fn of(kind: &ToolKind, input: Option<&'a Json<'_>>) -> Self {
        let telling = input.and_then(read::record_of::<Telling<'a>>).unwrap_or_default();
        let Telling { command, path, pattern, title, changes } = telling;
        let path = path.filter(|path| !path.is_empty());
        let changed: Vec<_> = changes.into_iter().filter_map(|change| change.path).collect();
        let title = match kind {
            ToolKind::Execute => command,
            _ => path.clone().or_else(|| title_of(&changed)).or(pattern).or(title),
        };
        Self { title: title.filter(|title| !title.is_empty()), path, changed }
    }

    /// The same with a title for what has none.
    pub(super) fn or_titled(mut self, title: &'a Text<'_>) -> Self {
        self.title.get_or_insert_with(|| title.borrowed());
        self
    }

    /// Writes the title, the places, and the input itself. Without a title the call keeps the one that
    /// it had before.
    pub(super) fn write(&self, update: &mut Object<'_>, input: Option<&Json<'_>>, folder: &Folder) {
        update.text_if("title", self.title.as_ref());
        let mut places = self.path.iter().chain(&self.changed);
        let mut places = places.by_ref().filter_map(|path| folder.absolute(path)).peekable();
        if places.peek().is_some() {
            update.objects("locations", places, |location, path| {
                location.text("path", &path);
            });
        }
        update.json_if("rawInput", input);
    }

    /// Whether a text says nothing that the title does not say.
    pub(super) fn says(&self, text: &Text<'_>) -> bool {
        self.title.as_ref().is_some_and(|title| title.to_plain().contains(&*text.to_plain()))
    }
}

/// The first of several files, and how many there are.
fn title_of<'a>(paths: &[Text<'a>]) -> Option<Text<'a>> {
    let first = paths.first()?;
    match paths.len() - 1 {
        0 => Some(first.clone()),
        more => Some(Text::from(format!("{first} and {more} more"))),
    }
}
