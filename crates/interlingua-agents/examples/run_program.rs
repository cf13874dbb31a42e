//! Runs an agent that a file describes, and prints the events of the run.
//!
//! ```sh
//! cargo run --example run_program -- crates/interlingua-agents/examples/greeter.toml "Say hello"
//! ```

use std::error::Error;
use std::io::{self, Stdout, Write};
use std::path::Path;

use interlingua::dialect;
use interlingua_agents::agent::program::Program;
use interlingua_agents::{Consumer, Options, Request, run};
use tokio::sync::mpsc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(prompt)) = (arguments.next(), arguments.next()) else {
        return Err("usage: run_program FILE.toml PROMPT".into());
    };
    let launch = Program::read(Path::new(&file))?.launch(&Request::new(prompt))?;
    // Nobody can be asked for a permission here, so whatever needs one is denied.
    let options = Options::new(dialect::named("events")?);
    // A caller that keeps the sender can interrupt the run, or decide about permissions.
    let (_controls, controlled) = mpsc::channel(1);
    let ended = run(launch, options, Box::new(Printer(io::stdout())), controlled).await?;
    writeln!(io::stderr(), "the turn ended as: {}", ended.outcome.as_str())?;
    Ok(())
}

/// Prints what the run writes. A thread of its own writes, so a slow terminal does not stop the agent.
struct Printer(Stdout);

impl Write for Printer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Consumer for Printer {}
