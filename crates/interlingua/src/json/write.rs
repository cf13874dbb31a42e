//! Writes records directly into the output.

use super::run::end_of_run;
use super::{Json, Text};

/// The output, in which every record ends with a line feed.
pub type Bytes = Vec<u8>;

/// Writes a string literal; a literal from a frame is copied unchanged.
#[inline]
pub fn text(out: &mut Bytes, text: &Text<'_>) {
    match text.as_literal() {
        Some(literal) => out.extend_from_slice(literal.as_bytes()),
        None => string(out, text.body()),
    }
}

/// Writes plain text as a string literal.
pub fn string(out: &mut Bytes, plain: &str) {
    out.push(b'"');
    escape(out, plain);
    out.push(b'"');
}

/// Writes the body of the literal for a text, without quotes.
pub fn text_body(out: &mut Bytes, text: &Text<'_>) {
    match text {
        Text::Plain(plain) => escape(out, plain),
        _ => out.extend_from_slice(text.body().as_bytes()),
    }
}

/// Writes a value as a string literal, for protocols that contain JSON in a string.
pub fn quoted_json(out: &mut Bytes, value: &Json<'_>) {
    string(out, value.get());
}

/// Writes an integer.
#[inline]
pub fn number(out: &mut Bytes, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// How each byte is written in a literal: 0 is unchanged, `u` is a `\u` escape, and any other value
/// is the character after a backslash.
#[allow(clippy::indexing_slicing, reason = "the table is made when this is compiled")]
static ESCAPES: [u8; 256] = {
    let mut escapes = [0; 256];
    let mut control = 0;
    while control < 0x20 {
        escapes[control] = b'u';
        control += 1;
    }
    escapes[b'"' as usize] = b'"';
    escapes[b'\\' as usize] = b'\\';
    escapes[b'\n' as usize] = b'n';
    escapes[b'\r' as usize] = b'r';
    escapes[b'\t' as usize] = b't';
    escapes
};

/// Writes plain text with the escapes that a string literal needs.
pub fn escape(out: &mut Bytes, plain: &str) {
    let mut rest = plain.as_bytes();
    while let Some((clean, from)) = end_of_run(rest, 0).and_then(|end| rest.split_at_checked(end)) {
        out.extend_from_slice(clean);
        let Some((&byte, after)) = from.split_first() else { break };
        match ESCAPES.get(usize::from(byte)).copied().unwrap_or(b'u') {
            b'u' => {
                let hex = |digit: u8| if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', hex(byte >> 4), hex(byte & 15)]);
            }
            short => out.extend_from_slice(&[b'\\', short]),
        }
        rest = after;
    }
    out.extend_from_slice(rest);
}

/// An object that is being written. It writes the commas between fields; the caller chooses the
/// names.
#[derive(Debug)]
pub struct Object<'o> {
    out: &'o mut Bytes,
    first: bool,
}

impl<'o> Object<'o> {
    /// Opens an object.
    #[inline]
    pub fn open(out: &'o mut Bytes) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    /// Opens a record: an object whose first field is its type.
    #[inline]
    pub fn record(out: &'o mut Bytes, kind: &str) -> Self {
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.push(b'"');
        Self { out, first: false }
    }

    /// Writes a field's name, and returns the output for its value.
    #[inline]
    pub fn name(&mut self, name: &str) -> &mut Bytes {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// Like [`Object::name`], for a name that may have to be escaped.
    pub fn escaped_name(&mut self, name: &str) -> &mut Bytes {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        string(self.out, name);
        self.out.push(b':');
        self.out
    }

    /// Writes a text field.
    #[inline]
    pub fn text(&mut self, name: &str, value: &Text<'_>) -> &mut Self {
        text(self.name(name), value);
        self
    }

    /// Writes a plain text field.
    #[inline]
    pub fn string(&mut self, name: &str, value: &str) -> &mut Self {
        string(self.name(name), value);
        self
    }

    /// Writes a field whose value passes through.
    #[inline]
    pub fn json(&mut self, name: &str, value: &Json<'_>) -> &mut Self {
        self.name(name).extend_from_slice(value.get().as_bytes());
        self
    }

    /// Writes a field whose value is JSON text of the caller.
    #[inline]
    pub fn raw(&mut self, name: &str, value: &str) -> &mut Self {
        self.name(name).extend_from_slice(value.as_bytes());
        self
    }

    /// Writes constant fields, given as JSON text.
    #[inline]
    pub fn fixed(&mut self, fields: &'static str) -> &mut Self {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        self.out.extend_from_slice(fields.as_bytes());
        self
    }

    /// Like [`Object::raw`], for JSON text that is stored as bytes.
    #[inline]
    pub fn raw_bytes(&mut self, name: &str, value: &[u8]) -> &mut Self {
        self.name(name).extend_from_slice(value);
        self
    }

    /// Writes an integer field.
    pub fn number(&mut self, name: &str, value: u64) -> &mut Self {
        number(self.name(name), value);
        self
    }

    /// Writes a boolean field.
    pub fn flag(&mut self, name: &str, value: bool) -> &mut Self {
        self.raw(name, if value { "true" } else { "false" })
    }

    /// Writes a text field, if there is a value.
    pub fn text_if(&mut self, name: &str, value: Option<&Text<'_>>) -> &mut Self {
        if let Some(value) = value {
            self.text(name, value);
        }
        self
    }

    /// Writes an integer field, if there is a value.
    pub fn number_if(&mut self, name: &str, value: Option<u64>) -> &mut Self {
        if let Some(value) = value {
            self.number(name, value);
        }
        self
    }

    /// Writes a field whose value passes through, if there is one.
    pub fn json_if(&mut self, name: &str, value: Option<&Json<'_>>) -> &mut Self {
        if let Some(value) = value {
            self.json(name, value);
        }
        self
    }

    /// Writes a field that is an object.
    pub fn object(&mut self, name: &str, fields: impl FnOnce(&mut Object<'_>)) -> &mut Self {
        let mut inner = Object::open(self.name(name));
        fields(&mut inner);
        inner.close();
        self
    }

    /// Writes a field that is an array of objects.
    pub fn objects<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut fields: impl FnMut(&mut Object<'_>, T),
    ) -> &mut Self {
        let out = self.name(name);
        out.push(b'[');
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            let mut inner = Object::open(out);
            fields(&mut inner, item);
            inner.close();
        }
        out.push(b']');
        self
    }

    /// Writes all fields of an object that is given as JSON text.
    pub fn fields_of(&mut self, object: &str) -> &mut Self {
        let inside = object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        if let Some(inside) = inside.filter(|inside| !inside.is_empty()) {
            if !self.first {
                self.out.push(b',');
            }
            self.first = false;
            self.out.extend_from_slice(inside.as_bytes());
        }
        self
    }

    /// Writes the fields of an object that `write` appends to the output, without a copy of them.
    pub(crate) fn fields_by<E>(
        &mut self,
        write: impl FnOnce(&mut Bytes) -> Result<(), E>,
    ) -> Result<&mut Self, E> {
        let start = self.out.len();
        write(self.out)?;
        // `{` becomes a comma, where one is needed, and `}` is removed.
        self.out.pop();
        let is_empty = self.out.len() <= start + 1;
        match self.out.get_mut(start) {
            Some(brace) if !is_empty && !self.first => *brace = b',',
            Some(_) => drop(self.out.drain(start..=start)),
            None => {}
        }
        self.first &= is_empty;
        Ok(self)
    }

    /// Closes the object.
    #[inline]
    pub fn close(self) {
        self.out.push(b'}');
    }

    /// Closes the object and ends its line.
    #[inline]
    pub fn end(self) {
        self.out.extend_from_slice(b"}\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_round_trip() {
        let plain: String = (0u8..0x80).map(char::from).chain("é\u{2028}🧪".chars()).collect();
        let mut out = Bytes::new();
        string(&mut out, &plain);
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), plain);
    }

    #[test]
    fn an_object_has_commas_between_its_fields_only() {
        let mut out = Bytes::new();
        let mut object = Object::open(&mut out);
        object.number("a", 1).object("b", |b| {
            b.flag("c", true);
        });
        object.close();
        assert_eq!(out, br#"{"a":1,"b":{"c":true}}"#);
    }
}
