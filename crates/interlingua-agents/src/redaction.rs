//! Redacts the keys that an agent was given where they occur in its output.
//!
//! The values of the variables in [`KEY_VARIABLES`] are replaced, as the agent sees them, also in
//! the form that they have in a JSON string. A value that is split between two chunks of a stream is
//! found: the end of a chunk that may be the beginning of a key is held back. No key contains a line
//! ending, so a complete line is never held back, and never more than the length of a key.
//!
//! A key that an agent encodes, or prints in parts, is not found.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::ops::Range;

use memchr::memmem::Finder;

use crate::agent::KEY_VARIABLES;

/// What a key is replaced by.
const REPLACEMENT: &str = "[redacted]";

/// The length, in characters, from which a value is a key. Shorter values are placeholders, which
/// occur in ordinary text.
pub(crate) const SHORTEST_KEY: usize = 16;

/// How often the value of a variable was redacted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Redacted {
    /// The name of the variable.
    pub variable: &'static str,
    /// The number of occurrences of its value.
    pub occurrences: u64,
}

impl std::fmt::Display for Redacted {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { variable, occurrences } = self;
        let (what, were) =
            if *occurrences == 1 { ("occurrence", "was") } else { ("occurrences", "were") };
        write!(out, "{occurrences} {what} of the value of {variable} {were} redacted")
    }
}

/// Finds and replaces the keys of a session.
#[derive(Default)]
pub(crate) struct Redactor {
    keys: Vec<Key>,
    forms: Vec<Form>,
}

/// A key, without its value.
struct Key {
    variable: &'static str,
    occurrences: u64,
    /// How many of the occurrences were reported.
    reported: u64,
}

/// One way to write a key.
struct Form {
    finder: Finder<'static>,
    /// The index of its key.
    key: usize,
}

/// The end of a stream that may be the beginning of a key.
#[derive(Default)]
pub(crate) struct HeldBack(Vec<u8>);

/// Values are secrets, so only the names of the variables are shown.
impl std::fmt::Debug for Redactor {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.keys.iter().map(|key| key.variable)).finish()
    }
}

/// It may be a part of a secret.
impl std::fmt::Debug for HeldBack {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("HeldBack").field(&self.0.len()).finish()
    }
}

impl Redactor {
    /// Adds the keys of a process: the values of the variables that are keys.
    pub(crate) fn add_keys(&mut self, variable: impl Fn(&str) -> Option<std::ffi::OsString>) {
        for name in KEY_VARIABLES {
            if let Some(value) = variable(name)
                && let Some(value) = value.to_str()
            {
                self.add_key(name, value.trim());
            }
        }
    }

    /// Adds a key, with the name by which it is reported.
    pub(crate) fn add_key(&mut self, variable: &'static str, value: &str) {
        if value.chars().count() < SHORTEST_KEY {
            return;
        }
        let known = self.keys.iter().position(|key| key.variable == variable);
        let key = known.unwrap_or(self.keys.len());
        let quoted = serde_json::Value::from(value).to_string();
        let escaped = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let mut added = false;
        for form in std::iter::once(value).chain(escaped) {
            let is_known = self.forms.iter().any(|known| known.finder.needle() == form.as_bytes());
            if !is_known && !form.contains('\n') {
                let finder = Finder::new(form).into_owned();
                self.forms.push(Form { finder, key });
                added = true;
            }
        }
        if added && known.is_none() {
            self.keys.push(Key { variable, occurrences: 0, reported: 0 });
        }
    }

    /// Whether there is a key to look for.
    pub(crate) fn has_keys(&self) -> bool {
        !self.forms.is_empty()
    }

    /// Redacts the next chunk of a stream. What may be the beginning of a key is returned with the
    /// chunk after it.
    pub(crate) fn redact_chunk<'a>(
        &mut self,
        chunk: &'a [u8],
        held_back: &mut HeldBack,
    ) -> Cow<'a, [u8]> {
        if !self.has_keys() {
            return Cow::Borrowed(chunk);
        }
        if held_back.0.is_empty() {
            let (found, end) = self.find(chunk, self.possible_beginning(chunk));
            let (complete, rest) = chunk.split_at_checked(end).unwrap_or((chunk, &[]));
            held_back.0.extend_from_slice(rest);
            return replace(complete, &found);
        }
        let mut bytes = std::mem::take(&mut held_back.0);
        bytes.extend_from_slice(chunk);
        let (found, end) = self.find(&bytes, self.possible_beginning(&bytes));
        held_back.0 = bytes.split_off(end.min(bytes.len()));
        let replaced = match replace(&bytes, &found) {
            Cow::Borrowed(_) => None,
            Cow::Owned(replaced) => Some(replaced),
        };
        Cow::Owned(replaced.unwrap_or(bytes))
    }

    /// Redacts what was held back, at the end of a stream.
    pub(crate) fn redact_end(&mut self, held_back: HeldBack) -> Vec<u8> {
        self.redact(&held_back.0).into_owned()
    }

    /// Redacts bytes that are complete.
    pub(crate) fn redact<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let (found, _) = self.find(bytes, bytes.len());
        replace(bytes, &found)
    }

    /// Redacts a text that is complete.
    pub(crate) fn redact_text<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        match self.redact(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // A key is a whole text, so what is around it is text too.
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// What was redacted in this session.
    pub(crate) fn redacted(&self) -> Vec<Redacted> {
        let found = self.keys.iter().filter(|key| key.occurrences > 0);
        found.map(|key| Redacted { variable: key.variable, occurrences: key.occurrences }).collect()
    }

    /// What was redacted since the last call.
    pub(crate) fn take_unreported(&mut self) -> Vec<Redacted> {
        let mut unreported = Vec::new();
        for key in &mut self.keys {
            let occurrences = key.occurrences - key.reported;
            key.reported = key.occurrences;
            if occurrences > 0 {
                unreported.push(Redacted { variable: key.variable, occurrences });
            }
        }
        unreported
    }

    /// Finds the keys that start before `end`: at each place the longest one. Returns them, and the
    /// new end, which is later if a key extends beyond it.
    fn find(&mut self, bytes: &[u8], mut end: usize) -> (Vec<Range<usize>>, usize) {
        let mut found = Vec::new();
        if self.forms.iter().all(|form| form.finder.find(bytes).is_none()) {
            return (found, end);
        }
        let mut next: Vec<_> = self.forms.iter().map(|form| form.finder.find(bytes)).collect();
        loop {
            let starts = self.forms.iter().zip(&next).filter_map(|(form, start)| {
                Some(((*start)?, Reverse(form.finder.needle().len()), form.key))
            });
            let Some((start, Reverse(length), key)) = starts.min() else { break };
            if start >= end {
                break;
            }
            let after = start + length;
            found.push(start..after);
            if let Some(key) = self.keys.get_mut(key) {
                key.occurrences += 1;
            }
            let rest = bytes.get(after..).unwrap_or_default();
            if after > end {
                end = after + self.possible_beginning(rest);
            }
            for (form, start) in self.forms.iter().zip(&mut next) {
                if start.is_some_and(|start| start < after) {
                    *start = form.finder.find(rest).map(|start| after + start);
                }
            }
        }
        (found, end)
    }

    /// Where the longest ending starts that may be the beginning of a key; the length of the bytes
    /// if there is none.
    fn possible_beginning(&self, bytes: &[u8]) -> usize {
        let longest = self.forms.iter().filter_map(|form| {
            let form = form.finder.needle();
            let begins = |length: &usize| {
                form.get(..*length).is_some_and(|beginning| bytes.ends_with(beginning))
            };
            (1..form.len()).rev().find(begins)
        });
        bytes.len() - longest.max().unwrap_or(0)
    }
}

/// Replaces some ranges, which are in order and do not overlap.
fn replace<'a>(bytes: &'a [u8], found: &[Range<usize>]) -> Cow<'a, [u8]> {
    if found.is_empty() {
        return Cow::Borrowed(bytes);
    }
    let mut replaced = Vec::with_capacity(bytes.len());
    let mut copied = 0;
    for range in found {
        replaced.extend_from_slice(bytes.get(copied..range.start).unwrap_or_default());
        replaced.extend_from_slice(REPLACEMENT.as_bytes());
        copied = range.end;
    }
    replaced.extend_from_slice(bytes.get(copied..).unwrap_or_default());
    Cow::Owned(replaced)
}

#[cfg(test)]
mod tests;
