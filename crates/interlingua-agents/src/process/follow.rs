//! Waits for changes of a file.

use std::fs::File;
use std::io;

/// The polling interval on systems without kernel events.
#[cfg(not(target_os = "linux"))]
const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(10);

#[cfg(target_os = "linux")]
mod watcher;

/// Waits until a file is written to, with kernel events where they are available.
#[derive(Debug)]
pub(super) struct Follow {
    #[cfg(target_os = "linux")]
    watcher: std::sync::Arc<watcher::Watcher>,
    /// The number of the watch.
    #[cfg(target_os = "linux")]
    number: i32,
    /// There is a change that is not acknowledged. The file is not watched then.
    #[cfg(target_os = "linux")]
    changed: std::sync::Arc<tokio::sync::watch::Sender<bool>>,
}

#[cfg(target_os = "linux")]
impl Follow {
    pub(super) fn new(file: &File) -> io::Result<Self> {
        let watcher = watcher::Watcher::of_runtime()?;
        let changed = std::sync::Arc::default();
        let number = watcher.watch(file, &changed)?;
        Ok(Self { watcher, number, changed })
    }

    /// Waits for a change that is not [acknowledged](Self::acknowledge) yet. Several changes are one.
    pub(super) async fn changed(&mut self) {
        let mut changed = self.changed.subscribe();
        if changed.wait_for(|changed| *changed).await.is_err() {
            std::future::pending().await
        }
    }

    /// Forgets the changes so far. Until then, further changes are added to the one that is known,
    /// and cause no wake-up. Returns whether the file is watched.
    pub(super) fn acknowledge(&mut self, file: &File) -> bool {
        if !self.changed.send_replace(false) {
            // It is still watched.
            return true;
        }
        match self.watcher.watch(file, &self.changed) {
            Ok(number) => {
                self.number = number;
                true
            }
            // It is tried again when the file was read.
            Err(_) => {
                self.changed.send_replace(true);
                false
            }
        }
    }
}

#[cfg(target_os = "linux")]
impl Drop for Follow {
    fn drop(&mut self) {
        self.watcher.forget(self.number);
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

    pub(super) fn acknowledge(&mut self, _file: &File) -> bool {
        false
    }
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

    /// A user may have 128 inotify instances, so the 129th agent could not be started.
    #[tokio::test]
    async fn more_files_are_followed_than_a_user_has_inotify_instances() {
        let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_instances").unwrap();
        // Each file needs two descriptors.
        let count = limit.trim().parse().unwrap_or(128).min(300) + 1;
        let mut spools: Vec<_> = (0..count).map(|_| Spool::new().unwrap()).collect();
        let mut writers: Vec<_> = spools.iter().map(|spool| spool.writer().unwrap()).collect();
        for (number, (spool, writer)) in spools.iter_mut().zip(&mut writers).enumerate() {
            let at_once = tokio::time::timeout(Duration::ZERO, spool.changed()).await;
            assert!(at_once.is_err(), "{number}: another file has changed");
            writer.write_all(b"a").unwrap();
            spool.grown().await;
            assert_eq!(spool.read().unwrap(), b"a");
        }
    }
}
