//! Parses sizes such as `64MiB`, `4k` or `1000000`.

use std::str::FromStr;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) usize);

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotASize(&'static str);

impl std::fmt::Display for NotASize {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}; write a number of bytes, or 4k, 64MiB, 1GB", self.0)
    }
}

impl std::error::Error for NotASize {}

impl FromStr for Size {
    type Err = NotASize;

    fn from_str(text: &str) -> Result<Self, NotASize> {
        let text = text.trim();
        let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let number: usize = match number.parse() {
            Ok(number) => number,
            Err(_) if number.is_empty() => return Err(NotASize("this is not a number")),
            Err(_) => return Err(NotASize("this is too large")),
        };
        let unit = bytes_of(unit.trim()).ok_or(NotASize("this unit is unknown"))?;
        match number.checked_mul(unit) {
            Some(0) => Err(NotASize("the limit must be more than zero")),
            Some(bytes) => Ok(Self(bytes)),
            None => Err(NotASize("this is too large")),
        }
    }
}

/// A single letter is a multiple of 1024, as in other tools; `KB` is 1000 and `KiB` is 1024.
fn bytes_of(unit: &str) -> Option<usize> {
    let unit = unit.to_ascii_lowercase();
    let (letter, base) = match unit.as_str() {
        "" | "b" => return Some(1),
        unit => match (unit.strip_suffix("ib"), unit.strip_suffix('b')) {
            (Some(letter), _) => (letter, 1024_usize),
            (None, Some(letter)) => (letter, 1000),
            (None, None) => (unit, 1024),
        },
    };
    let power = match letter {
        "k" => 1,
        "m" => 2,
        "g" => 3,
        _ => return None,
    };
    base.checked_pow(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_with_and_without_units() {
        let sizes = [
            ("1000000", 1_000_000),
            ("4k", 4096),
            ("4K", 4096),
            ("4kb", 4000),
            ("4KiB", 4096),
            ("64MiB", 64 << 20),
            ("64 MB", 64_000_000),
            ("2m", 2 << 20),
            ("1G", 1 << 30),
            ("10b", 10),
        ];
        for (text, bytes) in sizes {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
    }

    #[test]
    fn an_invalid_size_is_explained() {
        for text in
            ["", "k", "-1", "0", "4x", "4ki", "1.5M", "99999999999999999999", "99999999999G"]
        {
            let message = text.parse::<Size>().unwrap_err().to_string();
            assert!(message.contains("64MiB"), "{text}: {message}");
        }
    }
}
