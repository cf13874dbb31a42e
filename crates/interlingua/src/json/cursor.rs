//! A place in JSON text, and the steps from one value to the next.
//!
//! Every value that is stepped over is checked to be JSON, since it may be copied to the output as it
//! stands; nothing is unescaped, copied or kept.

use super::read::Flaw;
use super::run::end_of_run;

/// How deep values may lie in each other before a reader that needs no stack is asked.
const DEPTH: u32 = 64;

/// How many digits a number may have and be one that every reader can hold.
const SURELY_IN_RANGE: usize = 300;

/// A place in JSON text.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// The last string that was stepped over has escapes.
    escaped: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, escaped: false }
    }

    /// Whether the last string that was stepped over has escapes.
    #[inline]
    pub(super) fn escaped(&self) -> bool {
        self.escaped
    }

    /// How far the text was read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next byte that is no white space.
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

    /// Steps over a byte that must come now.
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

    /// Steps over the comma or the end of an object or array; says whether it goes on.
    #[inline]
    pub(super) fn goes_on(&mut self, end: u8) -> Result<bool, Flaw> {
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

    /// Steps over a value; gives its text.
    #[inline]
    pub(super) fn value(&mut self) -> Result<&'a str, Flaw> {
        self.peek();
        let start = self.at;
        self.skip(0)?;
        Ok(self.since(start))
    }

    /// Steps over a value that nobody wants; a string as a rule.
    #[inline]
    pub(super) fn pass(&mut self) -> Result<(), Flaw> {
        if self.peek() == Some(b'"') { self.skip_string() } else { self.skip(0) }
    }

    /// Steps over a string, if one comes now; gives its literal, quotes included.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Option<&'a str>, Flaw> {
        if self.peek() != Some(b'"') {
            return Ok(None);
        }
        let start = self.at;
        self.skip_string()?;
        Ok(Some(self.since(start)))
    }

    /// Steps over the name of a field and the colon after it; gives what stands between its quotes.
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

    /// What was stepped over since some place.
    pub(super) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or("")
    }

    fn skip(&mut self, depth: u32) -> Result<(), Flaw> {
        match self.peek() {
            Some(b'"') => self.skip_string(),
            Some(b'{' | b'[') if depth == DEPTH => self.skip_deep(),
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
            if !self.goes_on(b'}')? {
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
            if !self.goes_on(b']')? {
                return Ok(());
            }
        }
    }

    /// Steps over a value that lies too deep for recursion: what is open is kept in a list.
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
            // A value is over, and with it all that end here.
            loop {
                let Some(end) = open.last().copied() else { return Ok(()) };
                if self.goes_on(end)? {
                    self.skip_name(end)?;
                    break;
                }
                open.pop();
            }
        }
    }

    /// Steps over the name that stands before a value in an object.
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
        if self.at - start > SURELY_IN_RANGE { self.in_range(start) } else { Ok(()) }
    }

    /// A number that is too large for a reader would make it reject the whole record.
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

    /// What is wrong at this place.
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
    fn what_is_json_is_accepted_and_nothing_else() {
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

        /// The judge is a reader that everybody trusts.
        #[test]
        fn accepts_what_serde_json_accepts(
            text in "[\\[\\]{}:,\"\\\\0-9.eE+tfnualsr\u{1}\n\u{e9} -]{0,24}"
        ) {
            // All of it, and its numbers too: a raw value may be out of range.
            let judge = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            prop_assert_eq!(accepts(&text), judge, "{:?}", text);
        }
    }
}
