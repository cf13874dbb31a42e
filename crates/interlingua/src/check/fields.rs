//! Which fields a record must have, which it may have, and what each must be.

use std::fmt::Debug;

use serde_json::{Map, Value};

use super::Findings;

/// What the value of a field must be, in the terms of one dialect.
pub(crate) trait Expected: Copy + Debug {
    /// Whether a value is that.
    fn holds(self, value: &Value) -> bool;
}

/// The fields of one kind of record.
pub(crate) struct RecordFields<'f, E> {
    /// The kind, for the findings.
    pub(crate) kind: &'f str,
    /// The rule that is broken where the fields are wrong.
    pub(crate) rule: &'static str,
    /// Those that it must have.
    pub(crate) required: &'f [(&'static str, E)],
    /// Those that it may have.
    pub(crate) optional: &'f [(&'static str, E)],
    /// Those that every record may have.
    pub(crate) every: &'f [(&'static str, E)],
    /// Those that another rule checks.
    pub(crate) envelope: &'f [&'static str],
}

impl<E: Expected> RecordFields<'_, E> {
    /// Checks the fields of a record.
    pub(crate) fn check(&self, fields: &Map<String, Value>, findings: &mut Findings) {
        let Self { kind, rule, required, optional, every, envelope } = self;
        for (name, _) in *required {
            let there = fields.contains_key(*name);
            findings.require(there, rule, format!("`{kind}` has no `{name}`"));
        }
        for (name, value) in fields.iter().filter(|(name, _)| !envelope.contains(&&***name)) {
            let mut known = required.iter().chain(*optional).chain(*every);
            match known.find(|(field, _)| field == name) {
                None => findings.add(rule, format!("`{kind}` knows no `{name}`")),
                Some((_, expected)) if !expected.holds(value) => {
                    findings.add(rule, format!("`{name}` of `{kind}` is not {expected:?}"));
                }
                Some(_) => {}
            }
        }
    }
}
