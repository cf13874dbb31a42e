//! What of the flat contract is left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[Ignored {
    what: &["message_stop"],
    why: "the result before it has ended the turn; without one it is read",
}];
