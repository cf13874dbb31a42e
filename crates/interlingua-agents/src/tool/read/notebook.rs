//! Jupyter notebooks: their cells, with outputs.

use std::fmt::Write;

use interlingua::event::ToolStatus;
use serde_json::Value;

use crate::tool::{Content, Failure, Output};

/// How many bytes of text are shown.
const MAX_SHOWN: usize = 100_000;

/// How many bytes of notes there may be in addition.
const MAX_NOTES: usize = 4000;

/// How many images are shown.
const MAX_IMAGES: usize = 10;

/// Shows a notebook.
pub(super) fn run(shown: &str, text: &[u8]) -> Result<Output, Failure> {
    let hint = "use `offset` to read it as text";
    let notebook: Value = serde_json::from_slice(text)
        .map_err(|problem| Failure(format!("{shown} is not a notebook: {problem}; {hint}")))?;
    let Some(cells) = notebook.get("cells").and_then(Value::as_array) else {
        return Err(Failure(format!("{shown} has no cells that could be shown; {hint}")));
    };
    let mut view = View::default();
    for (number, cell) in cells.iter().enumerate() {
        if view.text.len() > MAX_SHOWN {
            let left = cells.len() - number;
            view.line(&format!("({left} more cells are not shown; {hint})"));
            break;
        }
        view.cell(number, cell);
    }
    if view.omitted_images > 0 {
        view.line(&format!("({} more images are not shown)", view.omitted_images));
    }
    let mut content = vec![Content::Text(view.text)];
    content.extend(view.images);
    Ok(Output::of(ToolStatus::Completed, content))
}

#[derive(Default)]
struct View {
    text: String,
    images: Vec<Content>,
    omitted_images: usize,
}

impl View {
    fn line(&mut self, line: &str) {
        // Lines about outputs have no limit of their own, and there may be very many.
        if self.text.len() > MAX_SHOWN + MAX_NOTES {
            return;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{line}");
    }

    /// Adds text, of which the start is shown.
    fn add(&mut self, text: &str) {
        let room = MAX_SHOWN.saturating_sub(self.text.len());
        match text.len() > room {
            true => {
                let end = text.floor_char_boundary(room);
                self.line(text.get(..end).unwrap_or_default());
                self.line("… (cut)");
            }
            false => self.line(text.trim_end_matches('\n')),
        }
    }

    fn cell(&mut self, number: usize, cell: &Value) {
        let kind = cell.get("cell_type").and_then(Value::as_str).unwrap_or("unknown");
        let id = cell.get("id").and_then(Value::as_str).map(|id| format!(" ({id})"));
        self.line(&format!("# Cell {number}{}: {kind}", id.unwrap_or_default()));
        self.add(&joined(cell.get("source")));
        let outputs = cell.get("outputs").and_then(Value::as_array);
        for output in outputs.into_iter().flatten() {
            self.output(output);
        }
        self.line("");
    }

    fn output(&mut self, output: &Value) {
        let kind = output.get("output_type").and_then(Value::as_str).unwrap_or("unknown");
        self.line(&format!("## Output: {kind}"));
        if let Some(text) = output.get("text") {
            self.add(&joined(Some(text)));
        }
        if let Some(name) = output.get("ename").and_then(Value::as_str) {
            let value = output.get("evalue").and_then(Value::as_str).unwrap_or_default();
            self.add(&format!("{name}: {value}"));
        }
        let Some(data) = output.get("data").and_then(Value::as_object) else { return };
        for (media_type, value) in data {
            match &**media_type {
                "image/png" | "image/jpeg" | "image/gif" | "image/webp" => {
                    self.image(media_type, &joined(Some(value)));
                }
                "text/plain" | "text/markdown" => self.add(&joined(Some(value))),
                other => self.line(&format!("({other} is not shown)")),
            }
        }
    }

    fn image(&mut self, media_type: &str, data: &str) {
        if self.images.len() == MAX_IMAGES {
            self.omitted_images += 1;
            return;
        }
        match super::image(data) {
            Ok(image) => {
                self.images.push(image);
                let number = self.images.len();
                self.line(&format!("(image {number}, {media_type})"));
            }
            Err(problem) => self.line(&format!("(an image is not shown: {problem})")),
        }
    }
}

/// A text, or a list of its lines.
fn joined(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_are_shown_with_their_outputs() {
        let notebook = json!({"cells": [
            {"cell_type": "markdown", "id": "x", "source": ["# Title\n", "text"]},
            {"cell_type": "code", "source": "1/0", "outputs": [
                {"output_type": "stream", "text": ["a\n", "b\n"]},
                {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "by zero"},
                {"output_type": "display_data", "data": {"image/png": "iVBORw0K\nGgo=\n", "text/html": "x"}},
                {"output_type": "display_data", "data": {"image/png": "AAAA"}},
            ]},
        ]});
        let output = run("n.ipynb", notebook.to_string().as_bytes()).unwrap();
        assert_eq!(
            output.text(),
            "# Cell 0 (x): markdown\n# Title\ntext\n\n# Cell 1: code\n1/0\n## Output: stream\n\
             a\nb\n## Output: error\nZeroDivisionError: by zero\n## Output: display_data\n\
             (image 1, image/png)\n(text/html is not shown)\n## Output: display_data\n\
             (an image is not shown: it is neither PNG, JPEG, GIF, WebP nor PDF)\n\n"
        );
        let image =
            Content::Image { media_type: "image/png".to_owned(), data: "iVBORw0KGgo=".to_owned() };
        assert_eq!(output.content.get(1), Some(&image));
        assert!(run("n", b"{}").is_err() && run("n", b"x").is_err());
    }
}
