//! Entries in the form in which a log keeps them.

use interlingua::{Batch, Entry, EntryRef};

use crate::{Error, SessionId};

/// Entries that continue a log, as lines of the dialect `events`.
///
/// They are written by the owner of a session, since owners work in parallel, and a store has one
/// writer.
///
/// ```
/// use interlingua::{Batch, EntryRef, ReadOptions, Reader, Source};
/// use interlingua_sessions::Lines;
///
/// let mut lines = Lines::default();
/// let mut reader = Reader::new(Source::named("codex")?, ReadOptions::default())?;
/// reader.push(b"{\"type\":\"turn.started\"}\n", None, &mut |entry: EntryRef<'_>| lines.push(entry))?;
/// assert_eq!(lines.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lines {
    /// The number of the first entry.
    first: u64,
    count: u64,
    bytes: Vec<u8>,
    /// The first entry that cannot be stored. A store rejects all of them.
    flaw: Option<Flaw>,
}

#[derive(Debug, Clone, PartialEq)]
enum Flaw {
    Gap { expected: u64, found: u64 },
    Unwritable(String),
}

impl Lines {
    /// Adds an entry.
    pub fn push(&mut self, entry: EntryRef<'_>) {
        if self.count == 0 {
            self.first = entry.sequence;
        }
        let (expected, found) = (self.first + self.count, entry.sequence);
        if found != expected {
            self.flaw.get_or_insert(Flaw::Gap { expected, found });
        }
        if let Err(problem) = entry.write_json(&mut self.bytes) {
            self.flaw.get_or_insert(Flaw::Unwritable(problem.to_string()));
        }
        self.bytes.push(b'\n');
        self.count += 1;
    }

    /// Adds the entries of a batch.
    pub fn push_all(&mut self, batch: &Batch) {
        batch.for_each(|entry| self.push(entry));
    }

    /// The number of entries.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The size of the lines, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The lines, if they continue a log whose next entry has this number.
    pub(crate) fn continuing(&self, id: &SessionId, next: u64) -> Result<&[u8], Error> {
        let gap = |expected, found| Error::Gap { id: id.clone(), expected, found };
        match &self.flaw {
            _ if self.count > 0 && self.first != next => Err(gap(next, self.first)),
            Some(Flaw::Gap { expected, found }) => Err(gap(*expected, *found)),
            Some(Flaw::Unwritable(problem)) => Err(Error::Failed(problem.clone())),
            None => Ok(&self.bytes),
        }
    }
}

impl FromIterator<Entry> for Lines {
    fn from_iter<T: IntoIterator<Item = Entry>>(entries: T) -> Self {
        let mut lines = Self::default();
        entries.into_iter().for_each(|entry| lines.push(entry.borrowed()));
        lines
    }
}

impl From<Vec<Entry>> for Lines {
    fn from(entries: Vec<Entry>) -> Self {
        entries.into_iter().collect()
    }
}
