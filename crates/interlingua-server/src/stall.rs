//! Ends the connections of clients that take nothing.
//!
//! A client may read as slowly as it likes: what it has not read waits in the log. But one that reads
//! nothing at all would hold its connection for ever. So a write fails when not one byte of it was
//! taken for a while.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// How much the system may keep for a client beyond what is on its way. By default it keeps
/// megabytes, and reports progress when a third of them was taken, which a slow client may need
/// minutes for.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 64 * 1024;

/// A connection whose writes fail if its client takes nothing.
#[derive(Debug)]
pub(crate) struct StallGuard<C> {
    connection: C,
    patience: Patience,
    timer: Option<Pin<Box<Sleep>>>,
}

/// How long a write may wait.
#[derive(Debug)]
struct Patience {
    limit: Duration,
    /// When the write that waits fails.
    ends_at: Option<Instant>,
}

impl Patience {
    /// Something was taken.
    fn renew(&mut self) {
        self.ends_at = None;
    }

    /// A write has to wait. Returns until when; `None` is for ever.
    fn wait(&mut self, now: Instant) -> Option<Instant> {
        self.ends_at = self.ends_at.or_else(|| now.checked_add(self.limit));
        self.ends_at
    }
}

impl StallGuard<TcpStream> {
    /// Guards a connection that was accepted.
    pub(crate) fn accepted(connection: TcpStream, limit: Duration) -> Self {
        // Without it, a slow client is mistaken for a stalled one sooner, and that is all.
        #[cfg(target_os = "linux")]
        let _ = socket2::SockRef::from(&connection).set_tcp_notsent_lowat(UNSENT);
        Self::new(connection, limit)
    }
}

impl<C> StallGuard<C> {
    fn new(connection: C, limit: Duration) -> Self {
        Self { connection, patience: Patience { limit, ends_at: None }, timer: None }
    }

    /// Notes what became of a write, which fails if it has waited too long.
    fn limited(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<Result<usize>>,
    ) -> Poll<Result<usize>> {
        if written.is_ready() {
            self.patience.renew();
            return written;
        }
        let Some(ends_at) = self.patience.wait(Instant::now()) else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(ends_at)));
        if timer.deadline() != ends_at {
            timer.as_mut().reset(ends_at);
        }
        let stalled = || Err(Error::new(ErrorKind::TimedOut, "the client takes nothing"));
        timer.as_mut().poll(context).map(|()| stalled())
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for StallGuard<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.connection).poll_write(context, bytes);
        self.limited(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.connection).poll_write_vectored(context, parts);
        self.limited(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.connection).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(context)
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for StallGuard<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.connection).poll_read(context, into)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn every_byte_renews_the_patience() {
        let (limit, begun) = (Duration::from_secs(10), Instant::now());
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut patience = Patience { limit, ends_at: None };
        assert_eq!(patience.wait(at(0)), Some(at(10)));
        assert_eq!(patience.wait(at(9)), Some(at(10)));
        patience.renew();
        assert_eq!(patience.wait(at(9)), Some(at(19)));
        let mut endless = Patience { limit: Duration::MAX, ends_at: None };
        assert_eq!(endless.wait(at(0)), None);
    }

    #[tokio::test]
    async fn a_write_of_which_nothing_is_taken_fails() {
        // The time that passes is what is tested.
        let (client, mut peer) = tokio::io::duplex(4);
        let mut guard = StallGuard::new(client, Duration::from_millis(5));
        for _ in 0..2 {
            guard.write_all(b"four").await.unwrap();
            let stalled = guard.write(b"more").await.unwrap_err();
            assert_eq!(stalled.kind(), ErrorKind::TimedOut);
            // One that takes something after all is served again.
            peer.read_exact(&mut [0; 4]).await.unwrap();
        }
    }
}
