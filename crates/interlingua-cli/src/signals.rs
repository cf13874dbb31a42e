//! Signals from the terminal and the system, as commands of a session.

use std::sync::Arc;

use interlingua_agents::{Handle, Stop};
use tokio::sync::Notify;

#[cfg(unix)]
use crate::terminal_input;

/// The effect of an interrupt, such as Ctrl-C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnInterrupt {
    /// It stops the session.
    Stop,
    /// It stops the running turn.
    InterruptTurn,
}

impl OnInterrupt {
    /// Returns whether the session still takes commands.
    async fn apply(self, handle: &Handle, stopped: &Notify) -> bool {
        match self {
            Self::Stop => {
                let accepted = handle.stop(Stop::Interrupted).await.is_ok();
                stopped.notify_one();
                accepted
            }
            // Without a turn there is nothing to interrupt, and the session goes on.
            Self::InterruptTurn => {
                handle.interrupt().await != Err(interlingua_agents::Refused::Ended)
            }
        }
    }
}

/// Passes SIGINT, SIGTERM, SIGHUP and SIGTSTP on (Ctrl-C on Windows).
///
/// The signals are caught before the agent is started. A shell lets its background jobs ignore
/// SIGINT, which the agent would inherit; a signal that is caught here has its default action there.
#[derive(Debug)]
pub(crate) struct Signals {
    /// Notified when a signal has stopped the session.
    stopped: Arc<Notify>,
    #[cfg(unix)]
    caught: Vec<(tokio::signal::unix::Signal, bool)>,
    #[cfg(unix)]
    suspending: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn catch() -> Self {
        use interlingua_agents::process::is_hangup_ignored;
        use tokio::signal::unix::{SignalKind, signal};
        let mut kinds = vec![(SignalKind::interrupt(), true), (SignalKind::terminate(), false)];
        // With `nohup`, the run has to survive its terminal.
        if !is_hangup_ignored() {
            kinds.push((SignalKind::hangup(), false));
        }
        let caught = kinds.into_iter().filter_map(|(kind, is_interrupt)| {
            signal(kind).ok().map(|signals| (signals, is_interrupt))
        });
        let stop = SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw());
        Self { stopped: Arc::default(), caught: caught.collect(), suspending: signal(stop).ok() }
    }

    /// Waits for a signal that ends the program.
    pub(crate) async fn received(&mut self) {
        std::future::poll_fn(|context| {
            let mut caught = self.caught.iter_mut();
            match caught.any(|(signals, _)| signals.poll_recv(context).is_ready()) {
                true => std::task::Poll::Ready(()),
                false => std::task::Poll::Pending,
            }
        })
        .await;
    }

    /// Passes the signals on to a session. What is returned is notified when one has stopped it.
    pub(crate) fn pass_on(self, handle: &Handle, on_interrupt: OnInterrupt) -> Arc<Notify> {
        for (mut signals, is_interrupt) in self.caught {
            let (handle, stopped) = (handle.clone(), Arc::clone(&self.stopped));
            let effect = if is_interrupt { on_interrupt } else { OnInterrupt::Stop };
            tokio::spawn(async move {
                while signals.recv().await.is_some() && effect.apply(&handle, &stopped).await {}
            });
        }
        if let Some(signals) = self.suspending {
            tokio::spawn(suspend_with_us(signals, handle.clone()));
        }
        self.stopped
    }
}

/// Suspends the session when Ctrl-Z suspends this process, and resumes it with this process.
#[cfg(unix)]
async fn suspend_with_us(mut signals: tokio::signal::unix::Signal, handle: Handle) {
    use rustix::process::{Signal, getpid, kill_process};
    while signals.recv().await.is_some() {
        // After the end of the session, only this process is suspended.
        let _ = handle.suspend().await;
        let hidden = terminal_input::suspend();
        // This call returns when the process is continued.
        let _ = kill_process(getpid(), Signal::STOP);
        terminal_input::resume(hidden);
        let _ = handle.resume().await;
    }
}

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn catch() -> Self {
        Self { stopped: Arc::default() }
    }

    /// Waits for Ctrl-C.
    pub(crate) async fn received(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Passes Ctrl-C on to a session. What is returned is notified when it has stopped it.
    pub(crate) fn pass_on(self, handle: &Handle, on_interrupt: OnInterrupt) -> Arc<Notify> {
        let (handle, stopped) = (handle.clone(), Arc::clone(&self.stopped));
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok()
                && on_interrupt.apply(&handle, &stopped).await
            {}
        });
        self.stopped
    }
}
