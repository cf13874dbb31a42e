//! A program at a pseudoterminal.
//!
//! Its output is copied into the same kind of spool as that of other programs, and followed in the
//! same way. This module does not interpret the bytes.

use std::io;

use tokio::sync::mpsc;

use super::{Streams, Tree};

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// The number of rows.
    pub rows: u16,
    /// The number of columns.
    pub columns: u16,
}

/// Copies the terminal output of a program until the program has ended.
#[derive(Debug)]
pub(super) struct Copier {
    #[cfg(unix)]
    task: tokio::task::JoinHandle<()>,
}

/// The queue of keys to type.
type Keys = mpsc::UnboundedSender<Vec<u8>>;

#[cfg(unix)]
mod unix {
    use std::io::Write;
    use std::time::Duration;

    use tokio::io::AsyncReadExt;

    use super::*;

    /// How long copying the remaining output may take.
    const COPY_TIMEOUT: Duration = Duration::from_secs(1);

    /// Starts a program as the leader of a session at a new terminal.
    pub(in crate::process) fn start(
        mut command: tokio::process::Command,
        mark: String,
        size: Size,
        streams: &Streams<'_>,
    ) -> io::Result<(Tree, Keys, Copier)> {
        let (pty, pts) = open(size)?;
        set_kind(&mut command);
        let command = pty_process::Command::from(command).stderr(streams.stderr.try_clone()?);
        let tree = Tree::of(command.spawn(pts).map_err(problem)?, mark);
        let (typed, copier) = copy(pty, streams)?;
        Ok((tree, typed, copier))
    }

    /// Opens a terminal.
    pub(in crate::process) fn open(size: Size) -> io::Result<(pty_process::Pty, pty_process::Pts)> {
        let (pty, pts) = pty_process::open().map_err(problem)?;
        pty.resize(pty_process::Size::new(size.rows, size.columns)).map_err(problem)?;
        Ok((pty, pts))
    }

    /// Lets a program use the terminal, which it has to make its own.
    #[cfg(target_os = "linux")]
    pub(in crate::process) fn redirect(
        command: &mut tokio::process::Command,
        pts: &pty_process::Pts,
        streams: &Streams<'_>,
    ) -> io::Result<()> {
        use std::os::fd::AsFd;
        set_kind(command);
        command
            .stdin(pts.as_fd().try_clone_to_owned()?)
            .stdout(pts.as_fd().try_clone_to_owned()?)
            .stderr(streams.stderr.try_clone()?);
        Ok(())
    }

    /// Copies what is drawn at the terminal, and returns the queue of keys to type.
    pub(in crate::process) fn copy(
        pty: pty_process::Pty,
        streams: &Streams<'_>,
    ) -> io::Result<(Keys, Copier)> {
        let (mut output, typed) = pty.into_split();
        let mut copy = streams.spool.writer()?;
        let task = tokio::spawn(async move {
            let mut piece = vec![0; 16 << 10];
            // The end is reported as an error, because no process has the other side open any more.
            while let Ok(length @ 1..) = output.read(&mut piece).await {
                if copy.write_all(piece.get(..length).unwrap_or_default()).is_err() {
                    return;
                }
            }
        });
        Ok((super::super::spawn_writer(typed), Copier { task }))
    }

    fn set_kind(command: &mut tokio::process::Command) {
        command.env("TERM", "xterm-256color").env_remove("COLUMNS").env_remove("LINES");
    }

    fn problem(problem: pty_process::Error) -> io::Error {
        io::Error::other(problem.to_string())
    }

    impl Copier {
        /// Waits until everything was copied.
        pub(in crate::process) async fn done(self) {
            let Self { mut task } = self;
            if tokio::time::timeout(COPY_TIMEOUT, &mut task).await.is_err() {
                task.abort();
            }
        }
    }
}

#[cfg(unix)]
pub(super) use unix::start;
#[cfg(target_os = "linux")]
pub(super) use unix::{copy, open, redirect};

#[cfg(not(unix))]
pub(super) fn start(
    _command: tokio::process::Command,
    _mark: String,
    _size: Size,
    _streams: &Streams<'_>,
) -> io::Result<(Tree, Keys, Copier)> {
    Err(io::Error::other(
        "programs that have only a screen cannot be run on this system: there is no pseudoterminal",
    ))
}

#[cfg(not(unix))]
impl Copier {
    pub(super) async fn done(self) {}
}
