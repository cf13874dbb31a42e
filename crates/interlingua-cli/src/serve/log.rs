//! The log of a server: JSON lines on standard error.

use std::io;

use clap::ValueEnum;
use tracing::Level;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// What is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// What failed.
    Error,
    /// And what should not have happened.
    Warn,
    /// And every request.
    Info,
    /// And every connection.
    Debug,
}

/// Begins to log, for the whole process. Only what this project logs itself is written, which contains
/// no secrets; the libraries that it uses might log whole requests.
pub(super) fn begin(level: LogLevel) {
    let level = match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
    };
    let own = tracing_subscriber::filter::filter_fn(|metadata| {
        metadata.target().starts_with("interlingua")
    });
    let lines = tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(io::stderr);
    let lines = lines.with_filter(own).with_filter(LevelFilter::from_level(level));
    // A process has one log; a second server in it uses the same.
    let _ = tracing_subscriber::registry().with(lines).try_init();
}
