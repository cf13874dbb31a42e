//! Single bridges, for people who embed just one.
//!
//! Each of these is a small contract of its own: push a chunk, get what is now known, flush at the
//! end, reset to begin anew. They are thin: the same decoders, grammar and encoders as in
//! [`Translator`](crate::Translator) do the work, so chunks may be cut anywhere, even inside a
//! character, and nothing is said twice.

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

/// The lines of some output, each with its line feed.
fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).split_inclusive('\n').map(str::to_owned).collect()
}
