//! A session as this command holds it: entries are shown, requests of the agent are answered, and
//! commands from standard input are executed.
//!
//! It knows neither a protocol nor what is shown; [`Display`] does the latter.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::{Duration, Instant};

use interlingua::event::{Data, ErrorClass, Event, Outcome};
use interlingua::{Batch, EntryRef};
use interlingua_agents::{Ended, Entries, Handle, InputRequest, Session, Stop};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::asking::{self, Reply};
use crate::commands::{self, Command};
use crate::output::{Output, ReaderChange};
use crate::recent::RecentRecorder;
use crate::report;
use crate::tally::Tally;
use crate::terminal_input;
use crate::transcript::Transcript;
use crate::view::{self, Terminal, View};

/// How entries are shown.
#[derive(Debug)]
pub(crate) enum Display {
    /// As the records of a dialect, which the [output](Output) encodes.
    Records,
    /// For a person at a terminal.
    Terminal(Box<Screen>),
}

/// The view, and the terminal that it is drawn on.
#[derive(Debug)]
pub(crate) struct Screen {
    view: View,
    size: (u16, u16),
    /// When entries were drawn last. What moves by itself does not delay them.
    drawn_at: Option<Instant>,
    /// Entries have arrived since then.
    has_news: bool,
}

/// The minimum time between two drawings. A fast agent streams hundreds of deltas in that many
/// milliseconds, and drawing each of them would cost more than everything else. What arrives after
/// a pause is drawn at once.
pub(crate) const REDRAW_INTERVAL: Duration = Duration::from_millis(3);

/// A drawing that is due this soon is not postponed: waking up for it would cost more.
const REDRAW_SLACK: Duration = Duration::from_micros(500);

impl Display {
    /// The view for the terminal of this process.
    pub(crate) fn at_terminal(verbose: bool) -> Self {
        let terminal = Terminal::of_stdout(verbose);
        let size = (terminal.width, terminal.height);
        let view = View::new(terminal);
        Self::Terminal(Box::new(Screen { view, size, drawn_at: None, has_news: false }))
    }

    /// Takes an entry, which the next tick shows. Records are written by the output.
    pub(crate) fn take(&mut self, entry: EntryRef<'_>, now: Instant) {
        if let Self::Terminal(screen) = self {
            screen.take(entry, now);
        }
    }

    /// Draws what is new and what moves. Returns when that is due next.
    pub(crate) fn tick(&mut self, bytes: &mut Vec<u8>) -> Option<Instant> {
        match self {
            Self::Records => None,
            Self::Terminal(screen) => screen.tick(Instant::now(), bytes),
        }
    }

    /// Something else is about to be written to the terminal.
    fn pause(&mut self, bytes: &mut Vec<u8>) {
        if let Self::Terminal(screen) = self {
            screen.view.pause(bytes);
        }
    }

    fn resume(&mut self) {
        if let Self::Terminal(screen) = self {
            screen.view.resume();
        }
    }

    /// Shows the user what to do. Records are for programs, so it is written to standard error then.
    fn advise(&mut self, advice: &str, bytes: &mut Vec<u8>) {
        match self {
            Self::Records => report::print_line(&format!("interlingua: {advice}")),
            Self::Terminal(screen) => screen.view.advise(advice, Instant::now(), bytes),
        }
    }

    pub(crate) async fn finish(self, output: &mut Output) {
        match self {
            Self::Records => output.finish_records().await,
            Self::Terminal(screen) => {
                let mut bytes = Vec::new();
                screen.view.finish(&mut bytes);
                output.put(bytes);
            }
        }
    }
}

impl Screen {
    /// Takes an entry, which the next tick shows.
    fn take(&mut self, entry: EntryRef<'_>, now: Instant) {
        self.view.take(entry, now);
        self.has_news = true;
    }

    fn tick(&mut self, now: Instant, bytes: &mut Vec<u8>) -> Option<Instant> {
        let due = self.drawn_at.and_then(|drawn| drawn.checked_add(REDRAW_INTERVAL));
        if let Some(due) = due.filter(|due| now + REDRAW_SLACK < *due) {
            return Some(due);
        }
        if std::mem::take(&mut self.has_news) {
            self.drawn_at = Some(now);
        }
        let size = view::size();
        if std::mem::replace(&mut self.size, size) != size {
            self.view.resize(size.0, size.1);
        }
        self.view.tick(now, bytes)
    }
}

/// Who answers the requests of the agent.
#[derive(Debug)]
pub(crate) enum Answers {
    /// The user at the terminal.
    AtTerminal(mpsc::UnboundedReceiver<InputRequest>),
    /// A program that writes commands to standard input.
    ByCommands {
        /// Kept open for as long as standard input is.
        requests: Option<mpsc::UnboundedReceiver<InputRequest>>,
        commands: mpsc::Receiver<Result<Command, String>>,
        /// The session ends with its prompt, unless another one arrives before.
        ends_with_prompt: bool,
    },
    /// No one.
    NoOne,
}

/// A session that is being shown.
pub(crate) struct Conversation {
    pub(crate) handle: Handle,
    /// What to do if the user is not signed in.
    sign_in: Option<String>,
    entries: Entries,
    display: Display,
    output: Output,
    answers: Answers,
    /// Notified when the reader of a pipe closes it.
    hangup: Option<oneshot::Receiver<()>>,
    /// Requests whose entry was not shown yet, or that wait for the answer to another one.
    waiting: VecDeque<InputRequest>,
    /// The question that the user is looking at.
    asking: Option<JoinHandle<Option<Reply>>>,
    /// The sequence number of the next entry to show.
    next_sequence: u64,
    /// When the display moves next.
    next_tick: Option<Instant>,
    /// Counts what the turns use.
    pub(crate) tally: Option<Tally>,
    /// Keeps all entries.
    pub(crate) transcript: Option<Transcript>,
    /// Remembers the session, so that it can be continued.
    pub(crate) recent: Option<RecentRecorder>,
    /// Notified when a signal has stopped the session.
    pub(crate) stopped: Arc<Notify>,
}

/// How long a conversation is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// To the end of the session.
    End,
    /// To the end of the next live turn.
    TurnEnd,
}

/// What the loop waited for.
enum Wake {
    Entries(Option<Batch>),
    Reader(ReaderChange),
    Hangup,
    Requested(Option<InputRequest>),
    Command(Option<Result<Command, String>>),
    Answered(Option<Reply>),
    Tick,
}

impl Conversation {
    pub(crate) fn new(
        sign_in: Option<String>,
        session: Session,
        (display, output): (Display, Output),
        answers: Answers,
    ) -> Self {
        let Session { handle, entries, .. } = session;
        Self {
            handle,
            sign_in,
            entries,
            display,
            output,
            answers,
            hangup: watch_reader(),
            waiting: VecDeque::new(),
            asking: None,
            next_sequence: 0,
            next_tick: None,
            tally: None,
            transcript: None,
            recent: None,
            stopped: Arc::default(),
        }
    }

    /// Leaves prompts out, because the terminal shows them as they are typed.
    pub(crate) fn hide_prompts(&mut self) {
        if let Display::Terminal(screen) = &mut self.display {
            screen.view.hide_prompts();
        }
    }

    /// Shows the session. Returns `false` once it has ended.
    pub(crate) async fn show(&mut self, until: Until) -> bool {
        self.hide_typed();
        loop {
            self.ask_next().await;
            match self.wait().await {
                Wake::Entries(None) => return false,
                Wake::Entries(Some(entries)) => {
                    let ended = self.take(entries);
                    if ended && until == Until::TurnEnd {
                        return true;
                    }
                }
                Wake::Reader(ReaderChange::Ready) => {}
                Wake::Reader(ReaderChange::Closed) | Wake::Hangup => self.output_closed().await,
                Wake::Requested(Some(request)) => self.waiting.push_back(request),
                Wake::Requested(None) => self.answers = Answers::NoOne,
                Wake::Command(command) => self.command(command).await,
                Wake::Answered(reply) => self.answered(reply).await,
                Wake::Tick => self.tick(),
            }
        }
    }

    /// Waits for the end of the session, and writes what was held back.
    pub(crate) async fn end(self) -> Option<Ended> {
        terminal_input::show();
        let Self { entries, display, mut output, .. } = self;
        display.finish(&mut output).await;
        output.drained().await;
        let mut ended = entries.end().await?;
        if let Some(why) = output.failure() {
            ended.stop.get_or_insert(Stop::OutputFailed(why));
        }
        Some(ended)
    }

    async fn wait(&mut self) -> Wake {
        // While the user looks at a question, nothing else is shown.
        let shows = self.output.has_room() && self.asking.is_none();
        let tick = self.next_tick.filter(|_| shows);
        let Self { entries, output, answers, hangup, asking, .. } = self;
        tokio::select! {
            biased;
            reply = answer(asking) => Wake::Answered(reply),
            wake = input(answers) => wake,
            change = output.changed() => Wake::Reader(change),
            () = hung_up(hangup) => Wake::Hangup,
            entries = entries.next(), if shows => Wake::Entries(entries),
            () = until(tick), if tick.is_some() => Wake::Tick,
        }
    }

    /// Shows entries. Returns whether a live turn has ended.
    fn take(&mut self, entries: Batch) -> bool {
        let (mut bytes, mut ended) = (Vec::new(), false);
        let now = Instant::now();
        entries.for_each(|entry| {
            self.display.take(entry, now);
            if let Some(advice) = self.sign_in.as_ref().filter(|_| is_failed_sign_in(entry.event)) {
                self.display.advise(advice, &mut bytes);
            }
            self.keep(entry);
            self.next_sequence = entry.sequence + 1;
            ended |= matches!(&entry.event.data, Data::TurnEnded(ended) if !ended.replay);
        });
        self.next_tick = self.display.tick(&mut bytes);
        match self.display {
            Display::Records => self.output.put_entries(entries),
            Display::Terminal(_) => self.output.put(bytes),
        }
        ended
    }

    fn tick(&mut self) {
        let mut bytes = Vec::new();
        self.next_tick = self.display.tick(&mut bytes);
        self.output.put(bytes);
    }

    /// Removes everything transient from the terminal, because something else is written to it.
    pub(crate) async fn pause(&mut self) {
        self.clear().await;
        terminal_input::show();
    }

    /// The same for a line editor, which takes what was typed before. Until it has the terminal, what is
    /// typed stays hidden, the Enter key must not become a line feed, and Ctrl-C is for the editor.
    pub(crate) async fn pause_for_editor(&mut self) {
        self.clear().await;
        terminal_input::queue();
    }

    async fn clear(&mut self) {
        let mut bytes = Vec::new();
        self.display.pause(&mut bytes);
        self.output.put(bytes);
        self.output.flushed().await;
    }

    /// What was written instead is complete.
    pub(crate) fn resume(&mut self) {
        self.display.resume();
        self.hide_typed();
    }

    /// What is typed would disturb the rows that are redrawn.
    fn hide_typed(&self) {
        if let Display::Terminal(..) = self.display {
            terminal_input::hide();
        }
    }

    /// Keeps what is needed of an entry after it was shown.
    fn keep(&mut self, entry: EntryRef<'_>) {
        if let Some(tally) = &mut self.tally {
            tally.add(entry.event);
        }
        if let Some(transcript) = &mut self.transcript {
            transcript.add(entry);
        }
        let id = match &entry.event.data {
            Data::SessionStarted(started) => started.id.as_ref(),
            Data::SessionUpdated(updated) => updated.id.as_ref(),
            _ => None,
        };
        if let (Some(recent), Some(id)) = (&mut self.recent, id) {
            recent.session(&id.to_string());
        }
    }

    /// Asks the user the next question, once everything before it is shown.
    async fn ask_next(&mut self) {
        while self.asking.is_none()
            && let Some(request) =
                self.waiting.pop_front_if(|next| next.sequence < self.next_sequence)
        {
            if request.is_pending() {
                self.pause().await;
                self.asking = Some(tokio::task::spawn_blocking(move || asking::ask(&request)));
            }
        }
    }

    async fn answered(&mut self, reply: Option<Reply>) {
        self.asking = None;
        if let Some(reply) = reply
            // The request may have been withdrawn in the meantime.
            && let Err(refused) = reply.send(&self.handle).await
        {
            report::print_line(&refused.to_string());
        }
        self.resume();
    }

    async fn command(&mut self, command: Option<Result<Command, String>>) {
        let Answers::ByCommands { requests, ends_with_prompt, .. } = &mut self.answers else {
            return;
        };
        let done = match command {
            None => {
                // No one is available from now on.
                drop(requests.take());
                self.answers = Answers::NoOne;
                // The session may have ended already.
                let _ = self.handle.finish().await;
                return;
            }
            Some(Err(problem)) => {
                report::warning(&format!("a line of standard input was ignored: {problem}"));
                return;
            }
            Some(Ok(command)) => {
                if matches!(command, Command::Prompt(_))
                    && std::mem::replace(ends_with_prompt, false)
                {
                    // From now on it is a conversation, which ends with standard input. The session
                    // may have ended already.
                    let _ = self.handle.hold().await;
                }
                command.send(&self.handle).await
            }
        };
        if let Err(refused) = done {
            report::warning(&format!("a command was not accepted: {refused}"));
        }
    }

    async fn output_closed(&mut self) {
        self.hangup = None;
        let why = self.output.failure().map_or(Stop::ConsumerGone, Stop::OutputFailed);
        // The session may have ended already.
        let _ = self.handle.stop(why).await;
    }
}

/// Whether this is the end of a turn that failed because the user is not signed in. What agents
/// advise themselves, such as `/login`, often works only on their own screen.
fn is_failed_sign_in(event: &Event<'_>) -> bool {
    let Data::TurnEnded(ended) = &event.data else { return false };
    let unauthenticated = ended.class == Some(ErrorClass::Authentication);
    unauthenticated && ended.outcome == Outcome::Failed && !ended.replay
}

/// Sleeps until an instant; without one, forever.
pub(crate) async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

/// Waits for the user's answer; without a question, forever.
async fn answer(asking: &mut Option<JoinHandle<Option<Reply>>>) -> Option<Reply> {
    match asking {
        Some(asking) => asking.await.ok().flatten(),
        None => std::future::pending().await,
    }
}

/// Waits for a request of the agent, or for a command.
async fn input(answers: &mut Answers) -> Wake {
    match answers {
        Answers::AtTerminal(requests) => Wake::Requested(requests.recv().await),
        Answers::ByCommands { requests, commands, .. } => loop {
            let requests = requests.as_mut();
            tokio::select! {
                command = commands.recv() => return Wake::Command(command),
                // A program sees the request in the entries.
                Some(_) = next_request(requests) => {}
            }
        },
        Answers::NoOne => std::future::pending().await,
    }
}

async fn next_request(
    requests: Option<&mut mpsc::UnboundedReceiver<InputRequest>>,
) -> Option<InputRequest> {
    match requests {
        Some(requests) => requests.recv().await,
        None => None,
    }
}

async fn hung_up(hangup: &mut Option<oneshot::Receiver<()>>) {
    if let Some(notified) = hangup
        && notified.await.is_ok()
    {
        return;
    }
    // The reader did not close it, or is not watched.
    *hangup = None;
    std::future::pending().await
}

/// Notices when the reader of a pipe closes it, even while there is nothing to write.
#[cfg(unix)]
fn watch_reader() -> Option<oneshot::Receiver<()>> {
    if io::stdout().is_terminal() {
        return None;
    }
    let (notify, notified) = oneshot::channel();
    std::thread::spawn(move || {
        use rustix::event::{PollFd, PollFlags, poll};
        let stdout = io::stdout();
        let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
        // No events are requested, so only an error or a hang-up is reported.
        let polled = poll(&mut watched, None);
        let closed = PollFlags::ERR | PollFlags::HUP;
        if polled.is_ok() && watched.iter().any(|it| it.revents().intersects(closed)) {
            // The session may have ended already.
            let _ = notify.send(());
        }
    });
    Some(notified)
}

#[cfg(not(unix))]
fn watch_reader() -> Option<oneshot::Receiver<()>> {
    None
}

impl Answers {
    /// The user, if standard input is a terminal, else a program that writes commands to it. The session
    /// ends with its first prompt, unless there is another one.
    pub(crate) fn from_stdin(requests: mpsc::UnboundedReceiver<InputRequest>) -> Self {
        if io::stdin().is_terminal() && io::stderr().is_terminal() {
            return Self::AtTerminal(requests);
        }
        Self::by_commands(requests, true)
    }

    /// Commands on standard input, which a person may type as well.
    pub(crate) fn by_commands(
        requests: mpsc::UnboundedReceiver<InputRequest>,
        ends_with_prompt: bool,
    ) -> Self {
        let (requests, commands) = (Some(requests), commands::from_stdin());
        Self::ByCommands { requests, commands, ends_with_prompt }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlingua::Origin;
    use interlingua::event::UserMessage;
    use interlingua::json::Text;

    /// Drawing every delta took 9 % of the processor time of a fast agent.
    #[test]
    fn what_arrives_within_the_interval_is_drawn_once() {
        let terminal = Terminal { width: 80, height: 24, color: false, live: true, verbose: false };
        let (view, size) = (View::new(terminal), view::size());
        let mut screen = Screen { view, size, drawn_at: None, has_news: false };
        let origin = Origin::default();
        let mut show = |text: &'static str, now| {
            let event =
                Event::new(UserMessage { text: Text::plain(text), ..UserMessage::default() });
            let entry = EntryRef {
                sequence: 0,
                received_at: None,
                epoch: 0,
                origin: &origin,
                event: &event,
                raw: None,
            };
            let mut bytes = Vec::new();
            screen.take(entry, now);
            let due = screen.tick(now, &mut bytes);
            (String::from_utf8(bytes).unwrap(), due)
        };
        let start = Instant::now();
        assert!(show("one", start).0.contains("one"));
        let (drawn, due) = show("two", start + REDRAW_INTERVAL / 3);
        assert_eq!((&*drawn, due), ("", Some(start + REDRAW_INTERVAL)));
        let (drawn, _) = show("three", start + REDRAW_INTERVAL);
        assert!(drawn.contains("two") && drawn.contains("three"), "{drawn}");
    }

    #[test]
    fn what_moves_by_itself_does_not_delay_what_arrives() {
        let terminal = Terminal { width: 80, height: 24, color: false, live: true, verbose: false };
        let (view, size) = (View::new(terminal), view::size());
        let mut screen = Screen { view, size, drawn_at: None, has_news: false };
        screen.tick(Instant::now(), &mut Vec::new());
        assert_eq!(screen.drawn_at, None);
    }
}
