//! The guard's side of the two pipes between it and its client: orders in one direction, reports in
//! the other.
//!
//! The pipe of orders is also how the guard notices that its client is gone: it breaks when the
//! client ends, however it ends.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;

/// A report of the guard, one line: a word, then what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The mechanism is not available; why.
    Unavailable(String),
    /// The agent's program could not be started.
    NotStarted {
        /// The number of the system's error, if it has one.
        code: Option<i32>,
        /// The error in words.
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
    /// The line, without its end.
    fn to_line(&self) -> String {
        let line = match self {
            Self::Unavailable(why) => format!("unavailable {why}"),
            Self::NotStarted { code: Some(code), problem } => {
                format!("not-started {code} {problem}")
            }
            Self::NotStarted { code: None, problem } => format!("not-started - {problem}"),
            Self::Started => "started ".to_owned(),
            Self::Ended { status, orphans } => format!("ended {status} {orphans}"),
        };
        line.replace('\n', " ")
    }

    /// Reads a line, without its end.
    pub fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        Some(match word {
            "unavailable" => Self::Unavailable(rest.to_owned()),
            "not-started" => {
                let (code, problem) = rest.split_once(' ')?;
                Self::NotStarted { code: code.parse().ok(), problem: problem.to_owned() }
            }
            "started" => Self::Started,
            "ended" => {
                let (status, orphans) = rest.split_once(' ')?;
                Self::Ended { status: status.parse().ok()?, orphans: orphans.parse().ok()? }
            }
            _ => return None,
        })
    }
}

/// The guard's ends of the channel.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) orders: File,
    reports: File,
}

impl Ends {
    pub(crate) fn open(process: u32, orders: i32, reports: i32) -> io::Result<Self> {
        let path = |descriptor: i32| format!("/proc/{process}/fd/{descriptor}");
        Ok(Self {
            orders: File::options().read(true).open(path(orders))?,
            reports: File::options().write(true).open(path(reports))?,
        })
    }

    pub(crate) fn report(&self, report: &Report) -> io::Result<()> {
        // In one piece, so that nothing else is between.
        (&self.reports).write_all((report.to_line() + "\n").as_bytes())
    }

    /// The descriptors of the channel in this process.
    pub(crate) fn descriptors(&self) -> (i32, i32) {
        (self.orders.as_raw_fd(), self.reports.as_raw_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let problem = "No such file or directory (os error 2)".to_owned();
        let reports = [
            Report::Unavailable("a PID namespace cannot be created: EPERM".to_owned()),
            Report::NotStarted { code: Some(2), problem: problem.clone() },
            Report::NotStarted { code: None, problem },
            Report::Started,
            Report::Ended { status: 0x0f00, orphans: 3 },
        ];
        for report in reports {
            assert_eq!(Report::parse(&report.to_line()), Some(report));
        }
    }

    #[test]
    fn a_report_is_one_line() {
        let report = Report::Unavailable("/sys/fs/cgroup/two\nlines: denied".to_owned());
        assert_eq!(report.to_line(), "unavailable /sys/fs/cgroup/two lines: denied");
        assert_eq!(Report::parse("of-another-version 1"), None);
    }
}
