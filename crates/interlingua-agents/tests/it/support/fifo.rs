//! A named pipe through which a test and a shell script wait for each other, so that neither
//! depends on timing.

use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Command;

use tokio::sync::oneshot;

pub(crate) struct Fifo {
    path: PathBuf,
    /// Both ends, so that opening never blocks, and the pipe stays open until the test ends.
    pipe: File,
    folder: tempfile::TempDir,
}

impl Fifo {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let pipe = File::options().read(true).write(true).open(&path).unwrap();
        Self { path, pipe, folder }
    }

    /// The folder of the pipe, which a sandboxed script has to be allowed to write to.
    #[cfg(target_os = "linux")]
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// The shell command that signals the test.
    pub(crate) fn signal_command(&self) -> String {
        format!("echo > {}", self.path.display())
    }

    /// The shell command that waits for a signal from the test or another script.
    pub(crate) fn wait_command(&self) -> String {
        format!("read line < {}", self.path.display())
    }

    /// Waits for a signal from a script.
    pub(crate) async fn signalled(&self) {
        let (sender, received) = oneshot::channel();
        let mut pipe = self.pipe.try_clone().unwrap();
        // A thread, because a blocking task in the runtime would keep a failing test from ending.
        std::thread::spawn(move || {
            pipe.read_exact(&mut [0]).unwrap();
            let _ = sender.send(());
        });
        received.await.unwrap();
    }

    /// Signals a waiting script.
    pub(crate) fn release(&self) {
        (&self.pipe).write_all(b"\n").unwrap();
    }
}
