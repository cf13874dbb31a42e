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

    /// Waits for a change that is not [acknowledged](Self::acknowledge) yet. Several changes are one.
    pub(super) async fn changed(&mut self) {
        // An error would be one for ever.
        if self.inotify.readable().await.is_err() {
            std::future::pending().await
        }
    }

    /// Forgets the changes so far. Until then, further changes are added to the one that is known,
    /// and cause no wake-up.
    pub(super) fn acknowledge(&mut self) {
        let mut events = [0; 4096];
        // The contents of the events are irrelevant; their arrival means that the file changed.
        while self.inotify.try_read(&mut events).is_ok_and(|length| length > 0) {}
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

    pub(super) fn acknowledge(&mut self) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Write;
    use std::time::Duration;

    use super::super::Spool;

    #[tokio::test]
    async fn a_change_is_known_until_it_is_acknowledged() {
        let mut spool = Spool::new().unwrap();
        let mut writer = spool.writer().unwrap();
        writer.write_all(b"a").unwrap();
        spool.changed().await;
        assert_eq!(spool.read().unwrap(), b"a");
        writer.write_all(b"b").unwrap();
        // Both changes are one, which is still known.
        spool.changed().await;
        spool.acknowledge();
        assert_eq!(spool.read().unwrap(), b"b");
        let at_once = tokio::time::timeout(Duration::ZERO, spool.changed()).await;
        assert!(at_once.is_err(), "nothing was printed");
        writer.write_all(b"c").unwrap();
        spool.grown().await;
        assert_eq!(spool.read().unwrap(), b"c");
    }
}
