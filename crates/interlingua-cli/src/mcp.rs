//! `interlingua mcp`: the client's tools of a session, for its agent.

use anyhow::{Result, bail};
use interlingua_agents::StdioToolServer;

use crate::SUCCESS;
use crate::signals::Signals;

/// Serves the agent that has started this process, until it closes standard input.
pub(crate) fn run() -> Result<u8> {
    let (url, token) = (variable(StdioToolServer::URL)?, variable(StdioToolServer::TOKEN)?);
    let server = StdioToolServer::new(&url, &token).map_err(anyhow::Error::msg)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signals = Signals::catch();
        let serving = server.serve(tokio::io::stdin(), tokio::io::stdout());
        tokio::pin!(serving);
        tokio::select! {
            () = &mut serving => {}
            () = signals.received() => {
                server.close();
                serving.await;
            }
        }
    });
    // A thread may still wait for a line of standard input.
    runtime.shutdown_background();
    Ok(SUCCESS)
}

fn variable(name: &str) -> Result<String> {
    match std::env::var(name) {
        Ok(value) if !value.is_empty() => Ok(value),
        _ => bail!(
            "the environment variable {name} is missing, so there is no session whose tools could be offered. The agent of a session with `--client-tools` starts this command, and has the variable; if it does not pass it on, name it in the agent's configuration of this server"
        ),
    }
}
