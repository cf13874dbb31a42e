//! Ids and names that are short enough for a line.
//!
//! A truncated one is counted as a loss. A truncated id ends with a hash of the complete id, so
//! that different ids stay different.

use super::{NAME_LIMIT, chunks};
use crate::dialect::Output;
use crate::json::Text;

/// The length of the hash in a truncated id, including the dash before it.
const HASH_LENGTH: usize = 17;

/// A name, truncated if it is too long.
pub(super) fn name<'t>(name: &'t Text<'_>, out: &mut Output) -> Text<'t> {
    let short = chunks::bounded(name, NAME_LIMIT);
    short.unwrap_or_else(|start| {
        out.lost("end of a long name");
        Text::from(start)
    })
}

/// The name of a tool, which is never empty.
pub(super) fn tool<'t>(tool: &'t Text<'_>, out: &mut Output) -> Text<'t> {
    if tool.is_empty() { Text::plain("unknown") } else { name(tool, out) }
}

/// The id of a call or a session.
pub(super) fn id<'t>(id: &'t Text<'_>, out: &mut Output) -> Text<'t> {
    let (id, cut) = short_id(id);
    if cut {
        out.lost("end of a long id");
    }
    id
}

/// The id of a call, which is never empty.
pub(super) fn call<'t>(call: &'t Text<'_>, out: &mut Output) -> Text<'t> {
    if call.is_empty() { Text::plain("unknown") } else { id(call, out) }
}

/// The id as it is written, and whether it was truncated.
pub(super) fn short_id<'t>(id: &'t Text<'_>) -> (Text<'t>, bool) {
    if chunks::bounded(id, NAME_LIMIT).is_ok() {
        return (id.borrowed(), false);
    }
    let start = chunks::bounded(id, NAME_LIMIT - HASH_LENGTH).err().unwrap_or_default();
    (Text::from(format!("{start}-{:016x}", hash(&id.to_plain()))), true)
}

/// FNV-1a, whose result is the same on every machine and in every release.
fn hash(text: &str) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_ids_with_the_same_start_stay_different() {
        let long = |end: &str| Text::from(format!("{}{end}", "x".repeat(NAME_LIMIT)));
        let (one, two) = (long("1"), long("2"));
        let ((one, cut), (two, _)) = (short_id(&one), short_id(&two));
        assert!(cut && one != two);
        assert_eq!(one.to_plain().len(), NAME_LIMIT);
        assert_eq!(short_id(&Text::plain("short")), (Text::plain("short"), false));
    }

    #[test]
    fn truncated_names_and_ids_are_counted_as_losses() {
        let mut out = Output::default();
        let long = Text::from("n".repeat(NAME_LIMIT + 1));
        assert_eq!(name(&long, &mut out).to_plain().len(), NAME_LIMIT);
        name(&Text::plain("short"), &mut out);
        call(&long, &mut out);
        assert_eq!(call(&Text::plain(""), &mut out), Text::plain("unknown"));
        let losses: Vec<_> = out.losses().iter().collect();
        assert_eq!(losses, [("end of a long id", 1), ("end of a long name", 1)]);
    }
}
