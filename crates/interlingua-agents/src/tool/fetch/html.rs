//! HTML as text: simple, and for any input.
//!
//! It does not build a tree. Tags end blocks or disappear, entities are decoded, and elements whose
//! content is not text are left out.

/// Elements whose content is not shown.
const HIDDEN: [&str; 7] = ["script", "style", "noscript", "template", "svg", "head", "iframe"];

/// Elements that begin and end a line.
const BLOCKS: [&str; 27] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "p",
    "pre",
    "section",
    "table",
    "tr",
];

/// The longest entity that is decoded.
const MAX_ENTITY: usize = 10;

/// The text of a page.
pub(super) fn to_text(html: &str) -> String {
    let (mut text, mut tags) = (Text::default(), Tags::default());
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        text.push(before);
        rest = match tags.read(from) {
            Some(tag) => {
                text.tag(&tag);
                if !tag.is_end && HIDDEN.contains(&&*tag.name) && !tag.is_empty {
                    after_element(tag.rest, &tag.name)
                } else {
                    tag.rest
                }
            }
            // A lone bracket is text.
            None => {
                text.push("<");
                from.get(1..).unwrap_or_default()
            }
        };
    }
    text.push(rest);
    text.finish()
}

struct Tag<'h> {
    name: String,
    is_end: bool,
    /// Whether it has no content: `<x/>`.
    is_empty: bool,
    /// What follows the tag.
    rest: &'h str,
}

/// Reads tags, each byte a limited number of times: a search that has failed once at the end of the
/// page would fail again for every tag that follows.
#[derive(Default)]
struct Tags {
    /// No tag ends any more.
    none_ends: bool,
    /// A quote is open at the end of the page, so quotes do not count any more.
    quotes_are_broken: bool,
}

impl Tags {
    /// Reads a tag or a comment; `None` if there is none.
    fn read<'h>(&mut self, from: &'h str) -> Option<Tag<'h>> {
        if let Some(comment) = from.strip_prefix("<!--") {
            let rest = comment.find("-->").and_then(|at| comment.get(at + 3..)).unwrap_or_default();
            return Some(Tag { name: String::new(), is_end: false, is_empty: true, rest });
        }
        let body = from.get(1..)?;
        let is_end = body.starts_with('/');
        let name_from = body.get(usize::from(is_end)..)?;
        let first = name_from.chars().next()?;
        if !first.is_ascii_alphabetic() && !matches!(first, '!' | '?') {
            return None;
        }
        let end = self.end(body)?;
        let name = name_from.split(|it: char| !it.is_ascii_alphanumeric()).next()?;
        let is_empty = body.get(..end)?.ends_with('/');
        let name = name.to_ascii_lowercase();
        Some(Tag { name, is_end, is_empty, rest: body.get(end + 1..)? })
    }

    /// Where a tag ends; a bracket in a quoted value does not end it.
    fn end(&mut self, body: &str) -> Option<usize> {
        if self.none_ends {
            return None;
        }
        if !self.quotes_are_broken {
            if let Some(end) = end_outside_of_quotes(body) {
                return Some(end);
            }
            self.quotes_are_broken = true;
        }
        // A quote that is never closed is no quote.
        let end = body.find('>');
        self.none_ends = end.is_none();
        end
    }
}

fn end_outside_of_quotes(body: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in body.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

/// What follows the end of an element.
fn after_element<'h>(rest: &'h str, name: &str) -> &'h str {
    let mut from = 0;
    while let Some(at) = rest.get(from..).and_then(|rest| rest.find("</")) {
        let end = from + at + 2;
        let found = rest.as_bytes().get(end..end + name.len());
        if found.is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes())) {
            let after = rest.get(end..).unwrap_or_default();
            return after.find('>').and_then(|at| after.get(at + 1..)).unwrap_or_default();
        }
        from = end;
    }
    ""
}

/// Text with collapsed white space.
#[derive(Default)]
struct Text {
    text: String,
    /// Whether white space precedes the next word.
    blank: bool,
    /// How many elements keep their white space.
    preformatted: usize,
}

impl Text {
    fn tag(&mut self, tag: &Tag<'_>) {
        if tag.name == "pre" {
            self.preformatted = match tag.is_end {
                true => self.preformatted.saturating_sub(1),
                false => self.preformatted + 1,
            };
        }
        if BLOCKS.contains(&&*tag.name) {
            self.line();
            let is_paragraph = matches!(&*tag.name, "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6");
            if tag.name == "li" && !tag.is_end {
                self.text.push_str("- ");
            } else if is_paragraph && !self.text.is_empty() && !self.text.ends_with("\n\n") {
                self.text.push('\n');
            }
        } else if matches!(&*tag.name, "td" | "th") {
            self.blank = true;
        }
    }

    /// Begins a line.
    fn line(&mut self) {
        self.blank = false;
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn push(&mut self, html: &str) {
        for character in decoded(html).chars() {
            if self.preformatted > 0 {
                self.text.push(character);
            } else if character.is_whitespace() {
                self.blank = true;
            } else {
                if std::mem::take(&mut self.blank)
                    && !self.text.ends_with(['\n', ' '])
                    && !self.text.is_empty()
                {
                    self.text.push(' ');
                }
                self.text.push(character);
            }
        }
    }

    fn finish(self) -> String {
        self.text.trim().to_owned()
    }
}

/// Decodes entities.
fn decoded(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(at) = rest.find('&') {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let end = from.bytes().take(MAX_ENTITY + 2).position(|byte| byte == b';');
        let known = end.and_then(|end| Some((entity(from.get(1..end)?)?, from.get(end + 1..)?)));
        rest = match known {
            Some((character, after)) => {
                text.push(character);
                after
            }
            None => {
                text.push('&');
                from.get(1..).unwrap_or_default()
            }
        };
    }
    text.push_str(rest);
    text
}

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "copy" => '©',
        "reg" => '®',
        "times" => '×',
        "rarr" => '→',
        "larr" => '←',
        "bull" => '•',
        "middot" => '·',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_become_lines_or_nothing() {
        let html = "<!DOCTYPE html><html><head><title>x</title></head><body><h1>Über  uns</h1>\
                    <script>if (a < b) {}</script><p>Ein <b>fetter</b>\n Satz &amp; mehr&#33;</p>\
                    <ul><li>eins<li>zwei</ul><!-- <p>weg --><pre>a\n  b</pre>\
                    <a title='x > y'>Ende</a></body></html>";
        assert_eq!(
            to_text(html),
            "Über uns\n\nEin fetter Satz & mehr!\n\n- eins\n- zwei\na\n  b\nEnde"
        );
    }

    #[test]
    fn any_input_has_a_text() {
        let cases = [
            ("a < b && c > d", "a < b && c > d"),
            ("<", "<"),
            ("<p", "<p"),
            ("</", "</"),
            ("&#xffffffff; &nope; &", "&#xffffffff; &nope; &"),
            ("<script>never ends", ""),
            ("<!-- never ends", ""),
            ("<a title=\"never>ends", "ends"),
            ("ä<ß>", "ä<ß>"),
        ];
        for (html, text) in cases {
            assert_eq!(to_text(html), text, "{html}");
        }
    }

    /// Each tag without an end was searched to the end of the page: 5 MiB took hours.
    #[test]
    fn a_page_of_any_kind_takes_little_time() {
        let started = std::time::Instant::now();
        for piece in ["<a ", "<a \"", "<a \">\"", "<a '>\"", "</", "<!", "<a '\">", "&", "<p><pre>"]
        {
            to_text(&piece.repeat((1 << 18) / piece.len()));
        }
        let elapsed = started.elapsed();
        assert!(elapsed < std::time::Duration::from_secs(60), "{elapsed:?}");
    }
}
