//! One process of the agent, with everything that belongs to it alone.

use std::time::{Duration, Instant};

use super::Wake;
use super::sidecar::SidecarReader;
use crate::agent::{InputFraming, Launch};
use crate::driver::Driver;
use crate::process::{Process, Spool};
use crate::redaction::HeldBack;

/// A running process of the agent.
#[derive(Debug)]
pub(super) struct Epoch {
    pub(super) process: Process,
    pub(super) spool: Spool,
    pub(super) driver: Box<dyn Driver>,
    pub(super) sidecar: SidecarReader,
    /// The end of the output that may be the beginning of a key.
    pub(super) held_back: HeldBack,
    pub(super) takes_many_prompts: bool,
    pub(super) input_framing: InputFraming,
    /// It has ended its work, and has to exit.
    pub(super) exiting: bool,
    /// The driver had it terminated, because it does not exit by itself.
    pub(super) terminated: bool,
    /// When the driver was last called.
    pub(super) driver_called_at: Instant,
    /// There may be unread output, to be read at `not_before`.
    printed: bool,
    not_before: Instant,
    /// The minimum interval between two reads. An agent that prints fast is read in larger chunks,
    /// which is much cheaper; output after a pause is read at once.
    read_interval: Duration,
    /// What is printed before this time comes soon after what was read last.
    burst_until: Instant,
    /// It prints fast: it is read after every interval, and its output causes no wake-up in between.
    is_fast: bool,
    /// A temporary folder, deleted with the epoch.
    _scratch: Option<tempfile::TempDir>,
}

impl Epoch {
    pub(super) fn new(
        launch: Launch,
        process: Process,
        spool: Spool,
        read_interval: Duration,
    ) -> Self {
        let now = Instant::now();
        Self {
            process,
            spool,
            takes_many_prompts: launch.takes_many_prompts(),
            input_framing: launch.input_framing,
            driver: launch.driver,
            sidecar: SidecarReader::default(),
            held_back: HeldBack::default(),
            exiting: false,
            terminated: false,
            driver_called_at: now,
            // The spool does not report output from before the first wait.
            printed: true,
            not_before: now,
            burst_until: now,
            read_interval,
            is_fast: false,
            _scratch: launch.scratch,
        }
    }

    /// The size of the unread output.
    pub(super) fn unread(&self) -> u64 {
        self.spool.unread()
    }

    /// Whether output may be read now.
    pub(super) fn is_readable(&self) -> bool {
        self.printed && Instant::now() >= self.not_before
    }

    /// When the driver wants to be woken.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.driver.wake_after().map(|period| self.driver_called_at + period)
    }

    /// Reads a chunk of the output, if there is one.
    pub(super) fn read(&mut self, take: impl FnOnce(&mut dyn Driver, &[u8], &mut HeldBack)) {
        let length = match self.spool.read() {
            Ok(piece) if !piece.is_empty() => {
                self.driver_called_at = Instant::now();
                take(self.driver.as_mut(), piece, &mut self.held_back);
                piece.len()
            }
            Ok(_) | Err(_) => 0,
        };
        self.printed = length > 0 && (self.is_fast || self.spool.may_have_more(length));
        let now = Instant::now();
        if !self.spool.may_have_more(length) {
            self.not_before = now + self.read_interval;
            if length > 0 {
                self.burst_until = self.not_before;
            }
        }
        if self.is_fast && length == 0 {
            // It has paused. Something may have been printed after it was read, and before that was
            // acknowledged.
            self.spool.acknowledge();
            (self.is_fast, self.printed, self.not_before) = (false, true, now);
        }
    }

    /// The agent has printed something after everything was read.
    fn notice_output(&mut self) {
        let now = Instant::now();
        self.printed = true;
        self.is_fast = now < self.burst_until;
        // Output that cannot be watched is read after every interval.
        if !self.is_fast && self.spool.acknowledge() {
            self.not_before = now;
        }
    }
}

/// Waits for the end of the process, or for output that may be read. Without a process, forever.
pub(super) async fn wait(epoch: Option<&mut Epoch>, room: bool) -> Wake {
    let Some(epoch) = epoch else { return std::future::pending().await };
    tokio::select! {
        biased;
        status = epoch.process.ended() => Wake::Exited(status.ok()),
        () = tokio::time::sleep_until(epoch.not_before.into()), if epoch.printed && room => {
            Wake::Output
        }
        () = epoch.spool.changed(), if !epoch.printed => {
            epoch.notice_output();
            Wake::Again
        }
    }
}
