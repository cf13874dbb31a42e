//! The standard error of a program: a pipe, of which the end is kept in memory.
//!
//! A pipe is used although output is read from a file, since only the last lines matter: however
//! much a program prints there, nothing grows, and a program may open `/dev/stderr` again without
//! truncating anything. A thread reads the pipe, so that it never fills.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;

/// The number of bytes that are kept, counted from the end.
const KEPT: usize = 64 << 10;

/// The capacity of the pipe. A program that writes without blocking loses what exceeds it if it
/// exits at once.
#[cfg(target_os = "linux")]
const CAPACITY: usize = 1 << 20;

/// How long to wait for the end of the pipe, which a process that survived may hold.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// The end of a program's standard error.
#[derive(Debug)]
pub(super) struct Stderr {
    tail: Arc<Mutex<Tail>>,
    ended: Option<oneshot::Receiver<()>>,
}

/// The last bytes.
#[derive(Debug, Default)]
struct Tail {
    bytes: Vec<u8>,
    /// Whether there were more before them.
    cut: bool,
}

impl Stderr {
    /// Opens the pipe. Returns the end that the program writes to.
    pub(super) fn open() -> io::Result<(Self, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        #[cfg(target_os = "linux")]
        // Where the limit of the user is lower, the pipe stays as it is.
        let _ = rustix::pipe::fcntl_setpipe_size(&writer, CAPACITY);
        let tail = Arc::new(Mutex::new(Tail::default()));
        let (done, ended) = oneshot::channel();
        let kept = tail.clone();
        std::thread::Builder::new().name("stderr".to_owned()).spawn(move || {
            read(reader, &kept);
            // The receiver may have been dropped.
            let _ = done.send(());
        })?;
        Ok((Self { tail, ended: Some(ended) }, writer))
    }

    /// Waits until everything was read, once all processes have ended.
    pub(super) async fn ended(&mut self) {
        if let Some(ended) = self.ended.take() {
            // What was read so far is there in any case.
            let _ = tokio::time::timeout(END_TIMEOUT, ended).await;
        }
    }

    /// The last lines; an incomplete first line is dropped.
    pub(super) fn tail(&self) -> Option<String> {
        let tail = self.tail.lock().ok()?;
        let text = String::from_utf8_lossy(&tail.bytes);
        let text = match text.split_once('\n') {
            Some((_, whole)) if tail.cut => whole,
            _ => &*text,
        };
        Some(text.to_owned()).filter(|text| !text.trim().is_empty())
    }
}

fn read(mut pipe: PipeReader, tail: &Mutex<Tail>) {
    let mut piece = vec![0; KEPT];
    loop {
        match pipe.read(&mut piece) {
            Ok(length @ 1..) => {
                let Ok(mut tail) = tail.lock() else { return };
                tail.push(piece.get(..length).unwrap_or_default());
            }
            Err(problem) if problem.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return,
        }
    }
}

impl Tail {
    fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        let excess = self.bytes.len().saturating_sub(KEPT);
        if excess > 0 {
            self.bytes.drain(..excess);
            self.cut = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[tokio::test]
    async fn only_the_last_lines_are_kept() {
        let (mut stderr, mut writer) = Stderr::open().unwrap();
        for number in 0..100_000 {
            writeln!(writer, "line {number}").unwrap();
        }
        drop(writer);
        stderr.ended().await;
        let tail = stderr.tail().unwrap();
        assert!(tail.len() <= KEPT && tail.ends_with("line 99998\nline 99999\n"));
        assert!(tail.starts_with("line "), "{}", &tail[..20]);
    }
}
