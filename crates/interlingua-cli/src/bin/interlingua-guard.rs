//! The guard of a run, as a program of its own: `interlingua` starts it between itself and an agent.
//!
//! It could be `interlingua guard` as well, but every live agent has two of these processes, and of
//! a small program each of them takes a fraction of the memory.

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match interlingua_guard::stand_in(std::env::args_os().skip(1)) {
        Ok(code) => ExitCode::from(code),
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "interlingua-guard: {problem}");
            ExitCode::from(2)
        }
    }
}
