//! A text that an agent writes at once is written for Yume in deltas of about 4 KB, as if it had
//! been streamed.
use crate::support::translate_lines;
use serde_json::json;

/// The deltas in which a message of Codex is written.
fn deltas(text: &str) -> Vec<String> {
    let item = json!({"id": "m", "type": "agent_message", "text": text});
    let lines = [
        json!({"type": "thread.started", "thread_id": "t"}),
        json!({"type": "item.completed", "item": item}),
        json!({"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}),
    ];
    let lines = lines.map(|line| line.to_string());
    let written = translate_lines("codex", "yume", &lines.each_ref().map(String::as_str));
    let records = written.records();
    let texts = records.iter().filter(|record| record["type"] == "text");
    texts.map(|record| record["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_long_message_is_streamed_line_by_line() {
    let text = "A line of an answer, neither long nor short.\n".repeat(500);
    let deltas = deltas(&text);
    assert_eq!(deltas.concat(), text);
    assert!(deltas.len() >= text.len() / 4096, "{}", deltas.len());
    assert!(deltas.iter().all(|delta| delta.len() <= 4096 && delta.ends_with('\n')));
    assert!(deltas[..deltas.len() - 1].iter().all(|delta| delta.len() > 2048));
}

#[test]
fn a_text_without_line_ends_is_split_between_words() {
    let text = "words \"and\" more words ".repeat(1000);
    let deltas = deltas(&text);
    assert_eq!(deltas.concat(), text);
    assert!(deltas.len() > 5 && deltas.iter().all(|delta| delta.ends_with(' ')));
}

#[test]
fn no_character_is_split() {
    let text = "日本語のテキスト🧪".repeat(1000);
    let deltas = deltas(&text);
    assert_eq!(deltas.concat(), text);
    assert!(
        deltas
            .iter()
            .all(|delta| (2048..=4096).contains(&delta.len()) || Some(delta) == deltas.last())
    );
}

#[test]
fn a_short_message_is_one_delta() {
    assert_eq!(deltas("Hello.\nThis is short."), ["Hello.\nThis is short."]);
}
