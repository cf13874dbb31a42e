//! The body of a response: the records of a range of entries.
//!
//! Writers separate records by line feeds or as server-sent events. In a body they are the elements
//! of a JSON array, so that a message is never cut. Text has no records and is passed on as it is.

use bytes::Bytes;
use interlingua::dialect::Written;

/// The records that a response contains.
#[derive(Debug)]
pub(crate) struct Records {
    form: Written,
    bytes: Vec<u8>,
}

impl Records {
    pub(crate) fn new(form: Written) -> Self {
        Self { form, bytes: Vec::new() }
    }

    /// The media type of the body.
    pub(crate) fn media_type(form: Written) -> &'static str {
        match form {
            Written::Text => "text/plain",
            Written::Lines | Written::ServerSentEvents => "application/json",
        }
    }

    /// Appends what a writer wrote: complete records.
    pub(crate) fn append(&mut self, written: &[u8]) {
        match self.form {
            Written::Text => self.bytes.extend_from_slice(written),
            Written::Lines => lines(written).for_each(|record| self.push(record)),
            Written::ServerSentEvents => {
                let data = lines(written).filter_map(|line| line.strip_prefix(b"data: "));
                data.filter(|data| *data != b"[DONE]").for_each(|record| self.push(record));
            }
        }
    }

    fn push(&mut self, record: &[u8]) {
        if !self.bytes.is_empty() {
            self.bytes.push(b',');
        }
        self.bytes.extend_from_slice(record);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The body. Without records, it is an empty array or an empty text.
    pub(crate) fn into_body(self) -> Bytes {
        if self.form == Written::Text {
            return self.bytes.into();
        }
        let mut body = Vec::with_capacity(self.bytes.len() + 2);
        body.push(b'[');
        body.extend_from_slice(&self.bytes);
        body.push(b']');
        body.into()
    }
}

/// The lines that are not empty.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', rest);
        let (line, after) = match end {
            Some(end) => (rest.get(..end)?, rest.get(end + 1..)?),
            None if rest.is_empty() => return None,
            None => (rest, [].as_slice()),
        };
        rest = after;
        Some(line)
    })
    .filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(form: Written, parts: &[&str]) -> String {
        let mut records = Records::new(form);
        parts.iter().for_each(|part| records.append(part.as_bytes()));
        String::from_utf8(records.into_body().to_vec()).unwrap()
    }

    #[test]
    fn records_are_the_elements_of_an_array() {
        assert_eq!(body(Written::Lines, &["{}\n{\"a\":1}\n", "", "{}\n"]), "[{},{\"a\":1},{}]");
        assert_eq!(body(Written::Lines, &[]), "[]");
        let events = ["data: {\"a\":1}\n\ndata: {}\n\n", "data: [DONE]\n\n", "data: {}\n\n"];
        assert_eq!(body(Written::ServerSentEvents, &events), "[{\"a\":1},{},{}]");
        assert_eq!(body(Written::Text, &["a\n\n", "data: [DONE]\n"]), "a\n\ndata: [DONE]\n");
        assert_eq!(body(Written::Text, &[]), "");
    }
}
