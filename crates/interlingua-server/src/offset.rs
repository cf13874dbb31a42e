//! Offsets of a stream: how many entries of the log a reader has consumed.
//!
//! They are the same in every dialect. As text they have a fixed width, so that they sort like the
//! numbers.

use std::fmt;

use crate::error::ApiError;

/// The digits of the largest offset.
const WIDTH: usize = 20;

/// How many entries of a log were consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Offset(pub(crate) u64);

impl fmt::Display for Offset {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:0WIDTH$}", self.0)
    }
}

/// Where a reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// After this many entries. The beginning, `-1`, is after none.
    At(Offset),
    /// At the current end of the log: `now`.
    Now,
}

impl Begin {
    /// Reads an offset as a client sends it.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        match text {
            "-1" => Ok(Self::At(Offset(0))),
            "now" => Ok(Self::Now),
            _ => {
                let is_number = (1..=WIDTH).contains(&text.len())
                    && text.bytes().all(|byte| byte.is_ascii_digit());
                let number = text.parse().ok().filter(|_| is_number);
                number.map(|number| Self::At(Offset(number))).ok_or_else(|| {
                    ApiError::bad_request(
                        "invalid_offset",
                        "this is not an offset: use one from `Stream-Next-Offset`, `-1` for the beginning, or `now` for the end",
                    )
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_sort_like_their_numbers() {
        let texts: Vec<_> =
            [0, 9, 10, 99, 1_000_000, u64::MAX].map(|number| Offset(number).to_string()).to_vec();
        assert!(texts.is_sorted());
        assert!(texts.iter().all(|text| text.len() == WIDTH));
        for text in &texts {
            let Begin::At(offset) = Begin::parse(text).unwrap() else { panic!("{text}") };
            assert_eq!(offset.to_string(), *text);
        }
    }

    #[test]
    fn only_offsets_are_offsets() {
        assert_eq!(Begin::parse("-1").unwrap(), Begin::At(Offset(0)));
        assert_eq!(Begin::parse("now").unwrap(), Begin::Now);
        for text in
            ["", "-2", "+1", "1,2", " 1", "NOW", "1e3", "٣", &"9".repeat(20), &"0".repeat(21)]
        {
            assert!(Begin::parse(text).is_err(), "{text:?}");
        }
    }
}
