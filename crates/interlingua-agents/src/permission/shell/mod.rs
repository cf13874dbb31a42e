//! Commands as a shell sees them: parses a command line, and lists the simple commands that it
//! would run.
//!
//! The parser is `brush-parser`, which builds a complete syntax tree of bash. Shells disagree about
//! rare constructs, and so do parsers; therefore a line counts as resolved only if it consists of
//! constructs that sh, bash and the parser read alike: lists, pipelines, groups, subshells,
//! conditions and loops of simple commands with literal words, and here-documents without
//! expansions. Everything else is walked as far as possible, so that a rule can still deny what it
//! contains, and leaves the word, the command or the whole line unresolved. The module knows
//! nothing of rules and of files.

mod indirect;
mod lines;
pub(crate) mod read_only;
mod script;
mod walk;
mod word;

pub(crate) use indirect::{base_name, indirection, may_run_others};
pub(crate) use script::{Redirection, Script, SimpleCommand, Word};

/// The longest command line that is parsed, in bytes.
pub(crate) const MAX_LENGTH: usize = 32 * 1024;

/// The number of tokens in a line that may open a nested construct. The parser recurses for each of
/// them. Closing tokens are not subtracted, since only a parser could tell which of them are quoted.
pub(crate) const MAX_OPENERS: usize = 256;

/// The number of expansions in one word for which the word is parsed. Those that are not closed take
/// the parser exponential time.
pub(crate) const MAX_EXPANSIONS: usize = 3;

/// The stack of the thread that parses. Of all constructs, nested functions need the most: 40 of
/// them, with two openers each, fit into 2 MiB in a build without optimization.
const STACK_SIZE: usize = 32 * 1024 * 1024;

/// The parser panicked, or there was no thread for it.
const FAILED: &str = "the parser failed";

/// Lists the commands of a line of sh or bash.
pub(crate) fn parse(line: &str) -> Script {
    if let Some(reason) = lines::unparsable(line) {
        return Script::unknown(reason);
    }
    if lines::is_flat(line) {
        let parsed = std::panic::catch_unwind(|| walk::walk(line));
        return parsed.unwrap_or_else(|_| Script::unknown(FAILED));
    }
    // The stack of the caller may be small, and the parser recurses.
    let line = line.to_owned();
    let parse = move || walk::walk(&line);
    let thread = std::thread::Builder::new().stack_size(STACK_SIZE).spawn(parse);
    let parsed = thread.ok().and_then(|thread| thread.join().ok());
    parsed.unwrap_or_else(|| Script::unknown(FAILED))
}

#[cfg(test)]
mod tests;
