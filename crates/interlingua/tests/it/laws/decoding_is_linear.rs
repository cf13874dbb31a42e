//! Law 4: a line that is twice as long costs twice as much, not four times.

use interlingua::Exit;

use crate::support::{self, dialect, translate_chunks};

/// A line of this length, in each form that carries long text.
fn line(from: &str, length: usize) -> Vec<u8> {
    let text = r#"The quick brown fox \"jumps\" over the lazy dog.\n"#.repeat(length / 50);
    let line = match from {
        "codex" => format!(
            r#"{{"type":"item.completed","item":{{"id":"item_0","type":"agent_message","text":"{text}"}}}}"#
        ),
        "claude" => format!(
            r#"{{"type":"assistant","message":{{"id":"m","type":"message","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}},"session_id":"s","uuid":"u"}}"#
        ),
        "giselle" => format!(r#"{{"type":"message","role":"assistant","content":"{text}"}}"#),
        _ => format!(
            r#"{{"type":"message","timestamp":"t","role":"assistant","content":"{text}","delta":true}}"#
        ),
    };
    (line + "\n").into_bytes()
}

#[test]
fn doubling_a_line_from_4_to_32_mb_stays_within_two_and_a_half_times() {
    for from in ["codex", "claude", "gemini", "giselle"] {
        let run = |input: &[u8]| {
            let chunks = input.chunks(65_536);
            translate_chunks(Some(dialect(from)), dialect("ai-sdk"), chunks, &Exit::default());
        };
        let (short, long) = (line(from, 4 << 20), line(from, 32 << 20));
        assert!(support::is_linear(|| run(&short), || run(&long)), "{from}");
    }
}
