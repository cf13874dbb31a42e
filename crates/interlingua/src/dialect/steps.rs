//! The steps of a turn, for protocols that have them. A step is a request to the model, with the
//! answers to its calls.
//!
//! Agents seldom report where a step ends, so it is inferred. The first output after a call was
//! answered, while nothing else is open, begins the next step, unless it belongs to the same
//! message. Sub-agents have no steps of their own.

use crate::json::Text;

/// The current step of a turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct Steps {
    open: bool,
    /// The number of steps in the stream so far.
    count: u64,
    /// The message that the step began with, if it has an id.
    message: Option<Text<'static>>,
    /// It is not known yet with which message the step began.
    nameless: bool,
    answered: bool,
    open_blocks: u64,
    open_calls: u64,
}

/// What has to be written before the agent continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing, since it is the same step.
    Same,
    /// The start of a step.
    First,
    /// The end of a step, and the start of another one.
    Another,
}

impl Steps {
    /// The number of the current step.
    pub(crate) fn number(&self) -> u64 {
        self.count
    }

    /// Records that a message continues with a block or a call.
    pub(crate) fn advance(
        &mut self,
        message: Option<&Text<'_>>,
        parent: Option<&Text<'_>>,
    ) -> Next {
        let next = match self.open {
            false => Next::First,
            true if self.is_complete_before(message, parent) => Next::Another,
            true => Next::Same,
        };
        if next != Next::Same {
            self.open = true;
            self.answered = false;
            self.nameless = true;
            self.count += 1;
        }
        if self.nameless && parent.is_none() && message.is_some() {
            Text::keep_in(message, &mut self.message);
            self.nameless = false;
        }
        next
    }

    fn is_complete_before(&self, message: Option<&Text<'_>>, parent: Option<&Text<'_>>) -> bool {
        let same_message = message.is_some() && !self.nameless && self.message.as_ref() == message;
        let open = self.open_blocks + self.open_calls > 0;
        self.answered && !open && parent.is_none() && !same_message
    }

    pub(crate) fn block_opened(&mut self) {
        self.open_blocks += 1;
    }

    pub(crate) fn block_closed(&mut self) {
        self.open_blocks = self.open_blocks.saturating_sub(1);
    }

    pub(crate) fn called(&mut self) {
        self.open_calls += 1;
    }

    pub(crate) fn answered(&mut self) {
        self.open_calls = self.open_calls.saturating_sub(1);
        self.answered = true;
    }

    /// Ends the turn; returns whether a step was open.
    pub(crate) fn end(&mut self) -> bool {
        let open = self.open;
        *self = Self { count: self.count, ..Self::default() };
        open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_ends_when_all_calls_are_answered_and_the_agent_continues() {
        let mut steps = Steps::default();
        assert_eq!(steps.advance(None, None), Next::First);
        steps.called();
        assert_eq!(steps.advance(None, None), Next::Same);
        steps.called();
        steps.answered();
        assert_eq!(steps.advance(None, None), Next::Same);
        steps.answered();
        let other_agent = Text::plain("call");
        assert_eq!(steps.advance(None, Some(&other_agent)), Next::Same);
        assert_eq!(steps.advance(None, None), Next::Another);
        assert_eq!((steps.end(), steps.end(), steps.number()), (true, false, 2));
    }

    #[test]
    fn a_message_that_continues_after_an_answer_is_one_step() {
        let (mut steps, one) = (Steps::default(), Text::plain("one"));
        steps.advance(Some(&one), None);
        steps.called();
        steps.answered();
        assert_eq!(steps.advance(Some(&one), None), Next::Same);
        assert_eq!(steps.advance(Some(&Text::plain("two")), None), Next::Another);
    }
}
