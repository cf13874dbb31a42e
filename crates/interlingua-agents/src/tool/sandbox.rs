//! The sandbox of commands: where they may write, and whether they may use the network.
//!
//! On Linux, the kernel can restrict a process by its own request (Landlock), for itself and all
//! its descendants. A process with threads cannot do so for a child without `unsafe`, so the command
//! is started through a program that restricts itself and then becomes the command.
//!
//! Reading is not restricted. A sandboxed process cannot gain privileges (`sudo` fails), cannot
//! inspect processes outside of the sandbox, so that their environments stay hidden, and where the
//! kernel supports it, cannot send signals to them.
//!
//! A path is only a name, and a command may be able to give the name to something else, such as a link
//! that leads elsewhere. So the program is also told which folder or file each path has to be
//! ([`Identity`]), and runs nothing if it finds another one.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// The program that applies the sandbox. It receives further arguments after its own, and has to
/// call [`sandbox`] with them before it does anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// The program.
    pub program: PathBuf,
    /// Its own arguments.
    pub arguments: Vec<OsString>,
}

/// What a command may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// The folder in which it has to run.
    pub(super) folder: Option<Identity>,
    /// The folders and files that it may write to.
    pub(super) writable: Vec<(PathBuf, Identity)>,
    /// Whether it may use TCP.
    pub(super) network: bool,
}

/// A folder or a file, whatever its path is. As long as it is open somewhere, it is the only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

/// What the kernel supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Support {
    /// The version of Landlock's interface.
    Landlock(i32),
    /// There is no Landlock.
    None,
}

const FOLDER: &str = "--in";
const WRITE: &str = "--write";
const NO_NETWORK: &str = "--no-network";
const PROBE: &str = "--probe";
const END: &str = "--";

/// The first version that restricts TCP.
const WITH_NETWORK: i32 = 4;

impl Limits {
    /// The arguments for the program that applies them, before those of the command.
    pub(super) fn to_arguments(&self) -> Vec<OsString> {
        let write = |(path, identity): &(PathBuf, Identity)| {
            [WRITE.into(), identity.to_argument(), path.clone().into_os_string()]
        };
        let folder = self.folder.iter().flat_map(|it| [FOLDER.into(), it.to_argument()]);
        let mut arguments: Vec<_> = folder.chain(self.writable.iter().flat_map(write)).collect();
        if !self.network {
            arguments.push(NO_NETWORK.into());
        }
        arguments.push(END.into());
        arguments
    }

    /// Reads arguments. Returns the command, too.
    #[cfg(any(target_os = "linux", test))]
    fn parse(arguments: impl IntoIterator<Item = OsString>) -> Option<(Self, Vec<OsString>)> {
        let mut limits = Self { network: true, ..Self::default() };
        let mut arguments = arguments.into_iter();
        loop {
            let argument = arguments.next()?;
            match argument.to_str()? {
                FOLDER => limits.folder = Some(Identity::parse(&arguments.next()?)?),
                WRITE => {
                    let identity = Identity::parse(&arguments.next()?)?;
                    limits.writable.push((arguments.next()?.into(), identity));
                }
                NO_NETWORK => limits.network = false,
                END => return Some((limits, arguments.collect())),
                _ => return None,
            }
        }
    }
}

impl Identity {
    /// The identity of what is open.
    #[cfg(unix)]
    pub(super) fn of(file: &File) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = file.metadata()?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino() })
    }

    #[cfg(not(unix))]
    pub(super) fn of(_file: &File) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn to_argument(self) -> OsString {
        format!("{}:{}", self.device, self.inode).into()
    }

    #[cfg(any(target_os = "linux", test))]
    fn parse(argument: &std::ffi::OsStr) -> Option<Self> {
        let (device, inode) = argument.to_str()?.split_once(':')?;
        Some(Self { device: device.parse().ok()?, inode: inode.parse().ok()? })
    }
}

impl Sandbox {
    /// Asks the program what the kernel supports.
    pub(super) fn support(&self) -> Support {
        let mut command = std::process::Command::new(&self.program);
        // It needs no variable, so it gets none: some of them contain keys.
        command.args(&self.arguments).arg(PROBE).env_clear().stdin(std::process::Stdio::null());
        let printed = command.output().map(|output| output.stdout).unwrap_or_default();
        let version = String::from_utf8_lossy(&printed).trim().parse().unwrap_or(0);
        if version > 0 { Support::Landlock(version) } else { Support::None }
    }
}

impl Support {
    /// Sentences for the user on what is enforced for commands.
    pub(super) fn sentences(self, network: bool) -> Vec<String> {
        let Self::Landlock(version) = self else {
            let mut sentences = vec![
                "Bash is not sandboxed, because there is no Landlock here: a permitted command can \
                 write wherever the user can."
                    .to_owned(),
            ];
            if !network {
                sentences.push("The network of commands is not blocked.".to_owned());
            }
            return sentences;
        };
        let truncates = if version < 3 { " It can truncate other files." } else { "" };
        let mut sentences = vec![format!(
            "Bash is sandboxed (Landlock {version}): a command can write only to the folders, to \
             $TMPDIR and to caches, and can read what the user can.{truncates}"
        )];
        sentences.push(
            "Not enforced by the sandbox: reading, connections to Unix sockets in the file system, \
             and changes of the mode, the owner and the times of other files."
                .to_owned(),
        );
        match (network, version >= WITH_NETWORK) {
            (true, _) => {}
            (false, true) => sentences.push(
                "Commands have no TCP; UDP, which includes most name lookups, and Unix sockets \
                 are not blocked."
                    .to_owned(),
            ),
            (false, false) => sentences.push(
                "The network of commands is not blocked: that needs Landlock 4 (Linux 6.7)."
                    .to_owned(),
            ),
        }
        sentences
    }
}

/// Restricts this process as the arguments say, and becomes the command that follows them; see
/// [`Sandbox`]. It returns only if that fails, or if the arguments only ask what is supported.
#[cfg(target_os = "linux")]
pub fn sandbox(arguments: impl IntoIterator<Item = OsString>) -> io::Result<u8> {
    use std::os::unix::process::CommandExt;
    let arguments: Vec<_> = arguments.into_iter().collect();
    if arguments.first().is_some_and(|first| first == PROBE) {
        use io::Write;
        writeln!(io::stdout(), "{}", landlock_version()?)?;
        return Ok(0);
    }
    let invalid =
        || io::Error::new(io::ErrorKind::InvalidInput, "these are not the arguments of a sandbox");
    let (limits, command) = Limits::parse(arguments).ok_or_else(invalid)?;
    let (program, arguments) = command.split_first().ok_or_else(invalid)?;
    let not_applied = |problem: String| {
        io::Error::other(format!("the sandbox could not be applied, so nothing ran: {problem}"))
    };
    let writable = limits.open().map_err(not_applied)?;
    restrict(&limits, writable).map_err(|problem| not_applied(problem.to_string()))?;
    drop_capabilities()?;
    let problem = std::process::Command::new(program).args(arguments).exec();
    Err(io::Error::new(problem.kind(), format!("{}: {problem}", program.display())))
}

/// Applies a sandbox, on systems that have one; this one does not.
#[cfg(not(target_os = "linux"))]
pub fn sandbox(_arguments: impl IntoIterator<Item = OsString>) -> io::Result<u8> {
    Err(io::Error::other("the sandbox exists only on Linux"))
}

/// The newest interface that is known here. Older kernels enforce what they can.
#[cfg(target_os = "linux")]
const NEWEST: landlock::ABI = landlock::ABI::V6;

/// Opens a path only to refer to what is there.
#[cfg(target_os = "linux")]
pub(super) fn refer(path: &std::path::Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?.into())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn refer(_path: &std::path::Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
impl Limits {
    /// Opens what may be written to. What does not exist any more cannot be written to; what is not
    /// the same any more is an error.
    fn open(&self) -> Result<Vec<File>, String> {
        let check = |path: &std::path::Path, file: &File, expected: Identity| {
            let is_same = Identity::of(file).is_ok_and(|found| found == expected);
            is_same.then_some(()).ok_or_else(|| {
                format!(
                    "{} is not what it was when the session began, because it was moved or replaced; \
                     move it back, or start a new session",
                    path.display()
                )
            })
        };
        if let Some(expected) = self.folder {
            let here = std::path::Path::new(".");
            let file = refer(here).map_err(|problem| format!("the working folder: {problem}"))?;
            let path = std::env::current_dir().unwrap_or_else(|_| here.to_owned());
            check(&path, &file, expected)?;
        }
        let mut opened = Vec::new();
        for (path, expected) in &self.writable {
            let Ok(file) = refer(path) else { continue };
            check(path, &file, *expected)?;
            opened.push(file);
        }
        Ok(opened)
    }
}

/// Restricts this process; it may write to `writable`.
#[cfg(target_os = "linux")]
fn restrict(
    limits: &Limits,
    writable: Vec<File>,
) -> Result<landlock::RestrictionStatus, landlock::RulesetError> {
    use landlock::{
        Access, AccessFs, AccessNet, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr, Scope,
    };
    let writes = AccessFs::from_write(NEWEST);
    let mut ruleset = Ruleset::default().handle_access(writes)?.scope(Scope::Signal)?;
    if !limits.network {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?;
        ruleset = ruleset.scope(Scope::AbstractUnixSocket)?;
    }
    let rules = writable.into_iter().map(|file| {
        let is_folder = file.metadata().is_ok_and(|metadata| metadata.is_dir());
        let access = if is_folder { writes } else { writes & AccessFs::from_file(NEWEST) };
        Ok::<_, landlock::RulesetError>(PathBeneath::new(file, access))
    });
    ruleset.create()?.add_rules(rules)?.restrict_self()
}

/// Gives up what lets root read the memory of any process, past Landlock: with it, a command would
/// find the keys in the environment of its parents. As the process cannot gain privileges any more,
/// the command does not get them back.
#[cfg(target_os = "linux")]
fn drop_capabilities() -> io::Result<()> {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let dropped = CapabilitySet::PERFMON | CapabilitySet::SYS_ADMIN;
    let mut sets = capabilities(None)?;
    if sets.permitted.intersects(dropped) {
        for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
            set.remove(dropped);
        }
        set_capabilities(None, sets)?;
    }
    Ok(())
}

/// The version of the interface; 0 if there is none. This process is restricted afterwards.
#[cfg(target_os = "linux")]
fn landlock_version() -> io::Result<i32> {
    let limits = Limits { network: true, ..Limits::default() };
    let status = restrict(&limits, Vec::new()).map_err(io::Error::other)?;
    Ok(match status.landlock {
        landlock::LandlockStatus::Available { effective_abi, kernel_abi } => {
            kernel_abi.unwrap_or(effective_abi as i32)
        }
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_as_they_were_written() {
        for network in [true, false] {
            let identity = |inode| Identity { device: u64::MAX, inode };
            let writable = vec![("/a b".into(), identity(1)), ("--".into(), identity(2))];
            let limits = Limits { folder: Some(identity(3)), writable, network };
            let command: Vec<OsString> = vec!["sh".into(), "-c".into(), "--write".into()];
            let arguments = limits.to_arguments().into_iter().chain(command.iter().cloned());
            assert_eq!(Limits::parse(arguments), Some((limits, command)));
        }
        assert_eq!(Limits::parse([OsString::from("sh")]), None);
    }

    /// The environment has keys, which no child process may see.
    #[test]
    #[cfg(unix)]
    fn the_probe_has_no_environment() {
        let script = "test -z \"$CARGO_MANIFEST_DIR\" && echo 4";
        let sandbox =
            Sandbox { program: "/bin/sh".into(), arguments: vec!["-c".into(), script.into()] };
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        assert_eq!(sandbox.support(), Support::Landlock(4));
    }

    #[test]
    fn what_is_not_enforced_is_stated() {
        let all = |support: Support, network| support.sentences(network).join(" ");
        assert!(all(Support::None, true).contains("not sandboxed"));
        assert!(all(Support::None, false).contains("network of commands is not blocked"));
        assert!(all(Support::Landlock(2), true).contains("truncate"));
        assert!(all(Support::Landlock(3), false).contains("needs Landlock 4"));
        assert!(all(Support::Landlock(6), false).contains("UDP"));
        let sentences = all(Support::Landlock(6), true);
        for what in ["reading", "Unix sockets", "mode", "owner", "times"] {
            assert!(sentences.contains(what), "{what}: {sentences}");
        }
    }
}
