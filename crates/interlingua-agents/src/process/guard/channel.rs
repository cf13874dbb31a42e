//! Our side of the two pipes between us and a guard: orders in one direction, reports in the other.
//!
//! The pipe of orders is also how the guard notices that we are gone: it breaks when we end,
//! however we end.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use interlingua_guard::{Report, Setup, Terminal};
use tokio::net::unix::pipe;
use tokio::process::Child;

use super::super::Signal;
use super::super::isolation::unavailable;
use super::Isolation;

/// Whether the guard has started the agent: the error of a report that is another one.
pub(in crate::process) fn started(report: Report, isolation: Isolation) -> io::Result<()> {
    match report {
        Report::Started | Report::Ended { .. } => Ok(()),
        Report::Unavailable(why) => Err(unavailable(isolation, &why)),
        Report::NotStarted { code: Some(code), .. } => Err(io::Error::from_raw_os_error(code)),
        Report::NotStarted { code: None, problem } => Err(io::Error::other(problem)),
    }
}

/// Our ends of the channel.
#[derive(Debug)]
pub(in crate::process) struct Channel {
    orders: PipeWriter,
    reports: pipe::Receiver,
    /// What was received of a line that is not complete yet.
    partial: Vec<u8>,
    /// No process of the guard is left that could report anything.
    ended: bool,
    /// The other ends, which the guard opens for itself. They are kept open while the guard runs,
    /// because a pipe without a reader, or without a writer, looks broken.
    others: Option<(PipeReader, PipeWriter)>,
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
        let descriptors = (orders.as_raw_fd(), reports.as_raw_fd());
        let setup = Setup::of_child(isolation, terminal, descriptors, program);
        let others = Some((taken, written));
        let channel = Self { orders, reports, partial: Vec::new(), ended: false, others };
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
                        unavailable(isolation, &format!("the guard failed: {status}"))
                    });
                }
            }
        }
    }

    /// The last report of a guard whose first process has exited. Its other one may still end the run.
    /// `None` if both were killed.
    pub(in crate::process) async fn last_report(&mut self) -> Option<Report> {
        // From now on the pipe ends with the last process of the guard.
        self.others = None;
        loop {
            if let Some(report) = self.next_report() {
                return Some(report);
            }
            if self.ended || self.reports.readable().await.is_err() {
                return None;
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
                return Report::parse(std::str::from_utf8(&line).ok()?.trim_end_matches('\n'));
            }
            let length = self.reports.try_read(&mut piece).ok()?;
            if length == 0 {
                self.ended = true;
                return None;
            }
            self.partial.extend_from_slice(piece.get(..length).unwrap_or_default());
        }
    }
}
