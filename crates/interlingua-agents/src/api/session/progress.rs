//! What running calls print, on its way to the session.
//!
//! A call reports its output whenever there is some, and cannot wait. So what the session has not
//! taken yet is merged into one text per call, with a limit, and the rest is dropped: the result of
//! the call has the beginning and the end of the output. The calls take turns, so that one that
//! prints without end does not hide the others.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// How many bytes of a call may wait for the session.
const MAX_WAITING: usize = 64 << 10;

/// How many bytes of a call are reported in all.
const MAX_REPORTED: usize = 1 << 20;

/// The next piece of the output of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) call: String,
    pub(super) text: String,
}

/// The output of running calls that the session has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Reports {
    calls: Mutex<VecDeque<Waiting>>,
    added: Notify,
}

#[derive(Debug)]
struct Waiting {
    call: String,
    text: String,
    /// How many bytes after the text were dropped.
    dropped: usize,
    /// How many bytes were reported, with the text.
    reported: usize,
    /// Nothing more is reported.
    is_full: bool,
    /// The call reports nothing any more.
    ended: bool,
}

/// Takes the output of one call.
#[derive(Debug)]
pub(super) struct Reporter {
    call: String,
    reports: Arc<Reports>,
}

impl Reports {
    /// What takes the output of a call.
    pub(super) fn reporter(self: &Arc<Self>, call: &str) -> Reporter {
        self.calls().push_back(Waiting {
            call: call.to_owned(),
            text: String::new(),
            dropped: 0,
            reported: 0,
            is_full: false,
            ended: false,
        });
        Reporter { call: call.to_owned(), reports: self.clone() }
    }

    /// The next piece of any call. Nothing is lost if the future is dropped.
    pub(super) async fn next(&self) -> Progress {
        loop {
            if let Some(progress) = self.take() {
                return progress;
            }
            self.added.notified().await;
        }
    }

    fn take(&self) -> Option<Progress> {
        let mut calls = self.calls();
        calls.retain(|waiting| !waiting.ended || !waiting.text.is_empty());
        let at = calls.iter().position(|waiting| !waiting.text.is_empty())?;
        let mut waiting = calls.remove(at)?;
        let progress = Progress { call: waiting.call.clone(), text: waiting.take() };
        // It was its turn.
        calls.push_back(waiting);
        Some(progress)
    }

    fn calls(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reporter {
    pub(super) fn report(&mut self, text: &str) {
        self.with(|waiting| waiting.push(text));
        self.reports.added.notify_one();
    }

    fn with(&self, change: impl FnOnce(&mut Waiting)) {
        let mut calls = self.reports.calls();
        // An aborted call may have had the same id.
        let own = calls.iter_mut().find(|it| it.call == self.call && !it.ended);
        own.map(change);
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.with(|waiting| waiting.ended = true);
    }
}

impl Waiting {
    fn push(&mut self, text: &str) {
        if self.is_full {
            return;
        }
        let room = MAX_REPORTED - self.reported;
        // What follows a gap would not be in its place.
        let space = if self.dropped > 0 { 0 } else { MAX_WAITING.saturating_sub(self.text.len()) };
        let (kept, rest) = text.split_at(text.floor_char_boundary(space.min(room)));
        self.text.push_str(kept);
        self.reported += kept.len();
        if text.len() > room {
            self.is_full = true;
            self.text.push_str("\n[… further output is in the result of the call …]\n");
        } else {
            self.dropped += rest.len();
        }
    }

    fn take(&mut self) -> String {
        let mut text = std::mem::take(&mut self.text);
        match std::mem::take(&mut self.dropped) {
            0 => {}
            dropped => text.push_str(&format!(
                "\n[… {dropped} bytes are left out here, because they were printed faster than \
                 they were read …]\n"
            )),
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `yes` behind a reader that does not read took gigabytes.
    #[tokio::test]
    async fn what_waits_is_bounded_and_says_what_it_leaves_out() {
        let reports = Arc::new(Reports::default());
        let mut reporter = reports.reporter("flood");
        for _ in 0..10_000 {
            reporter.report(&"ä\n".repeat(1000));
            assert!(reports.calls()[0].text.capacity() <= 4 * MAX_WAITING);
        }
        let Progress { call, text } = reports.next().await;
        assert_eq!(call, "flood");
        assert!(text.len() < MAX_WAITING + 200, "{}", text.len());
        let left_out = 10_000 * 3000 - (MAX_WAITING - 1);
        let end = format!("[… {left_out} bytes are left out here");
        assert!(text.contains(&end), "{}", &text[text.len() - 200..]);
    }

    #[tokio::test]
    async fn a_call_reports_a_limited_amount_in_all() {
        let reports = Arc::new(Reports::default());
        let mut reporter = reports.reporter("flood");
        let (mut all, mut pieces) = (String::new(), 0);
        for _ in 0..100 {
            reporter.report(&"x".repeat(MAX_WAITING));
            if let Some(progress) = reports.take() {
                all.push_str(&progress.text);
                pieces += 1;
            }
        }
        assert!(pieces <= MAX_REPORTED / MAX_WAITING + 1, "{pieces}");
        assert!(all.len() < MAX_REPORTED + 100, "{}", all.len());
        assert!(all.ends_with("further output is in the result of the call …]\n"));
        assert_eq!(all.matches("further output").count(), 1);
    }

    #[tokio::test]
    async fn calls_take_turns_and_are_forgotten_at_their_end() {
        let reports = Arc::new(Reports::default());
        let (mut one, mut other) = (reports.reporter("1"), reports.reporter("2"));
        one.report("a");
        other.report("b");
        assert_eq!(reports.next().await.text, "a");
        one.report("c");
        assert_eq!(reports.next().await.text, "b");
        other.report("d");
        drop((one, other));
        assert_eq!(reports.next().await.text, "c");
        assert_eq!(reports.next().await.text, "d");
        assert_eq!(reports.take(), None);
        assert!(reports.calls().is_empty());
    }
}
