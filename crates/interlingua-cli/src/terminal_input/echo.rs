//! Whether the terminal shows what is typed. While rows are redrawn, typed characters would end up
//! between them; they are kept, and appear when a line is read.
//!
//! There is one terminal, so its state is global. Only a foreground job may change it: the system
//! stops any other one that tries.

use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};

use rustix::process::getpgrp;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};

/// The state of the terminal before it was changed.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Stops showing what is typed while rows are redrawn. Ctrl-C and Ctrl-Z still have their effect.
pub(crate) fn hide() {
    change(|state| {
        state.local_modes.remove(LocalModes::ECHO);
        // The Enter key must not become a line feed, which begins another line in the editor.
        state.input_modes.remove(InputModes::ICRNL);
    });
}

/// Keeps everything that is typed for the line editor, also Ctrl-C, until the editor has the terminal.
pub(crate) fn queue() {
    change(|state| {
        state.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        state.input_modes.remove(InputModes::ICRNL);
    });
}

/// Stops showing what is typed in the line that is being read.
pub(crate) fn hide_line() {
    change(|state| state.local_modes.remove(LocalModes::ECHO));
}

fn change(quiet: impl FnOnce(&mut Termios)) {
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_in_foreground() {
        return;
    }
    let known = before.take().map_or_else(|| tcgetattr(io::stdin()), Ok);
    let Ok(state) = known else { return };
    let mut changed = state.clone();
    quiet(&mut changed);
    // A terminal that is gone shows nothing.
    let _ = tcsetattr(io::stdin(), OptionalActions::Now, &changed);
    *before = Some(state);
}

/// Shows what is typed again. Returns whether it had been hidden.
pub(crate) fn show() -> bool {
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(state) = before.take() else { return false };
    if is_in_foreground() {
        // A terminal that is gone needs no restoring.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &state);
    }
    true
}

/// Shows what is typed for as long as this process is suspended. Returns what to [`resume`] then.
pub(crate) fn suspend() -> Option<Termios> {
    let hidden = tcgetattr(io::stdin()).ok();
    hidden.filter(|_| show())
}

/// Hides again what was hidden before this process was suspended.
pub(crate) fn resume(hidden: Option<Termios>) {
    if let Some(hidden) = hidden {
        change(|state| *state = hidden);
    }
}

/// The state of a terminal.
pub(crate) type TerminalState = Termios;

/// The state of the terminal.
pub(crate) fn state() -> Option<TerminalState> {
    tcgetattr(io::stdin()).ok()
}

/// Restores an earlier state of the terminal.
pub(crate) fn restore(state: &TerminalState) {
    if is_in_foreground() {
        // A terminal that is gone needs no restoring.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, state);
    }
}

fn is_in_foreground() -> bool {
    io::stdin().is_terminal() && tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}
