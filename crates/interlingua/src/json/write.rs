//! Records put together, straight into the output.

use super::run::end_of_run;
use super::{Json, Text};

/// The output: bytes, of which every record ends with a line feed.
pub type Bytes = Vec<u8>;

/// Writes a string literal; a literal from a frame is copied as it stands.
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

/// Writes what stands between the quotes of the literal for some text.
pub fn text_body(out: &mut Bytes, text: &Text<'_>) {
    match text {
        Text::Plain(plain) => escape(out, plain),
        _ => out.extend_from_slice(text.body().as_bytes()),
    }
}

/// Writes a value inside a string literal, as protocols do that carry JSON in a string.
pub fn quoted_json(out: &mut Bytes, value: &Json<'_>) {
    string(out, value.get());
}

/// Writes a whole number.
#[inline]
pub fn number(out: &mut Bytes, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// How each byte is written inside a literal: 0 as it is, `u` with four digits, else after a backslash.
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

/// One object being written: the comma between fields is its business, the names are the caller's.
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

    /// Writes a field's name and hands on the output for its value.
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

    /// As [`Object::name`], for a name that somebody else chose.
    pub fn escaped_name(&mut self, name: &str) -> &mut Bytes {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        string(self.out, name);
        self.out.push(b':');
        self.out
    }

    /// A field that is text.
    #[inline]
    pub fn text(&mut self, name: &str, value: &Text<'_>) -> &mut Self {
        text(self.name(name), value);
        self
    }

    /// A field that is plain text.
    #[inline]
    pub fn string(&mut self, name: &str, value: &str) -> &mut Self {
        string(self.name(name), value);
        self
    }

    /// A field that is a value carried through.
    #[inline]
    pub fn json(&mut self, name: &str, value: &Json<'_>) -> &mut Self {
        self.name(name).extend_from_slice(value.get().as_bytes());
        self
    }

    /// A field whose JSON the caller knows.
    #[inline]
    pub fn raw(&mut self, name: &str, value: &str) -> &mut Self {
        self.name(name).extend_from_slice(value.as_bytes());
        self
    }

    /// Fields that never change, as they are written.
    #[inline]
    pub fn fixed(&mut self, fields: &'static str) -> &mut Self {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        self.out.extend_from_slice(fields.as_bytes());
        self
    }

    /// As [`Object::raw`], for JSON that was kept as bytes.
    #[inline]
    pub fn raw_bytes(&mut self, name: &str, value: &[u8]) -> &mut Self {
        self.name(name).extend_from_slice(value);
        self
    }

    /// A field that is a whole number.
    pub fn number(&mut self, name: &str, value: u64) -> &mut Self {
        number(self.name(name), value);
        self
    }

    /// A field that is true or false.
    pub fn flag(&mut self, name: &str, value: bool) -> &mut Self {
        self.raw(name, if value { "true" } else { "false" })
    }

    /// A field that is text, or is left out.
    pub fn text_if(&mut self, name: &str, value: Option<&Text<'_>>) -> &mut Self {
        if let Some(value) = value {
            self.text(name, value);
        }
        self
    }

    /// A field that is a whole number, or is left out.
    pub fn number_if(&mut self, name: &str, value: Option<u64>) -> &mut Self {
        if let Some(value) = value {
            self.number(name, value);
        }
        self
    }

    /// A field that is a value, or is left out.
    pub fn json_if(&mut self, name: &str, value: Option<&Json<'_>>) -> &mut Self {
        if let Some(value) = value {
            self.json(name, value);
        }
        self
    }

    /// A field that is an object.
    pub fn object(&mut self, name: &str, fields: impl FnOnce(&mut Object<'_>)) -> &mut Self {
        let mut inner = Object::open(self.name(name));
        fields(&mut inner);
        inner.close();
        self
    }

    /// A field that is an array of objects.
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

    /// All fields of an object that is JSON text already.
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

    /// Closes the object.
    #[inline]
    pub fn close(self) {
        self.out.push(b'}');
    }

    /// Closes a record: the object and its line.
    #[inline]
    pub fn end(self) {
        self.out.extend_from_slice(b"}\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_read_back_as_they_were() {
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
