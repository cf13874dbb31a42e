//! A named pipe through which a test and a shell script wait for each other, so that neither has to
//! guess how long the other takes.

use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Command;

use tokio::sync::oneshot;

pub(crate) struct Fifo {
    path: PathBuf,
    /// Both ends, so that nobody waits to open it, and it does not end before the test does.
    pipe: File,
    _folder: tempfile::TempDir,
}

impl Fifo {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let pipe = File::options().read(true).write(true).open(&path).unwrap();
        Self { path, pipe, _folder: folder }
    }

    /// The command of a script that tells the test that it came so far.
    pub(crate) fn tell(&self) -> String {
        format!("echo > {}", self.path.display())
    }

    /// The command of a script that waits until it is told to go on, by the test or by another script.
    pub(crate) fn wait(&self) -> String {
        format!("read told < {}", self.path.display())
    }

    /// Waits until a script has told that it came so far.
    pub(crate) async fn told(&self) {
        let (sender, told) = oneshot::channel();
        let mut pipe = self.pipe.try_clone().unwrap();
        // A thread, since what blocks in the runtime would keep a test that fails from ending.
        std::thread::spawn(move || {
            pipe.read_exact(&mut [0]).unwrap();
            let _ = sender.send(());
        });
        told.await.unwrap();
    }

    /// Lets a script go on that waits.
    pub(crate) fn let_go_on(&self) {
        (&self.pipe).write_all(b"\n").unwrap();
    }
}
