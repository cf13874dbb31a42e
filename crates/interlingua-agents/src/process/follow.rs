//! Waits for changes of a file.

use std::fs::File;
use std::io;

/// The polling interval on systems without kernel events.
#[cfg(not(target_os = "linux"))]
const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(10);

/// Waits until a file is written to, with kernel events where they are available.
#[derive(Debug)]
pub(super) struct Follow {
    /// The inotify descriptor, which is read like a pipe.
    #[cfg(target_os = "linux")]
    inotify: tokio::net::unix::pipe::Receiver,
}

#[cfg(target_os = "linux")]
impl Follow {
    pub(super) fn new(file: &File) -> io::Result<Self> {
        use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
        use std::os::fd::AsRawFd;

        let descriptor = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        // An unnamed file still has a path under `/proc`.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        inotify::add_watch(&descriptor, path, WatchFlags::MODIFY)?;
        let inotify = tokio::net::unix::pipe::Receiver::from_owned_fd_unchecked(descriptor)?;
        Ok(Self { inotify })
    }

    /// Waits for the next change. Several changes may be reported as one.
    pub(super) async fn changed(&mut self) {
        let (mut events, mut changed) = ([0; 4096], false);
        // The contents of the events are irrelevant; their arrival means that the file changed.
        while !changed && self.inotify.readable().await.is_ok() {
            while self.inotify.try_read(&mut events).is_ok_and(|length| length > 0) {
                changed = true;
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
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
