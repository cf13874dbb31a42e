//! The steps of a turn, for protocols that have them: a request to the model, with the answers to the
//! calls that it made.
//!
//! Agents seldom say where a step ends, so this is a guess. What the agent says after a call was answered, while nothing
//! else is open, is the next one; unless it is still the same message. Other agents that it started
//! have no steps of their own.

use crate::json::Text;

/// Where a turn is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Steps {
    open: bool,
    /// How many steps there were in the stream.
    count: u64,
    /// The message that the step began with, where it has an id.
    message: Option<Text<'static>>,
    /// It is not known yet with which message the step began.
    nameless: bool,
    answered: bool,
    open_blocks: u64,
    open_calls: u64,
}

/// What has to be said before the agent goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing: it is the same step.
    Same,
    /// That a step begins.
    First,
    /// That a step ends, and another one begins.
    Another,
}

impl Steps {
    /// The number of the step at hand.
    pub(crate) fn number(&self) -> u64 {
        self.count
    }

    /// Takes note that a message goes on with a block or a call.
    pub(crate) fn go_on(&mut self, message: Option<&Text<'_>>, parent: Option<&Text<'_>>) -> Next {
        let next = match self.open {
            false => Next::First,
            true if self.is_over(message, parent) => Next::Another,
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

    fn is_over(&self, message: Option<&Text<'_>>, parent: Option<&Text<'_>>) -> bool {
        let goes_on = message.is_some() && !self.nameless && self.message.as_ref() == message;
        let open = self.open_blocks + self.open_calls > 0;
        self.answered && !open && parent.is_none() && !goes_on
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

    /// Ends the turn; gives whether a step was open.
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
    fn a_step_ends_when_all_calls_are_answered_and_the_agent_goes_on() {
        let mut steps = Steps::default();
        assert_eq!(steps.go_on(None, None), Next::First);
        steps.called();
        assert_eq!(steps.go_on(None, None), Next::Same);
        steps.called();
        steps.answered();
        assert_eq!(steps.go_on(None, None), Next::Same);
        steps.answered();
        let other_agent = Text::plain("call");
        assert_eq!(steps.go_on(None, Some(&other_agent)), Next::Same);
        assert_eq!(steps.go_on(None, None), Next::Another);
        assert_eq!((steps.end(), steps.end(), steps.number()), (true, false, 2));
    }

    #[test]
    fn a_message_that_goes_on_after_an_answer_is_one_step() {
        let (mut steps, one) = (Steps::default(), Text::plain("one"));
        steps.go_on(Some(&one), None);
        steps.called();
        steps.answered();
        assert_eq!(steps.go_on(Some(&one), None), Next::Same);
        assert_eq!(steps.go_on(Some(&Text::plain("two")), None), Next::Another);
    }
}
