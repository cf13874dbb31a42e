//! The log of a session, from which its reader is rebuilt.

use interlingua::event::{Data, HostState, Outcome};
use interlingua::{Continuation, Entry, ReadOptions, Reader, Stopped};
use memchr::memchr_iter;
use serde_json::Value;

use crate::host::ClientCalls;
use crate::{Error, Page, SessionId, SessionRecord, Store};

/// The number of bytes that are read at once.
const PAGE: usize = 1 << 20;

/// The cause of a turn that was running when its process ended.
pub(crate) const LOST: &str = "the process that ran the agent ended in the middle of the turn; what \
                               the agent printed and was not stored yet is cut off";

/// The name of the entry that announces a prompt.
pub(crate) const INTENT: &str = "prompt";

/// The state at the end of a session's log.
pub(crate) struct StoredLog {
    /// A reader at the end of the log.
    pub(crate) reader: Reader,
    /// A turn has not ended.
    pub(crate) has_open_turn: bool,
    /// The prompt that was announced last. A turn behind it may be the agent's own, so it does not show
    /// that the agent has the prompt.
    pub(crate) intent: Option<Intent>,
    /// The calls of the client's tools in the last turn.
    pub(crate) client_calls: ClientCalls,
    /// The entries, one per line, if they are kept.
    pub(crate) lines: Vec<u8>,
}

/// A prompt that was about to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Intent {
    /// The key of its command.
    pub(crate) key: String,
    /// When it was announced, in milliseconds since 1970.
    pub(crate) at: Option<u64>,
}

/// Reads the log of a session.
pub(crate) async fn read(
    store: &dyn Store,
    record: &SessionRecord,
    keeps_lines: bool,
) -> Result<StoredLog, Error> {
    let mut rebuilt = Rebuilt::new(record)?;
    let mut lines = Vec::new();
    loop {
        let page = store.read(&record.id, rebuilt.next(), PAGE).await?;
        let has_more = rebuilt.push(&page)?;
        if keeps_lines {
            lines.extend_from_slice(&page.lines);
        }
        if !has_more {
            break;
        }
        // A long log must not keep other sessions waiting.
        tokio::task::yield_now().await;
    }
    let has_open_turn = rebuilt.continuation.has_open_turn();
    let (intent, client_calls) = (rebuilt.intent.take(), std::mem::take(&mut rebuilt.client_calls));
    Ok(StoredLog { reader: rebuilt.into_reader(), has_open_turn, intent, client_calls, lines })
}

/// What is rebuilt from the pages of a log.
pub(crate) struct Rebuilt {
    id: SessionId,
    continuation: Continuation,
    intent: Option<Intent>,
    client_calls: ClientCalls,
    next: u64,
}

impl Rebuilt {
    /// At the beginning of the log of a session.
    pub(crate) fn new(record: &SessionRecord) -> Result<Self, Error> {
        let options = ReadOptions { id_seed: Some(record.id_seed), ..ReadOptions::default() };
        let continuation = Continuation::new(options);
        let continuation = continuation.map_err(|problem| Error::Failed(problem.to_string()))?;
        let (id, client_calls) = (record.id.clone(), ClientCalls::default());
        Ok(Self { id, continuation, intent: None, client_calls, next: 0 })
    }

    /// The number of the next entry.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Takes the next page. Returns whether more follow.
    pub(crate) fn push(&mut self, page: &Page) -> Result<bool, Error> {
        if page.next == self.next && page.next < page.tail.next {
            return Err(Error::Damaged { id: self.id.clone(), entry: self.next });
        }
        for (number, line) in (self.next..).zip(lines(&page.lines)) {
            let entry = parse(&self.id, number, line)?;
            if let Data::HostState(state) = &entry.event.data {
                let intent = intent(state).map(|key| Intent { key, at: entry.received_at });
                self.intent = intent.or(self.intent.take());
            }
            self.client_calls.observe(&entry.event, entry.received_at);
            self.continuation.push(entry.borrowed());
        }
        self.next = page.next;
        Ok(page.next < page.tail.next)
    }

    pub(crate) fn into_reader(self) -> Reader {
        self.continuation.into_reader()
    }
}

/// The key of the prompt that an entry announces, if it does.
pub(crate) fn intent(state: &HostState<'_>) -> Option<String> {
    if state.name != *INTENT {
        return None;
    }
    let raw: Value = serde_json::from_str(state.raw.as_ref()?.get()).ok()?;
    Some(raw.get("key")?.as_str()?.to_owned())
}

/// The text of the prompt that an entry announces, if it does.
pub(crate) fn announced(state: &HostState<'_>) -> Option<String> {
    if state.name != *INTENT {
        return None;
    }
    let raw: Value = serde_json::from_str(state.raw.as_ref()?.get()).ok()?;
    Some(raw.get("text")?.as_str()?.to_owned())
}

/// How the stream of an agent ended whose process was lost.
pub(crate) fn lost() -> Stopped {
    Stopped { outcome: Outcome::Failed, cause: LOST.to_owned() }
}

/// The lines of a page, without their ends.
fn lines(page: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    memchr_iter(b'\n', page).map(move |end| {
        let line = page.get(start..end).unwrap_or_default();
        start = end + 1;
        line
    })
}

/// Parses an entry. The problem names its number alone: the parser's own words may quote the entry, and
/// errors are logged.
fn parse(id: &SessionId, number: u64, line: &[u8]) -> Result<Entry, Error> {
    serde_json::from_slice(line).map_err(|_| Error::Damaged { id: id.clone(), entry: number })
}

#[cfg(test)]
mod tests {
    use interlingua::Origin;
    use interlingua::event::{Event, TurnStarted};

    use super::*;
    use crate::Tail;

    /// The problem is logged, and sent to callers.
    #[test]
    fn an_entry_that_cannot_be_read_is_named_and_not_quoted() {
        let id = SessionId::new("one").unwrap();
        let mut rebuilt = Rebuilt::new(&SessionRecord::new(id.clone(), "codex", 0)).unwrap();
        let started = TurnStarted { replay: true, ..TurnStarted::default() };
        let (origin, event) = (Origin::default(), Event::new(started));
        let entry = Entry { sequence: 0, received_at: None, epoch: 0, origin, event, raw: None };
        let good = serde_json::to_string(&entry).unwrap();
        let bad = good.replace(r#""replay":true"#, r#""replay":"secret""#);
        assert_ne!(good, bad);
        let lines = format!("{good}\n{bad}\n").into_bytes();
        let page = Page { lines, next: 2, tail: Tail { next: 2, ..Tail::default() } };
        let problem = rebuilt.push(&page).unwrap_err();
        assert!(!problem.to_string().contains("secret"), "{problem}");
        assert_eq!(problem, Error::Damaged { id, entry: 1 });
    }
}
