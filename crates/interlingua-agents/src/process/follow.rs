//! Being woken when a file changes.

use std::fs::File;
use std::io;

/// How often a file is looked at where nobody tells that it changed.
#[cfg(not(target_os = "linux"))]
const LOOK: std::time::Duration = std::time::Duration::from_millis(10);

/// Tells when a file was written to: by the kernel, where it can.
#[derive(Debug)]
pub(super) struct Follow {
    /// What the kernel tells; it is read like a pipe.
    #[cfg(target_os = "linux")]
    inotify: tokio::net::unix::pipe::Receiver,
}

#[cfg(target_os = "linux")]
impl Follow {
    pub(super) fn new(file: &File) -> io::Result<Self> {
        use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
        use std::os::fd::AsRawFd;

        let descriptor = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        // A file without a name has a path all the same.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        inotify::add_watch(&descriptor, path, WatchFlags::MODIFY)?;
        let inotify = tokio::net::unix::pipe::Receiver::from_owned_fd_unchecked(descriptor)?;
        Ok(Self { inotify })
    }

    /// Waits for the next change; several may be told as one.
    pub(super) async fn changed(&mut self) {
        let (mut notes, mut told) = ([0; 4096], false);
        // What the notes say is known: that there was a change.
        while !told && self.inotify.readable().await.is_ok() {
            while self.inotify.try_read(&mut notes).is_ok_and(|length| length > 0) {
                told = true;
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Follow {
    pub(super) fn new(_file: &File) -> io::Result<Self> {
        Ok(Self {})
    }

    pub(super) async fn changed(&mut self) {
        tokio::time::sleep(LOOK).await;
    }
}
