//! What a user types at the terminal: lines, and whether the terminal shows them.

use std::io::{self, BufRead};

#[cfg(unix)]
mod echo;
#[cfg(unix)]
pub(crate) use echo::{
    TerminalState, hide, hide_line, queue, restore, resume, show, state, suspend,
};

/// The state of a terminal; other systems restore it themselves.
#[cfg(not(unix))]
pub(crate) struct TerminalState;

/// Other systems restore the terminal themselves.
#[cfg(not(unix))]
pub(crate) fn state() -> Option<TerminalState> {
    None
}

/// Other systems restore the terminal themselves.
#[cfg(not(unix))]
pub(crate) fn restore(_state: &TerminalState) {}

/// Other systems show what is typed.
#[cfg(not(unix))]
pub(crate) fn hide() {}

/// Other systems show what is typed.
#[cfg(not(unix))]
pub(crate) fn queue() {}

/// Other systems show what is typed.
#[cfg(not(unix))]
pub(crate) fn hide_line() {}

/// What is typed is shown already.
#[cfg(not(unix))]
pub(crate) fn show() -> bool {
    false
}

/// The columns and rows of the terminal at which the user is asked.
pub(crate) fn screen() -> (u16, u16) {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(io::stderr())
        && size.ws_col > 0
        && size.ws_row > 0
    {
        return (size.ws_col, size.ws_row);
    }
    (80, 24)
}

/// Discards what was typed and not read yet.
pub(crate) fn discard() {
    #[cfg(unix)]
    {
        use rustix::termios::{QueueSelector, tcflush};
        // Standard input may not be a terminal any more; then there is nothing to discard.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    }
}

/// Reads a line for as long as it is needed. Returns `None` if it is needed no more, or at the end
/// of the input.
pub(crate) fn line_while(is_needed: impl Fn() -> bool) -> Option<String> {
    if !wait_while(is_needed) {
        return None;
    }
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line),
    }
}

/// Waits for input. Returns `false` if it is needed no more.
#[cfg(unix)]
fn wait_while(is_needed: impl Fn() -> bool) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    // Nothing wakes a thread that waits for a terminal, so it looks up from time to time.
    const INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    let stdin = io::stdin();
    while is_needed() {
        let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut watched, Some(&INTERVAL)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            // An error is reported by the read that follows.
            Ok(_) | Err(_) => return true,
        }
    }
    false
}

/// Other systems cannot wait for a terminal with a time limit.
#[cfg(not(unix))]
fn wait_while(is_needed: impl Fn() -> bool) -> bool {
    is_needed()
}
