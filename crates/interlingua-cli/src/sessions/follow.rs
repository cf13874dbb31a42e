//! Shows the log of a session: to a person at a terminal, or as the records of a dialect.

use std::io;
use std::time::Instant;

use anyhow::Result;
use interlingua::dialect::{Dialect, EncodeOptions};
use interlingua::event::{Data, Outcome};
use interlingua::{Batch, Writer};
use interlingua_sessions::host::Command;
use interlingua_sessions::{CommandState, IdempotencyKey};

use super::source::{Page, Source};
use crate::conversation::Display;
use crate::output::{Output, ReaderChange, Stdout};

/// How far a log is shown.
#[derive(Debug)]
pub(super) enum Until {
    /// To its present end.
    Now,
    /// Until the session is closed.
    Closed,
    /// To the end of the turn of this command.
    Turn(IdempotencyKey, Command),
}

/// Shows a log on standard output.
pub(super) struct Shown {
    display: Display,
    output: Output,
    next_tick: Option<Instant>,
}

impl Shown {
    /// `to` is the dialect to write; without one, a person looks at it.
    pub(super) fn new(to: Option<&'static Dialect>, id_seed: u64, verbose: bool) -> Result<Self> {
        let options = EncodeOptions { id_seed: Some(id_seed), ..EncodeOptions::default() };
        let (display, writer) = match to {
            Some(to) => (Display::Records, Some(Box::new(Writer::new(to, &options)?))),
            None => (Display::at_terminal(verbose), None),
        };
        let output = Output::new(Box::new(Stdout(io::stdout())), writer);
        Ok(Self { display, output, next_tick: None })
    }

    /// Shows the log from an entry on. Returns how the last turn ended that it has seen.
    pub(super) async fn follow(
        mut self,
        source: &mut Source,
        id: &str,
        mut next: u64,
        until: Until,
    ) -> Result<Option<Outcome>> {
        let mut outcome = None;
        loop {
            let page = self.next_page(source, id, next, !matches!(until, Until::Now)).await?;
            next = page.next;
            let is_done = page.closed || (page.up_to_date && matches!(until, Until::Now));
            let ended = turn_ends(&page).last();
            outcome = ended.clone().map(|(_, outcome)| outcome).or(outcome);
            if self.take(page).await == ReaderChange::Closed || is_done {
                break;
            }
            if let (Until::Turn(key, command), Some((at, _))) = (&until, ended)
                && is_ended(source, id, key, command, at).await?
            {
                break;
            }
        }
        self.display.finish(&mut self.output).await;
        self.output.drained().await;
        Ok(outcome)
    }

    /// Reads on. What moves on the screen goes on meanwhile.
    async fn next_page(
        &mut self,
        source: &Source,
        id: &str,
        from: u64,
        waits: bool,
    ) -> Result<Page> {
        let mut reading = std::pin::pin!(source.read(id, from, waits));
        loop {
            tokio::select! {
                page = &mut reading => return page,
                () = crate::conversation::until(self.next_tick) => self.tick(),
            }
        }
    }

    fn tick(&mut self) {
        let mut bytes = Vec::new();
        self.next_tick = self.display.tick(&mut bytes);
        self.output.put(bytes);
    }

    /// Shows entries, and waits until the reader takes more.
    async fn take(&mut self, page: Page) -> ReaderChange {
        let mut batch = Batch::default();
        let now = Instant::now();
        for entry in &page.entries {
            self.display.take(entry.borrowed(), now);
            batch.push(entry.borrowed());
        }
        self.tick();
        if let Display::Records = self.display {
            self.output.put_entries(batch);
        }
        match self.output.has_room() {
            true => ReaderChange::Ready,
            false => self.output.changed().await,
        }
    }
}

/// The ends of turns, with their numbers.
fn turn_ends(page: &Page) -> impl Iterator<Item = (u64, Outcome)> {
    page.entries.iter().filter_map(|entry| match &entry.event.data {
        Data::TurnEnded(ended) if !ended.replay => Some((entry.sequence, ended.outcome.clone())),
        _ => None,
    })
}

/// Whether the turn of a command has ended with this entry. Sent again, a command only reports what
/// became of it.
async fn is_ended(
    source: &mut Source,
    id: &str,
    key: &IdempotencyKey,
    command: &Command,
    at: u64,
) -> Result<bool> {
    let acknowledged = source.command(id, key, command).await?;
    Ok(match acknowledged.state {
        CommandState::Accepted | CommandState::Delivering => false,
        CommandState::Delivered => acknowledged.sequence.is_some_and(|sequence| sequence <= at),
        _ => true,
    })
}
