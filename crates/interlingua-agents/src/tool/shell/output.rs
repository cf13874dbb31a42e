//! The output of a command: its beginning and its end for the model, all of it in a file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::plain::Plain;
use super::scratch::ScratchFile;

/// How many bytes are kept of the beginning, and of the end.
const HALF: usize = 15_000;

/// How many bytes the file may have.
const MAX_FILE: u64 = 64 << 20;

/// The output of a command that runs.
#[derive(Debug)]
pub(super) struct Output {
    plain: Plain,
    head: String,
    /// The last characters; up to twice as many as are shown, so that few are moved.
    tail: String,
    /// How many bytes were dropped between them.
    dropped: u64,
    path: PathBuf,
    file: Option<ScratchFile>,
    in_file: u64,
    /// Whether the file has everything.
    is_complete: bool,
    /// Whether the file stays, also if the output is short.
    keeps_file: bool,
}

impl Output {
    /// Output whose bytes also go to a file. The file is kept only if the output is long.
    pub(super) fn new(file: ScratchFile) -> Self {
        Self {
            plain: Plain::default(),
            head: String::new(),
            tail: String::new(),
            dropped: 0,
            path: file.path.clone(),
            file: Some(file),
            in_file: 0,
            is_complete: true,
            keeps_file: false,
        }
    }

    /// Keeps the file in any case, because its path was reported.
    pub(super) fn keep_file(&mut self) {
        self.keeps_file = true;
    }

    /// Adds a piece. Returns it as plain text.
    pub(super) fn push(&mut self, piece: &[u8]) -> String {
        self.save(piece);
        let text = self.plain.push(piece);
        self.keep(&text);
        text
    }

    /// The end of the output. Returns what was held back.
    pub(super) fn finish(&mut self) -> String {
        let text = self.plain.finish();
        self.keep(&text);
        let file = self.file.take();
        if self.is_short() && !self.keeps_file {
            // It is shown completely, so no one needs the file.
            file.into_iter().for_each(ScratchFile::remove);
        }
        text
    }

    fn save(&mut self, piece: &[u8]) {
        let room = usize::try_from(MAX_FILE - self.in_file).unwrap_or(usize::MAX);
        let saved = piece.get(..room).unwrap_or(piece);
        let written = self.file.as_mut().map(|it| it.file.write_all(saved));
        self.in_file += saved.len() as u64;
        let failed = !matches!(written, Some(Ok(())));
        if failed || saved.len() < piece.len() {
            self.is_complete = false;
        }
        if failed {
            self.file = None;
        }
    }

    fn keep(&mut self, text: &str) {
        let room = HALF.saturating_sub(self.head.len());
        let (head, tail) = text.split_at(text.floor_char_boundary(room));
        // The beginning has no gap: what follows the end of it belongs to the tail.
        if self.tail.is_empty() && self.dropped == 0 {
            self.head.push_str(head);
            self.tail.push_str(tail);
        } else {
            self.tail.push_str(text);
        }
        if self.tail.len() > 2 * HALF {
            self.cut();
        }
    }

    /// Drops all but the end of the tail.
    fn cut(&mut self) {
        let excess = self.tail.ceil_char_boundary(self.tail.len().saturating_sub(HALF));
        self.tail.drain(..excess);
        self.dropped += excess as u64;
    }

    fn is_short(&self) -> bool {
        self.dropped == 0 && self.tail.len() <= HALF
    }

    /// What the model sees.
    pub(super) fn shown(&mut self) -> String {
        if self.is_short() {
            return format!("{}{}", self.head, self.tail);
        }
        self.cut();
        format!(
            "{}\n\n[… {} bytes are left out here; {} …]\n\n{}",
            self.head,
            self.dropped,
            self.location(),
            self.tail
        )
    }

    /// Where the whole output is, for a sentence.
    fn location(&self) -> String {
        match self.is_complete {
            true => format!("the whole output is in {}", self.path.display()),
            false => format!("the first {} bytes are in {}", self.in_file, self.path.display()),
        }
    }

    /// The file, if the output is longer than what is shown.
    pub(super) fn path(&self) -> Option<&Path> {
        (!self.is_short()).then_some(&self.path)
    }
}

/// A text as the model sees it: of a long one, it sees both ends, and all of it is in a new file.
pub(in crate::tool) fn shortened(
    text: String,
    file: impl FnOnce() -> Option<io::Result<ScratchFile>>,
) -> String {
    if text.len() <= 2 * HALF {
        return text;
    }
    let head = text.get(..text.floor_char_boundary(HALF)).unwrap_or_default();
    let tail = text.get(text.ceil_char_boundary(text.len() - HALF)..).unwrap_or_default();
    let dropped = text.len() - head.len() - tail.len();
    let location = file().map_or("they are not stored".to_owned(), |file| stored(&text, file));
    format!("{head}\n\n[… {dropped} bytes are left out here; {location} …]\n\n{tail}")
}

/// Stores a text, and states where it is.
fn stored(text: &str, file: io::Result<ScratchFile>) -> String {
    let most = usize::try_from(MAX_FILE).unwrap_or(usize::MAX);
    let saved = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    let written = file.and_then(|mut file| {
        file.file.write_all(saved.as_bytes())?;
        Ok(file.path)
    });
    match written {
        Ok(path) if saved.len() == text.len() => {
            format!("the whole result is in {}", path.display())
        }
        Ok(path) => format!("the first {} bytes are in {}", saved.len(), path.display()),
        Err(problem) => format!("they could not be stored: {problem}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::scratch::Scratch;
    use super::*;

    #[test]
    fn a_short_output_needs_no_file() {
        let scratch = Scratch::for_shell().unwrap().unwrap();
        let file = scratch.create_output("o").unwrap();
        let path = file.path.clone();
        let mut output = Output::new(file);
        assert_eq!(output.push(b"a\x1b[1mb"), "ab");
        output.finish();
        assert_eq!((output.shown().as_str(), path.exists()), ("ab", false));
    }

    #[test]
    fn of_a_long_output_both_ends_are_shown() {
        let scratch = Scratch::for_shell().unwrap().unwrap();
        let file = scratch.create_output("o").unwrap();
        let path = file.path.clone();
        let mut output = Output::new(file);
        let mut all = String::new();
        for number in 0..20_000 {
            let line = format!("zeile ä {number}\n");
            output.push(line.as_bytes());
            all.push_str(&line);
        }
        output.finish();
        let shown = output.shown();
        assert!(shown.starts_with("zeile ä 0\n") && shown.ends_with("zeile ä 19999\n"));
        assert!(shown.len() < 2 * HALF + 500, "{}", shown.len());
        let kept = output.head.len() + output.tail.len();
        assert!(shown.contains(&format!("{} bytes are left out", all.len() - kept)), "{shown}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), all);
    }
}
