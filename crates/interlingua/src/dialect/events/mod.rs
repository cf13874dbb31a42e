//! `events`: our own events, one JSON object a line.
//!
//! `{"interlingua":1,"type":"block_delta","sequence":7,"line":3,"bytes":[120,240],…}`: the version of
//! this form, the kind of event, its place in the stream, where in the agent's output it comes from
//! (with `synthetic` and a reason where the grammar added it), the `parent` call of a sub-agent, the
//! agent's own `time`, and then the fields of the event as [`crate::event`] has them. Absent fields
//! are left out. Secrets are not written. `docs/events.schema.json` is the schema.
//!
//! The version changes when a reader of the old form would misunderstand the new one; new kinds and
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

/// The JSON schema of a record, made from the types of [`crate::event`].
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
    let ours = probe.has("interlingua") && probe.has("type") && probe.has("sequence");
    if ours { Confidence::Sure } else { Confidence::No }
}
