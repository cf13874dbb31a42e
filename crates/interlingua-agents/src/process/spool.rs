//! The file that a program prints into, read while it grows.

use std::fs::File;
use std::io;

use super::follow::Follow;

/// How much is read at once.
const PIECE: usize = 64 << 10;

/// How much of what was read is given back to the disk at once.
const GIVEN_BACK: u64 = 16 << 20;

/// What a program prints: all of it, in its order, whenever it is read.
#[derive(Debug)]
pub struct Spool {
    file: File,
    /// The same file, for whoever writes to it.
    writer: File,
    follow: Follow,
    read: u64,
    given_back: u64,
    piece: Vec<u8>,
}

impl Spool {
    pub(super) fn new() -> io::Result<Self> {
        let (file, writer) = opened()?;
        let follow = Follow::new(&file)?;
        Ok(Self { file, writer, follow, read: 0, given_back: 0, piece: vec![0; PIECE] })
    }

    /// The end that the program writes to.
    pub(super) fn writer(&self) -> io::Result<File> {
        self.writer.try_clone()
    }

    /// What was printed and not read yet, up to a limit; nothing where all of it was read.
    pub fn read(&mut self) -> io::Result<&[u8]> {
        let length = read_at(&self.file, &mut self.piece, self.read)?;
        self.read += length as u64;
        if self.read - self.given_back >= GIVEN_BACK {
            give_back(&self.file, self.given_back, self.read - self.given_back);
            self.given_back = self.read;
        }
        Ok(self.piece.get(..length).unwrap_or_default())
    }

    /// Whether there may be more than was read last: if not, [`Spool::grown`] will tell.
    pub fn may_have_more(&self, read_last: usize) -> bool {
        read_last == self.piece.len()
    }

    /// How much was printed and not read yet.
    pub fn unread(&self) -> u64 {
        self.file.metadata().map_or(0, |file| file.len().saturating_sub(self.read))
    }

    /// Whether nothing was ever printed.
    pub fn is_empty(&self) -> bool {
        self.read == 0 && self.unread() == 0
    }

    /// Waits until more was printed.
    pub async fn grown(&mut self) {
        self.follow.changed().await;
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

/// A file without a name; and the same, opened so that whoever writes to it adds to its end, also
/// from several processes.
#[cfg(target_os = "linux")]
fn opened() -> io::Result<(File, File)> {
    use std::os::fd::AsRawFd;
    let file = tempfile::tempfile()?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let writer = File::options().append(true).open(path)?;
    Ok((file, writer))
}

/// A file without a name; and the same, to be written to.
#[cfg(all(unix, not(target_os = "linux")))]
fn opened() -> io::Result<(File, File)> {
    let file = tempfile::tempfile()?;
    // Both have one position, which is the program's alone: we read where we say.
    let writer = file.try_clone()?;
    Ok((file, writer))
}

/// A file that is gone when we close it, or are killed; and the same, opened so that whoever writes
/// to it adds to its end. Opened once, both would have one position, and reading moves it.
#[cfg(windows)]
fn opened() -> io::Result<(File, File)> {
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

/// Gives the disk back what was read of a file that is still being written.
#[cfg(target_os = "linux")]
fn give_back(file: &File, from: u64, length: u64) {
    use rustix::fs::FallocateFlags;
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    // A file system that cannot do it keeps the bytes until the end.
    let _ = rustix::fs::fallocate(file, flags, from, length);
}

#[cfg(not(target_os = "linux"))]
fn give_back(_file: &File, _from: u64, _length: u64) {}
