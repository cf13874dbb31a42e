//! Judges the parts of a request: each command, each file that is read or written.

use std::path::{Path, PathBuf};

use interlingua::event::ToolKind;

use super::paths::{Folder, Place};
use super::rules::{Effect, Match, Pattern, Rule, Ruling};
use super::shell::read_only::{self, View};
use super::shell::{self, Redirection, SimpleCommand};
use super::subject::{Access, CommandLine, Input, Subject};
use super::{Mode, PermissionRequest, Policy};

/// The judgement of a part. Of several parts, the greatest counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Finding {
    /// A rule or the mode allows it.
    Allowed,
    /// No rule decides it, and the mode does not allow it; with the reason.
    Undecided(String),
    /// A rule asks the user.
    Asked(String),
    /// What it does is not known well enough to exclude that a rule denies it.
    MayBeDenied(String),
    /// A rule denies it.
    Denied(String),
}

/// Judges a request by the rules and the mode.
pub(super) fn judge(policy: &Policy, request: &PermissionRequest) -> Finding {
    let folder = Folder::of(request);
    let judge = Judge { policy, request, folder: &folder };
    match Subject::of(request) {
        Subject::Command(line) => judge.command_line(&line),
        Subject::Files { access, paths } => judge.files(access, paths.as_deref()),
        Subject::Other(input) => judge.other(&input),
    }
}

/// The names of file tools, for files that a shell opens.
pub(super) const WRITERS: [&str; 4] = ["write", "edit", "Write", "Edit"];
pub(super) const READERS: [&str; 2] = ["read", "Read"];

/// Replaces blanks inside of a word, so that only `*` and `?` match them.
const BLANK_IN_WORD: char = '\u{fffc}';

struct Judge<'j> {
    policy: &'j Policy,
    request: &'j PermissionRequest,
    folder: &'j Folder,
}

impl Judge<'_> {
    fn names(&self) -> [&str; 2] {
        [&self.request.tool, self.request.kind.as_str()]
    }

    /// A tool of which little is known. What it does may depend on each of its fields, so a pattern allows
    /// it only if it matches all that are compared.
    fn other(&self, input: &Input) -> Finding {
        let compare = |effect, pattern: &Pattern| {
            let matches = |subject: &String| pattern.matches(subject);
            yes(match effect {
                Effect::Allow => {
                    pattern.matches_input(&input.whole) || input.named.iter().all(matches)
                }
                Effect::Deny | Effect::Ask => {
                    input.named.iter().any(matches) || pattern.matches(&input.whole)
                }
            })
        };
        let ruling = self.policy.rules.apply(|rule| rule.is_for(&self.names()), compare);
        let reading = matches!(self.request.kind, ToolKind::Fetch | ToolKind::WebSearch);
        self.finding(ruling, reading, self.policy.mode == Mode::Auto, || self.request.tool.clone())
    }

    fn files(&self, access: Access, paths: Option<&[String]>) -> Finding {
        let names = self.names();
        let Some(paths) = paths else {
            let ruling = self.file_ruling(access, &names, |_, _| Match::Maybe);
            let free = self.policy.mode == Mode::Auto;
            return self.finding(ruling, access != Access::Write, free, || {
                "the request does not tell its files".to_owned()
            });
        };
        let base = &self.request.folder;
        let findings = paths.iter().map(|path| self.file(access, &names, base, path, false));
        findings.max().unwrap_or(Finding::Allowed)
    }

    /// A file that a tool or a shell opens. `tool_allowed` is set if a rule without a pattern allows
    /// whatever the tool does.
    fn file(
        &self,
        access: Access,
        names: &[&str],
        base: &Path,
        path: &str,
        tool_allowed: bool,
    ) -> Finding {
        let place = self.folder.place(base, path);
        let compare = |effect, pattern: &Pattern| {
            let forms = match effect {
                Effect::Allow => place.real_forms(),
                Effect::Deny | Effect::Ask => place.all_forms(),
            };
            yes(forms.iter().any(|form| pattern.matches(form)))
        };
        let mut ruling = self.file_ruling(access, names, compare);
        if tool_allowed && ruling == Ruling::Unmatched {
            ruling = Ruling::Allowed;
        }
        let free = self.mode_allows_file(access, &place);
        self.finding(ruling, access != Access::Write, free, || match access {
            Access::Write => format!("it writes {path}"),
            Access::Read | Access::Search(_) | Access::List => format!("it reads {path}"),
        })
    }

    /// What the rules say about a file. A rule that denies or asks about one way to change files is
    /// about every tool that does: a tool that writes a whole file can do what an edit does.
    fn file_ruling(
        &self,
        access: Access,
        names: &[&str],
        compare: impl Fn(Effect, &Pattern) -> Match,
    ) -> Ruling {
        let by_other_tools = |rule: &Rule| {
            access == Access::Write && rule.effect() != Effect::Allow && rule.is_for(&WRITERS)
        };
        self.policy.rules.apply(|rule| rule.is_for(names) || by_other_tools(rule), compare)
    }

    fn mode_allows_file(&self, access: Access, place: &Place) -> bool {
        let readable = || match access {
            Access::Read | Access::List => place.is_readable(),
            Access::Search(_) if self.request.skips_secrets => {
                place.is_readable() && !place.is_in_repository_data()
            }
            Access::Search(reader) => place.is_readable_by(reader),
            Access::Write => false,
        };
        match self.policy.mode {
            Mode::Auto => true,
            Mode::AcceptEdits if access == Access::Write => place.is_editable(),
            Mode::Ask | Mode::Interactive | Mode::AcceptEdits | Mode::Deny | Mode::Plan => {
                readable()
            }
        }
    }

    fn command_line(&self, line: &CommandLine) -> Finding {
        let CommandLine { script, wrapper, folder } = line;
        let base = folder.path(&self.request.folder);
        let mut findings = Vec::new();
        if let Some(reason) = script.unresolved {
            findings.push(self.unknown_command(reason));
        }
        findings.extend(wrapper.as_ref().and_then(|wrapper| self.wrapper(wrapper)));
        let same = base.as_ref().and_then(|base| base.canonicalize().ok());
        let at_home = same.is_some() && same == self.request.folder.canonicalize().ok();
        let moves = |base: &PathBuf| script.commands.iter().any(|command| moves(command, base));
        let base = base.filter(|base| !moves(base));
        let mut redirections = script.commands.iter().flat_map(|command| &command.redirections);
        // A command alone writes nothing but what it prints.
        let writes =
            script.commands.len() > 1 && redirections.any(|it| matches!(it, Redirection::Write(_)));
        for command in &script.commands {
            if !command.words.is_empty() || command.assigns {
                // What these read decides what they do, and the line may write it first.
                let base = base.as_deref().filter(|_| !writes || !read_only::obeys_files(command));
                findings.push(self.command(command, base, at_home));
            }
            for redirection in &command.redirections {
                findings.push(self.redirection(redirection, base.as_deref()));
            }
        }
        // A line of comments runs nothing; an agent has no reason to request one.
        findings.into_iter().max().unwrap_or(Finding::Undecided("it has no command".to_owned()))
    }

    /// A part of a line of which nothing is known: it may match every rule that denies or asks.
    fn unknown_command(&self, reason: &str) -> Finding {
        let mut names = self.names().to_vec();
        names.extend(WRITERS);
        let own = self.names();
        let compare = |_, _: &Pattern| Match::Maybe;
        let mut ruling = self.policy.rules.apply(|rule| rule.is_for(&names), compare);
        // Only a rule for commands allows a command.
        if ruling == Ruling::Allowed {
            ruling = self.policy.rules.apply(|rule| rule.is_for(&own), compare);
        }
        // A rule that denies writing as such denies no command that does not show that it writes.
        if let Ruling::Denied(_) = ruling {
            ruling = match self.policy.rules.apply(|rule| rule.is_for(&own), compare) {
                Ruling::Denied(pattern) => Ruling::Denied(pattern),
                _ => Ruling::MayBeDenied,
            };
        }
        let free = self.policy.mode == Mode::Auto;
        self.finding(ruling, false, free, || reason.to_owned())
    }

    /// The shell that the agent asked for, which a rule may deny or ask about by its name. What it
    /// runs is the script, which is judged on its own.
    fn wrapper(&self, command: &SimpleCommand) -> Option<Finding> {
        let words = command.literal_words();
        let compare = |effect, pattern: &Pattern| match effect {
            Effect::Allow => Match::No,
            Effect::Deny | Effect::Ask => {
                compare_strictly(pattern, command, words.as_deref(), true)
            }
        };
        match self.policy.rules.apply(|rule| rule.is_for(&self.names()), compare) {
            Ruling::Allowed | Ruling::Unmatched => None,
            ruling => {
                let subject = || format!("it runs `{}`", command.known_prefix());
                Some(self.finding(ruling, false, false, subject))
            }
        }
    }

    /// A command. What it does depends on its folder, so a pattern allows it only `at_home`: in the folder
    /// of the session.
    fn command(&self, command: &SimpleCommand, base: Option<&Path>, at_home: bool) -> Finding {
        let indirection = shell::indirection(command);
        let words = command.literal_words();
        let resolved = words.is_some() && indirection.is_none();
        let compare = |effect, pattern: &Pattern| match (effect, &words) {
            (Effect::Allow, Some(words)) if resolved && at_home => {
                yes(pattern.matches(&join_marked(words)))
            }
            (Effect::Allow, _) => Match::No,
            (Effect::Deny | Effect::Ask, words) => {
                compare_strictly(pattern, command, words.as_deref(), resolved)
            }
        };
        let ruling = self.policy.rules.apply(|rule| rule.is_for(&self.names()), compare);
        let view = base.map(|base| View { folder: self.folder, base });
        let reading = view.is_some_and(|view| read_only::is_read_only(command, &view));
        let free = self.policy.mode == Mode::Auto || reading;
        self.finding(ruling, reading, free, || match &indirection {
            Some(reason) => reason.clone(),
            None if words.is_none() => "it has a word that is not literal".to_owned(),
            None if !at_home => {
                format!("`{}` runs in another folder than the session", command.known_prefix())
            }
            None => {
                format!("`{}` is not known to only read inside the folder", command.known_prefix())
            }
        })
    }

    fn redirection(&self, redirection: &Redirection, base: Option<&Path>) -> Finding {
        let (access, names, word) = match redirection {
            Redirection::Read(word) => (Access::Read, &READERS[..], word),
            Redirection::Write(word) => (Access::Write, &WRITERS[..], word),
        };
        let own = self.policy.rules.apply(|rule| rule.is_for(&self.names()), |_, _| Match::No);
        let tool_allowed = own == Ruling::Allowed;
        let absolute = |path: &&str| Path::new(path).is_absolute();
        let base = base.or_else(|| word.literal().filter(absolute).map(|_| Path::new("/")));
        if let (Some(path), Some(base)) = (word.literal(), base) {
            return self.file(access, names, base, path, tool_allowed);
        }
        let mut ruling = self.file_ruling(access, names, |_, _| Match::Maybe);
        if tool_allowed && ruling == Ruling::Unmatched {
            ruling = Ruling::Allowed;
        }
        let free = self.policy.mode == Mode::Auto;
        self.finding(ruling, access == Access::Read, free, || {
            "it redirects to a file that is not known".to_owned()
        })
    }

    /// Joins what the rules say with what the mode allows. In the mode `plan`, a rule allows only
    /// what reads.
    fn finding(
        &self,
        ruling: Ruling,
        reading: bool,
        free: bool,
        subject: impl FnOnce() -> String,
    ) -> Finding {
        match ruling {
            Ruling::Denied(Some(pattern)) => {
                Finding::Denied(format!("the permission rule `{pattern}` denies it"))
            }
            Ruling::Denied(None) => {
                Finding::Denied(format!("a permission rule denies {}", self.request.tool))
            }
            Ruling::MayBeDenied => {
                Finding::MayBeDenied(format!("a permission rule may deny it: {}", subject()))
            }
            Ruling::Asked => Finding::Asked(subject()),
            Ruling::Allowed if reading || self.policy.mode != Mode::Plan => Finding::Allowed,
            Ruling::Unmatched if free && !self.policy.mode.needs_rule() => Finding::Allowed,
            Ruling::Allowed | Ruling::Unmatched => Finding::Undecided(subject()),
        }
    }
}

fn yes(matches: bool) -> Match {
    if matches { Match::Yes } else { Match::No }
}

/// Whether a command changes the folder, or may: later relative paths are not known then.
pub(super) fn moves(command: &SimpleCommand, base: &Path) -> bool {
    match command.name() {
        Some("cd" | "pushd" | "popd") => !read_only::stays(command, base),
        Some(_) => false,
        None => !command.words.is_empty(),
    }
}

/// The words of a command as an allow rule sees them: a blank inside of a word is not one between
/// words.
pub(super) fn join_marked(words: &[&str]) -> String {
    let mark = |word: &&str| word.replace(char::is_whitespace, &BLANK_IN_WORD.to_string());
    words.iter().map(mark).collect::<Vec<_>>().join(" ")
}

/// Compares a command with the pattern of a rule that denies or asks: by its name with and without
/// a folder, in any case, and by what is known if not everything is.
fn compare_strictly(
    pattern: &Pattern,
    command: &SimpleCommand,
    words: Option<&[&str]>,
    resolved: bool,
) -> Match {
    let known = command.known_prefix();
    let name = command.name().unwrap_or_default();
    let arguments = known.strip_prefix(name).unwrap_or_default();
    let bare = format!("{}{arguments}", shell::base_name(name));
    let lower = format!("{}{arguments}", shell::base_name(name).to_ascii_lowercase());
    let forms = [known, bare, lower];
    match words {
        Some(_) if forms.iter().any(|form| pattern.matches(form)) => Match::Yes,
        Some(_) if resolved => Match::No,
        // It may run anything.
        Some(_) => Match::Maybe,
        None if forms.iter().any(|form| pattern.could_match(form)) => Match::Maybe,
        // The name is literal, and what it names may run anything.
        None if command.assigns || shell::may_run_others(command) => Match::Maybe,
        None => Match::No,
    }
}
