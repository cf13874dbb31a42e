//! The grammar of JSON, as an automaton that can be suspended and resumed at any byte.
//!
//! It knows RFC 8259 and where lines begin, and nothing of frames. A framing uses it to decide
//! whether a text that begins with a brace is an object.

use std::ops::Range;

use memchr::memchr2;

/// What may come next inside a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Expect {
    #[default]
    KeyOrEnd,
    Key,
    Colon,
    Value,
    ValueOrEnd,
    CommaOrEnd,
    /// Inside a string.
    Character,
    /// After a backslash.
    Escape,
    /// The number of remaining digits of a `\u` escape.
    Hex(u8),
    /// The rest of `true`, `false` or `null`.
    Literal(&'static [u8]),
    Number(Number),
}

/// The state within a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

impl Number {
    fn next(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Minus, b'0') => Self::Zero,
            (Self::Minus, b'1'..=b'9') | (Self::Whole, b'0'..=b'9') => Self::Whole,
            (Self::Zero | Self::Whole, b'.') => Self::Point,
            (Self::Point | Self::Fraction, b'0'..=b'9') => Self::Fraction,
            (Self::Zero | Self::Whole | Self::Fraction, b'e' | b'E') => Self::Exponent,
            (Self::Exponent, b'+' | b'-') => Self::ExponentSign,
            (Self::Exponent | Self::ExponentSign | Self::ExponentDigits, b'0'..=b'9') => {
                Self::ExponentDigits
            }
            _ => return None,
        })
    }

    fn may_end(self) -> bool {
        matches!(self, Self::Zero | Self::Whole | Self::Fraction | Self::ExponentDigits)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Array,
    Object {
        /// The start of the object, if only white space precedes it on its line.
        opens_line: Option<u64>,
    },
}

/// The state of a candidate after the bytes read so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is incomplete.
    Open,
    /// It is a complete object.
    Complete,
    /// The next byte cannot continue any JSON object.
    Broken,
    /// The next byte is valid, but would nest deeper than [`Candidate::MAX_DEPTH`].
    TooDeep,
}

/// A text that begins with a brace and is valid JSON so far: a pushdown automaton for the grammar
/// of RFC 8259 that can be suspended and resumed at any byte.
#[derive(Debug, Default)]
pub(super) struct Candidate {
    pub(super) start: u64,
    expect: Expect,
    /// The string being read is a key.
    in_key: bool,
    levels: Vec<Level>,
    /// A colon was read, so this is a record, complete or broken, rather than a brace in prose.
    pub(super) has_colon: bool,
    /// Only white space was read on this line, which starts at `line_start`.
    line_is_blank: bool,
    line_start: u64,
    /// The complete inner objects that begin a line, outermost only, in order.
    pub(super) swallowed: Vec<Range<u64>>,
    /// An inner object, complete or not, began in the first column.
    has_first_column: bool,
}

impl Candidate {
    /// The nesting limit, which no real record reaches and most JSON parsers do not support.
    const MAX_DEPTH: usize = 512;

    /// Bounds the memory for swallowed objects. Those beyond it are emitted line by line.
    const MAX_SWALLOWED: usize = 1 << 16;

    pub(super) fn open(&mut self, start: u64) {
        self.start = start;
        self.expect = Expect::KeyOrEnd;
        self.levels.clear();
        self.levels.push(Level::Object { opens_line: None });
        self.has_colon = false;
        self.line_is_blank = false;
        self.swallowed.clear();
        self.has_first_column = false;
    }

    /// Whether this is a record that was cut off, if the input ends here.
    pub(super) fn is_unfinished_record(&self) -> bool {
        self.has_colon && !self.has_first_column
    }

    /// Reads `bytes`, the first of which is at `at`, until the candidate is complete or broken.
    /// Returns how many bytes belong to it.
    pub(super) fn read(&mut self, bytes: &[u8], at: u64) -> (usize, Verdict) {
        let mut read = 0;
        while let Some(&byte) = bytes.get(read) {
            if self.expect == Expect::Character {
                let plain = plain_length(bytes.get(read..).unwrap_or_default());
                if plain > 0 {
                    read += plain;
                    continue;
                }
            }
            match self.step(byte, at + read as u64) {
                Verdict::Open => read += 1,
                Verdict::Complete => return (read + 1, Verdict::Complete),
                broken => return (read, broken),
            }
        }
        (read, Verdict::Open)
    }

    fn step(&mut self, byte: u8, at: u64) -> Verdict {
        self.expect = match (self.expect, byte) {
            (Expect::Character, b'"') if self.in_key => Expect::Colon,
            (Expect::Character, b'"') => Expect::CommaOrEnd,
            (Expect::Character, b'\\') => Expect::Escape,
            (Expect::Character, 0x20..) => Expect::Character,
            (Expect::Escape, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                Expect::Character
            }
            (Expect::Escape, b'u') => Expect::Hex(4),
            (Expect::Hex(1), byte) if byte.is_ascii_hexdigit() => Expect::Character,
            (Expect::Hex(more), byte) if byte.is_ascii_hexdigit() => Expect::Hex(more - 1),
            (Expect::Literal([last]), byte) if *last == byte => Expect::CommaOrEnd,
            (Expect::Literal([next, rest @ ..]), byte) if *next == byte => Expect::Literal(rest),
            (Expect::Character | Expect::Escape | Expect::Hex(_) | Expect::Literal(_), _) => {
                return Verdict::Broken;
            }
            (Expect::Number(number), byte) => match number.next(byte) {
                Some(number) => Expect::Number(number),
                None if number.may_end() => {
                    self.expect = Expect::CommaOrEnd;
                    return self.step_between_tokens(byte, at);
                }
                None => return Verdict::Broken,
            },
            _ => return self.step_between_tokens(byte, at),
        };
        Verdict::Open
    }

    fn step_between_tokens(&mut self, byte: u8, at: u64) -> Verdict {
        match byte {
            b'\n' => {
                self.line_is_blank = true;
                self.line_start = at + 1;
                return Verdict::Open;
            }
            b' ' | b'\t' | b'\r' => return Verdict::Open,
            _ => {}
        }
        let opens_line = std::mem::take(&mut self.line_is_blank).then_some(at);
        let value = matches!(self.expect, Expect::Value | Expect::ValueOrEnd);
        self.expect = match (self.expect, byte) {
            (Expect::KeyOrEnd | Expect::Key, b'"') => {
                self.in_key = true;
                Expect::Character
            }
            (Expect::Colon, b':') => {
                self.has_colon = true;
                Expect::Value
            }
            (Expect::CommaOrEnd, b',') => match self.levels.last() {
                Some(Level::Array) => Expect::Value,
                _ => Expect::Key,
            },
            (Expect::KeyOrEnd | Expect::CommaOrEnd, b'}')
            | (Expect::ValueOrEnd | Expect::CommaOrEnd, b']') => return self.ascend(byte, at),
            (_, b'{') if value => {
                self.has_first_column |= opens_line == Some(self.line_start);
                return self.descend(Level::Object { opens_line }, Expect::KeyOrEnd);
            }
            (_, b'[') if value => return self.descend(Level::Array, Expect::ValueOrEnd),
            (_, byte) if value => match self.begin_scalar(byte) {
                Some(expect) => expect,
                None => return Verdict::Broken,
            },
            _ => return Verdict::Broken,
        };
        Verdict::Open
    }

    fn begin_scalar(&mut self, byte: u8) -> Option<Expect> {
        Some(match byte {
            b'"' => {
                self.in_key = false;
                Expect::Character
            }
            b't' => Expect::Literal(b"rue"),
            b'f' => Expect::Literal(b"alse"),
            b'n' => Expect::Literal(b"ull"),
            b'-' => Expect::Number(Number::Minus),
            b'0' => Expect::Number(Number::Zero),
            b'1'..=b'9' => Expect::Number(Number::Whole),
            _ => return None,
        })
    }

    fn descend(&mut self, level: Level, expect: Expect) -> Verdict {
        if self.levels.len() == Self::MAX_DEPTH {
            return Verdict::TooDeep;
        }
        self.levels.push(level);
        self.expect = expect;
        Verdict::Open
    }

    fn ascend(&mut self, closing: u8, at: u64) -> Verdict {
        match (closing, self.levels.pop()) {
            (b']', Some(Level::Array)) => {}
            (b'}', Some(Level::Object { opens_line })) => {
                if let Some(start) = opens_line {
                    self.swallow(start..at + 1);
                }
            }
            _ => return Verdict::Broken,
        }
        self.expect = Expect::CommaOrEnd;
        if self.levels.is_empty() { Verdict::Complete } else { Verdict::Open }
    }

    fn swallow(&mut self, object: Range<u64>) {
        while self.swallowed.pop_if(|inner| inner.start > object.start).is_some() {}
        if self.swallowed.len() < Self::MAX_SWALLOWED {
            self.swallowed.push(object);
        }
    }
}

/// The number of bytes at the start of `rest` that are unescaped characters of a string.
fn plain_length(rest: &[u8]) -> usize {
    // Most strings are short, and a plain loop is faster for them than vector instructions.
    let (near, far) = rest.split_at_checked(16).unwrap_or((rest, &[]));
    let special = |byte: &u8| *byte == b'"' || *byte == b'\\' || *byte < 0x20;
    if let Some(plain) = near.iter().position(special) {
        return plain;
    }
    let plain = memchr2(b'"', b'\\', far).unwrap_or(far.len());
    let far = far.get(..plain).unwrap_or_default();
    // Taking the minimum without an early exit lets the compiler vectorise the loop.
    let least = far.iter().fold(u8::MAX, |least, byte| least.min(*byte));
    if least >= 0x20 {
        return near.len() + far.len();
    }
    near.len() + far.iter().position(special).unwrap_or(far.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many bytes of `text` the grammar reads as one object, or where it stops.
    fn verdict(text: &str) -> (usize, Verdict) {
        let mut candidate = Candidate::default();
        candidate.open(0);
        let (read, verdict) = candidate.read(&text.as_bytes()[1..], 1);
        (read + 1, verdict)
    }

    #[test]
    fn the_grammar_takes_what_serde_json_takes() {
        let numbers = "0 -0 10 1.5 1e9 1E+9 1.25e-3 01 - 1. .5 1e 1e+ +1 --1 1.5.2 0x1";
        let literals = "true false null tru True nul nulll 'a'";
        let strings = r#""" "\"\\\/\b\f\n\r\t\u00e9" "\x" "\u12g4" "é" "a"#;
        let nested = r#"[] [1,[2],{}] {} {"b":{}} [1,] [,] {,} {"b"} {"b":} {"b":1,} [1} {] ]"#;
        let spaced = ["", "[ ]", "{ \"b\" :\r\n{ } }", "\"\t\"", "\"\n\"", "\"\u{2028}\"", "\x0c1"];
        let words = [numbers, literals, strings, nested].into_iter().flat_map(|set| set.split(' '));
        for value in words.chain(spaced) {
            let text = format!(r#"{{"a":{value}}}"#);
            let valid = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            assert_eq!(verdict(&text) == (text.len(), Verdict::Complete), valid, "{text}");
        }
    }

    #[test]
    fn the_grammar_stops_at_the_first_byte_that_cannot_be() {
        assert_eq!(verdict("{x"), (1, Verdict::Broken));
        assert_eq!(verdict(r#"{"a":1 {"#), (7, Verdict::Broken));
        assert_eq!(verdict(r#"{"a":12"#), (7, Verdict::Open));
        assert_eq!(verdict("{}}"), (2, Verdict::Complete));
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = r#"{"a":"#.repeat(Candidate::MAX_DEPTH + 1);
        assert_eq!(verdict(&deep), (5 * Candidate::MAX_DEPTH, Verdict::TooDeep));
    }

    #[test]
    fn of_swallowed_objects_only_the_outermost_is_kept() {
        let mut candidate = Candidate::default();
        candidate.open(0);
        candidate.read(b"\"a\":[\n{\"b\":\n{}\n},\n{}", 1);
        assert_eq!(candidate.swallowed, [7..17, 19..21]);
    }
}
