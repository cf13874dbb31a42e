//! Watches the files of all followers with one inotify instance.
//!
//! A user may have 128 instances, unless the system is configured otherwise, and half a million
//! watches. So an instance for each live agent would limit their number, and would fail where other
//! programs of the user need some, too.
//!
//! A watch reports one change and is removed. So an agent that prints fast causes one wake-up, until
//! the change is acknowledged and the file is watched again.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use tokio::net::unix::pipe::Receiver;
use tokio::runtime::{Handle, Id};
use tokio::sync::watch;

/// The size of a change: the number of its watch, flags, a cookie and the length of its name.
const CHANGE: usize = 16;

/// The watchers of this process. An instance is read by a task, so each runtime has its own.
static WATCHERS: Mutex<Vec<(Id, Weak<Watcher>)>> = Mutex::new(Vec::new());

/// An inotify instance.
#[derive(Debug)]
pub(super) struct Watcher {
    /// It is read like a pipe.
    inotify: Receiver,
    /// Whom a change concerns, by the number of its watch.
    watched: Mutex<HashMap<i32, Arc<watch::Sender<bool>>>>,
}

impl Watcher {
    /// The watcher of this runtime.
    pub(super) fn of_runtime() -> io::Result<Arc<Self>> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let mut watchers = WATCHERS.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|(_, watcher)| watcher.strong_count() > 0);
        let known = watchers.iter().find(|(id, _)| *id == runtime.id());
        if let Some(watcher) = known.and_then(|(_, watcher)| watcher.upgrade()) {
            return Ok(watcher);
        }
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let inotify = Receiver::from_owned_fd_unchecked(inotify)?;
        let watcher = Arc::new(Self { inotify, watched: Mutex::default() });
        watchers.push((runtime.id(), Arc::downgrade(&watcher)));
        // It ends with the runtime.
        runtime.spawn(Arc::clone(&watcher).run());
        Ok(watcher)
    }

    /// Reports the next change of a file to `changed`. Returns the number of the watch.
    pub(super) fn watch(&self, file: &File, changed: &Arc<watch::Sender<bool>>) -> io::Result<i32> {
        // An unnamed file still has a path under `/proc`.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // A change that is read meanwhile has to find whom it concerns.
        let mut watched = self.lock();
        let flags = WatchFlags::MODIFY | WatchFlags::ONESHOT;
        let number = inotify::add_watch(&self.inotify, path, flags)?;
        watched.insert(number, Arc::clone(changed));
        Ok(number)
    }

    /// Ends a watch, which may have ended already.
    pub(super) fn forget(&self, number: i32) {
        if self.lock().remove(&number).is_some() {
            let _ = inotify::remove_watch(&self.inotify, number);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i32, Arc<watch::Sender<bool>>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports changes for as long as the runtime runs.
    async fn run(self: Arc<Self>) {
        let mut changes = [0; 4096];
        // An error would be one for ever.
        while self.inotify.readable().await.is_ok() {
            while let Ok(length @ 1..) = self.inotify.try_read(&mut changes) {
                self.report(changes.get(..length).unwrap_or_default());
            }
        }
    }

    fn report(&self, changes: &[u8]) {
        let mut watched = self.lock();
        // A change of a file has no name, so all of them have the same length.
        for change in changes.as_chunks::<CHANGE>().0 {
            let [number, flags, ..] = change.as_chunks().0 else { continue };
            let flags = ReadFlags::from_bits_retain(u32::from_ne_bytes(*flags));
            if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                // Some changes are lost, so every file may have changed.
                for (_, changed) in watched.drain() {
                    changed.send_replace(true);
                }
            } else if flags.contains(ReadFlags::MODIFY)
                && let Some(changed) = watched.remove(&i32::from_ne_bytes(*number))
            {
                changed.send_replace(true);
            }
        }
    }
}
