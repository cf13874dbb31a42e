//! Renders a block of Markdown: a paragraph, a heading, a quote, a table.
//!
//! The source is complete, and short: the stream cuts what is long. Lists and fenced code outside
//! of quotes are not seen here; the stream takes them apart itself.

use super::super::style::{Color, Line, Span, Style};
use super::super::wrap::{chop, wrap};
use super::super::{clean, width};
use super::code::Highlighter;
use super::table::Table;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

const CODE: Style = Style::CYAN;
const LINK: Style = Style { dim: true, underline: true, ..Style::PLAIN };
const HEADING: Style = Style { bold: true, ..Style::of(Color::Blue) };

/// A block that was rendered.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    pub(super) lines: Vec<Line>,
    /// The last line is the end of a paragraph, and more of it could follow.
    pub(super) ends_in_paragraph: bool,
}

/// Renders Markdown. `lead` is the beginning of a line that the first paragraph continues.
pub(super) fn render(
    source: &str,
    lead: &[Span],
    columns: usize,
    continued_table: bool,
) -> Rendered {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut renderer = Renderer { columns, inline: lead.to_vec(), ..Renderer::default() };
    renderer.table.continued = continued_table;
    for event in Parser::new_ext(source, options) {
        renderer.event(event);
    }
    renderer.end_text();
    Rendered { lines: renderer.lines, ends_in_paragraph: renderer.ends_in_paragraph }
}

#[derive(Debug, Default)]
struct Renderer {
    columns: usize,
    lines: Vec<Line>,
    /// The text of the current paragraph, heading or cell.
    inline: Vec<Span>,
    styles: Vec<Style>,
    /// The quotes and the list items around the current block.
    around: Vec<Around>,
    /// The numbers of the lists around; `None` for bullets.
    lists: Vec<Option<u64>>,
    link: Option<Link>,
    table: Table,
    in_table: bool,
    code: Option<Highlighter>,
    ends_in_paragraph: bool,
}

/// What is around a block.
#[derive(Debug)]
enum Around {
    Quote,
    /// A list item. Its mark is shown before its first line only.
    Item {
        mark: String,
        shown: bool,
    },
}

/// A link whose text is being read.
#[derive(Debug)]
struct Link {
    address: String,
    /// The number of spans before it.
    start: usize,
}

impl Renderer {
    fn event(&mut self, event: Event<'_>) {
        self.ends_in_paragraph = matches!(event, Event::End(TagEnd::Paragraph));
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(_) => self.code_text(&text),
                None => self.text(&text, Style::PLAIN),
            },
            Event::Code(code) => self.text(&code, CODE),
            Event::SoftBreak | Event::HardBreak => self.text("\n", Style::PLAIN),
            Event::Rule => {
                let rule = "─".repeat(self.columns.min(40));
                self.push(Line::new(rule, Style::DIM));
            }
            Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.text(&text, Style::PLAIN),
            Event::TaskListMarker(done) => self.text(if done { "☑ " } else { "☐ " }, Style::PLAIN),
        }
    }

    fn style(&self) -> Style {
        self.styles.iter().fold(Style::PLAIN, |all, style| all.and(*style))
    }

    fn text(&mut self, text: &str, style: Style) {
        // The parser resolves entities such as `&#27;`, so a text may contain anything.
        let hidden = |letter: char| letter != '\n' && !(' '..='~').contains(&letter);
        let style = self.style().and(style);
        self.inline.push(match text.contains(hidden) {
            true => Span::new(clean::text(text).replace('\t', "    "), style),
            false => Span::new(text, style),
        });
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.separate();
                let underline = level == HeadingLevel::H1;
                self.styles.push(Style { underline, ..HEADING });
            }
            Tag::Paragraph | Tag::HtmlBlock => self.separate(),
            Tag::BlockQuote(_) => {
                self.separate();
                self.around.push(Around::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.separate();
                let language = match &kind {
                    CodeBlockKind::Fenced(language) => language,
                    CodeBlockKind::Indented => "",
                };
                self.code = Some(Highlighter::of(language));
            }
            Tag::List(first) => {
                self.end_text();
                self.lists.push(first);
            }
            Tag::Item => self.start_item(),
            Tag::Table(alignments) => {
                self.separate();
                self.in_table = true;
                self.table.alignments = alignments;
            }
            Tag::TableHead | Tag::TableRow => self.table.rows.push(Vec::new()),
            Tag::Emphasis => self.styles.push(Style { italic: true, ..Style::PLAIN }),
            Tag::Strong => self.styles.push(Style::BOLD),
            Tag::Strikethrough => self.styles.push(Style { strike: true, ..Style::PLAIN }),
            Tag::Link { dest_url, .. } => self.start_link(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.text("[image] ", Style::DIM);
                self.start_link(&dest_url);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_text(),
            TagEnd::Heading(_) => {
                self.end_text();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.end_text();
                self.around.pop();
            }
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::CodeBlock => self.code = None,
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                self.table.rows.last_mut().into_iter().for_each(|row| row.push(cell.clone()));
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    /// Ends what precedes, with an empty line between blocks that are not in a list.
    fn separate(&mut self) {
        if self.inline_is_lead() {
            return;
        }
        self.end_text();
        if !self.lines.is_empty() && self.lists.is_empty() {
            self.push(Line::default());
        }
    }

    /// Only the beginning of a continued line is there yet.
    fn inline_is_lead(&self) -> bool {
        self.lines.is_empty() && !self.inline.is_empty()
    }

    fn start_item(&mut self) {
        self.end_text();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            _ => "• ".to_owned(),
        };
        self.around.push(Around::Item { mark, shown: false });
    }

    fn start_link(&mut self, address: &str) {
        self.link = Some(Link { address: address.to_owned(), start: self.inline.len() });
    }

    /// The address of a link is always visible, since its text may state another one.
    fn end_link(&mut self) {
        let Some(Link { address, start }) = self.link.take() else { return };
        let text: String = self.inline.iter().skip(start).map(|span| &*span.text).collect();
        if address.is_empty() || address == text || address == format!("mailto:{text}") {
            let spans = self.inline.iter_mut().skip(start);
            spans.for_each(|span| span.style.underline = true);
        } else {
            let address = clean::one_line(&address, 2_000);
            self.text(" (", Style::DIM);
            self.text(&address, LINK);
            self.text(")", Style::DIM);
        }
    }

    fn code_text(&mut self, text: &str) {
        let columns = self.inner_columns();
        for line in text.lines() {
            let line = clean::expand_tabs(line);
            let Some(highlighter) = &mut self.code else { return };
            let line = highlighter.line(&line);
            chop(&line, columns).into_iter().for_each(|line| self.push(line));
        }
    }

    fn end_table(&mut self) {
        let continued = self.table.continued;
        let table = std::mem::replace(&mut self.table, Table { continued, ..Table::default() });
        self.in_table = false;
        table.lines(self.inner_columns()).into_iter().for_each(|line| self.push(line));
    }

    /// Ends a paragraph or a heading.
    fn end_text(&mut self) {
        if self.inline.is_empty() || self.in_table {
            return;
        }
        let mut inline = std::mem::take(&mut self.inline);
        if let Some(last) = inline.last_mut() {
            last.text.truncate(last.text.trim_end_matches('\n').len());
        }
        let lines = wrap(&inline, self.inner_columns());
        lines.into_iter().for_each(|line| self.push(line));
    }

    fn inner_columns(&self) -> usize {
        let prefix = self.around.iter().map(|it| match it {
            Around::Quote => 2,
            Around::Item { mark, .. } => width::of(mark),
        });
        self.columns.saturating_sub(prefix.sum()).max(10)
    }

    fn push(&mut self, line: Line) {
        let mut whole = Line::default();
        for around in &mut self.around {
            match around {
                Around::Quote => whole.push("│ ", Style::DIM),
                Around::Item { mark, shown } if !*shown => {
                    *shown = true;
                    whole.push(&**mark, Style::PLAIN);
                }
                Around::Item { mark, .. } => {
                    let width = width::of(mark);
                    whole.push(" ".repeat(width), Style::PLAIN);
                }
            }
        }
        self.lines.push(line.after(&whole));
    }
}
