//! Cursors, which keep caches from answering a live request with an old response.

/// The time from which intervals are counted: 2024-10-09T00:00:00Z, in milliseconds since 1970.
const EPOCH_MS: u64 = 1_728_432_000_000;

/// The length of an interval.
const INTERVAL_MS: u64 = 20_000;

/// The next cursor. It is larger than the client's, so that no two requests in a row are the same.
pub(crate) fn next(now_ms: u64, of_client: Option<u64>) -> u64 {
    let current = now_ms.saturating_sub(EPOCH_MS) / INTERVAL_MS;
    of_client.map_or(current, |known| current.max(known.saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_counts_intervals_and_never_repeats() {
        let now = EPOCH_MS + 10 * INTERVAL_MS + 1;
        assert_eq!(next(now, None), 10);
        assert_eq!(next(now, Some(3)), 10);
        assert_eq!(next(now, Some(10)), 11);
        assert_eq!(next(now, Some(17)), 18);
        assert_eq!(next(0, Some(u64::MAX)), u64::MAX);
    }
}
