//! Runs an agent that a file describes, and prints the events of the session.
//!
//! ```sh
//! cargo run --example run_program -- crates/interlingua-agents/examples/greeter.toml "Say hello"
//! ```

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use interlingua::Writer;
use interlingua::dialect::{self, EncodeOptions};
use interlingua_agents::agent::program::Program;
use interlingua_agents::{Agent, Options, Request, Session};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(prompt)) = (arguments.next(), arguments.next()) else {
        return Err("usage: run_program FILE.toml PROMPT".into());
    };
    let agent = Program::read(Path::new(&file))?.prepare(&Request::default())?;
    // No user can be asked for a permission here, so whatever needs one is denied.
    let session = Box::new(agent).start(Options::default()).await?;
    let Session { handle, mut entries, id_seed } = session;
    // Prompts are queued: a second one would have its turn after the first.
    handle.prompt(prompt).await?;
    handle.finish().await?;
    let options = EncodeOptions { id_seed: Some(id_seed), ..EncodeOptions::default() };
    let mut writer = Writer::new(dialect::named("events")?, &options)?;
    let mut bytes = Vec::new();
    while let Some(batch) = entries.next().await {
        batch.for_each(|entry| writer.write(entry, &mut bytes));
        io::stdout().write_all(&bytes)?;
        bytes.clear();
    }
    let outcome = entries.end().await.and_then(|ended| ended.outcome);
    writeln!(io::stderr(), "the turn ended as: {outcome:?}")?;
    Ok(())
}
