//! Records the bytes of a run unchanged, and when they arrived.
//!
//! The bytes have a file of their own, which `interlingua translate` reads. Beside it,
//! `NAME.times.jsonl` has a line for each chunk, with its time, its length, or the text that was
//! sent to the agent. For an agent that has only a screen, the file contains the events that were
//! read from it, and `NAME.screen` contains what it drew.
//!
//! A recording contains whatever the agent read, so only its owner may read the files. A file that
//! exists is not overwritten unasked, and a symbolic link is never followed.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;

/// Records the bytes of a run.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    bytes: File,
    times: BufWriter<File>,
    screen: Option<File>,
    existing: Existing,
    /// The first error, after which nothing more is recorded.
    problem: Option<io::Error>,
    start: Instant,
}

/// What happens to a file that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Existing {
    Kept,
    Replaced,
}

impl Recorder {
    /// Creates the files of a recording, none of which may exist.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::open(path, Existing::Kept)
    }

    /// Creates the files of a recording, and overwrites those that exist.
    pub fn replace(path: &Path) -> io::Result<Self> {
        Self::open(path, Existing::Replaced)
    }

    fn open(path: &Path, existing: Existing) -> io::Result<Self> {
        let bytes = open(path, existing)?;
        let times = open(&beside(path, ".times.jsonl"), existing).inspect_err(|_| {
            if existing == Existing::Kept {
                // It is ours, and empty.
                let _ = std::fs::remove_file(path);
            }
        })?;
        Ok(Self {
            path: path.to_owned(),
            bytes,
            times: BufWriter::new(times),
            screen: None,
            existing,
            problem: None,
            start: Instant::now(),
        })
    }

    /// Records a chunk of the agent's output.
    pub(super) fn printed(&mut self, bytes: &[u8]) {
        self.attempt(|recorder| recorder.bytes.write_all(bytes));
        self.note(&json!({"ms": self.ms(), "printed": bytes.len()}));
    }

    /// Records what the agent drew on its screen.
    pub(super) fn shown(&mut self, bytes: &[u8]) {
        self.attempt(|recorder| {
            if recorder.screen.is_none() {
                let path = beside(&recorder.path, ".screen");
                recorder.screen = Some(open(&path, recorder.existing)?);
            }
            recorder.screen.as_mut().map_or(Ok(()), |screen| screen.write_all(bytes))
        });
        self.note(&json!({"ms": self.ms(), "shown": bytes.len()}));
    }

    /// Records what was sent to the agent.
    pub(super) fn sent(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        self.note(&json!({"ms": self.ms(), "sent": text.trim_end()}));
    }

    fn note(&mut self, note: &serde_json::Value) {
        self.attempt(|recorder| {
            writeln!(recorder.times, "{note}").and_then(|()| recorder.times.flush())
        });
    }

    /// Writes, unless that failed before. A failure to record does not end the run, but is reported
    /// at its end.
    fn attempt(&mut self, write: impl FnOnce(&mut Self) -> io::Result<()>) {
        if self.problem.is_none() {
            self.problem = write(self).err();
        }
    }

    /// Why the recording is incomplete, if it is.
    pub(super) fn finish(self) -> Option<String> {
        let Self { path, problem, .. } = self;
        problem.map(|problem| format!("{}: {problem}", path.display()))
    }

    fn ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Opens a file that only its owner may read.
fn open(path: &Path, existing: Existing) -> io::Result<File> {
    let mut options = File::options();
    options.write(true);
    match existing {
        Existing::Kept => options.create_new(true),
        Existing::Replaced => options.create(true).truncate(true),
    };
    let opened = protected(&mut options).open(path).and_then(|file| {
        // A device keeps its permissions.
        if existing == Existing::Replaced && file.metadata()?.is_file() {
            restrict(&file)?;
        }
        Ok(file)
    });
    opened.map_err(|problem| {
        let what = match problem.kind() {
            io::ErrorKind::AlreadyExists => "the file exists".to_owned(),
            _ if is_symlink(path) => "this is a symbolic link, which is not followed".to_owned(),
            _ => problem.to_string(),
        };
        io::Error::new(problem.kind(), format!("{}: {what}", path.display()))
    })
}

#[cfg(unix)]
fn protected(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
    options.mode(0o600).custom_flags(flags)
}

/// Takes the permissions of others from a file that had them.
#[cfg(unix)]
fn restrict(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn restrict(_file: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn protected(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

fn is_symlink(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|file| file.is_symlink())
}

/// The name of a file beside the recording.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
