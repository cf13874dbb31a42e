//! How often a token may be used, and by how many readers at once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;
use crate::settings::Limits;

/// What one token may use.
#[derive(Debug)]
pub(super) struct Allowance {
    pub(super) rate: Rate,
    pub(super) readers: Readers,
}

impl Allowance {
    pub(super) fn new(limits: &Limits) -> Self {
        let readers = Semaphore::new(limits.readers.min(Semaphore::MAX_PERMITS));
        Self { rate: Rate::new(limits.requests_per_second), readers: Readers(Arc::new(readers)) }
    }
}

/// The places of live readers.
#[derive(Debug, Clone)]
pub(crate) struct Readers(Arc<Semaphore>);

impl Readers {
    /// Takes a place, if there is one.
    pub(crate) fn enter(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        Arc::clone(&self.0).try_acquire_owned().map_err(|_| {
            let message = "this token has too many live readers: close some of them";
            ApiError::too_many("too_many_readers", message)
        })
    }
}

/// A bucket that is filled at a constant rate, and from which every request takes one.
#[derive(Debug)]
pub(super) struct Rate {
    per_second: f64,
    bucket: Mutex<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    available: f64,
    filled_at: Instant,
}

impl Rate {
    /// A full bucket for the requests of one second.
    pub(super) fn new(per_second: u32) -> Self {
        let per_second = f64::from(per_second);
        let bucket = Bucket { available: per_second, filled_at: Instant::now() };
        Self { per_second, bucket: Mutex::new(bucket) }
    }

    /// Takes one, if there is one.
    pub(super) fn take(&self) -> bool {
        self.take_at(Instant::now())
    }

    fn take_at(&self, now: Instant) -> bool {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_duration_since(bucket.filled_at).as_secs_f64();
        bucket.available = (bucket.available + passed * self.per_second).min(self.per_second);
        bucket.filled_at = now;
        let has_one = bucket.available >= 1.0;
        if has_one {
            bucket.available -= 1.0;
        }
        has_one
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_bucket_is_filled_at_a_constant_rate() {
        let rate = Rate::new(4);
        let start = rate.bucket.lock().unwrap().filled_at;
        let taken = |after: u64| {
            let now = start + Duration::from_millis(after);
            std::iter::from_fn(|| rate.take_at(now).then_some(())).count()
        };
        assert_eq!([taken(0), taken(0), taken(500), taken(60_000)], [4, 0, 2, 4]);
    }
}
