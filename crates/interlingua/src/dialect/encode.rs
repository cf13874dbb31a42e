//! What every writer shares: the output, the ids it makes, and the count of what it cannot say.

use std::collections::BTreeMap;

use super::Dialect;
use crate::event::Event;
use crate::json::write::{Bytes, Object};

/// A writer of one protocol.
///
/// It may rely on the grammar: calls are open before they are answered, blocks before they go on,
/// turns end once. What it cannot say it counts with [`Output::lost`].
pub trait Encoder: Send {
    /// Writes what one event is in this protocol; may be nothing, may be held back.
    fn encode(&mut self, event: &Event<'_>, out: &mut Output);

    /// Writes what was held back when the stream is over.
    fn finish(&mut self, _out: &mut Output) {}

    /// Is told which protocol is read, before the first event.
    fn reading(&mut self, _dialect: &'static Dialect) {}

    /// What it can take back; it is told of [`Withdrawn`](crate::event::Withdrawn) blocks of this kind
    /// alone, and what stands in spite of it is not said to it again.
    fn withdraws(&self) -> Withdraws {
        Withdraws::Nothing
    }

    /// Whether it can tell a turn of the past from one that happens now; it is told no other.
    fn tells_the_past(&self) -> bool {
        false
    }
}

/// What of the text that a writer was told can be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withdraws {
    /// Nothing: it writes every piece as it comes.
    Nothing,
    /// A block that has not ended: it writes blocks when they are whole.
    OpenBlocks,
    /// Any block: it has words for that.
    AnyBlock,
}

impl Encoder for Box<dyn Encoder> {
    #[inline]
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        (**self).encode(event, out);
    }

    fn finish(&mut self, out: &mut Output) {
        (**self).finish(out);
    }

    fn reading(&mut self, dialect: &'static Dialect) {
        (**self).reading(dialect);
    }

    fn withdraws(&self) -> Withdraws {
        (**self).withdraws()
    }

    fn tells_the_past(&self) -> bool {
        (**self).tells_the_past()
    }
}

/// What the caller decides, and what the core cannot know by itself.
#[derive(Debug, Clone, Default)]
pub struct EncodeOptions {
    /// Also write the pieces of messages, for dialects in which that is a choice.
    pub partial: bool,
    /// What makes the ids of this stream differ from those of another.
    pub id_seed: u64,
    /// Who the agent is, for dialects that name it.
    pub team: Team,
}

/// Who an agent is among others, for dialects that say so in every record.
#[derive(Debug, Clone)]
pub struct Team {
    /// The id of the agent.
    pub agent_id: String,
    /// The team, as a JSON object.
    pub metadata: String,
}

impl Default for Team {
    fn default() -> Self {
        Self {
            agent_id: "agent".into(),
            metadata: r#"{"teamName":"default","memberName":"agent","memberDisplayName":"agent","memberRole":"agent"}"#
                .into(),
        }
    }
}

/// Where records go.
#[derive(Debug, Default)]
pub struct Output {
    bytes: Bytes,
    losses: Losses,
    now_ms: Option<u64>,
    muted: bool,
}

impl Output {
    /// Opens a record whose first field is its type.
    #[inline]
    pub fn record(&mut self, kind: &str) -> Object<'_> {
        Object::record(&mut self.bytes, kind)
    }

    /// The bytes, for a writer that knows better.
    pub fn bytes(&mut self) -> &mut Bytes {
        &mut self.bytes
    }

    /// Says that something could not be said.
    pub fn lost(&mut self, what: &str) {
        if !self.muted {
            self.losses.add(what);
        }
    }

    /// What could not be said so far.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// The caller's time, in milliseconds since 1970, if the caller gives one.
    pub fn now_ms(&self) -> Option<u64> {
        self.now_ms
    }

    /// Lets a writer write without a trace.
    pub(crate) fn muted(&mut self, write: impl FnOnce(&mut Self)) {
        let length = self.bytes.len();
        self.muted = true;
        write(self);
        self.muted = false;
        self.bytes.truncate(length);
    }

    pub(crate) fn set_now(&mut self, now_ms: Option<u64>) {
        self.now_ms = now_ms;
    }
}

/// What a writer could not say, counted by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses {
    counts: BTreeMap<Box<str>, u64>,
}

impl Losses {
    fn add(&mut self, what: &str) {
        match self.counts.get_mut(what) {
            Some(count) => *count += 1,
            None => {
                self.counts.insert(what.into(), 1);
            }
        }
    }

    /// Whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// What was lost, and how often, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counts.iter().map(|(what, count)| (&**what, *count))
    }
}

/// Ids that are never the same twice in a stream, and the same for the same input.
#[derive(Debug, Clone)]
pub struct Identity {
    /// An id with its quotes, of which the second half is still to be written.
    form: [u8; 38],
    low: u64,
    next: u64,
}

impl Identity {
    /// Ids that differ from those of every other seed.
    pub fn new(seed: u64) -> Self {
        let high = mix(seed) & !0xf000 | 0x8000;
        let mut form = *b"\"________-____-____-____-____________\"";
        write_digits(form.get_mut(..FIRST_HALF).unwrap_or_default(), high);
        Self { form, low: mix(seed.wrapping_add(1)), next: 0 }
    }

    /// The next id, in the form of a UUID (version 8: made by us).
    pub fn uuid(&mut self) -> Uuid {
        self.next += 1;
        let low = (self.low ^ self.next) & (u64::MAX >> 2) | (0b10 << 62);
        let mut id = self.form;
        write_digits(id.get_mut(FIRST_HALF..).unwrap_or_default(), low);
        Uuid(id)
    }
}

/// Where the second half of an id begins.
const FIRST_HALF: usize = 20;

/// An id in the form of a UUID: as it is written, since most are written several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uuid([u8; 38]);

impl Uuid {
    /// Writes the id with its quotes.
    #[inline]
    pub fn write(self, out: &mut Bytes) {
        out.extend_from_slice(&self.0);
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Writes the digits of a number in the places that are kept for them, the last one first.
fn write_digits(places: &mut [u8], mut bits: u64) {
    for place in places.iter_mut().rev() {
        if *place == b'_' {
            let [low, ..] = bits.to_le_bytes();
            *place = DIGITS.get(usize::from(low & 15)).copied().unwrap_or_default();
            bits >>= 4;
        }
    }
}

/// Spreads the bits of a number, so that near numbers look far apart.
fn mix(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_and_differ() {
        let mut identity = Identity::new(7);
        let (mut one, mut two) = (Bytes::new(), Bytes::new());
        identity.uuid().write(&mut one);
        identity.uuid().write(&mut two);
        assert_ne!(one, two);
        assert_eq!((one.len(), one[9], one[14], one[15]), (38, b'-', b'-', b'8'));
    }
}
