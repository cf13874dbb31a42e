//! Entries that were read together, in little memory.

use super::{Entry, EntryRef, Origin};
use crate::event::{BlockDelta, Data, Event};
use crate::json::Text;

/// The memory that is reserved at most for the next batch, in deltas and in bytes of text.
const MAX_RESERVED: (usize, usize) = (1024, 32 << 10);

/// Some entries in order, which outlive their frames.
///
/// Most entries of a stream are deltas: the next few characters of a block. An [`Entry`] for each of
/// them would cost more than everything else that is done with it. So a batch stores of a delta that
/// continues the entry before it only its text and its position in the input.
///
/// ```
/// use interlingua::{Batch, EntryRef, ReadOptions, Reader, Source, Writer, dialect};
/// use interlingua::dialect::EncodeOptions;
///
/// let mut batch = Batch::default();
/// let mut reader = Reader::new(Source::named("codex")?, ReadOptions::default())?;
/// reader.push(b"{\"type\":\"turn.started\"}\n", None, &mut |entry: EntryRef<'_>| batch.push(entry))?;
/// assert_eq!(batch.len(), 2);
///
/// let mut writer = Writer::new(dialect::named("events")?, &EncodeOptions::default())?;
/// let mut bytes = Vec::new();
/// batch.for_each(|entry| writer.write(entry, &mut bytes));
/// # assert!(bytes.ends_with(b"}\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Batch {
    runs: Vec<Run>,
    /// The deltas of all runs.
    deltas: Vec<Delta>,
    /// The texts of all deltas.
    texts: String,
}

/// An entry, and the number of deltas that continue it.
#[derive(Debug, Clone)]
struct Run {
    first: Entry,
    deltas: usize,
}

/// What distinguishes a delta from the entry before it.
#[derive(Debug, Clone)]
struct Delta {
    origin: Origin,
    /// The length of its stored text.
    length: usize,
    /// The stored text is a literal without escapes, so that it is written without a search for
    /// characters to escape.
    is_literal: bool,
}

impl Batch {
    /// Adds a copy of an entry.
    pub fn push(&mut self, entry: EntryRef<'_>) {
        if let Some(run) = self.runs.last_mut()
            && let Some(text) = run.text_of_next(entry)
        {
            run.deltas += 1;
            let length = self.texts.len();
            let is_literal = match text {
                Text::Literal(literal) => {
                    self.texts.push_str(literal.get());
                    true
                }
                text => {
                    self.texts.push_str(&text.to_plain());
                    false
                }
            };
            let length = self.texts.len() - length;
            self.deltas.push(Delta { origin: entry.origin.clone(), length, is_literal });
        } else {
            self.runs.push(Run { first: entry.to_owned(), deltas: 0 });
        }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.runs.len() + self.deltas.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Passes each entry on, in order.
    pub fn for_each(&self, mut take: impl FnMut(EntryRef<'_>)) {
        let (mut deltas, mut texts) = (&*self.deltas, &*self.texts);
        for run in &self.runs {
            take(run.first.borrowed());
            let (own, rest) = deltas.split_at_checked(run.deltas).unwrap_or_default();
            texts = run.for_each_delta(own, texts, &mut take);
            deltas = rest;
        }
    }

    /// Copies of the entries.
    pub fn to_entries(&self) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(self.len());
        self.for_each(|entry| entries.push(entry.to_owned()));
        entries
    }

    /// Takes all entries. Memory is reserved for as many more.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let (deltas, texts) = MAX_RESERVED;
        let next = Self {
            runs: Vec::new(),
            deltas: Vec::with_capacity(self.deltas.len().min(deltas)),
            texts: String::with_capacity(self.texts.len().min(texts)),
        };
        std::mem::replace(self, next)
    }
}

impl IntoIterator for &Batch {
    type Item = Entry;
    type IntoIter = std::vec::IntoIter<Entry>;

    fn into_iter(self) -> Self::IntoIter {
        self.to_entries().into_iter()
    }
}

impl Run {
    /// The text of an entry that continues this run: one that differs from the first in nothing but
    /// its text, its position, and its number, which is the next one.
    #[inline]
    fn text_of_next<'e>(&self, entry: EntryRef<'e>) -> Option<&'e Text<'e>> {
        let Self { first, deltas } = self;
        let Data::BlockDelta(delta) = &first.event.data else { return None };
        let EntryRef { sequence, received_at, epoch, origin: _, event, raw: None } = entry else {
            return None;
        };
        let Event { parent, time: None, synthetic: None, data: Data::BlockDelta(next) } = event
        else {
            return None;
        };
        let BlockDelta { block, message, index, kind, text } = next;
        let continues = sequence == first.sequence + 1 + *deltas as u64
            && received_at == first.received_at
            && epoch == first.epoch
            && first.event.time.is_none()
            && first.event.synthetic.is_none()
            && *parent == first.event.parent
            && *block == delta.block
            && *index == delta.index
            && *kind == delta.kind
            && *message == delta.message;
        continues.then_some(text)
    }

    /// Passes its deltas on, and returns the texts after theirs.
    fn for_each_delta<'b>(
        &'b self,
        deltas: &'b [Delta],
        mut texts: &'b str,
        take: &mut impl FnMut(EntryRef<'_>),
    ) -> &'b str {
        let Entry { sequence, received_at, epoch, event: first, .. } = &self.first;
        let Data::BlockDelta(delta) = &first.data else { return texts };
        let delta = BlockDelta {
            message: delta.message.as_ref().map(Text::borrowed),
            kind: delta.kind.clone(),
            text: Text::default(),
            ..*delta
        };
        let mut event = Event::new(delta).within(first.parent.as_ref().map(Text::borrowed));
        for (sequence, delta) in (sequence + 1..).zip(deltas) {
            let (text, rest) = texts.split_at_checked(delta.length).unwrap_or_default();
            texts = rest;
            if let Data::BlockDelta(next) = &mut event.data {
                next.text = match delta.is_literal {
                    true => Text::of_literal(text, false),
                    false => Text::plain(text),
                };
            }
            let (received_at, epoch, origin) = (*received_at, *epoch, &delta.origin);
            take(EntryRef { sequence, received_at, epoch, origin, event: &event, raw: None });
        }
        texts
    }
}
