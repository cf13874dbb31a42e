use super::*;
use crate::view::style::{Palette, Style};
use crate::view::tests::cases;
use proptest::prelude::*;

fn shown(lines: &[Line]) -> Vec<String> {
    lines.iter().map(|line| line.to_terminal(Palette::None)).collect()
}

fn rendered(text: &str, columns: usize) -> Vec<String> {
    let mut markdown = Markdown::new(columns);
    let mut lines = markdown.push(text);
    lines.extend(markdown.finish());
    shown(&lines)
}

const ALL: &str = "\
# Title
Some *text* with **bold**, `code` and a [link](https://example.com).
Second line.

- one
- two
  more of two

  second paragraph
  1. first
  2. second
- [x] done

```rust
fn main() {

    let x = 1;
}
```
| a | b |
|---|--:|
| long cell | 1 |
| x | 22 |

> quoted
> text

---
3. three
4. four

Last.";

#[test]
fn every_kind_of_block_is_rendered() {
    let expected = "\
Title

Some text with bold, code and a link (https://example.com).
Second line.

  • one
  • two
    more of two

    second paragraph
    1. first
    2. second
  ☑ done

  fn main() {

      let x = 1;
  }

a         │  b
──────────┼───
long cell │  1
x         │ 22

│ quoted
│ text

────────────────────────────────────────

  3. three
  4. four

Last.";
    assert_eq!(rendered(ALL, 80).join("\n"), expected);
}

#[test]
fn a_table_that_is_too_wide_is_wrapped_in_its_cells() {
    let table = "| name | text |\n|---|---|\n| a | one two three four five six |\n";
    let expected =
        ["name │ text", "─────┼────────────────", "a    │ one two three", "     │ four five six"];
    assert_eq!(rendered(table, 22), expected);
}

#[test]
fn the_preview_becomes_the_final_text() {
    let mut markdown = Markdown::new(80);
    assert!(markdown.push("# Ti").is_empty());
    assert_eq!(shown(&markdown.preview()), ["Ti"]);
    assert_eq!(shown(&markdown.push("tle\nSome **bo")), ["Title"]);
    let preview = markdown.preview();
    assert_eq!(shown(&preview), ["", "Some bo"]);
    assert!(preview.iter().any(|line| line.spans.iter().any(|span| span.style == Style::BOLD)));
    assert!(markdown.push("ld**\n").is_empty());
    assert_eq!(shown(&markdown.push("\n``")), ["", "Some bold"]);
    assert!(markdown.preview().is_empty());
}

#[test]
fn a_link_cannot_hide_its_address() {
    assert_eq!(
        rendered("[https://good.example](https://evil.example) <https://a.example>", 80),
        ["https://good.example (https://evil.example) https://a.example"]
    );
}

#[test]
fn entities_do_not_become_control_characters() {
    let text = "a&#27;[31mb &#x202e;c &#x9b;d\n\n| &#27;x |\n|---|\n";
    assert_eq!(rendered(text, 80), ["a[31mb c d", "", "x", "─"]);
}

/// The mark once made the first line of the paragraph too wide.
#[test]
fn an_item_without_text_does_not_mark_the_paragraph_after_it() {
    let text = format!("*\n{}", "a".repeat(70));
    let rows = ["  •".to_owned(), String::new(), "a".repeat(60), "a".repeat(10)];
    assert_eq!(rendered(&text, 60), rows);
}

/// Splits a text at these places.
fn split(text: &str, places: &[usize]) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let mut places: Vec<usize> = places.iter().map(|it| it % (letters.len() + 1)).collect();
    places.sort_unstable();
    places.push(letters.len());
    let mut start = 0;
    let piece = |end: usize| {
        let piece = letters[start..end].iter().collect();
        start = end;
        piece
    };
    places.into_iter().map(piece).collect()
}

fn any_markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => "[a-z]{1,9} ".prop_map(String::from),
        1 => prop::sample::select(vec![
            "\n", "\n\n", "- ", "1. ", "  ", "```\n", "```rust\n", "# ", "> ", "| a | b |\n",
            "|---|---|\n", "**", "*", "`", "[x](y)", "---\n", "漢字", "👩‍👩‍👧", "\t", "~~", "<b>",
            "    ", "\r\n", "\u{1b}[31m", "&#27;",
        ]).prop_map(str::to_owned),
        1 => "[a-z ]{1,3}".prop_map(|word| word.repeat(2_000)),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn any_split_gives_the_same_lines(text in any_markdown(), places in prop::collection::vec(any::<usize>(), 0..20)) {
        let mut markdown = Markdown::new(60);
        let mut lines = Vec::new();
        for piece in split(&text, &places) {
            lines.extend(markdown.push(&piece));
            // A preview changes nothing.
            markdown.preview();
        }
        lines.extend(markdown.finish());
        prop_assert_eq!(shown(&lines), rendered(&text, 60));
    }

    #[test]
    fn no_line_is_too_wide_or_contains_control_characters(text in any_markdown()) {
        for line in rendered(&text, 60) {
            prop_assert!(crate::view::width::of(&line) <= 60, "{}", line);
            prop_assert!(!line.chars().any(char::is_control), "{:?}", line);
        }
    }
}
