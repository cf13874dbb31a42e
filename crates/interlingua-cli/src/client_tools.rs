//! `--client-tools`: tools that the reader of the output runs.

use std::sync::Arc;

use anyhow::{Context, Result};
use interlingua_agents::{ClientTool, ClientToolOffer, ClientToolServer, ClientTools};

use crate::arguments::SessionArguments;

/// The tools of the file that was named.
pub(crate) fn read(arguments: &SessionArguments) -> Result<Vec<ClientTool>> {
    let Some(path) = &arguments.client_tools else { return Ok(Vec::new()) };
    let named = || format!("the tools in {}", path.display());
    let text = std::fs::read_to_string(path).with_context(named)?;
    let ClientTools(tools) = serde_json::from_str(&text).with_context(named)?;
    Ok(tools)
}

/// Offers them to an agent that is a program.
pub(crate) fn offer(arguments: &SessionArguments) -> Result<Option<Arc<ClientToolOffer>>> {
    let tools = read(arguments)?;
    if tools.is_empty() {
        return Ok(None);
    }
    let server = ClientToolServer::start().context("the tools cannot be offered")?;
    Ok(Some(Arc::new(server.offer(tools)?)))
}
