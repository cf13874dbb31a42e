//! The program that the tests name as their guard and their sandbox, as `interlingua` itself is for
//! its users. A test program with the standard harness cannot be it, because it has threads before
//! its tests begin. It is also an MCP server.
#![allow(clippy::indexing_slicing, clippy::print_stderr, reason = "all of this is a test")]

mod mcp_server;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut given = std::env::args_os().skip(1);
    let done = match given.next() {
        Some(first) if first == "guard" => interlingua_agents::process::guard(given),
        Some(first) if first == "sandbox" => interlingua_agents::tool::sandbox(given),
        Some(first) if first == "mcp-server" => mcp_server::serve(given),
        _ => Err(std::io::Error::other("the first argument is `guard`, `sandbox` or `mcp-server`")),
    };
    done.map_or_else(
        |problem| {
            eprintln!("{problem}");
            ExitCode::FAILURE
        },
        ExitCode::from,
    )
}
