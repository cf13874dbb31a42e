//! The two pipes between us and a guard: orders in one direction, reports in the other.
//!
//! The pipe of orders is also how the guard notices that we are gone: it breaks when we end,
//! however we end.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use serde::{Deserialize, Serialize};
use tokio::net::unix::pipe;
use tokio::process::Child;

use super::super::Signal;
use super::Isolation;
use super::setup::{Setup, Stage, Terminal};

/// A report of the guard, one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::process) enum Report {
    /// The mechanism is not available; why.
    Unavailable(String),
    /// The agent's program could not be started.
    NotStarted {
        /// The number of the system's error, if it has one.
        code: Option<i32>,
        problem: String,
    },
    /// The agent runs. If there is none, the mechanism is available.
    Started,
    /// The agent has exited.
    Ended {
        /// Its status, as `wait` returns it.
        status: i32,
        /// How many processes it left behind.
        orphans: usize,
    },
}

impl Report {
    /// The error of a report that is not [`Report::Started`].
    pub(in crate::process) fn into_result(self, isolation: Isolation) -> io::Result<()> {
        match self {
            Self::Started | Self::Ended { .. } => Ok(()),
            Self::Unavailable(why) => Err(isolation.unavailable(&why)),
            Self::NotStarted { code: Some(code), .. } => Err(io::Error::from_raw_os_error(code)),
            Self::NotStarted { code: None, problem } => Err(io::Error::other(problem)),
        }
    }
}

/// Our ends of the channel.
#[derive(Debug)]
pub(in crate::process) struct Channel {
    orders: PipeWriter,
    reports: pipe::Receiver,
    /// What was received of a line that is not complete yet.
    partial: Vec<u8>,
    /// The other ends, which the guard opens for itself. They are kept open, because a pipe without
    /// a reader, or without a writer, looks broken.
    _others: (PipeReader, PipeWriter),
}

impl Channel {
    /// Opens a channel. Returns it with the arguments for the guard.
    pub(in crate::process) fn open(
        isolation: Isolation,
        terminal: Terminal,
        program: Option<(OsString, Vec<OsString>)>,
    ) -> io::Result<(Self, Vec<OsString>)> {
        let (taken, orders) = io::pipe()?;
        let (reports, written) = io::pipe()?;
        let reports = pipe::Receiver::from_owned_fd(OwnedFd::from(reports))?;
        let setup = Setup {
            stage: Stage::Guard,
            isolation,
            parent: std::process::id(),
            orders: orders.as_raw_fd(),
            reports: reports.as_raw_fd(),
            terminal,
            program,
        };
        let channel = Self { orders, reports, partial: Vec::new(), _others: (taken, written) };
        Ok((channel, setup.to_arguments()))
    }

    /// Gives an order. A guard that has ended cannot carry it out, and needs not.
    pub(in crate::process) fn order(&mut self, signal: Signal) {
        let _ = self.orders.write_all(&[signal.order()]);
    }

    /// Waits until the guard has reported whether the agent runs.
    pub(in crate::process) async fn first_report(
        &mut self,
        guard: &mut Child,
        isolation: Isolation,
    ) -> io::Result<Report> {
        loop {
            if let Some(report) = self.next_report() {
                return Ok(report);
            }
            tokio::select! {
                biased;
                readable = self.reports.readable() => readable?,
                status = guard.wait() => {
                    let status = status?;
                    return self.next_report().ok_or_else(|| {
                        isolation.unavailable(&format!("the guard failed: {status}"))
                    });
                }
            }
        }
    }

    /// The next report, if it has arrived.
    pub(in crate::process) fn next_report(&mut self) -> Option<Report> {
        let mut piece = [0; 1024];
        loop {
            if let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.partial.drain(..=end).collect();
                // A line that is not a report does not come from a guard of this version.
                return serde_json::from_slice(&line).ok();
            }
            let Ok(length @ 1..) = self.reports.try_read(&mut piece) else { return None };
            self.partial.extend_from_slice(piece.get(..length).unwrap_or_default());
        }
    }
}

/// The guard's ends of the channel.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) orders: File,
    reports: File,
}

impl Ends {
    pub(super) fn open(process: u32, orders: i32, reports: i32) -> io::Result<Self> {
        let path = |descriptor: i32| format!("/proc/{process}/fd/{descriptor}");
        Ok(Self {
            orders: File::options().read(true).open(path(orders))?,
            reports: File::options().write(true).open(path(reports))?,
        })
    }

    pub(super) fn report(&self, report: &Report) -> io::Result<()> {
        let mut line = serde_json::to_vec(report)?;
        line.push(b'\n');
        (&self.reports).write_all(&line)
    }

    /// The descriptors of the channel in this process.
    pub(super) fn descriptors(&self) -> (i32, i32) {
        (self.orders.as_raw_fd(), self.reports.as_raw_fd())
    }
}

impl Signal {
    /// The order to send this signal.
    fn order(self) -> u8 {
        match self {
            Self::Interrupt => b'i',
            Self::Terminate => b't',
            Self::Kill => b'k',
            Self::Suspend => b's',
            Self::Resume => b'r',
        }
    }

    /// The signal that an order asks for.
    pub(super) fn of_order(order: u8) -> Option<Self> {
        let all = [Self::Interrupt, Self::Terminate, Self::Kill, Self::Suspend, Self::Resume];
        all.into_iter().find(|signal| signal.order() == order)
    }
}
