//! A program at a pseudoterminal.
//!
//! Its output is copied into the same kind of spool as that of other programs, and followed in the
//! same way. This module does not interpret the bytes.

use std::fs::File;
use std::io;

use tokio::sync::mpsc;

use super::{Spool, Tree};

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

    pub(in crate::process) fn start(
        mut command: tokio::process::Command,
        mark: String,
        size: Size,
        spool: &Spool,
        stderr: &File,
    ) -> io::Result<(Tree, Keys, Copier)> {
        let problem = |problem: pty_process::Error| io::Error::other(problem.to_string());
        let (pty, pts) = pty_process::open().map_err(problem)?;
        pty.resize(pty_process::Size::new(size.rows, size.columns)).map_err(problem)?;
        command.env("TERM", "xterm-256color").env_remove("COLUMNS").env_remove("LINES");
        let command = pty_process::Command::from(command).stderr(stderr.try_clone()?);
        let tree = Tree::of(command.spawn(pts).map_err(problem)?, mark);
        let (mut output, typed) = pty.into_split();
        let mut copy = spool.writer()?;
        let task = tokio::spawn(async move {
            let mut piece = vec![0; 16 << 10];
            // The end is reported as an error, because no process has the other side open any more.
            while let Ok(length @ 1..) = output.read(&mut piece).await {
                if copy.write_all(piece.get(..length).unwrap_or_default()).is_err() {
                    return;
                }
            }
        });
        Ok((tree, super::super::spawn_writer(typed), Copier { task }))
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

#[cfg(not(unix))]
pub(super) fn start(
    _command: tokio::process::Command,
    _mark: String,
    _size: Size,
    _spool: &Spool,
    _stderr: &File,
) -> io::Result<(Tree, Keys, Copier)> {
    Err(io::Error::other(
        "programs that have only a screen cannot be run on this system: there is no pseudoterminal",
    ))
}

#[cfg(not(unix))]
impl Copier {
    pub(super) async fn done(self) {}
}
