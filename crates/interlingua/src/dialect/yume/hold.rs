//! The queue that puts tools one after the other.
//!
//! A reader of this dialect expects nothing between a `tool_use` and its `tool_result`, and agents
//! run several tools at once and talk meanwhile. While a call is open, everything that is written
//! waits here in its order; once the call is answered, what waits is written up to the next call
//! that has no answer yet. Knows lines of bytes and the ids of calls, and no record.

use std::collections::VecDeque;

use crate::json::write::Bytes;

/// What waits for an answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Hold {
    /// The call that was written and not answered.
    open: Option<Box<str>>,
    waiting: VecDeque<Waiting>,
    /// Calls whose turn ended before they were answered.
    left: Vec<Box<str>>,
    /// Nothing is kept of what has to wait: somebody else writes it.
    forgets: bool,
    forgotten: Bytes,
}

/// Something that has to wait.
#[derive(Debug, Clone)]
enum Waiting {
    /// Lines that belong to no call, or a call and its answer.
    Lines(Bytes),
    /// A call, and its answer if that is there already.
    Call { id: Box<str>, lines: Bytes, answer: Option<Bytes> },
}

impl Hold {
    /// Whether what has to wait is forgotten: for streams that are passed on as they are, where only
    /// the order of calls must be known.
    #[inline]
    pub(super) fn forget(&mut self, forgets: bool) {
        self.forgets = forgets;
    }

    /// Where the next lines go: to the output, or to the end of the queue.
    #[inline]
    pub(super) fn lines<'b>(&'b mut self, out: &'b mut Bytes) -> &'b mut Bytes {
        if self.open.is_none() {
            return out;
        }
        if self.forgets {
            self.forgotten.clear();
            return &mut self.forgotten;
        }
        if !matches!(self.waiting.back(), Some(Waiting::Lines(_))) {
            self.waiting.push_back(Waiting::Lines(Bytes::new()));
        }
        match self.waiting.back_mut() {
            Some(Waiting::Lines(lines)) => lines,
            _ => out,
        }
    }

    /// Writes a call now, or lets it wait for its turn.
    pub(super) fn call(&mut self, id: &str, out: &mut Bytes, write: impl FnOnce(&mut Bytes)) {
        if self.open.is_none() {
            self.open = Some(id.into());
            write(out);
            return;
        }
        let mut lines = Bytes::new();
        if !self.forgets {
            write(&mut lines);
        }
        self.waiting.push_back(Waiting::Call { id: id.into(), lines, answer: None });
    }

    /// Writes an answer now, and then what waited for it; or keeps it for its call. False where
    /// nobody waits for it.
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
        if let Some(at) = self.left.iter().position(|left| **left == *id) {
            self.left.swap_remove(at);
            write(self.lines(out));
            return true;
        }
        let forgets = self.forgets;
        for waiting in &mut self.waiting {
            match waiting {
                Waiting::Call { id: waits, answer: answer @ None, .. } if **waits == *id => {
                    let mut lines = Bytes::new();
                    if !forgets {
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

    /// Writes all that waits: the turn is over. A call that has no answer may get one later.
    pub(super) fn settle(&mut self, out: &mut Bytes) {
        while let Some(id) = self.open.take() {
            self.left.push(id);
            self.drain(out);
        }
    }

    /// Writes what waits, up to the next call that has no answer.
    fn drain(&mut self, out: &mut Bytes) {
        while let Some(next) = self.waiting.pop_front() {
            match next {
                Waiting::Lines(lines) => out.extend_from_slice(&lines),
                Waiting::Call { id, lines, answer } => {
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

    /// The queue and what was written, with lines as words.
    #[derive(Default)]
    struct Written {
        hold: Hold,
        out: Bytes,
    }

    impl Written {
        fn say(&mut self, word: &str) -> &mut Self {
            self.hold.lines(&mut self.out).extend_from_slice(format!("{word} ").as_bytes());
            self
        }

        fn call(&mut self, id: &str) -> &mut Self {
            let line = format!("{id}? ");
            self.hold.call(id, &mut self.out, |out| out.extend_from_slice(line.as_bytes()));
            self
        }

        fn answer(&mut self, id: &str) -> &mut Self {
            let line = format!("{id}! ");
            let write = |out: &mut Bytes| out.extend_from_slice(line.as_bytes());
            assert!(self.hold.answer(id, &mut self.out, write));
            self
        }

        fn so_far(&self) -> &str {
            std::str::from_utf8(&self.out).unwrap().trim_end()
        }
    }

    #[test]
    fn nothing_waits_while_no_call_is_open() {
        let mut written = Written::default();
        written.say("one").call("a").answer("a").say("two");
        assert_eq!(written.so_far(), "one a? a! two");
    }

    #[test]
    fn what_is_said_during_a_call_comes_after_its_answer() {
        let mut written = Written::default();
        written.call("a").say("meanwhile").say("more");
        assert_eq!(written.so_far(), "a?");
        written.answer("a");
        assert_eq!(written.so_far(), "a? a! meanwhile more");
    }

    #[test]
    fn parallel_calls_come_one_after_the_other() {
        let mut written = Written::default();
        written.call("a").call("b").say("text").call("c");
        written.answer("c").answer("a");
        assert_eq!(written.so_far(), "a? a! b?");
        written.answer("b").say("end");
        assert_eq!(written.so_far(), "a? a! b? b! text c? c! end");
    }

    #[test]
    fn calls_inside_a_call_wait_for_it() {
        let mut written = Written::default();
        written.call("task").call("inner").answer("inner").say("report");
        assert_eq!(written.so_far(), "task?");
        written.answer("task");
        assert_eq!(written.so_far(), "task? task! inner? inner! report");
    }

    #[test]
    fn a_call_that_outlives_its_turn_is_answered_later() {
        let mut written = Written::default();
        written.call("a").say("one").call("b").answer("b").say("two");
        let Written { hold, out } = &mut written;
        hold.settle(out);
        assert_eq!(written.so_far(), "a? one b? b! two");
        written.say("next").call("c").answer("a").answer("c");
        assert_eq!(written.so_far(), "a? one b? b! two next c? c! a!");
    }

    #[test]
    fn an_answer_that_nobody_waits_for_is_refused() {
        let mut written = Written::default();
        written.call("a");
        let Written { hold, out } = &mut written;
        assert!(!hold.answer("b", out, |out| out.push(b'x')));
        assert_eq!(written.so_far(), "a?");
    }

    #[test]
    fn what_somebody_else_writes_is_not_kept() {
        let mut written = Written::default();
        written.call("a");
        written.hold.forget(true);
        written.say("passed").call("b");
        written.hold.forget(false);
        written.answer("a").answer("b");
        assert_eq!(written.so_far(), "a? a! b!");
    }
}
