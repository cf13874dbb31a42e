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
    follow: Follow,
    read: u64,
    given_back: u64,
    piece: Vec<u8>,
}

impl Spool {
    pub(super) fn new() -> io::Result<Self> {
        let file = tempfile::tempfile()?;
        let follow = Follow::new(&file)?;
        Ok(Self { file, follow, read: 0, given_back: 0, piece: vec![0; PIECE] })
    }

    /// The end that the program writes to.
    pub(super) fn writer(&self) -> io::Result<File> {
        appending(&self.file)
    }

    /// What was printed and not read yet, up to a limit; nothing where all of it was read.
    pub fn read(&mut self) -> io::Result<&[u8]> {
        let length = read_at(&mut self.file, &mut self.piece, self.read)?;
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
fn read_at(file: &mut File, into: &mut [u8], from: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, from)
}

#[cfg(not(unix))]
fn read_at(file: &mut File, into: &mut [u8], from: u64) -> io::Result<usize> {
    use std::io::{Read, Seek, SeekFrom};
    file.seek(SeekFrom::Start(from))?;
    file.read(into)
}

/// The same file, opened so that whoever writes to it adds to its end, also from several processes.
#[cfg(target_os = "linux")]
fn appending(file: &File) -> io::Result<File> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    std::fs::OpenOptions::new().append(true).open(path)
}

#[cfg(not(target_os = "linux"))]
fn appending(file: &File) -> io::Result<File> {
    // The position is the program's alone: we read where we say.
    file.try_clone()
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
