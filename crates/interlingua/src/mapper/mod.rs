//! Single bridges for embedding.
//!
//! Each of these has a small contract of its own: push a chunk and receive what is now complete,
//! flush at the end, reset to start again. They are thin: the same decoders, grammar and encoders
//! as in [`Translator`](crate::Translator) do the work, so chunks may be split anywhere, even
//! inside a character, and nothing is emitted twice.

mod codex_stdout;
mod gemini_parser;
mod ndjson;
mod prompt;
mod relay;

pub use codex_stdout::CodexStdoutMapper;
pub use gemini_parser::GeminiParser;
pub use ndjson::{Mapped, NdjsonMapper, SessionChange};
pub use prompt::{ToolResult, extract_tool_results, extract_user_message};
pub use relay::{RelayAnswer, relay_response_to_tool_result, tool_result_to_relay_response};

/// The lines of an output, each with its line feed.
fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).split_inclusive('\n').map(str::to_owned).collect()
}
