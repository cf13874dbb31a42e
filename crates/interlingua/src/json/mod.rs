//! JSON as it passes through: read once, borrowed, and written as it stood.
//!
//! A string that only travels from an agent to a consumer is never unescaped: [`Text`] keeps the
//! literal of the frame. [`Json`] keeps a whole value. [`read`] takes the fields of a record in one
//! pass, in any order, with repeated and unknown ones; [`mod@write`] puts records together. Nothing here
//! knows a protocol.

mod cursor;
pub mod read;
mod record;
mod run;
mod shape;
mod surrogates;
mod text;
mod value;
pub mod write;

pub(crate) use record::{known, record};
pub use shape::{KnownField, Shape};
pub(crate) use surrogates::Mender;
pub use surrogates::mend_surrogates;
pub use text::{Literal, Text};
pub use value::Json;
