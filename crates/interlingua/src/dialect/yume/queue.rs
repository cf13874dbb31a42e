//! The queue that serialises tool calls.
//!
//! A consumer of this dialect expects nothing between a `tool_use` and its `tool_result`, but
//! agents run several tools in parallel and stream text meanwhile. While a call is open, all lines
//! are queued here in their order; when the call is answered, the queue is written up to the next
//! unanswered call. It knows lines of bytes and the ids of calls, and no record.

use std::collections::VecDeque;

use crate::json::write::Bytes;

/// The open call, and the lines that are queued until it is answered.
#[derive(Debug, Clone, Default)]
pub(super) struct CallQueue {
    /// The call that is written and unanswered.
    open: Option<Box<str>>,
    queued: VecDeque<Queued>,
    /// The calls whose turn ended before they were answered.
    unanswered: Vec<Box<str>>,
    /// Queued lines are discarded, since the stream is passed through.
    discards: bool,
    discarded: Bytes,
}

/// An item of the queue.
#[derive(Debug, Clone)]
enum Queued {
    /// Lines that belong to no queued call.
    Lines(Bytes),
    /// A call, and its answer if that is known.
    Call { id: Box<str>, lines: Bytes, answer: Option<Bytes> },
}

impl CallQueue {
    /// Sets whether queued lines are discarded: of a stream that is passed through, only the order
    /// of calls is needed.
    #[inline]
    pub(super) fn set_discards(&mut self, discards: bool) {
        self.discards = discards;
    }

    /// The buffer for the next lines: the output, or the end of the queue.
    #[inline]
    pub(super) fn lines<'b>(&'b mut self, out: &'b mut Bytes) -> &'b mut Bytes {
        if self.open.is_none() {
            return out;
        }
        if self.discards {
            self.discarded.clear();
            return &mut self.discarded;
        }
        if !matches!(self.queued.back(), Some(Queued::Lines(_))) {
            self.queued.push_back(Queued::Lines(Bytes::new()));
        }
        match self.queued.back_mut() {
            Some(Queued::Lines(lines)) => lines,
            _ => out,
        }
    }

    /// Writes a call, or queues it while another one is open.
    pub(super) fn call(&mut self, id: &str, out: &mut Bytes, write: impl FnOnce(&mut Bytes)) {
        if self.open.is_none() {
            self.open = Some(id.into());
            write(out);
            return;
        }
        let mut lines = Bytes::new();
        if !self.discards {
            write(&mut lines);
        }
        self.queued.push_back(Queued::Call { id: id.into(), lines, answer: None });
    }

    /// Writes the answer to the open call and then the queue, or keeps the answer of a queued call.
    /// Returns `false` if no call has this id.
    pub(super) fn answer(
        &mut self,
        id: &str,
        out: &mut Bytes,
        write: impl FnOnce(&mut Bytes),
    ) -> bool {
        if self.open.as_deref() == Some(id) {
            self.open = None;
            write(out);
            self.drain(out);
            return true;
        }
        if let Some(at) = self.unanswered.iter().position(|unanswered| **unanswered == *id) {
            self.unanswered.swap_remove(at);
            write(self.lines(out));
            return true;
        }
        let discards = self.discards;
        for queued in &mut self.queued {
            match queued {
                Queued::Call { id: waits, answer: answer @ None, .. } if **waits == *id => {
                    let mut lines = Bytes::new();
                    if !discards {
                        write(&mut lines);
                    }
                    *answer = Some(lines);
                    return true;
                }
                _ => {}
            }
        }
        false
    }

    /// Writes the complete queue at the end of a turn. An unanswered call may be answered later.
    pub(super) fn flush(&mut self, out: &mut Bytes) {
        while let Some(id) = self.open.take() {
            self.unanswered.push(id);
            self.drain(out);
        }
    }

    /// Writes the queue up to the next unanswered call.
    fn drain(&mut self, out: &mut Bytes) {
        while let Some(next) = self.queued.pop_front() {
            match next {
                Queued::Lines(lines) => out.extend_from_slice(&lines),
                Queued::Call { id, lines, answer } => {
                    out.extend_from_slice(&lines);
                    let Some(answer) = answer else {
                        self.open = Some(id);
                        return;
                    };
                    out.extend_from_slice(&answer);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The queue and its output, in which every line is a word.
    #[derive(Default)]
    struct Written {
        queue: CallQueue,
        out: Bytes,
    }

    impl Written {
        fn line(&mut self, word: &str) -> &mut Self {
            self.queue.lines(&mut self.out).extend_from_slice(format!("{word} ").as_bytes());
            self
        }

        fn call(&mut self, id: &str) -> &mut Self {
            let line = format!("{id}? ");
            self.queue.call(id, &mut self.out, |out| out.extend_from_slice(line.as_bytes()));
            self
        }

        fn answer(&mut self, id: &str) -> &mut Self {
            let line = format!("{id}! ");
            let write = |out: &mut Bytes| out.extend_from_slice(line.as_bytes());
            assert!(self.queue.answer(id, &mut self.out, write));
            self
        }

        fn text(&self) -> &str {
            std::str::from_utf8(&self.out).unwrap().trim_end()
        }
    }

    #[test]
    fn lines_are_written_at_once_while_no_call_is_open() {
        let mut written = Written::default();
        written.line("one").call("a").answer("a").line("two");
        assert_eq!(written.text(), "one a? a! two");
    }

    #[test]
    fn lines_during_a_call_are_written_after_its_answer() {
        let mut written = Written::default();
        written.call("a").line("meanwhile").line("more");
        assert_eq!(written.text(), "a?");
        written.answer("a");
        assert_eq!(written.text(), "a? a! meanwhile more");
    }

    #[test]
    fn parallel_calls_are_written_one_after_the_other() {
        let mut written = Written::default();
        written.call("a").call("b").line("text").call("c");
        written.answer("c").answer("a");
        assert_eq!(written.text(), "a? a! b?");
        written.answer("b").line("end");
        assert_eq!(written.text(), "a? a! b? b! text c? c! end");
    }

    #[test]
    fn calls_within_a_call_are_written_after_its_answer() {
        let mut written = Written::default();
        written.call("task").call("inner").answer("inner").line("report");
        assert_eq!(written.text(), "task?");
        written.answer("task");
        assert_eq!(written.text(), "task? task! inner? inner! report");
    }

    #[test]
    fn a_call_that_is_unanswered_at_the_end_of_its_turn_is_answered_later() {
        let mut written = Written::default();
        written.call("a").line("one").call("b").answer("b").line("two");
        let Written { queue, out } = &mut written;
        queue.flush(out);
        assert_eq!(written.text(), "a? one b? b! two");
        written.line("next").call("c").answer("a").answer("c");
        assert_eq!(written.text(), "a? one b? b! two next c? c! a!");
    }

    #[test]
    fn an_answer_to_an_unknown_call_is_rejected() {
        let mut written = Written::default();
        written.call("a");
        let Written { queue, out } = &mut written;
        assert!(!queue.answer("b", out, |out| out.push(b'x')));
        assert_eq!(written.text(), "a?");
    }

    #[test]
    fn lines_of_a_stream_that_is_passed_through_are_discarded() {
        let mut written = Written::default();
        written.call("a");
        written.queue.set_discards(true);
        written.line("passed").call("b");
        written.queue.set_discards(false);
        written.answer("a").answer("b");
        assert_eq!(written.text(), "a? a! b!");
    }
}
