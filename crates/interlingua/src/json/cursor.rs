//! A position in JSON text, and the operations that advance it from one value to the next.
//!
//! Every value that is skipped is validated, since it may be copied to the output unchanged.
//! Nothing is unescaped, copied or kept.

use super::read::Flaw;
use super::run::{end_of_run, run_in_block};

/// Recursion limit; deeper values are parsed with an explicit stack.
const MAX_DEPTH: u32 = 64;

/// The number of digits up to which a number is certainly in the range of every parser.
const ALWAYS_IN_RANGE: usize = 300;

/// A position in JSON text.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// The last string that was read has escapes.
    escaped: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, escaped: false }
    }

    /// Whether the last string that was read has escapes.
    #[inline]
    pub(super) fn escaped(&self) -> bool {
        self.escaped
    }

    /// The offset of the next byte.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Skips white space, and returns the next byte without reading it.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Reads a byte that must come next.
    #[inline]
    pub(super) fn expect(&mut self, byte: u8) -> Result<(), Flaw> {
        match self.peek() {
            Some(next) if next == byte => {
                self.at += 1;
                Ok(())
            }
            _ => Err(self.flaw()),
        }
    }

    /// Reads the comma or the end of an object or array; returns whether it continues.
    #[inline]
    pub(super) fn continues(&mut self, end: u8) -> Result<bool, Flaw> {
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(next) if next == end => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.flaw()),
        }
    }

    /// Reads a value, and returns its text.
    #[inline]
    pub(super) fn value(&mut self) -> Result<&'a str, Flaw> {
        self.peek();
        let start = self.at;
        self.skip(0)?;
        Ok(self.since(start))
    }

    /// Skips a value that is not needed, usually a string.
    #[inline]
    pub(super) fn skip_value(&mut self) -> Result<(), Flaw> {
        if self.peek() == Some(b'"') { self.skip_string() } else { self.skip(0) }
    }

    /// Reads a string, if one comes next, and returns its literal, including the quotes.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Option<&'a str>, Flaw> {
        if self.peek() != Some(b'"') {
            return Ok(None);
        }
        let start = self.at;
        self.skip_string()?;
        Ok(Some(self.since(start)))
    }

    /// Reads the name of a field and the colon after it; returns the text between its quotes.
    #[inline(always)]
    pub(super) fn name(&mut self) -> Result<&'a str, Flaw> {
        if self.peek() != Some(b'"') {
            return Err(self.flaw());
        }
        let start = self.at + 1;
        self.skip_string()?;
        let name = self.text.get(start..self.at - 1).unwrap_or("");
        self.expect(b':')?;
        Ok(name)
    }

    /// The text that was read since an offset.
    pub(super) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or("")
    }

    fn skip(&mut self, depth: u32) -> Result<(), Flaw> {
        match self.peek() {
            Some(b'"') => self.skip_string(),
            Some(b'{' | b'[') if depth == MAX_DEPTH => self.skip_deep(),
            Some(b'{') => self.skip_object(depth + 1),
            Some(b'[') => self.skip_array(depth + 1),
            Some(b'-' | b'0'..=b'9') => self.skip_number(),
            Some(b't') => self.skip_word("true"),
            Some(b'f') => self.skip_word("false"),
            Some(b'n') => self.skip_word("null"),
            _ => Err(self.flaw()),
        }
    }

    fn skip_object(&mut self, depth: u32) -> Result<(), Flaw> {
        self.at += 1;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.name()?;
            self.skip(depth)?;
            if !self.continues(b'}')? {
                return Ok(());
            }
        }
    }

    fn skip_array(&mut self, depth: u32) -> Result<(), Flaw> {
        self.at += 1;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.skip(depth)?;
            if !self.continues(b']')? {
                return Ok(());
            }
        }
    }

    /// Skips a value that is nested too deeply for recursion, with an explicit stack.
    fn skip_deep(&mut self) -> Result<(), Flaw> {
        let mut open = Vec::new();
        loop {
            let end = match self.peek() {
                Some(b'{') => b'}',
                Some(b'[') => b']',
                _ => 0,
            };
            if end == 0 {
                self.skip(0)?;
            } else {
                self.at += 1;
                if self.peek() == Some(end) {
                    self.at += 1;
                } else {
                    open.push(end);
                    self.skip_name(end)?;
                    continue;
                }
            }
            // A value ended, and with it every object and array that ends here.
            loop {
                let Some(end) = open.last().copied() else { return Ok(()) };
                if self.continues(end)? {
                    self.skip_name(end)?;
                    break;
                }
                open.pop();
            }
        }
    }

    /// Skips the name before a value in an object.
    fn skip_name(&mut self, end: u8) -> Result<(), Flaw> {
        if end == b'}' {
            self.name()?;
        }
        Ok(())
    }

    #[inline]
    fn skip_string(&mut self) -> Result<(), Flaw> {
        self.at += 1;
        self.escaped = false;
        let (length, quoted) = run_in_block(self.text.as_bytes(), self.at);
        self.at += length;
        if quoted {
            self.at += 1;
            return Ok(());
        }
        self.skip_long_string()
    }

    /// Skips the rest of a string that is longer than a block or has escapes.
    fn skip_long_string(&mut self) -> Result<(), Flaw> {
        let bytes = self.text.as_bytes();
        loop {
            let Some(found) = end_of_run(bytes, self.at) else {
                self.at = bytes.len();
                return Err(Flaw::Incomplete);
            };
            self.at = found;
            match bytes.get(found) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.escaped = true;
                    self.skip_escape()?;
                }
                _ => return Err(self.flaw()),
            }
        }
    }

    #[inline]
    fn skip_escape(&mut self) -> Result<(), Flaw> {
        let escape = self.text.as_bytes().get(self.at + 1).copied();
        match escape {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => {
                let digits = self.text.as_bytes().get(self.at + 2..self.at + 6);
                let Some(digits) = digits else { return Err(Flaw::Incomplete) };
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(self.flaw());
                }
                self.at += 6;
                Ok(())
            }
            Some(_) => Err(self.flaw()),
            None => Err(Flaw::Incomplete),
        }
    }

    fn skip_number(&mut self) -> Result<(), Flaw> {
        let start = self.at;
        if self.text.as_bytes().get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        match self.text.as_bytes().get(self.at) {
            Some(b'0') => self.at += 1,
            _ => self.skip_digits()?,
        }
        if self.text.as_bytes().get(self.at) == Some(&b'.') {
            self.at += 1;
            self.skip_digits()?;
        }
        if matches!(self.text.as_bytes().get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.text.as_bytes().get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.skip_digits()?;
            return self.in_range(start);
        }
        if self.at - start > ALWAYS_IN_RANGE { self.in_range(start) } else { Ok(()) }
    }

    /// Checks that a number is in range. A parser would reject the whole record for one that is
    /// not.
    fn in_range(&self, start: usize) -> Result<(), Flaw> {
        let number = self.since(start).parse::<f64>();
        if number.is_ok_and(f64::is_finite) {
            return Ok(());
        }
        Err(Flaw::OutOfRange { column: u32::try_from(start + 1).unwrap_or(u32::MAX) })
    }

    fn skip_digits(&mut self) -> Result<(), Flaw> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or(&[]);
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Err(self.flaw());
        }
        self.at += digits;
        Ok(())
    }

    fn skip_word(&mut self, word: &str) -> Result<(), Flaw> {
        let rest = self.text.get(self.at..).unwrap_or("");
        if rest.starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        let cut_off = word.starts_with(rest);
        Err(if cut_off { Flaw::Incomplete } else { self.flaw() })
    }

    /// The flaw at the current position.
    pub(super) fn flaw(&self) -> Flaw {
        if self.at >= self.text.len() {
            Flaw::Incomplete
        } else {
            Flaw::NotJson { column: u32::try_from(self.at + 1).unwrap_or(u32::MAX) }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn accepts(text: &str) -> bool {
        let mut cursor = Cursor::new(text);
        cursor.value().is_ok() && cursor.peek().is_none()
    }

    #[test]
    fn exactly_valid_json_is_accepted() {
        let long = "x".repeat(100);
        for text in [
            r#"{"a":[1,-0.5e+3,true,false,null,"é\n\u00e9\"\\",{}],"b":{"c":[]}}"#,
            " [ 1 , 2 ] ",
            "\"\"",
            "0",
            &format!("\"{long}\\\"{long}\""),
            &format!("{}1{}", "[".repeat(200), "]".repeat(200)),
            &format!("{}{{}}{}", "[{\"a\":".repeat(200), "},[1,{}]]".repeat(200)),
            "[1e308,-1e-999,12345678901234567890]",
            &format!("0.{}", "3".repeat(400)),
        ] {
            assert!(accepts(text), "{text}");
        }
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "01",
            "1.",
            "-",
            "1e",
            "tru",
            "nul",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\n\"",
            "\"a\tb\"",
            "[1 2]",
            "{\"a\":1,}",
            "'a'",
            "\"\\",
            &format!("{}{{\"a\" 1}}{}", "[".repeat(200), "]".repeat(200)),
            &format!("{}1{}", "[".repeat(200), "]".repeat(199)),
            "1e999",
            "-2E+308",
            &"9".repeat(400),
            &format!("{}1e999{}", "[".repeat(200), "]".repeat(200)),
        ] {
            assert!(!accepts(text), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 4000,
            rng_seed: proptest::test_runner::RngSeed::Fixed(7),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// The reference is `serde_json`.
        #[test]
        fn accepts_what_serde_json_accepts(
            text in "[\\[\\]{}:,\"\\\\0-9.eE+tfnualsr\u{1}\n\u{e9} -]{0,24}"
        ) {
            // The whole text is parsed, including its numbers: a raw value may be out of range.
            let judge = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            prop_assert_eq!(accepts(&text), judge, "{:?}", text);
        }
    }
}
