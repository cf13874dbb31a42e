//! Standard output, whose reader may be slow.
//!
//! A thread writes, so that nothing else waits for the reader. It also encodes the entries of which
//! records are written, so that a fast stream is read and written at the same time. The queue holds
//! a few chunks; while it is full, no more entries of the session are taken. A short chunk for a
//! reader that is ready is written directly: most chunks are short, and waking a thread for each of
//! them costs more than everything else.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use interlingua::{Batch, Writer};
use tokio::sync::{Notify, mpsc, oneshot};

/// The capacity of the queue, in chunks.
const CAPACITY: usize = 8;

/// The number of bytes that a ready reader must accept without blocking.
const SHORT: usize = 4096;

/// The number of entries that are encoded without the thread.
const FEW: usize = 8;

/// Something to write to.
pub(crate) trait Destination: Write + Send {
    /// Whether 4096 bytes can be written now without blocking.
    fn is_ready(&self) -> bool {
        false
    }
}

/// The standard output of this process.
#[derive(Debug)]
pub(crate) struct Stdout(pub(crate) io::Stdout);

impl Write for Stdout {
    /// Writes past the buffer, which would write in two parts what does not end with a line.
    #[cfg(unix)]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(&self.0, bytes)?)
    }

    #[cfg(not(unix))]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Destination for Stdout {
    /// A pipe that is writable has room for the 4096 bytes that are required here.
    #[cfg(unix)]
    fn is_ready(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut watched = [PollFd::new(&self.0, PollFlags::OUT)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut watched, Some(&now)).is_ok()
            && watched.iter().any(|it| it.revents() == PollFlags::OUT)
    }
}

/// A change in the state of the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReaderChange {
    /// It accepts more.
    Ready,
    /// It accepts no more.
    Closed,
}

/// A chunk of the output.
enum Piece {
    Bytes(Vec<u8>),
    /// Entries that are written as records.
    Entries(Batch),
}

/// The destination, and how entries are encoded for it.
struct Target {
    destination: Box<dyn Destination>,
    writer: Option<Box<Writer>>,
    /// The records of the last entries; its memory is reused.
    records: Vec<u8>,
}

/// The queue of chunks for the reader.
pub(crate) struct Output {
    target: Arc<Mutex<Target>>,
    pieces: Option<mpsc::Sender<Piece>>,
    /// The number of chunks that the thread has not written yet.
    in_flight: Arc<AtomicUsize>,
    /// Chunks for which the queue had no capacity.
    waiting: VecDeque<Piece>,
    written: Option<oneshot::Receiver<()>>,
    /// Why the thread stopped writing.
    problem: Arc<OnceLock<io::Error>>,
    /// Notified when the thread has written a chunk, or stopped.
    progress: Arc<Notify>,
}

impl Output {
    /// `writer` encodes entries, if there will be any.
    pub(crate) fn new(destination: Box<dyn Destination>, writer: Option<Box<Writer>>) -> Self {
        let target = Arc::new(Mutex::new(Target { destination, writer, records: Vec::new() }));
        let in_flight = Arc::new(AtomicUsize::new(0));
        let (pieces, mut taken) = mpsc::channel::<Piece>(CAPACITY);
        let (done, written) = oneshot::channel();
        let (output, count) = (target.clone(), in_flight.clone());
        let problem = Arc::new(OnceLock::new());
        let failure = problem.clone();
        let progress = Arc::new(Notify::new());
        let notify = progress.clone();
        std::thread::spawn(move || {
            while let Some(piece) = taken.blocking_recv() {
                if let Err(why) = with(&output, |target| target.take(piece)) {
                    let _ = failure.set(why);
                    notify.notify_one();
                    return;
                }
                count.fetch_sub(1, Ordering::Release);
                notify.notify_one();
            }
            // The receiver may have been dropped.
            let _ = done.send(());
        });
        let (pieces, written) = (Some(pieces), Some(written));
        Self { target, pieces, in_flight, waiting: VecDeque::new(), written, problem, progress }
    }

    /// Why nothing can be written any more, unless the reader closed it.
    pub(crate) fn failure(&self) -> Option<String> {
        let problem = self.problem.get()?;
        (problem.kind() != io::ErrorKind::BrokenPipe).then(|| problem.to_string())
    }

    /// Queues bytes for the reader.
    pub(crate) fn put(&mut self, bytes: Vec<u8>) {
        if bytes.is_empty() || self.pieces.is_none() || self.try_write_now(&bytes) {
            return;
        }
        self.waiting.push_back(Piece::Bytes(bytes));
        self.send_waiting();
    }

    /// Queues the records of entries.
    pub(crate) fn put_entries(&mut self, entries: Batch) {
        if self.pieces.is_none() {
            return;
        }
        if self.is_idle() && entries.len() <= FEW {
            // If the lock is poisoned, the thread has stopped, and that is detected.
            let records = with(&self.target, |target| Ok(target.encode(&entries).to_vec()));
            return self.put(records.unwrap_or_default());
        }
        self.waiting.push_back(Piece::Entries(entries));
        self.send_waiting();
    }

    /// Queues what the writer of records has held back. No entries follow.
    pub(crate) async fn finish_records(&mut self) {
        self.flushed().await;
        let mut records = Vec::new();
        // A poisoned lock is detected by the thread.
        let _ = with(&self.target, |target| {
            if let Some(writer) = target.writer.take() {
                writer.finish(&mut records);
            }
            Ok(())
        });
        self.put(records);
    }

    /// Whether everything that was queued is written.
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.in_flight.load(Ordering::Acquire) == 0
    }

    /// Writes a short chunk directly, if the queue is empty and the reader is ready.
    fn try_write_now(&self, bytes: &[u8]) -> bool {
        if !self.is_idle() || bytes.len() > SHORT {
            return false;
        }
        let ready = self.target.lock().is_ok_and(|target| target.destination.is_ready());
        // If the write fails after all, the thread detects it.
        ready && with(&self.target, |target| target.write(bytes)).is_ok()
    }

    /// Queues as many waiting chunks as there is capacity for.
    fn send_waiting(&mut self) {
        let Some(pieces) = &self.pieces else { return };
        while let Some(piece) = self.waiting.pop_front() {
            self.in_flight.fetch_add(1, Ordering::AcqRel);
            let Err(refused) = pieces.try_send(piece) else { continue };
            self.in_flight.fetch_sub(1, Ordering::AcqRel);
            if let mpsc::error::TrySendError::Full(piece) = refused {
                self.waiting.push_front(piece);
            }
            return;
        }
    }

    /// Whether more can be queued without waiting.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Waits until there is capacity again, or until the reader has closed it. After that, further
    /// output is discarded.
    pub(crate) async fn changed(&mut self) -> ReaderChange {
        let Some(pieces) = &self.pieces else { return std::future::pending().await };
        while !self.waiting.is_empty() {
            let Ok(permit) = pieces.reserve().await else { break };
            if let Some(piece) = self.waiting.pop_front() {
                self.in_flight.fetch_add(1, Ordering::AcqRel);
                permit.send(piece);
            }
            if self.waiting.is_empty() {
                return ReaderChange::Ready;
            }
        }
        pieces.closed().await;
        self.pieces = None;
        self.waiting.clear();
        ReaderChange::Closed
    }

    /// Waits until everything that was queued is written, or nothing can be written any more.
    pub(crate) async fn flushed(&mut self) {
        while self.problem.get().is_none() && self.pieces.is_some() {
            self.send_waiting();
            if self.is_idle() {
                return;
            }
            self.progress.notified().await;
        }
    }

    /// Waits until everything was written, or the reader has closed it.
    pub(crate) async fn drained(&mut self) {
        let Some(pieces) = self.pieces.take() else { return };
        for piece in self.waiting.drain(..) {
            if pieces.send(piece).await.is_err() {
                return;
            }
        }
        drop(pieces);
        if let Some(written) = self.written.take() {
            // An error means that the thread ended early; there is nothing left to wait for either
            // way.
            let _ = written.await;
        }
    }
}

impl Target {
    fn take(&mut self, piece: Piece) -> io::Result<()> {
        match piece {
            Piece::Bytes(bytes) => self.write(&bytes),
            Piece::Entries(entries) => {
                self.encode(&entries);
                write(&mut *self.destination, &self.records)
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        write(&mut *self.destination, bytes)
    }

    /// The records of entries.
    fn encode(&mut self, entries: &Batch) -> &[u8] {
        self.records.clear();
        if let Some(writer) = &mut self.writer {
            entries.for_each(|entry| writer.write(entry, &mut self.records));
        }
        &self.records
    }
}

fn write(destination: &mut dyn Destination, bytes: &[u8]) -> io::Result<()> {
    destination.write_all(bytes).and_then(|()| destination.flush())
}

fn with<T>(
    target: &Mutex<Target>,
    work: impl FnOnce(&mut Target) -> io::Result<T>,
) -> io::Result<T> {
    let poisoned = |_| io::Error::other("the output panicked");
    work(&mut *target.lock().map_err(poisoned)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;

    use interlingua::dialect::{self, EncodeOptions};
    use interlingua::event::{Event, Notice, Severity};
    use interlingua::json::Text;
    use interlingua::{Entry, Origin};

    use super::*;

    /// Keeps what is written, a byte at a time, once it is open.
    #[derive(Clone, Default)]
    struct Slow {
        kept: Arc<Mutex<Vec<u8>>>,
        open: Arc<(Mutex<bool>, Condvar)>,
    }

    impl Slow {
        fn open(&self) {
            *self.open.0.lock().unwrap() = true;
            self.open.1.notify_all();
        }
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (open, opened) = &*self.open;
            drop(opened.wait_while(open.lock().unwrap(), |open| !*open).unwrap());
            let first = bytes.get(..1).unwrap_or_default();
            self.kept.lock().unwrap().extend_from_slice(first);
            Ok(first.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Destination for Slow {}

    #[tokio::test]
    async fn a_reader_that_stalls_and_then_takes_a_byte_at_a_time_loses_nothing() {
        let slow = Slow::default();
        let mut output = Output::new(Box::new(slow.clone()), None);
        let mut expected: Vec<u8> = Vec::new();
        while output.has_room() {
            let piece = format!("{};", expected.len()).into_bytes();
            expected.extend(&piece);
            output.put(piece);
        }
        assert!(slow.kept.lock().unwrap().is_empty());
        slow.open();
        assert_eq!(output.changed().await, ReaderChange::Ready);
        output.flushed().await;
        assert_eq!(*slow.kept.lock().unwrap(), expected);
        output.drained().await;
        assert_eq!(*slow.kept.lock().unwrap(), expected);
    }

    fn notice(sequence: u64) -> Entry {
        let text = Text::from(format!("notice {sequence}"));
        Entry {
            sequence,
            received_at: None,
            epoch: 0,
            origin: Origin::default(),
            event: Event::new(Notice { severity: Severity::Info, text }),
            raw: None,
        }
    }

    #[tokio::test]
    async fn records_are_in_order_whoever_encodes_them() {
        let writer = || {
            let events = dialect::named("events").unwrap();
            Box::new(Writer::new(events, &EncodeOptions::default()).unwrap())
        };
        let slow = Slow::default();
        let mut output = Output::new(Box::new(slow.clone()), Some(writer()));
        slow.open();
        let entries: Vec<_> = (0..200).map(notice).collect();
        let mut rest = &*entries;
        // Of a few entries, the thread encodes those that have to wait for others.
        for length in [1, 3, 2 * FEW, 1, 1, FEW, FEW + 1, 2, 160] {
            let (batch, after) = rest.split_at(length.min(rest.len()));
            let mut entries = Batch::default();
            batch.iter().for_each(|entry| entries.push(entry.borrowed()));
            output.put_entries(entries);
            rest = after;
            if length == 2 {
                output.flushed().await;
            }
        }
        assert!(rest.is_empty());
        output.finish_records().await;
        output.drained().await;
        let (mut writer, mut expected) = (writer(), Vec::new());
        entries.iter().for_each(|entry| writer.write(entry.borrowed(), &mut expected));
        writer.finish(&mut expected);
        assert_eq!(*slow.kept.lock().unwrap(), expected);
    }

    struct Fails(io::ErrorKind);

    impl Write for Fails {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Destination for Fails {}

    #[tokio::test]
    async fn a_closed_output_is_told_from_one_that_failed() {
        for (kind, failed) in
            [(io::ErrorKind::BrokenPipe, false), (io::ErrorKind::StorageFull, true)]
        {
            let mut output = Output::new(Box::new(Fails(kind)), None);
            output.put(b"x".to_vec());
            assert_eq!(output.changed().await, ReaderChange::Closed);
            assert_eq!(output.failure().is_some(), failed);
        }
    }
}
