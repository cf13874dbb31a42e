//! Offsets of a stream: how much of it a reader has consumed.
//!
//! They count entries of the log, and are the same in every dialect. As text they have a fixed width, so
//! that they sort like the numbers.

use std::fmt;

use crate::error::ApiError;

/// The digits of the largest offset.
const WIDTH: usize = 20;

/// What follows the digits of an offset behind the end of a stream.
const END: &str = ".end";

/// How much of a stream was consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Offset {
    /// The entries of the log.
    pub(crate) entries: u64,
    /// What a dialect writes at the end of a stream was consumed, too. It belongs to no entry, so a
    /// reader that has it would receive it again at the number alone.
    pub(crate) ended: bool,
}

impl Offset {
    /// After some entries.
    pub(crate) fn after(entries: u64) -> Self {
        Self { entries, ended: false }
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.ended { END } else { "" };
        write!(out, "{:0WIDTH$}{end}", self.entries)
    }
}

/// Where a reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// After what was consumed. At the beginning, `-1`, that is nothing.
    At(Offset),
    /// At the current end of the log: `now`.
    Now,
}

impl Begin {
    /// Reads an offset as a client sends it.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        match text {
            "-1" => Ok(Self::At(Offset::after(0))),
            "now" => Ok(Self::Now),
            _ => {
                let (digits, ended) = match text.strip_suffix(END) {
                    Some(digits) => (digits, true),
                    None => (text, false),
                };
                let is_number = (1..=WIDTH).contains(&digits.len())
                    && digits.bytes().all(|byte| byte.is_ascii_digit());
                let entries = digits.parse().ok().filter(|_| is_number);
                entries.map(|entries| Self::At(Offset { entries, ended })).ok_or_else(|| {
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
        let numbers = [0, 9, 10, 99, 1_000_000, u64::MAX];
        let offsets: Vec<_> = numbers
            .into_iter()
            .flat_map(|entries| [false, true].map(|ended| Offset { entries, ended }))
            .collect();
        let texts: Vec<_> = offsets.iter().map(Offset::to_string).collect();
        assert!(texts.is_sorted());
        assert_eq!(texts[2..4], ["00000000000000000009", "00000000000000000009.end"]);
        for (text, offset) in texts.iter().zip(offsets) {
            assert_eq!(Begin::parse(text).unwrap(), Begin::At(offset));
        }
    }

    #[test]
    fn only_offsets_are_offsets() {
        assert_eq!(Begin::parse("-1").unwrap(), Begin::At(Offset::after(0)));
        assert_eq!(Begin::parse("now").unwrap(), Begin::Now);
        for text in [
            "",
            "-2",
            "+1",
            "1,2",
            " 1",
            "NOW",
            "1e3",
            "٣",
            ".end",
            "-1.end",
            "now.end",
            "1.end.end",
            "1.END",
            &"9".repeat(20),
            &"0".repeat(21),
        ] {
            assert!(Begin::parse(text).is_err(), "{text:?}");
        }
    }
}
