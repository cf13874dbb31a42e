//! The tools of a session: our own, and those of MCP servers.

use std::path::{Path, PathBuf};

use interlingua::event::ToolKind;
use serde_json::Value;

use super::mcp::Servers;
use super::model::OfferedTool;
use crate::tool::{Call, Output, Toolbox};

/// The tools of a session.
#[derive(Debug)]
pub(crate) struct SessionTools {
    toolbox: Toolbox,
    servers: Servers,
}

/// What the session has to know of a tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolFacts {
    pub(crate) kind: ToolKind,
    /// It changes nothing, and may run at the same time as others that only read.
    pub(crate) only_reads: bool,
    pub(crate) skips_secrets: bool,
    /// A call has to be permitted in every mode. In the modes `interactive` and `deny`, all have to be.
    pub(crate) needs_permission: bool,
    /// The tool exists. A call of any other tool fails.
    pub(crate) can_run: bool,
}

impl SessionTools {
    pub(crate) fn new(toolbox: Toolbox, servers: Servers) -> Self {
        Self { toolbox, servers }
    }

    /// What is offered to the model, always in the same order.
    pub(crate) fn offered(&self) -> Vec<OfferedTool> {
        let own = self.toolbox.definitions().iter().map(|definition| OfferedTool {
            name: definition.name.to_owned(),
            description: definition.description.to_owned(),
            input_schema: definition.input_schema.clone(),
        });
        own.chain(self.servers.offered()).collect()
    }

    /// What is known of a tool. One that does not exist needs no permission to be refused.
    pub(crate) fn facts(&self, name: &str) -> ToolFacts {
        if self.servers.has(name) {
            // What a server states about its tools is not trusted.
            return ToolFacts {
                kind: ToolKind::Mcp,
                needs_permission: true,
                can_run: true,
                ..ToolFacts::default()
            };
        }
        let Some(definition) = self.toolbox.definition(name) else { return ToolFacts::default() };
        ToolFacts {
            kind: definition.kind.clone(),
            only_reads: definition.only_reads,
            skips_secrets: definition.skips_secrets,
            needs_permission: definition.needs_permission,
            can_run: true,
        }
    }

    /// The working folder, without links.
    pub(crate) fn folder(&self) -> &Path {
        self.toolbox.folder()
    }

    pub(crate) fn additional_folders(&self) -> Vec<PathBuf> {
        self.toolbox.additional_folders()
    }

    /// Where the paths of a call lead, as of now; `None` if it has none.
    pub(crate) fn places(&self, name: &str, input: &Value) -> Option<Vec<PathBuf>> {
        if self.servers.has(name) {
            return None;
        }
        let call = Call { name: name.to_owned(), input: input.clone(), ..Call::default() };
        self.toolbox.places(&call)
    }

    pub(crate) fn enforcement(&self) -> Vec<String> {
        let mut sentences = self.toolbox.enforcement();
        sentences.extend(self.servers.enforcement());
        sentences
    }

    pub(crate) async fn run(&self, call: &Call, progress: &mut (dyn FnMut(&str) + Send)) -> Output {
        match self.servers.run(&call.name, &call.input, progress).await {
            Some(output) => output,
            None => self.toolbox.run(call, progress).await,
        }
    }

    /// A result as the model gets it: of a long one, it gets both ends, and a file has all of it.
    pub(crate) fn shortened(&self, text: String) -> String {
        self.toolbox.shortened(text)
    }

    pub(crate) async fn close(&self) {
        tokio::join!(self.toolbox.close(), self.servers.close());
    }
}
