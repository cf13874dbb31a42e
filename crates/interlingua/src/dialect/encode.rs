//! What every writer shares: the output, the ids it makes, and the count of what it cannot say.

use std::collections::BTreeMap;

use crate::entry::{EntryRef, Origin, form};
use crate::event::Event;
use crate::json::write::{Bytes, Object};

/// A writer of one protocol.
///
/// It may rely on the grammar: calls are open before they are answered, blocks before they go on,
/// turns end once. What it cannot say it counts with [`Output::lost`].
pub trait Encoder: CloneEncoder + Send {
    /// Writes what one event is in this protocol; may be nothing, may be held back.
    fn encode(&mut self, event: &Event<'_>, out: &mut Output);

    /// Writes what was held back when the stream is over.
    fn finish(&mut self, _out: &mut Output) {}

    /// What it can take back; it is told of [`Withdrawn`](crate::event::Withdrawn) blocks of this kind
    /// alone, and what stands in spite of it is not said to it again.
    fn withdraws(&self) -> Withdraws {
        Withdraws::Nothing
    }

    /// Whether it can tell a turn of the past from one that happens now; it is told no other.
    fn tells_the_past(&self) -> bool {
        false
    }

    /// Whether it also writes records of the agent that add nothing.
    fn writes_silent_records(&self) -> bool {
        false
    }
}

/// Copies an encoder with all that it knows, so that a consumer can join where another one is. Every
/// encoder that is [`Clone`] has it.
pub trait CloneEncoder {
    /// The copy.
    fn clone_box(&self) -> Box<dyn Encoder>;
}

impl<E: Encoder + Clone + 'static> CloneEncoder for E {
    fn clone_box(&self) -> Box<dyn Encoder> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Encoder> {
    fn clone(&self) -> Self {
        (**self).clone_box()
    }
}

impl std::fmt::Debug for dyn Encoder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Encoder")
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

    fn withdraws(&self) -> Withdraws {
        (**self).withdraws()
    }

    fn tells_the_past(&self) -> bool {
        (**self).tells_the_past()
    }

    fn writes_silent_records(&self) -> bool {
        (**self).writes_silent_records()
    }
}

/// What the caller decides, and what the core cannot know by itself.
#[derive(Debug, Clone, Default)]
pub struct EncodeOptions {
    /// Also write the pieces of messages, for dialects in which that is a choice.
    pub partial: bool,
    /// What makes the ids of this session differ from those of every other one, where the caller says.
    pub id_seed: Option<u64>,
    /// Who the agent is, for dialects that name it.
    pub team: Team,
}

/// Who an agent is among others, for dialects that say so in every record.
#[derive(Debug, Clone)]
pub struct Team {
    /// The id of the agent.
    pub agent_id: String,
    /// What type the agent is, where it is not the one that was read.
    pub agent_type: Option<String>,
    /// The team, as a JSON object.
    pub metadata: String,
}

impl Default for Team {
    fn default() -> Self {
        Self {
            agent_id: "agent".into(),
            agent_type: None,
            metadata: r#"{"teamName":"default","memberName":"agent","memberDisplayName":"agent","memberRole":"agent"}"#
                .into(),
        }
    }
}

/// Where records go, and the entry that they come from: ids and times are made of it.
#[derive(Debug, Clone)]
pub struct Output {
    bytes: Bytes,
    losses: Losses,
    ids: Identity,
    sequence: u64,
    epoch: u64,
    received_at: Option<u64>,
    origin: Origin,
    muted: bool,
    passing: bool,
}

impl Output {
    /// An output whose ids differ from those of every other seed.
    pub fn new(id_seed: u64) -> Self {
        Self {
            bytes: Bytes::new(),
            losses: Losses::default(),
            ids: Identity::new(id_seed),
            sequence: 0,
            epoch: 0,
            received_at: None,
            origin: Origin::default(),
            muted: false,
            passing: false,
        }
    }

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

    /// When the entry was received, in milliseconds since 1970, if that is known.
    pub fn now_ms(&self) -> Option<u64> {
        self.received_at
    }

    /// The line of the input that the entry comes from.
    pub fn line(&self) -> u64 {
        self.origin.line
    }

    /// Whether the agent's own records are passed through: what an encoder writes for their events is
    /// discarded, and only what is added to them is kept.
    pub fn is_passing(&self) -> bool {
        self.passing
    }

    pub(crate) fn set_id_seed(&mut self, id_seed: u64) {
        self.ids = Identity::new(id_seed);
    }

    pub(crate) fn set_passing(&mut self, passing: bool) {
        self.passing = passing;
    }

    /// Begins the next entry.
    #[inline]
    pub(crate) fn begin_entry(&mut self, entry: EntryRef<'_>) {
        self.sequence = entry.sequence;
        self.epoch = entry.epoch;
        self.received_at = entry.received_at;
        self.origin.clone_from(entry.origin);
        self.ids.enter(entry.sequence);
    }

    /// Writes an event in the place of the current entry, in the form that entries have in JSON.
    pub(crate) fn write_entry(&mut self, event: &Event<'_>) {
        let Self { sequence, epoch, received_at, ref origin, ref mut bytes, .. } = *self;
        let length = bytes.len();
        let entry = EntryRef { sequence, received_at, epoch, origin, event, raw: None };
        match form::write_entry(bytes, entry) {
            Ok(()) => bytes.push(b'\n'),
            Err(_) => {
                bytes.truncate(length);
                self.lost("events that cannot be written");
            }
        }
    }

    /// Discards the count of losses from now on, or no longer; gives what was so before.
    pub(crate) fn mute(&mut self, muted: bool) -> bool {
        std::mem::replace(&mut self.muted, muted)
    }
}

impl Default for Output {
    fn default() -> Self {
        Self::new(0)
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

/// Ids that are never the same twice in a session: each is made of the session's seed, the sequence
/// number of an entry, and a count within that entry.
#[derive(Debug, Clone)]
pub struct Identity {
    /// An id with its quotes, of which the second half is still to be written.
    form: [u8; 38],
    low: u64,
    /// The sequence number of the entry, and how many ids it has made.
    place: u64,
}

/// How many bits of an id count within an entry; a long text may be split into many pieces.
const BITS_WITHIN_ENTRY: u32 = 24;

impl Default for Identity {
    /// The ids of an encoder that has not [followed](Self::follow) its output yet.
    fn default() -> Self {
        Self { place: u64::MAX, ..Self::new(0) }
    }
}

impl Identity {
    /// Ids that differ from those of every other seed.
    pub fn new(seed: u64) -> Self {
        let high = mix(seed) & !0xf000 | 0x8000;
        let mut form = *b"\"________-____-____-____-____________\"";
        write_digits(form.get_mut(..FIRST_HALF).unwrap_or_default(), high);
        Self { form, low: mix(seed.wrapping_add(1)), place: 0 }
    }

    /// Makes the ids to come for the entry that is being written. An encoder that makes ids has one
    /// `Identity`, and calls this first of all.
    #[inline]
    pub fn follow(&mut self, out: &Output) {
        if self.place >> BITS_WITHIN_ENTRY != out.ids.place >> BITS_WITHIN_ENTRY {
            self.clone_from(&out.ids);
        }
    }

    #[inline]
    fn enter(&mut self, sequence: u64) {
        if self.place >> BITS_WITHIN_ENTRY != sequence {
            self.place = sequence << BITS_WITHIN_ENTRY;
        }
    }

    /// The next id, as sixteen digits after a word that says what it is the id of.
    pub fn named(&mut self, word: &str) -> String {
        let mut id = String::with_capacity(word.len() + 16);
        id.push_str(word);
        let digits = self.next_digits();
        id.extend(digits.iter().map(|digit| char::from(*digit)));
        id
    }

    /// As [`Identity::named`], appended to some bytes.
    pub fn write_named(&mut self, word: &str, out: &mut Bytes) {
        out.extend_from_slice(word.as_bytes());
        out.extend_from_slice(&self.next_digits());
    }

    fn next_digits(&mut self) -> [u8; 16] {
        self.place = self.place.wrapping_add(1);
        let mut digits = [b'_'; 16];
        write_digits(&mut digits, self.low ^ self.place);
        digits
    }

    /// The next id, in the form of a UUID (version 8: made by us).
    pub fn uuid(&mut self) -> Uuid {
        self.place = self.place.wrapping_add(1);
        let low = (self.low ^ self.place) & (u64::MAX >> 2) | (0b10 << 62);
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
        let (one, two) = (identity.named("msg_"), identity.named("msg_"));
        assert!(one != two && one.len() == 20 && one.starts_with("msg_"));
        let mut other = Identity::new(8);
        assert_ne!(other.named("msg_"), Identity::new(7).named("msg_"));
    }
}
