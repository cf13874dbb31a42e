//! Requests that a program dispatches to the browsers of a session. They are no part of the session, and
//! last as long as the program waits for the response.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use interlingua_sessions::SessionId;
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use super::problem::Problem;
use super::relay::invalid;
use super::results::{FormTool, Given};

/// The most requests that wait in a session at once.
const MOST: usize = 64;

/// The sessions with browsers.
#[derive(Clone, Default)]
pub(crate) struct Relay {
    boards: Arc<Mutex<HashMap<SessionId, Board>>>,
}

/// What the browsers of a session share.
struct Board {
    browsers: usize,
    waiting: Vec<Waiting>,
    /// The number of requests that were dispatched.
    dispatched: u64,
    news: watch::Sender<()>,
}

struct Waiting {
    id: String,
    /// Which dispatch it is. The same id may be dispatched again.
    number: u64,
    tool: FormTool,
    request: Value,
    answer: oneshot::Sender<Result<Value, String>>,
}

/// A browser that is connected.
pub(super) struct Browser {
    relay: Relay,
    session: SessionId,
    news: watch::Receiver<()>,
}

impl Relay {
    /// Notes that a browser is connected, until it is dropped.
    pub(super) fn connect(&self, session: &SessionId) -> Browser {
        let mut boards = self.lock();
        let board = boards.entry(session.clone()).or_insert_with(|| Board {
            browsers: 0,
            waiting: Vec::new(),
            dispatched: 0,
            news: watch::Sender::new(()),
        });
        board.browsers += 1;
        let news = board.news.subscribe();
        Browser { relay: self.clone(), session: session.clone(), news }
    }

    /// Sends a request to the browsers of a session, and waits for the response.
    pub(super) async fn dispatch(
        &self,
        session: &SessionId,
        id: &str,
        tool: FormTool,
        request: Value,
        wait: Duration,
    ) -> Result<Value, Problem> {
        let (answer, answered) = oneshot::channel();
        {
            let mut boards = self.lock();
            let board = boards.get_mut(session).filter(|board| board.browsers > 0);
            let board = board.ok_or_else(|| {
                let message = "No browser client is connected to this relay session.";
                Problem::new(StatusCode::CONFLICT, "NO_BROWSER", message)
            })?;
            if board.waiting.iter().any(|waiting| waiting.id == id) {
                return Err(invalid(format!("Request id is already pending: {id}")));
            }
            if board.waiting.len() >= MOST {
                let message = "Too many requests wait in this session.";
                return Err(Problem::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    "TOO_MANY_REQUESTS",
                    message,
                ));
            }
            board.dispatched += 1;
            let (id, number) = (id.to_owned(), board.dispatched);
            board.waiting.push(Waiting { id, number, tool, request, answer });
            board.news.send_replace(());
        }
        // Also if who waits has disconnected.
        let _forget = Forget { relay: self, session, id };
        match tokio::time::timeout(wait, answered).await {
            Ok(Ok(Ok(response))) => Ok(response),
            Ok(Ok(Err(message))) => Err(invalid(message)),
            _ => {
                let message = "Timed out waiting for browser relay response.";
                Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "TIMEOUT", message))
            }
        }
    }

    /// The tool of a request that was dispatched and waits.
    pub(super) fn tool_of(&self, session: &SessionId, id: &str) -> Option<FormTool> {
        let boards = self.lock();
        let waiting = boards.get(session)?.waiting.iter().find(|waiting| waiting.id == id);
        waiting.map(|waiting| waiting.tool)
    }

    /// Answers a request that was dispatched, once.
    pub(super) fn answer(
        &self,
        session: &SessionId,
        id: &str,
        given: Given,
        response: Value,
    ) -> Result<(), Problem> {
        let taken = self.take(session, id);
        let sent = taken.is_some_and(|waiting| {
            let answer = match given {
                Given::Output(_) => Ok(response),
                Given::Error(message) => Err(message),
            };
            waiting.answer.send(answer).is_ok()
        });
        match sent {
            true => Ok(()),
            false => Err(Problem::not_found(format!("Pending request was not found: {id}"))),
        }
    }

    fn take(&self, session: &SessionId, id: &str) -> Option<Waiting> {
        let mut boards = self.lock();
        let board = boards.get_mut(session)?;
        let at = board.waiting.iter().position(|waiting| waiting.id == id)?;
        board.news.send_replace(());
        Some(board.waiting.remove(at))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Board>> {
        self.boards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a request when no one waits for it any more.
struct Forget<'a> {
    relay: &'a Relay,
    session: &'a SessionId,
    id: &'a str,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        drop(self.relay.take(self.session, self.id));
        let mut boards = self.relay.lock();
        let is_unused = |board: &Board| board.browsers == 0 && board.waiting.is_empty();
        if boards.get(self.session).is_some_and(is_unused) {
            boards.remove(self.session);
        }
    }
}

impl Browser {
    /// What is dispatched or taken back from here on wakes [`changed`](Self::changed).
    pub(super) fn mark_seen(&mut self) {
        self.news.mark_unchanged();
    }

    /// Waits until something was dispatched or taken back.
    pub(super) async fn changed(&mut self) {
        if self.news.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// The requests that wait: what identifies each of them, and what it asks.
    pub(super) fn waiting(&self) -> Vec<((String, u64), Value)> {
        let boards = self.relay.lock();
        let waiting = boards.get(&self.session).into_iter().flat_map(|board| &board.waiting);
        let mark = |waiting: &Waiting| (waiting.id.clone(), waiting.number);
        waiting.map(|waiting| (mark(waiting), waiting.request.clone())).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let mut boards = self.relay.lock();
        let Some(board) = boards.get_mut(&self.session) else { return };
        board.browsers -= 1;
        if board.browsers == 0 && board.waiting.is_empty() {
            boards.remove(&self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A browser that had got a request was not sent another one with the same id, and the program waited in vain.
    #[tokio::test]
    async fn a_request_that_is_dispatched_again_is_another_one() {
        let (relay, session) = (Relay::default(), SessionId::new("s").unwrap());
        let mut browser = relay.connect(&session);
        let dispatch = async |wait| {
            let sent = relay.dispatch(&session, "r1", FormTool::Snapshot, json!({}), wait).await;
            assert_eq!(sent.unwrap_err().code, "TIMEOUT");
        };
        let mut marks = Vec::new();
        for _ in 0..2 {
            browser.mark_seen();
            let seen = async {
                browser.changed().await;
                marks.extend(browser.waiting().into_iter().map(|(mark, _)| mark));
                browser.mark_seen();
            };
            // That the shortest time passes is what is tested.
            tokio::join!(dispatch(Duration::from_millis(1)), seen);
            tokio::time::timeout(Duration::from_secs(30), browser.changed()).await.unwrap();
            assert_eq!(browser.waiting(), [], "the browser learns that no one waits");
        }
        assert_ne!(marks[0], marks[1]);
    }
}
