//! The command line of a guard: the mechanism, its channel, and the agent's program.

use std::ffi::OsString;
use std::io;

use rustix::process::{Pid, getppid};

use super::Isolation;
use super::channel::Ends;

/// How many arguments precede the program.
const FIXED: usize = 6;

/// What the guard has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setup {
    pub(super) stage: Stage,
    pub(super) isolation: Isolation,
    /// The process whose descriptors are the other ends of the channel.
    pub(super) parent: u32,
    /// The descriptors of the channel in the parent.
    pub(super) orders: i32,
    pub(super) reports: i32,
    pub(super) terminal: Terminal,
    /// The agent's program and its arguments; without them, the mechanism is only tried.
    pub(super) program: Option<(OsString, Vec<OsString>)>,
}

/// Which of its processes the guard is. A process that enters a PID namespace stays outside of it;
/// only its children are inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The process that was started by us.
    Guard,
    /// The first process inside the namespace.
    Init,
    /// The same, inside a new user namespace as well.
    InitOfUser,
}

/// Whether the standard streams are a terminal that the agent has to control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::process) enum Terminal {
    Yes,
    No,
}

impl Stage {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Guard, "guard"), (Self::Init, "init"), (Self::InitOfUser, "user-init")];
}

impl Terminal {
    const ALL: [(Self, &'static str); 2] = [(Self::Yes, "terminal"), (Self::No, "files")];
}

impl Setup {
    /// The arguments for the guard.
    pub(super) fn to_arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec![
            word(&Stage::ALL, self.stage).into(),
            self.isolation.as_str().into(),
            self.parent.to_string().into(),
            self.orders.to_string().into(),
            self.reports.to_string().into(),
            word(&Terminal::ALL, self.terminal).into(),
        ];
        if let Some((program, more)) = &self.program {
            arguments.push(program.clone());
            arguments.extend(more.iter().cloned());
        }
        arguments
    }

    pub(super) fn parse(arguments: &[OsString]) -> Option<Self> {
        let (fixed, program) = arguments.split_at_checked(FIXED)?;
        let mut fixed = fixed.iter().map(|argument| argument.to_str());
        let mut next = || fixed.next().flatten();
        Some(Self {
            stage: of_word(&Stage::ALL, next()?)?,
            isolation: Isolation::find(next()?)?,
            parent: next()?.parse().ok()?,
            orders: next()?.parse().ok()?,
            reports: next()?.parse().ok()?,
            terminal: of_word(&Terminal::ALL, next()?)?,
            program: program.split_first().map(|(first, rest)| (first.clone(), rest.to_vec())),
        })
    }

    /// Opens this process's ends of the channel through the parent's descriptors.
    ///
    /// Descriptors other than the standard streams cannot be inherited selectively without
    /// `unsafe`, but a pipe can be opened again through `/proc`.
    pub(super) fn open_channel(&self) -> io::Result<Ends> {
        let ends = Ends::open(self.parent, self.orders, self.reports)?;
        let is_parent = |pid: Pid| u32::try_from(pid.as_raw_pid()) == Ok(self.parent);
        // Inside a namespace the parent has no process id.
        if self.stage == Stage::Guard && !getppid().is_some_and(is_parent) {
            return Err(io::Error::other("the process that started this guard has ended"));
        }
        Ok(ends)
    }
}

fn word<T: Copy + PartialEq>(all: &[(T, &'static str)], value: T) -> &'static str {
    all.iter().find(|(one, _)| *one == value).map_or("", |(_, word)| word)
}

fn of_word<T: Copy>(all: &[(T, &'static str)], word: &str) -> Option<T> {
    all.iter().find(|(_, one)| *one == word).map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_as_they_were_written() {
        let program = Some(("sh".into(), vec!["--".into(), "-c".into(), "".into()]));
        for program in [None, program] {
            let setup = Setup {
                stage: Stage::InitOfUser,
                isolation: Isolation::Namespace,
                parent: 7,
                orders: 8,
                reports: 9,
                terminal: Terminal::Yes,
                program,
            };
            assert_eq!(Setup::parse(&setup.to_arguments()), Some(setup));
        }
        assert_eq!(Setup::parse(&["guard".into()]), None);
    }
}
