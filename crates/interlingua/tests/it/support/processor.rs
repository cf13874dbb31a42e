//! Time that a busy machine changes little: that of this thread on a processor.

use std::time::{Duration, Instant};

/// How long some work takes on the processor; where the system does not say, how much time passes.
pub(crate) fn time(work: impl FnOnce()) -> Duration {
    let (passed, worked) = (Instant::now(), on_processor());
    work();
    match (worked, on_processor()) {
        (Some(before), Some(after)) => after.saturating_sub(before),
        _ => passed.elapsed(),
    }
}

fn on_processor() -> Option<Duration> {
    // The system brings its count up to date when a thread lets others go first.
    std::thread::yield_now();
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(counts.split(' ').next()?.parse().ok()?))
}
