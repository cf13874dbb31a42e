//! A program at a terminal that nobody looks at.
//!
//! What it shows is copied into the same file that the output of other programs goes into, and is
//! followed in the same way. It knows nothing of what the bytes mean.

use std::fs::File;
use std::io;

use tokio::sync::mpsc;

use super::{Spool, Tree};

/// How large a terminal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Its rows.
    pub rows: u16,
    /// Its columns.
    pub columns: u16,
}

/// Copies what a program shows, until it has ended.
#[derive(Debug)]
pub(super) struct Copier {
    #[cfg(unix)]
    task: tokio::task::JoinHandle<()>,
}

/// What is typed.
type Keys = mpsc::UnboundedSender<Vec<u8>>;

#[cfg(unix)]
mod unix {
    use std::io::Write;
    use std::time::Duration;

    use tokio::io::AsyncReadExt;

    use super::*;

    /// How long the last of what was shown may take to be copied.
    const LAST: Duration = Duration::from_secs(1);

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
        let (mut shown, typed) = pty.into_split();
        let mut copy = spool.writer()?;
        let task = tokio::spawn(async move {
            let mut piece = vec![0; 16 << 10];
            // The end is told as an error: nobody has the other side open any more.
            while let Ok(length @ 1..) = shown.read(&mut piece).await {
                if copy.write_all(piece.get(..length).unwrap_or_default()).is_err() {
                    return;
                }
            }
        });
        Ok((tree, super::super::written_to(typed), Copier { task }))
    }

    impl Copier {
        /// Waits until all was copied.
        pub(in crate::process) async fn done(self) {
            let Self { mut task } = self;
            if tokio::time::timeout(LAST, &mut task).await.is_err() {
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
    Err(io::Error::other("programs that have only a screen cannot be run on this system yet"))
}

#[cfg(not(unix))]
impl Copier {
    pub(super) async fn done(self) {}
}
