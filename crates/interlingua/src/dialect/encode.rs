//! What all encoders share: the output, the generated ids, and the count of losses.

use std::collections::BTreeMap;

use crate::entry::{EntryRef, Origin, form};
use crate::event::Event;
use crate::json::write::{Bytes, Object};

/// The encoder of one protocol.
///
/// It may rely on the grammar: calls are opened before they are answered, blocks before they
/// continue, and turns end once. It counts what it cannot express with [`Output::lost`].
pub trait Encoder: CloneEncoder + Send {
    /// Writes the records for one event. There may be none, and they may be held back.
    fn encode(&mut self, event: &Event<'_>, out: &mut Output);

    /// Writes what was held back, at the end of the stream.
    fn finish(&mut self, _out: &mut Output) {}

    /// The blocks that it can retract. It receives [`Withdrawn`](crate::event::Withdrawn) only for
    /// these blocks. Other blocks stay in its output, and their text is not passed to it again.
    fn withdraws(&self) -> Withdraws {
        Withdraws::Nothing
    }

    /// Whether it can mark a turn as replayed history. If it cannot, it receives no replayed turns.
    fn writes_replays(&self) -> bool {
        false
    }

    /// Whether it writes what the host stores for itself. For all others, that is not there.
    fn writes_host_state(&self) -> bool {
        false
    }

    /// Whether its consumers run tools of their own only when a turn has ended. It then receives a
    /// turn that waits for the client as two: one that ended so, and the rest.
    fn suspends_turns(&self) -> bool {
        false
    }

    /// Whether it also writes records of the agent that add nothing
    /// ([`Silent`](crate::event::Silent)).
    fn writes_silent_records(&self) -> bool {
        false
    }
}

/// Copies an encoder with its state, so that another consumer can join at the same position. It is
/// implemented for every encoder that is [`Clone`].
pub trait CloneEncoder {
    /// Makes the copy.
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

/// The blocks that an encoder can retract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withdraws {
    /// None: it writes every delta at once.
    Nothing,
    /// Open blocks: it writes a block only when the block ends.
    OpenBlocks,
    /// Any block: the protocol can express a retraction.
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

    fn writes_replays(&self) -> bool {
        (**self).writes_replays()
    }

    fn writes_host_state(&self) -> bool {
        (**self).writes_host_state()
    }

    fn suspends_turns(&self) -> bool {
        (**self).suspends_turns()
    }

    fn writes_silent_records(&self) -> bool {
        (**self).writes_silent_records()
    }
}

/// The options of an encoder.
#[derive(Debug, Clone, Default)]
pub struct EncodeOptions {
    /// Also write the deltas of messages, for dialects in which they are optional.
    pub partial: bool,
    /// The seed that distinguishes the ids of this session from those of every other one.
    pub id_seed: Option<u64>,
    /// Write each turn as a stream of its own, for dialects that otherwise write one message or one
    /// answer for the whole session.
    pub stream_each_turn: bool,
    /// The identity of the agent, for dialects whose records contain it.
    pub team: Team,
}

/// The identity of an agent in a team, for dialects in which every record contains it.
#[derive(Debug, Clone)]
pub struct Team {
    /// The id of the agent.
    pub agent_id: String,
    /// The type of the agent, if it is not the one that was read.
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

/// The output for records, and the current entry, from which ids and times are made.
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

    /// The bytes, for an encoder that does not write a record with a type first.
    pub fn bytes(&mut self) -> &mut Bytes {
        &mut self.bytes
    }

    /// Counts something that could not be expressed.
    pub fn lost(&mut self, what: &str) {
        if !self.muted {
            self.losses.add(what);
        }
    }

    /// What could not be expressed so far.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// The time at which the entry was received, in milliseconds since 1970, if it is known.
    pub fn now_ms(&self) -> Option<u64> {
        self.received_at
    }

    /// The line of the input that the entry comes from.
    pub fn line(&self) -> u64 {
        self.origin.line
    }

    /// Whether the agent's own records are passed through. If they are, what an encoder writes for
    /// their events is discarded, and only the records of added events are kept.
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

    /// Writes an event in place of the current entry's, in the JSON form of entries.
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

    /// Sets whether losses are discarded instead of counted; returns the previous setting.
    pub(crate) fn mute(&mut self, muted: bool) -> bool {
        std::mem::replace(&mut self.muted, muted)
    }
}

impl Default for Output {
    fn default() -> Self {
        Self::new(0)
    }
}

/// What an encoder could not express, counted by name.
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

    /// The name of each loss, and how often it occurred.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counts.iter().map(|(what, count)| (&**what, *count))
    }
}

/// Generates ids that are unique in a session: each is made of the session's seed, the sequence
/// number of an entry, and a count within that entry.
#[derive(Debug, Clone)]
pub struct Identity {
    /// A template of an id with its quotes, without the second half.
    form: [u8; 38],
    low: u64,
    /// The sequence number of the entry, and the number of ids generated for it.
    place: u64,
}

/// The number of bits of an id that count within an entry. A long text may be split into many
/// pieces.
const BITS_WITHIN_ENTRY: u32 = 24;

impl Default for Identity {
    /// The generator of an encoder that has not [followed](Self::follow) its output yet.
    fn default() -> Self {
        Self { place: u64::MAX, ..Self::new(0) }
    }
}

impl Identity {
    /// A generator whose ids differ from those of every other seed.
    pub fn new(seed: u64) -> Self {
        let high = mix(seed) & !0xf000 | 0x8000;
        let mut form = *b"\"________-____-____-____-____________\"";
        write_digits(form.get_mut(..FIRST_HALF).unwrap_or_default(), high);
        Self { form, low: mix(seed.wrapping_add(1)), place: 0 }
    }

    /// Generates the next ids for the entry that is being written. An encoder that generates ids
    /// has one `Identity`, and calls this method first for every event.
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

    /// The next id, as sixteen digits after a prefix.
    pub fn named(&mut self, word: &str) -> String {
        let mut id = String::with_capacity(word.len() + 16);
        id.push_str(word);
        let digits = self.next_digits();
        id.extend(digits.iter().map(|digit| char::from(*digit)));
        id
    }

    /// Like [`Identity::named`], but appends the id to the output.
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

    /// The next id, in the form of a UUID of version 8 (custom).
    pub fn uuid(&mut self) -> Uuid {
        self.place = self.place.wrapping_add(1);
        let low = (self.low ^ self.place) & (u64::MAX >> 2) | (0b10 << 62);
        let mut id = self.form;
        write_digits(id.get_mut(FIRST_HALF..).unwrap_or_default(), low);
        Uuid(id)
    }
}

/// The offset of the second half of an id.
const FIRST_HALF: usize = 20;

/// An id in the form of a UUID, stored as it is written, since most are written several times.
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

/// Writes the digits of a number into their places, the last one first.
fn write_digits(places: &mut [u8], mut bits: u64) {
    for place in places.iter_mut().rev() {
        if *place == b'_' {
            let [low, ..] = bits.to_le_bytes();
            *place = DIGITS.get(usize::from(low & 15)).copied().unwrap_or_default();
            bits >>= 4;
        }
    }
}

/// Mixes the bits of a number, so that consecutive numbers give unrelated results.
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
