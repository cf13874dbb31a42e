//! Dialect names on the command line, and the errors for names that cannot be used.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};
use interlingua::dialect::{self, Dialect};

use crate::suggest;

/// Parses a dialect name, for a use that not every dialect supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DialectName {
    Read,
    Written,
    Checked,
    Any,
}

impl DialectName {
    fn allows(self, dialect: &Dialect) -> bool {
        match self {
            Self::Read => dialect.decoder.is_some(),
            Self::Written => dialect.encoder.is_some(),
            Self::Checked => dialect.decoder.is_some() || dialect.rules.is_some(),
            Self::Any => true,
        }
    }

    /// Finds a dialect by its name, or returns an error message.
    fn find(self, name: &str) -> Result<&'static Dialect, String> {
        let Some(dialect) = dialect::find(name) else { return Err(unknown(name)) };
        if self.allows(dialect) {
            return Ok(dialect);
        }
        let cannot = match self {
            Self::Read => "can be written, but not read",
            Self::Written => "can be read, but not written",
            Self::Checked | Self::Any => "has no rules to check",
        };
        Err(format!(
            "`{}` {cannot}\n\n`interlingua dialects` lists which dialects can be read and written",
            dialect.name
        ))
    }

    fn names(self) -> impl Iterator<Item = PossibleValue> {
        let usable = dialect::ALL.iter().copied().filter(move |dialect| self.allows(dialect));
        usable.map(|dialect| PossibleValue::new(dialect.name).help(dialect.about))
    }
}

fn unknown(name: &str) -> String {
    let near = suggest::similar(name, dialect::ALL.iter().map(|known| (known.name, known.aliases)));
    let advice = "`interlingua dialects` lists all";
    if near.is_empty() {
        return format!("no dialect is called `{name}`\n\n{advice}");
    }
    format!("no dialect is called `{name}`; did you mean {}?\n\n{advice}", near.join(" or "))
}

impl TypedValueParser for DialectName {
    type Value = &'static Dialect;

    fn parse_ref(
        &self,
        command: &Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Self::Value, Error> {
        self.find(&value.to_string_lossy())
            .map_err(|what| Error::raw(ErrorKind::InvalidValue, what + "\n").with_cmd(command))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names()))
    }
}

/// The dialect of the input: named, or to be recognised.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    Recognised,
    Named(&'static Dialect),
}

impl Source {
    /// The dialect, if one was named.
    pub(crate) fn dialect(self) -> Option<&'static Dialect> {
        match self {
            Self::Recognised => None,
            Self::Named(dialect) => Some(dialect),
        }
    }
}

/// Parses the name of a dialect to read, or `auto`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourceName;

impl TypedValueParser for SourceName {
    type Value = Source;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Self::Value, Error> {
        if value == "auto" {
            return Ok(Source::Recognised);
        }
        DialectName::Read.parse_ref(command, argument, value).map(Source::Named)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let auto = PossibleValue::new("auto").help("Recognise it");
        Some(Box::new(std::iter::once(auto).chain(DialectName::Read.names())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_is_rejected_for_an_unsupported_use() {
        assert!(DialectName::Read.find("text").unwrap_err().contains("not read"));
        assert!(DialectName::Written.find("codex").unwrap_err().contains("not written"));
        assert!(DialectName::Checked.find("text").unwrap_err().contains("no rules"));
        assert_eq!(DialectName::Any.find("text").unwrap().name, "text");
    }
}
