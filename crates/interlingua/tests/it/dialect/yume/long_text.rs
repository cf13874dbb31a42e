//! What an agent says at once is written for Yume in pieces of about 4 KB, as if it had been streamed.
use crate::support::translate_lines;
use serde_json::json;

/// The pieces in which a message of Codex is written.
fn pieces(text: &str) -> Vec<String> {
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
    let pieces = pieces(&text);
    assert_eq!(pieces.concat(), text);
    assert!(pieces.len() >= text.len() / 4096, "{}", pieces.len());
    assert!(pieces.iter().all(|piece| piece.len() <= 4096 && piece.ends_with('\n')));
    assert!(pieces[..pieces.len() - 1].iter().all(|piece| piece.len() > 2048));
}

#[test]
fn where_no_line_ends_a_word_does() {
    let text = "words \"and\" more words ".repeat(1000);
    let pieces = pieces(&text);
    assert_eq!(pieces.concat(), text);
    assert!(pieces.len() > 5 && pieces.iter().all(|piece| piece.ends_with(' ')));
}

#[test]
fn no_character_is_cut() {
    let text = "日本語のテキスト🧪".repeat(1000);
    let pieces = pieces(&text);
    assert_eq!(pieces.concat(), text);
    assert!(
        pieces
            .iter()
            .all(|piece| (2048..=4096).contains(&piece.len()) || Some(piece) == pieces.last())
    );
}

#[test]
fn a_short_message_is_one_piece() {
    assert_eq!(pieces("Hello.\nThis is short."), ["Hello.\nThis is short."]);
}
