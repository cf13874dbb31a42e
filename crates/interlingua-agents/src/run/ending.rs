//! How a run ends: nobody is left, all that was said is told, and the end is the truth.

use std::process::ExitStatus;

use interlingua::Exit;
use interlingua::event::{Error, Event, Outcome};
use interlingua::json::Text;
use tokio::sync::mpsc;

use super::outbox::Sign;
use super::{Control, Ended, Run, Stop, now_ms};
use crate::watch::Note;

impl Run {
    /// The process has ended: ends those that it left behind, reads what it still said, and tells how
    /// it ended.
    pub(super) async fn end(
        mut self,
        status: Option<ExitStatus>,
        controls: &mut mpsc::Receiver<Control>,
    ) -> Ended {
        let left_behind = self.process.sweep().await;
        self.clock.over();
        loop {
            let unread = self.spool.unread();
            self.read_some().await;
            // What cannot be read will not be read the next time either.
            let read = self.spool.unread() < unread;
            if !read || !self.wait_for_room(controls).await {
                break;
            }
        }
        let exit = self.exit(status);
        self.say(|driver, steps| driver.ended(exit.code, steps));
        self.take_notes().await;
        self.tell_contradiction(&exit);
        let (lingered, silent) = (self.clock.ended_lingering(), self.spool.is_empty());
        let Self { mut outbox, stop, mut outcome, reader, mut outlets, mut record, .. } = self;
        let Ok(_) = reader.finish(&exit, Some(now_ms()), &mut outlets);
        let mut watch = outlets.finish(record.as_mut(), |bytes| outbox.put(bytes));
        for note in watch.notes() {
            if let Note::TurnEnded(ended) = note {
                outcome = ended;
            }
        }
        tokio::select! {
            () = outbox.emptied() => {}
            () = stopped_again(controls) => {}
        }
        Ended { outcome, exit, stop, lingered, silent, left_behind }
    }

    /// Waits until the consumer takes more; gives whether it is worth waiting for.
    async fn wait_for_room(&mut self, controls: &mut mpsc::Receiver<Control>) -> bool {
        if self.outbox.has_room() {
            return true;
        }
        tokio::select! {
            sign = self.outbox.news() => {
                if sign == Sign::Gone {
                    self.stop.get_or_insert(Stop::ConsumerGone);
                }
                sign == Sign::Room
            }
            () = stopped_again(controls) => {
                self.stop.get_or_insert(Stop::Interrupted);
                false
            }
        }
    }

    fn exit(&mut self, status: Option<ExitStatus>) -> Exit {
        Exit {
            code: status.and_then(|status| status.code()).map(i64::from),
            signal: status.and_then(signal),
            stderr: self.process.stderr_tail(),
            stopped: self.stop.as_ref().map(Stop::told),
        }
    }

    /// Says so where the stream says that all is well, and the process that it is not.
    fn tell_contradiction(&mut self, exit: &Exit) {
        let failed = exit.code.is_some_and(|code| code != 0) || exit.signal.is_some();
        if self.stop.is_some()
            || self.clock.ended_lingering()
            || !failed
            || self.outcome != Outcome::Completed
        {
            return;
        }
        let how = match (exit.signal, exit.code) {
            (Some(signal), _) => format!("was ended by signal {signal}"),
            (None, code) => format!("exited with code {}", code.unwrap_or_default()),
        };
        let mut message = format!("the agent said that its turn was completed, but {how}");
        if let Some(last) = exit.stderr.as_deref().and_then(|tail| tail.trim_end().lines().last()) {
            message = format!("{message}; its last words were: {last}");
        }
        let error = Error { message: Text::from(message), ..Error::default() };
        let contradiction = Event::new(error);
        self.read(|reader, outlets| reader.emit(contradiction, Some(now_ms()), outlets));
    }
}

/// The signal that ended a process.
#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i64> {
    std::os::unix::process::ExitStatusExt::signal(&status).map(i64::from)
}

/// Where there are no signals, nobody is ended by one.
#[cfg(not(unix))]
fn signal(_status: ExitStatus) -> Option<i64> {
    None
}

/// Waits until the run is to be stopped at once.
async fn stopped_again(controls: &mut mpsc::Receiver<Control>) {
    loop {
        match controls.recv().await {
            Some(Control::Stop(_)) => return,
            Some(Control::Decide { .. }) => {}
            None => std::future::pending().await,
        }
    }
}
