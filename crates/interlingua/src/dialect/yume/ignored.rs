//! The records of the flat contract that are left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[Ignored {
    what: &["message_stop"],
    why: "the `result` before it has ended the turn; without a `result` it is read",
}];
