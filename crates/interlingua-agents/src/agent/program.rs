//! Any other program, described in a small file:
//!
//! ```toml
//! command = "my-agent"
//! arguments = ["--json", "--model", "{model}"]
//! dialect = "claude"      # or `screen = true`: then its screen is read, as plain text
//! prompt = "stdin"        # or "argument": then `{prompt}` is one of the arguments
//! interrupt = "int"       # how it is interrupted: "int", "term" or "close-input"
//!
//! [environment]
//! MY_AGENT_MODE = "batch"
//!
//! [files]                 # files that the working folder must have; written if they are missing
//! "MY_AGENT.md" = "Answer in English."
//!
//! [client-tools]          # how the program learns of the tools of the client
//! arguments = ["--mcp-config", "{file}"]
//! file = "{servers}"      # a private file, here with `{"mcpServers": …}`
//! ```
//!
//! An argument with a `{…}` whose value is not given is left out, together with the flag before it.

mod client_tools;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::{ClientToolNeeds, Delivery, Launch, PROMPT, Relaunch, find_on_path};
use crate::driver::{
    AcpDriver, AcpSession, ClaudeDriver, CodexDriver, Driver, Interrupt, PlainDriver,
    PlainScreenDriver, SCREEN, SIZE, Thread,
};
use crate::error::Error;
use crate::process::{Command, Input};
use crate::process_agent::ProcessAgent;
use crate::request::Request;
use client_tools::{Added, ClientToolsTable};

/// A program that speaks a known dialect, or has only a screen.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    command: String,
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default, deserialize_with = "readable_dialect")]
    dialect: String,
    #[serde(default)]
    screen: bool,
    #[serde(default)]
    prompt: Prompt,
    #[serde(default)]
    interrupt: Interrupt,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "relative_files")]
    files: BTreeMap<PathBuf, String>,
    #[serde(default, rename = "client-tools")]
    client_tools: Option<ClientToolsTable>,
}

/// Environment variables may be secrets, so they are not shown.
impl std::fmt::Debug for Program {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { command, dialect, .. } = self;
        out.debug_struct("Program")
            .field("command", command)
            .field("dialect", dialect)
            .finish_non_exhaustive()
    }
}

/// How the program receives the prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Prompt {
    /// On its standard input, which is then closed.
    #[default]
    Stdin,
    /// In its arguments.
    Argument,
    /// In its protocol: stream-json in both directions, an app-server, or ACP.
    Protocol,
}

/// What to do about a description that cannot be read.
const ADVICE: &str = "Correct the file: it has the keys command, arguments, dialect or screen, prompt, interrupt, environment, files and client-tools.";

/// Checks the dialect while it is read, so that an error has its line.
fn readable_dialect<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    if interlingua::dialect::find(&name).is_some_and(|dialect| dialect.decoder.is_some()) {
        return Ok(name);
    }
    let readable = interlingua::dialect::ALL.iter().filter(|dialect| dialect.decoder.is_some());
    let known: Vec<_> = readable.map(|dialect| dialect.name).collect();
    Err(D::Error::custom(format!(
        "the dialect `{name}` cannot be read; the dialects that can are {}",
        known.join(", ")
    )))
}

/// Checks the paths of files while they are read, so that an error has their line.
fn relative_files<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<PathBuf, String>, D::Error> {
    let files = BTreeMap::<PathBuf, String>::deserialize(from)?;
    let within = |path: &&PathBuf| path.components().all(|it| matches!(it, Component::Normal(_)));
    match files.keys().find(|path| !within(path)) {
        None => Ok(files),
        Some(path) => Err(D::Error::custom(format!(
            "{} is not in the working folder: use a relative path without `..`",
            path.display()
        ))),
    }
}

impl Program {
    /// Reads the description of a program.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bad =
            |problem: String| Error::InvalidFile { path: path.display().to_string(), problem };
        let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        Self::parse(&text).map_err(bad)
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let program: Self = toml::from_str(text).map_err(|error| format!("{error}{ADVICE}"))?;
        program.client_tools.iter().try_for_each(ClientToolsTable::check)?;
        match (program.screen, program.dialect.as_str()) {
            (true, "") => return Ok(program),
            (true, _) => {
                return Err("`screen = true` and `dialect` exclude each other: remove one of them"
                    .to_owned());
            }
            (false, "") => {
                return Err("`dialect` is missing: add it, or `screen = true`".to_owned());
            }
            (false, _) => {}
        }
        if program.prompt == Prompt::Protocol
            && !matches!(&*program.dialect, "claude" | "codex-app-server" | "acp")
        {
            return Err(format!(
                "a program cannot be prompted in `{}`: use another value for `prompt`",
                program.dialect
            ));
        }
        Ok(program)
    }

    /// Prepares the program for a request. It is started with
    /// [`Agent::start`](crate::Agent::start).
    pub fn prepare(&self, request: &Request) -> Result<ProcessAgent, Error> {
        let (launch, program) = (self.launch(request)?, self.clone());
        let (first, request) = (request.relaunch(), request.clone());
        let client_tools = request.client_tools.clone();
        let again = move |next: &Relaunch| program.launch(&request.with(next));
        Ok(ProcessAgent::new(launch).relaunched(first, again).with_client_tools(client_tools))
    }

    /// Prepares one launch for a request.
    pub fn launch(&self, request: &Request) -> Result<Launch, Error> {
        request.check()?;
        let Added { arguments: added, environment: variables, file } = self.added(request)?;
        let program = find_on_path(&self.command).ok_or_else(|| Error::NotInstalled {
            agent: self.command.clone(),
            program: self.command.clone(),
            install: "Install it, or correct `command` in its description.".to_owned(),
        })?;
        let dialect = match interlingua::dialect::find(&self.dialect) {
            _ if self.screen => &SCREEN,
            Some(dialect) => dialect,
            None => return Err(interlingua::Error::NotRead { dialect: "unknown" }.into()),
        };
        let own = self.environment.clone().into_iter();
        let requested = request.environment.iter().cloned();
        let command = Command {
            program,
            arguments: self.arguments(added, request),
            environment: own.chain(requested).chain(variables).collect(),
            without: Vec::new(),
            folder: request.folder.clone(),
            terminal: self.screen.then_some(SIZE),
            input: match self.prompt {
                Prompt::Stdin | Prompt::Argument => Input::Closed,
                Prompt::Protocol => Input::Open,
            },
            server: None,
            isolation: request.isolation,
            guard: request.guard.clone(),
        };
        let delivery = match self.prompt {
            Prompt::Stdin if self.screen => Delivery::DriverOnce,
            Prompt::Stdin => Delivery::Input,
            Prompt::Argument => Delivery::Argument,
            Prompt::Protocol => Delivery::Driver,
        };
        let files = self.files.clone().into_iter().collect();
        let takes_model = self.prompt == Prompt::Protocol
            || self.arguments.iter().any(|argument| argument.contains("{model}"));
        let model = request.model.clone().filter(|_| takes_model);
        let launch = Launch::new(command, dialect, self.driver(request));
        let warnings = self.warning().into_iter().collect();
        let client_tools = self.needs();
        Ok(Launch { files, delivery, model, warnings, client_tools, scratch: file, ..launch })
    }

    /// What the tools of the client add to a launch.
    fn added(&self, request: &Request) -> Result<Added, Error> {
        let Some(endpoint) = request.tool_endpoint() else { return Ok(Added::default()) };
        let mut added = match &self.client_tools {
            Some(table) if !self.screen => table.added(&self.command, request)?,
            None if self.has_tools_in_protocol() => Added::default(),
            _ => return Err(Error::NoToolsTable { program: self.command.clone() }),
        };
        let of_server = super::without_proxy(request).into_iter().chain(endpoint.variables());
        added.environment.extend(of_server.map(|(name, value)| (name.to_owned(), value)));
        Ok(added)
    }

    /// Whether the program learns of the tools in its protocol.
    fn has_tools_in_protocol(&self) -> bool {
        self.prompt == Prompt::Protocol
            && self.client_tools.is_none()
            && matches!(&*self.dialect, "acp" | "codex-app-server")
    }

    fn needs(&self) -> ClientToolNeeds {
        let in_protocol = self.has_tools_in_protocol();
        ClientToolNeeds {
            // Some agents that speak ACP take prompts before they know their servers.
            late: in_protocol && self.dialect == "acp",
            passes_ids: in_protocol && self.dialect == "codex-app-server",
            limit: None,
        }
    }

    /// Only a program that is prompted in its protocol can be answered in it.
    fn warning(&self) -> Option<String> {
        let command = &self.command;
        (self.prompt != Prompt::Protocol).then(|| {
            format!("`{command}` does not ask before it acts: the permission mode and permission rules do not apply to it")
        })
    }

    fn driver(&self, request: &Request) -> Box<dyn Driver> {
        let (resume, model, mode) = (request.resume.clone(), request.model.clone(), request.mode);
        let folder = super::absolute(&request.folder);
        let in_protocol = self.has_tools_in_protocol();
        let client_tools = request.tool_endpoint().filter(|_| in_protocol);
        match &*self.dialect {
            _ if self.screen => {
                let types_prompt = self.prompt == Prompt::Stdin;
                Box::new(PlainScreenDriver::new(self.command.clone(), types_prompt))
            }
            _ if self.prompt != Prompt::Protocol => Box::new(PlainDriver::new(self.interrupt)),
            "claude" => Box::<ClaudeDriver>::default(),
            "acp" => {
                let tool_command = request.tool_command().filter(|_| in_protocol);
                let session = AcpSession {
                    resume,
                    folder,
                    model,
                    mode,
                    client_tools,
                    tool_command,
                    ..AcpSession::default()
                };
                Box::new(AcpDriver::new(session))
            }
            _ => Box::new(CodexDriver::new(Thread { resume, folder, model, mode, client_tools })),
        }
    }

    /// The arguments, with the values of the request inserted.
    fn arguments(&self, added: Vec<OsString>, request: &Request) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let facts = [
            ("{prompt}", Some(PROMPT)),
            ("{model}", request.model.as_deref()),
            ("{session}", request.resume.as_deref()),
        ];
        for argument in &self.arguments {
            let named = facts.iter().find(|(name, _)| argument.contains(name));
            match named {
                None => arguments.push(argument.into()),
                Some((name, Some(fact))) => arguments.push(argument.replace(name, fact).into()),
                Some((name, None)) if argument == name => {
                    // The flag before it would be left without its value.
                    arguments
                        .pop_if(|flag| flag.to_str().is_some_and(|flag| flag.starts_with('-')));
                }
                Some((_, None)) => {}
            }
        }
        arguments.extend(added);
        arguments.extend(request.flags.iter().map(OsString::from));
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_value_is_left_out_with_its_flag() {
        let text = r#"
            command = "sh"
            arguments = ["-c", "--model", "{model}", "--resume={session}", "{prompt}"]
            dialect = "codex"
            prompt = "argument"
        "#;
        let program = Program::parse(text).unwrap();
        let request = Request::default();
        assert_eq!(program.arguments(Vec::new(), &request), ["-c", PROMPT]);
        let request = Request {
            model: Some("m".into()),
            resume: Some("s".into()),
            flags: vec!["--own".into()],
            ..request
        };
        let all = ["-c", "--model", "m", "--resume=s", PROMPT, "--own"];
        assert_eq!(program.arguments(Vec::new(), &request), all);
    }

    #[test]
    fn the_problem_of_an_invalid_description_is_named() {
        let parse = |text| Program::parse(text).unwrap_err();
        assert!(parse("command = 1").contains("command"));
        assert!(parse("command = 'a'\ndialect = 'nope'").contains("codex"));
        assert!(parse("command = 'a'\ndialect = 'codex'\nmodle = 'x'").contains("modle"));
        assert!(
            parse("command='a'\ndialect='codex'\nprompt='protocol'").contains("cannot be prompted")
        );
        assert!(parse("command='a'\ndialect='codex'\ninterrupt='hup'").contains("close-input"));
        let files = parse("command='a'\ndialect='codex'\n[files]\n'../up'='x'");
        assert!(files.contains("not in the working folder"), "{files}");
    }

    #[test]
    fn a_program_that_cannot_ask_is_reported() {
        for (prompt, asks) in [("stdin", false), ("argument", false), ("protocol", true)] {
            let text = format!("command='sh'\ndialect='claude'\nprompt='{prompt}'");
            let launch = Program::parse(&text).unwrap().launch(&Request::default()).unwrap();
            assert_eq!(launch.warnings.is_empty(), asks, "{prompt}: {:?}", launch.warnings);
        }
    }

    /// A person has to find the place in the file.
    #[test]
    fn an_error_shows_the_line_that_has_to_be_corrected() {
        let parse = |text| Program::parse(text).unwrap_err();
        let expected = "TOML parse error at line 2, column 1
  |
2 | promt = 'stdin'
  | ^^^^^
unknown field `promt`, expected one of `command`, `arguments`, `dialect`, `screen`, `prompt`, `interrupt`, `environment`, `files`, `client-tools`
";
        assert_eq!(parse("command = 'a'\npromt = 'stdin'\n"), format!("{expected}{ADVICE}"));
        let dialect = parse("command = 'a'\ndialect = 'nope'\n");
        assert!(dialect.starts_with("TOML parse error at line 2, column 11\n"), "{dialect}");
        let files = parse("command = 'a'\n\n[files]\n'../up' = 'x'\n");
        assert!(files.starts_with("TOML parse error at line 3"), "{files}");
    }
}
