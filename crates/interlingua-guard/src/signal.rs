//! The signals that a client can order, and how an order is written.

/// A signal that asks a program to stop, or forces it to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT, as sent by Ctrl-C at a terminal.
    Interrupt,
    /// SIGTERM, the request to exit.
    Terminate,
    /// SIGKILL.
    Kill,
    /// SIGSTOP, as Ctrl-Z at a terminal has its effect.
    Suspend,
    /// SIGCONT.
    Resume,
}

impl Signal {
    /// The order to send this signal, one byte in the pipe of orders.
    pub fn order(self) -> u8 {
        match self {
            Self::Interrupt => b'i',
            Self::Terminate => b't',
            Self::Kill => b'k',
            Self::Suspend => b's',
            Self::Resume => b'r',
        }
    }

    /// The signal that an order asks for.
    pub fn of_order(order: u8) -> Option<Self> {
        let all = [Self::Interrupt, Self::Terminate, Self::Kill, Self::Suspend, Self::Resume];
        all.into_iter().find(|signal| signal.order() == order)
    }

    /// The number of the signal on this system.
    #[cfg(unix)]
    pub fn number(self) -> rustix::process::Signal {
        match self {
            Self::Interrupt => rustix::process::Signal::INT,
            Self::Terminate => rustix::process::Signal::TERM,
            Self::Kill => rustix::process::Signal::KILL,
            Self::Suspend => rustix::process::Signal::STOP,
            Self::Resume => rustix::process::Signal::CONT,
        }
    }
}
