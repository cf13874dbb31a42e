//! The file that a program prints into, read while it grows.

use std::fs::File;
use std::io;

use super::follow::Follow;

/// The maximum size of one read.
const CHUNK: usize = 64 << 10;

/// How much read output accumulates before its disk space is reclaimed.
const RECLAIM_SIZE: u64 = 16 << 20;

/// The complete output of a program, in order, whenever it is read.
#[derive(Debug)]
pub struct Spool {
    file: File,
    /// The same file, opened for writing.
    writer: File,
    follow: Follow,
    read: u64,
    reclaimed: u64,
    /// Whether the program truncated the file.
    truncated: bool,
    chunk: Vec<u8>,
}

impl Spool {
    pub(super) fn new() -> io::Result<Self> {
        let (file, writer) = open_pair()?;
        if free_space(&file) == Some(0) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let follow = Follow::new(&file)?;
        protect(&file);
        let chunk = vec![0; CHUNK];
        Ok(Self { file, writer, follow, read: 0, reclaimed: 0, truncated: false, chunk })
    }

    /// The handle that the program writes to.
    pub(super) fn writer(&self) -> io::Result<File> {
        self.writer.try_clone()
    }

    /// The next chunk of unread output; empty if everything was read.
    pub fn read(&mut self) -> io::Result<&[u8]> {
        let mut length = read_at(&self.file, &mut self.chunk, self.read)?;
        if length == 0 && self.file.metadata()?.len() < self.read {
            // What is there now was printed after the file was truncated.
            (self.truncated, self.read, self.reclaimed) = (true, 0, 0);
            length = read_at(&self.file, &mut self.chunk, self.read)?;
        }
        self.read += length as u64;
        if self.read - self.reclaimed >= RECLAIM_SIZE {
            reclaim(&self.file, self.reclaimed, self.read - self.reclaimed);
            self.reclaimed = self.read;
        }
        Ok(self.chunk.get(..length).unwrap_or_default())
    }

    /// Whether there may be more after a read of this length. If not, wait with [`Spool::grown`].
    pub fn may_have_more(&self, read_last: usize) -> bool {
        read_last == self.chunk.len()
    }

    /// The size of the unread output.
    pub fn unread(&self) -> u64 {
        self.file.metadata().map_or(0, |file| file.len().saturating_sub(self.read))
    }

    /// Whether the program truncated its own output, so that some of it may be missing. On Linux it
    /// can do so only where the file cannot be protected.
    pub fn was_truncated(&self) -> bool {
        self.truncated
    }

    /// Whether the disk has hardly any space for more output.
    pub fn is_disk_full(&self) -> bool {
        free_space(&self.file).is_some_and(|free| free < CHUNK as u64)
    }

    /// Whether nothing was ever printed.
    pub fn is_empty(&self) -> bool {
        self.read == 0 && self.unread() == 0
    }

    /// Waits until more is printed.
    pub async fn grown(&mut self) {
        self.changed().await;
        self.acknowledge();
    }

    /// Waits until more was printed than is [acknowledged](Self::acknowledge).
    pub(crate) async fn changed(&mut self) {
        self.follow.changed().await;
    }

    /// Everything that was printed so far is about to be read. Until then, what is printed wakes
    /// no one who is not waiting. Returns whether what is printed from now on will be noticed.
    pub(crate) fn acknowledge(&mut self) -> bool {
        self.follow.acknowledge(&self.file)
    }
}

#[cfg(unix)]
fn read_at(file: &File, into: &mut [u8], from: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, from)
}

#[cfg(windows)]
fn read_at(file: &File, into: &mut [u8], from: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, into, from)
}

/// An unnamed file, and a second handle in append mode, so that several processes can write to its
/// end.
#[cfg(target_os = "linux")]
fn open_pair() -> io::Result<(File, File)> {
    use std::os::fd::AsRawFd;
    let file = tempfile::tempfile()?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let writer = File::options().append(true).open(path)?;
    Ok((file, writer))
}

/// An unnamed file, and a second handle for writing.
#[cfg(all(unix, not(target_os = "linux")))]
fn open_pair() -> io::Result<(File, File)> {
    let file = tempfile::tempfile()?;
    // Both handles share one file position, which only the program uses; our reads name their
    // offset.
    let writer = file.try_clone()?;
    Ok((file, writer))
}

/// A file that is deleted when it is closed, even if we are killed, and a second handle in append
/// mode. The file is opened twice because handles from one opening share a position, which reading
/// would move.
#[cfg(windows)]
fn open_pair() -> io::Result<(File, File)> {
    use std::os::windows::fs::OpenOptionsExt;

    const FILE_ATTRIBUTE_TEMPORARY: u32 = 0x0000_0100;
    const FILE_FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;
    let flags = FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE;
    let named = tempfile::Builder::new().disable_cleanup(true).make(|path| {
        File::options().read(true).write(true).create_new(true).custom_flags(flags).open(path)
    })?;
    let writer = File::options().append(true).open(named.path())?;
    Ok((named.into_file(), writer))
}

/// The bytes that this user can still store in a file system, if it reports them.
#[cfg(unix)]
fn free_space(file: &File) -> Option<u64> {
    let space = rustix::fs::fstatvfs(file).ok()?;
    let is_root = rustix::process::geteuid().is_root();
    let free = if is_root { space.f_bfree } else { space.f_bavail };
    (space.f_blocks > 0).then(|| free.saturating_mul(space.f_frsize))
}

/// Elsewhere, a full disk is noticed by the agent only.
#[cfg(not(unix))]
fn free_space(_file: &File) -> Option<u64> {
    None
}

/// Prevents that the program opens the file again through `/dev/stdout`, which would truncate it.
/// The program gets an error instead.
///
/// A mode without permission to write is enough for ordinary users; without permission to read, they
/// could not watch the file. Root ignores it, but may protect a file as append-only, where the file
/// system has this attribute.
#[cfg(target_os = "linux")]
fn protect(file: &File) {
    use rustix::fs::{IFlags, Mode};
    // A truncation that cannot be prevented is noticed by the reader.
    let _ = rustix::fs::fchmod(file, Mode::RUSR);
    let _ = set_flag(file, IFlags::APPEND, true);
}

#[cfg(target_os = "linux")]
fn set_flag(file: &File, flag: rustix::fs::IFlags, on: bool) -> io::Result<()> {
    let mut flags = rustix::fs::ioctl_getflags(file)?;
    flags.set(flag, on);
    Ok(rustix::fs::ioctl_setflags(file, flags)?)
}

/// Elsewhere, `/dev/stdout` is the open file itself.
#[cfg(not(target_os = "linux"))]
fn protect(_file: &File) {}

/// Frees the disk space of the part that was read, while the file is still being written.
#[cfg(target_os = "linux")]
fn reclaim(file: &File, from: u64, length: u64) {
    use rustix::fs::{FallocateFlags, IFlags};
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    // An append-only file has no holes, so it is not append-only for this moment.
    let protected = set_flag(file, IFlags::APPEND, false).is_ok();
    // A file system without this feature keeps the bytes until the file is closed.
    let _ = rustix::fs::fallocate(file, flags, from, length);
    if protected {
        let _ = set_flag(file, IFlags::APPEND, true);
    }
}

#[cfg(not(target_os = "linux"))]
fn reclaim(_file: &File, _from: u64, _length: u64) {}
