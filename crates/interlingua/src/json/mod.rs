//! JSON that passes through: it is read once, borrowed, and written unchanged.
//!
//! A string that only passes from an agent to a consumer is never unescaped: [`Text`] keeps the
//! literal of the frame. [`Json`] keeps a whole value. [`read`] reads the fields of a record in one
//! pass, in any order, including repeated and unknown ones; [`mod@write`] writes records. Nothing
//! here knows a protocol.

mod cursor;
mod line_ends;
pub mod read;
mod record;
mod repeated;
mod run;
mod shape;
mod surrogates;
mod text;
mod value;
pub mod write;

pub use line_ends::on_one_line;
pub(crate) use record::{known, record};
pub use repeated::RepeatedRecord;
pub use shape::{KnownField, Shape};
pub(crate) use surrogates::Mender;
pub use surrogates::mend_surrogates;
pub use text::{Literal, Text};
pub use value::Json;
