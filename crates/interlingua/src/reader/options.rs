//! The options of a reader.

use crate::dialect::{self, Dialect, FramingKind};
use crate::error::Error;
use crate::event::Usage;
use crate::framing::Limits;

/// The dialect that a reader reads.
#[derive(Debug, Clone, Copy)]
pub enum Source {
    /// The dialect is recognised by the first records.
    Recognise,
    /// This dialect.
    Dialect(&'static Dialect),
}

impl From<&'static Dialect> for Source {
    fn from(dialect: &'static Dialect) -> Self {
        Self::Dialect(dialect)
    }
}

impl Source {
    /// The dialect with this name.
    pub fn named(name: &str) -> Result<Self, Error> {
        dialect::named(name).map(Self::Dialect)
    }
}

/// The options of a reader.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The limits of a frame.
    pub limits: Limits,
    /// The framing, if it is not that of the dialect.
    pub framing: Option<FramingKind>,
    /// Record the types of records and the fields that the decoder does not know.
    pub explain_unknown: bool,
    /// What the session had used before this stream, for agents whose counts continue across runs,
    /// as those of a resumed Codex thread do.
    pub usage_before: Option<Usage<'static>>,
    /// The seed that distinguishes the ids of this session from those of every other one. Without
    /// it, a hash of the first frame is the seed, so the same input gives the same ids.
    pub id_seed: Option<u64>,
    /// The session was resumed, and the reader does not see its earlier runs. Generated ids then
    /// contain a tag, so that they do not repeat those of earlier runs.
    pub resumed: bool,
    /// Whether the agent's own records are kept in the entries.
    pub raw_records: RawRecords,
    /// What the host of the agent knows of the session.
    pub host: HostFacts,
    /// Who begins and ends turns.
    pub turns: TurnOwner,
}

/// Who begins and ends turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TurnOwner {
    /// The stream that is read.
    #[default]
    Stream,
    /// The caller, who runs the tools for a model API. Its turns consist of one or more streams,
    /// each of them a response of the API, and it [emits](crate::Reader::emit) their starts and
    /// ends. The calls of a response are those of the agent, and their inputs are emitted when
    /// the response has ended properly, so that none is run before. If a response was cut off,
    /// the next one replaces it: calls that the model generates again keep their ids.
    Caller,
}

/// What the host of an agent knows of the session, because it started the agent. These facts
/// complete the start of the session, where the agent does not report them (the id and the permission mode take
/// precedence over what the agent reports, also later), and are marked there
/// ([`SessionStarted::host_fields`](crate::event::SessionStarted::host_fields)).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// The id by which the host continues the session, where that is not the agent's own. It takes
    /// precedence over every id that the agent reports.
    pub id: Option<String>,
    /// The working directory of the agent.
    pub cwd: Option<String>,
    /// The model that was requested.
    pub model: Option<String>,
    /// The permission mode that the host enforces, as it names it.
    pub permission_mode: Option<String>,
}

/// Whether the agent's own records are kept in the entries. If they are, a record that adds nothing
/// is an entry too, so a log with records has other sequence numbers than one without.
#[derive(Debug, Clone, Copy, Default)]
pub enum RawRecords {
    /// None are kept.
    #[default]
    Drop,
    /// All are kept. They may contain secrets that events leave out.
    Keep,
    /// Those in one dialect are kept, for a writer that passes them through.
    KeepOf(&'static Dialect),
}

impl RawRecords {
    pub(super) fn keeps(self, dialect: &'static Dialect) -> bool {
        match self {
            Self::Drop => false,
            Self::Keep => true,
            Self::KeepOf(kept) => kept == dialect,
        }
    }
}

/// The tools that the client of a session runs. The host offers them to the agent as tools of an MCP
/// server, so that the agent reports calls of them under names that contain the server's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientTools {
    /// The name of the server; empty if the agent names the tools as the client does.
    pub server: String,
    /// The client's own names of the tools that the agent knows by these names.
    pub names: Vec<String>,
    /// The names by which the agent knows other tools, because it has tools of its own with the
    /// client's names for them; with the client's own names.
    pub renamed: Vec<(String, String)>,
}

impl ClientTools {
    /// What agents write before and behind the name of a server.
    const AROUND: &[(&str, &str)] =
        &[("mcp__", "__"), ("mcp_", "_"), ("", "__"), ("", "_"), ("", "-"), ("", "."), ("", "/")];

    /// The client's own name of a tool that an agent names.
    pub fn named(&self, name: &str) -> Option<&str> {
        let renamed = self.renamed.iter().find(|(known, _)| known == name);
        if let Some((_, own)) = renamed {
            return Some(own);
        }
        let is_called = |tool: &str| self.names.iter().find(|known| *known == tool);
        if self.server.is_empty() {
            return is_called(name).map(String::as_str);
        }
        let tools = Self::AROUND.iter().filter_map(|(before, behind)| {
            name.strip_prefix(before)?.strip_prefix(&*self.server)?.strip_prefix(behind)
        });
        tools.filter_map(is_called).map(String::as_str).next()
    }
}

/// A call of one of the client's tools, as the server of these tools received it.
#[derive(Debug, Clone, Copy)]
pub struct ClientCall<'c> {
    /// The agent's own id of the call, if the server received it.
    pub native: Option<&'c str>,
    /// The client's own name of the tool.
    pub tool: &'c str,
    /// The input, as JSON.
    pub input: &'c str,
}

#[cfg(test)]
mod tests {
    use super::ClientTools;

    #[test]
    fn a_tool_of_the_client_is_known_by_every_agents_name_for_it() {
        let names = vec!["getFormSnapshot".to_owned(), "a_b".to_owned()];
        let server = "interlingua".to_owned();
        let tools = ClientTools { server, names, ..ClientTools::default() };
        for name in [
            "mcp__interlingua__getFormSnapshot",
            "mcp_interlingua_getFormSnapshot",
            "interlingua-getFormSnapshot",
            "interlingua_getFormSnapshot",
            "interlingua.getFormSnapshot",
        ] {
            assert_eq!(tools.named(name), Some("getFormSnapshot"), "{name}");
        }
        assert_eq!(tools.named("interlingua_a_b"), Some("a_b"));
        for name in ["getFormSnapshot", "mcp__other__getFormSnapshot", "interlingua_b", ""] {
            assert_eq!(tools.named(name), None, "{name}");
        }
        let own = ClientTools { server: String::new(), ..tools };
        assert_eq!(own.named("getFormSnapshot"), Some("getFormSnapshot"));
        assert_eq!(own.named("interlingua_a_b"), None);
        assert_eq!(own.named("client_Read"), None);
        let renamed = vec![("client_Read".to_owned(), "Read".to_owned())];
        let own = ClientTools { renamed, ..own };
        assert_eq!(own.named("client_Read"), Some("Read"));
        assert_eq!(own.named("Read"), None, "it is a tool of the agent");
    }
}
