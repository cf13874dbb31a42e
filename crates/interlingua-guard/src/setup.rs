//! The command line of a guard: the mechanism, its channel, and the agent's program.

use std::ffi::OsString;
use std::io;
use std::os::fd::RawFd;

use rustix::process::{Pid, getppid};

use crate::Isolation;
use crate::channel::Ends;

/// The version of what a guard and its client agree on: these arguments, the orders and the reports.
///
/// Raise it with every change after which a guard of the last release would not understand its
/// client, or would behave in another way than the client relies on: an argument that is added,
/// removed or means something else, a new order or report, another mechanism. A guard of another
/// version is then not used.
pub const PROTOCOL: u32 = 1;

/// How many arguments precede the program, without the number of the protocol.
const FIXED: usize = 6;

/// What the guard has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    pub(crate) stage: Stage,
    pub(crate) isolation: Isolation,
    /// The process whose descriptors are the other ends of the channel.
    pub(crate) parent: u32,
    /// The descriptors of the channel in the parent.
    pub(crate) orders: RawFd,
    pub(crate) reports: RawFd,
    pub(crate) terminal: Terminal,
    /// The agent's program and its arguments; without them, the mechanism is only tried.
    pub(crate) program: Option<(OsString, Vec<OsString>)>,
}

/// Which of its processes the guard is. A process that enters a PID namespace stays outside of it;
/// only its children are inside. Without a namespace, the second process watches the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The process that was started by the client.
    Guard,
    /// The first process inside the namespace.
    Init,
    /// The same, inside a new user namespace as well.
    InitOfUser,
    /// The process that starts the agent, without a namespace.
    Supervisor,
}

/// Whether the standard streams are a terminal that the agent has to control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// They are.
    Yes,
    /// They are files, pipes, or a terminal of others.
    No,
}

impl Stage {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Guard, "guard"),
        (Self::Init, "init"),
        (Self::InitOfUser, "user-init"),
        (Self::Supervisor, "supervisor"),
    ];
}

impl Terminal {
    const ALL: [(Self, &'static str); 2] = [(Self::Yes, "terminal"), (Self::No, "files")];
}

impl Setup {
    /// The setup of a guard that this process starts. The descriptors are its own ends of the
    /// channel, and the program is that of the agent; without one, the mechanism is only tried.
    pub fn of_child(
        isolation: Isolation,
        terminal: Terminal,
        (orders, reports): (RawFd, RawFd),
        program: Option<(OsString, Vec<OsString>)>,
    ) -> Self {
        let (stage, parent) = (Stage::Guard, std::process::id());
        Self { stage, isolation, parent, orders, reports, terminal, program }
    }

    /// The arguments for the guard.
    pub fn to_arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec![
            PROTOCOL.to_string().into(),
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

    /// Reads the arguments of a guard; `None` if they are not, or if they have another protocol.
    pub(crate) fn parse(arguments: &[OsString]) -> Option<Self> {
        has_protocol(arguments).then_some(())?;
        let (fixed, program) = arguments.get(1..)?.split_at_checked(FIXED)?;
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
    pub(crate) fn open_channel(&self) -> io::Result<Ends> {
        let ends = Ends::open(self.parent, self.orders, self.reports)?;
        let is_parent = |pid: Pid| u32::try_from(pid.as_raw_pid()) == Ok(self.parent);
        // Inside a namespace the parent has no process id.
        if self.stage == Stage::Guard && !getppid().is_some_and(is_parent) {
            return Err(io::Error::other("the process that started this guard has ended"));
        }
        Ok(ends)
    }
}

/// Whether these arguments are of the protocol that this version has.
pub(crate) fn has_protocol(arguments: &[OsString]) -> bool {
    arguments.first().is_some_and(|first| *first == *PROTOCOL.to_string())
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
        assert_eq!(Setup::parse(&["1".into(), "guard".into()]), None);
    }

    #[test]
    fn arguments_of_another_protocol_are_not_read() {
        let setup = Setup::of_child(Isolation::Tree, Terminal::No, (3, 4), None);
        let mut arguments = setup.to_arguments();
        assert_eq!(Setup::parse(&arguments), Some(setup));
        arguments[0] = (PROTOCOL + 1).to_string().into();
        assert_eq!(Setup::parse(&arguments), None);
    }
}
