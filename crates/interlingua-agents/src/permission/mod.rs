//! Permissions: a mode, rules that take precedence over it, and decisions.
//!
//! A request is taken apart (`subject`), a command line into the simple commands that it would run
//! (`shell`), and each part is judged by the rules and the mode (`judge`). The user's guide is
//! `docs/permissions.md`. Nothing here knows an agent's protocol or runs a process; the file system
//! is only asked where links lead (`paths`).

mod always;
mod judge;
mod names;
pub(crate) mod paths;
mod rules;
mod shell;
mod subject;
mod visible;

use std::path::PathBuf;

use interlingua::event::ToolKind;

use judge::Finding;
pub use rules::{BadRule, Effect, Rule, Rules};
pub use visible::{is_hidden, visible};

/// How a permission request is decided if no rule matches it.
///
/// In every mode but `interactive` and `deny`, reading inside of the folder is allowed, except for secrets: by tools
/// that read, search or list files, and by commands that are known to only read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// For everything but reading, the user is asked.
    #[default]
    Ask,
    /// For everything, the user is asked, also for reading, as far as the agent asks.
    Interactive,
    /// Changing files inside of the folder is allowed too, except for secrets and for settings that
    /// make other programs run commands; for everything else, the user is asked.
    AcceptEdits,
    /// Every request is allowed, unless a rule denies it, or may deny it.
    Auto,
    /// Everything is denied that no rule allows, also reading, as far as the agent asks.
    Deny,
    /// The agent only makes a plan: everything but reading is denied, even if a rule allows it.
    Plan,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 6] =
        [Self::Ask, Self::Interactive, Self::AcceptEdits, Self::Auto, Self::Deny, Self::Plan];

    /// Whether only a rule allows something, also reading.
    fn needs_rule(self) -> bool {
        matches!(self, Self::Interactive | Self::Deny)
    }

    /// The name of the mode on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "default",
            Self::Interactive => "interactive",
            Self::AcceptEdits => "accept-edits",
            Self::Auto => "auto",
            Self::Deny => "deny",
            Self::Plan => "plan",
        }
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.as_str())
    }
}

/// A request of an agent to use a tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PermissionRequest {
    /// The id of the request, which the answer must carry.
    pub id: String,
    /// The tool call that waits for the decision, by its emitted and its native id.
    pub call: Vec<String>,
    /// The agent's name for the tool.
    pub tool: String,
    /// The kind of work that the tool does.
    pub kind: ToolKind,
    /// The input of the tool, as JSON.
    pub input: Option<String>,
    /// Whether the tool may get more input than the request states, such as the folder of its command:
    /// the agent has not reported the input of the call.
    pub may_lack_input: bool,
    /// The agent's description of the request, for the user.
    pub description: Option<String>,
    /// The folder in which the agent works.
    pub folder: PathBuf,
    /// Further folders that count as inside of the folder. The patterns of rules are not compared
    /// with paths below them, only with absolute ones.
    pub additional_folders: Vec<PathBuf>,
    /// Whether the folders have no links, as they were when the session began. Then a link that has taken
    /// the place of one since does not lead inside.
    pub folders_are_resolved: bool,
    /// Files outside of the folder that may be read as if they were inside: files that the agent was given by their path.
    pub readable_files: Vec<PathBuf>,
    /// Whether the tool itself skips secrets in whatever it searches, unless they are named. Then a
    /// search needs no question because of a secret somewhere below its folder.
    pub skips_secrets: bool,
}

impl PermissionRequest {
    /// What the request is about, in a few words: its tool, and its command, paths or address.
    pub fn subject(&self) -> String {
        let subject = match subject::Subject::of(self) {
            subject::Subject::Files { paths: Some(paths), .. } => paths.join(", "),
            subject::Subject::Command(_) => subject::command_text(self).unwrap_or_default(),
            subject::Subject::Files { paths: None, .. } => String::new(),
            subject::Subject::Other(input) => input.named.join(", "),
        };
        let tool = if self.tool.is_empty() { self.kind.as_str() } else { &self.tool };
        if subject.is_empty() { tool.to_owned() } else { format!("{tool} ({subject})") }
    }

    /// Whether the agent asks for the approval of its plan, after which it would begin to act.
    pub(crate) fn ends_planning(&self) -> bool {
        self.kind.as_str() == "switch_mode" && self.tool == "exit_plan_mode"
    }
}

/// The decision about a permission request.
///
/// Its JSON form is `{"decision":"allow"}` or `{"decision":"deny","reason":"…"}`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "decision", content = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decision {
    /// The request is allowed.
    Allow,
    /// The request is denied; the agent receives this reason.
    Deny(String),
}

/// The result of applying a policy to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The policy decides the request.
    Decided(Decision),
    /// The user has to decide it.
    AskUser {
        /// Why the policy does not decide it.
        reason: String,
        /// Whether a rule may deny the request, which is not known well enough to tell. Only the
        /// user may allow it, looking at this request; nothing may do so automatically.
        may_be_denied: bool,
    },
}

/// A mode, and the rules that take precedence over it.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// The mode that applies if no rule matches.
    pub mode: Mode,
    /// The rules.
    pub rules: Rules,
}

/// What is allowed for the rest of a session, together with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Always {
    /// The same commands or files.
    Same,
    /// Whatever the tool is used for that matches this pattern.
    Matching(String),
    /// Whatever the tool is used for.
    Tool,
}

impl Policy {
    /// Allows what a request is about for the rest of the session. The error explains why a rule
    /// cannot allow it.
    pub fn allow_always(
        &mut self,
        request: &PermissionRequest,
        always: &Always,
    ) -> Result<(), String> {
        let mut next = self.clone();
        let tool = always::tool_pattern(request);
        let allow = |pattern| Rule::new(&tool, pattern, Effect::Allow).map(|rule| vec![rule]);
        let rules = match always {
            Always::Same => always::exact_rules(request),
            Always::Matching(pattern) => allow(Some(pattern.as_str())),
            Always::Tool => allow(None),
        };
        next.rules.extend(rules.map_err(|bad| bad.to_string())?);
        match next.judge(request) {
            Verdict::Decided(Decision::Allow) => {
                *self = next;
                Ok(())
            }
            Verdict::Decided(Decision::Deny(why)) => Err(why),
            Verdict::AskUser { reason, .. } => Err(match always {
                Always::Matching(pattern) => {
                    format!("`{pattern}` would not allow this request: {reason}")
                }
                Always::Same | Always::Tool => {
                    format!("a rule cannot allow this request: {reason}")
                }
            }),
        }
    }

    /// Applies the policy to a request.
    pub fn judge(&self, request: &PermissionRequest) -> Verdict {
        let deny = |reason: String| Verdict::Decided(Decision::Deny(reason));
        let (reason, may_be_denied) = match judge::judge(self, request) {
            Finding::Allowed => return Verdict::Decided(Decision::Allow),
            Finding::Denied(reason) => return deny(reason),
            Finding::MayBeDenied(reason) if self.mode == Mode::Auto => return deny(reason),
            Finding::MayBeDenied(reason) => (reason, true),
            Finding::Asked(reason) | Finding::Undecided(reason) => (reason, false),
        };
        match self.mode {
            Mode::Ask | Mode::Interactive | Mode::AcceptEdits | Mode::Auto => {
                Verdict::AskUser { reason, may_be_denied }
            }
            Mode::Deny => deny(format!("the permission mode `deny` allows nothing: {reason}")),
            // Only the user approves a plan.
            Mode::Plan if request.ends_planning() => Verdict::AskUser { reason, may_be_denied },
            Mode::Plan => deny(format!("the permission mode `plan` allows no changes: {reason}")),
        }
    }
}

#[cfg(test)]
mod tests;
