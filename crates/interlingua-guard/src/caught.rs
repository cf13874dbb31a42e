//! Signals that this process has received, between which and orders it waits.
//!
//! A caught signal has its default action again in the programs that this one starts, even if it
//! was ignored here, as in the background of a shell. Blocking signals and reading them from the
//! kernel (`signalfd`) would leave them ignored.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

/// Signals that are caught from now on.
#[derive(Debug)]
pub(crate) struct Caught {
    signals: SignalDelivery<UnixStream, SignalOnly>,
}

/// What happened while this process waited.
#[derive(Debug, Default)]
pub(crate) struct Happened {
    /// The signals that were received, each once.
    pub(crate) signals: Vec<Signal>,
    /// The orders that were given.
    pub(crate) orders: Vec<u8>,
    /// The client has ended, and gives no more orders.
    pub(crate) is_alone: bool,
}

impl Caught {
    pub(crate) fn new(signals: &[Signal]) -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        let numbers = signals.iter().map(|signal| signal.as_raw());
        Ok(Self { signals: SignalDelivery::with_pipe(read, write, SignalOnly, numbers)? })
    }

    /// Waits for signals, and for orders if this process carries them out.
    pub(crate) fn wait(&mut self, orders: Option<&File>) -> io::Result<Happened> {
        let mut sources = vec![PollFd::new(self.signals.get_read(), PollFlags::IN)];
        sources.extend(orders.map(|orders| PollFd::new(orders, PollFlags::IN)));
        match poll(&mut sources, None) {
            // A signal interrupts the wait.
            Ok(_) | Err(Errno::INTR) => {}
            Err(problem) => return Err(problem.into()),
        }
        let ordered = sources.get(1).is_some_and(|source| !source.revents().is_empty());
        drop(sources);
        let mut happened = Happened::default();
        if let Some(mut orders) = orders.filter(|_| ordered) {
            let mut piece = [0; 64];
            match orders.read(&mut piece) {
                Ok(length @ 1..) => happened.orders.extend(piece.iter().take(length)),
                Err(problem) if problem.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => happened.is_alone = true,
            }
        }
        happened.signals.extend(self.signals.pending().filter_map(Signal::from_named_raw));
        Ok(happened)
    }
}
