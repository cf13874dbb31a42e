//! `events`: Interlingua's own events, one JSON object per line.
//!
//! `{"interlingua":1,"type":"block_delta","sequence":7,"line":3,"bytes":[120,240],…}` contains the
//! version of this form, the kind of the event, its position in the session, and its origin in the
//! agent's output. `synthetic` states the reason if the grammar added the event, `parent` is the
//! call whose sub-agent emitted it, and `time` is the agent's own time. The fields of the event in
//! [`crate::event`] follow. Absent fields are left out, and secrets are not written. The schema is
//! `docs/events.schema.json`.
//!
//! The version changes when a reader of the old form would misunderstand the new one. New kinds and
//! new fields do not change it.

mod decode;
mod encode;
mod rules;

use super::{Confidence, Dialect, Probe};
use crate::entry::form;

pub use decode::EventsDecoder;
pub use encode::EventsEncoder;

/// The version of the form.
pub const VERSION: u64 = form::VERSION;

/// The JSON schema of a record, generated from the types of [`crate::event`].
pub fn schema() -> serde_json::Value {
    crate::event::schema::of_entries()
}

/// The dialect `events`.
pub static DIALECT: Dialect = Dialect {
    name: "events",
    aliases: &["interlingua"],
    about: "Interlingua's own events as JSON lines",
    decoder: Some(|| Box::<EventsDecoder>::default()),
    encoder: Some(|options| Box::new(EventsEncoder::new(options))),
    recognise,
    cannot_express: &["secrets"],
    rules: Some(|| Box::<rules::EventsRules>::default()),
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

fn recognise(probe: &Probe<'_>) -> Confidence {
    let is_entry = probe.has("interlingua") && probe.has("type") && probe.has("sequence");
    if is_entry { Confidence::Sure } else { Confidence::No }
}
