//! The envelope of JSON-RPC, which ACP and Codex's app-server share.
//!
//! A message has one of three shapes: a request (`method` and `id`), a notification (`method`
//! alone) or a response (`id` with `result` or `error`). The parameters and results of all methods
//! of a protocol are read as one record each, since a name means the same wherever it occurs.

use crate::json::read::{Field, Flaw, Record};
use crate::json::{Json, KnownField, Shape, Text, record};

/// A message of either side, with the protocol's parameters `P` and results `R`.
#[derive(Debug, Default)]
pub(crate) struct Message<'a, P, R> {
    pub(crate) id: Option<Json<'a>>,
    pub(crate) method: Option<Text<'a>>,
    pub(crate) params: Option<P>,
    /// The result, if it is an object.
    pub(crate) result: Option<R>,
    /// The error, usually a [`Failure`].
    pub(crate) error: Option<Json<'a>>,
    /// The time at which Codex emitted the message; the standard has no such field.
    pub(crate) time: Option<Json<'a>>,
}

record! {
    /// Why a request failed.
    pub(crate) struct Failure<'a> {
        code: integer "code",
        message: text "message",
        data: json "data",
    }
}

impl<'a, P: Record<'a>, R: Record<'a>> Record<'a> for Message<'a, P, R> {
    #[inline]
    fn field(&mut self, name: &str, value: Field<'_, 'a>) -> Result<(), Flaw> {
        match name {
            "id" => self.id = value.json()?,
            "method" => self.method = value.text()?,
            "params" => value.record(&mut self.params)?,
            "result" => value.record(&mut self.result)?,
            "error" => self.error = value.json()?,
            "emittedAtMs" => self.time = value.json()?,
            _ => value.skip()?,
        }
        Ok(())
    }

    fn shape() -> Shape {
        Shape::Fields(&[
            KnownField { names: &["jsonrpc"], inside: Shape::anything },
            KnownField { names: &["id"], inside: Shape::anything },
            KnownField { names: &["method"], inside: Shape::anything },
            KnownField { names: &["params"], inside: P::shape },
            KnownField { names: &["result"], inside: R::shape },
            KnownField { names: &["error"], inside: Failure::shape },
            KnownField { names: &["emittedAtMs"], inside: Shape::anything },
        ])
    }
}
