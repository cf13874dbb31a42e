//! Calls that outlive their connection: each has a key, by which a caller that was cut off finds it
//! again.
//!
//! A call is made once, and its answer is kept until the caller has it. A call that nobody waits for
//! is withdrawn after a while, and so is the answer to it. Keys of calls that have ended are remembered,
//! since a request may arrive after the one that has ended its call.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::ClientResult;
use super::exchange::Call;
use super::handler::{Handler, MOST_OPEN, OpenedCall};

/// How long a call, or its answer, waits for a caller that was cut off.
pub(super) const GRACE: Duration = Duration::from_secs(60);

/// The most answers that wait for their callers.
const MOST_ANSWERED: usize = MOST_OPEN;

/// The most bytes of answers that wait for their callers. The last one may be larger.
const LARGEST_ANSWERED: usize = 32 << 20;

/// How many keys of calls that have ended are remembered.
const MOST_ENDED: usize = 1024;

/// The calls of one process of an agent.
#[derive(Debug)]
pub(super) struct KeyedCalls {
    handler: Handler,
    grace: Duration,
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    calls: HashMap<String, Arc<Keyed>>,
    /// The calls that were answered, the oldest first, with the sizes of their answers.
    answered: VecDeque<(String, usize)>,
    /// The keys of calls that have ended, the oldest first.
    ended: VecDeque<String>,
    closed: bool,
}

/// A call that has a key.
type Keyed = watch::Sender<State>;

#[derive(Debug, Default)]
struct State {
    /// The number of requests that wait for the answer.
    callers: usize,
    answer: Option<Arc<ClientResult>>,
    /// It was cancelled, its answer has arrived, or nobody has asked for it.
    ended: bool,
}

/// A request that waits for the answer to a call.
#[derive(Debug)]
pub(super) struct Attached(Arc<Keyed>);

impl Drop for Attached {
    fn drop(&mut self) {
        self.0.send_modify(|state| state.callers = state.callers.saturating_sub(1));
    }
}

impl Attached {
    /// Waits for the answer; `None` if the call has ended without one.
    pub(super) async fn answer(&self) -> Option<Arc<ClientResult>> {
        let mut states = self.0.subscribe();
        let decided = states.wait_for(|state| state.answer.is_some() || state.ended).await;
        decided.ok().and_then(|state| state.answer.clone())
    }
}

/// Why a request is not attached to a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotAttached {
    /// The call has ended, or its process.
    Ended(&'static str),
    /// The call was not made; why, for the model.
    NotMade(String),
}

impl KeyedCalls {
    pub(super) fn new(handler: Handler, grace: Duration) -> Self {
        Self { handler, grace, table: Arc::default() }
    }

    /// The calls and tools below the keys.
    pub(super) fn handler(&self) -> &Handler {
        &self.handler
    }

    /// Attaches to a call, which is made unless it is known.
    pub(super) fn attach(&self, key: &str, call: Call) -> Result<Attached, NotAttached> {
        let mut table = lock(&self.table);
        if table.closed || call.generation != self.handler.generation() {
            return Err(NotAttached::Ended("the process of the agent that called has ended"));
        }
        if table.ended.iter().any(|ended| ended == key) {
            return Err(NotAttached::Ended("this call has ended already"));
        }
        let keyed = match table.calls.get(key) {
            Some(known) => Arc::clone(known),
            None => {
                let opened = self.handler.open(call.tool, call.input, &call.meta);
                let opened = opened.map_err(NotAttached::NotMade)?;
                let keyed = Arc::new(Keyed::default());
                table.calls.insert(key.to_owned(), Arc::clone(&keyed));
                let (table, key) = (Arc::clone(&self.table), key.to_owned());
                tokio::spawn(keep(opened, key, Arc::clone(&keyed), table, self.grace));
                keyed
            }
        };
        keyed.send_modify(|state| state.callers += 1);
        Ok(Attached(keyed))
    }

    /// The caller does not wait any more: it has the answer, or does not want one.
    pub(super) fn end(&self, key: &str) {
        lock(&self.table).end(key);
    }

    /// The process of the agent has ended: no call is left, and none is made any more.
    pub(super) fn close(&self) {
        let mut table = lock(&self.table);
        table.closed = true;
        let calls = std::mem::take(&mut table.calls);
        calls.values().for_each(|call| call.send_modify(|state| state.ended = true));
    }
}

/// Keeps a call until its caller has the answer, or has been away for too long.
async fn keep(
    mut opened: OpenedCall,
    key: String,
    keyed: Arc<Keyed>,
    table: Arc<Mutex<Table>>,
    grace: Duration,
) {
    let mut states = keyed.subscribe();
    let answer = loop {
        let (ended, alone) = observed(&mut states);
        if ended {
            return;
        }
        tokio::select! {
            answer = opened.answered() => break answer,
            Ok(()) = states.changed() => {}
            () = tokio::time::sleep(grace), if alone => return lock(&table).end(&key),
        }
    };
    // The session learns that nobody waits any more.
    drop(opened);
    lock(&table).answer(&key, answer);
    loop {
        let (ended, alone) = observed(&mut states);
        if ended {
            return;
        }
        tokio::select! {
            Ok(()) = states.changed() => {}
            () = tokio::time::sleep(grace), if alone => return lock(&table).end(&key),
        }
    }
}

/// Whether a call has ended, and whether no request waits for it.
fn observed(states: &mut watch::Receiver<State>) -> (bool, bool) {
    let state = states.borrow_and_update();
    (state.ended, state.callers == 0)
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Table {
    fn answer(&mut self, key: &str, answer: ClientResult) {
        let Some(keyed) = self.calls.get(key) else { return };
        let (ClientResult::Output(text) | ClientResult::Error(text)) = &answer;
        self.answered.push_back((key.to_owned(), text.len()));
        keyed.send_modify(|state| state.answer = Some(Arc::new(answer)));
        while self.has_too_many_answers() {
            let Some((oldest, _)) = self.answered.front().cloned() else { return };
            self.end(&oldest);
        }
    }

    fn has_too_many_answers(&self) -> bool {
        let bytes: usize = self.answered.iter().map(|(_, bytes)| bytes).sum();
        let count = self.answered.len();
        count > MOST_ANSWERED || (count > 1 && bytes > LARGEST_ANSWERED)
    }

    fn end(&mut self, key: &str) {
        if let Some(keyed) = self.calls.remove(key) {
            keyed.send_modify(|state| state.ended = true);
        }
        self.answered.retain(|(answered, _)| answered != key);
        if self.ended.iter().any(|ended| ended == key) {
            return;
        }
        if self.ended.len() >= MOST_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back(key.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{self, UnboundedReceiver};

    use super::*;
    use crate::client_tool::ClientTool;
    use crate::client_tool::handler::{ReceivedCall, ToolMessage};

    fn calls(grace: Duration) -> (KeyedCalls, UnboundedReceiver<ToolMessage>) {
        let (messages, received) = mpsc::unbounded_channel();
        let handler = Handler::new(&ClientTool::form(), messages, watch::Sender::new(0), grace);
        (KeyedCalls::new(handler, grace), received)
    }

    fn call() -> Call {
        let tool = "getFormSnapshot".to_owned();
        Call { generation: 0, tool, input: serde_json::Map::new(), meta: serde_json::Map::new() }
    }

    async fn within<T>(future: impl Future<Output = T>) -> T {
        tokio::time::timeout(Duration::from_secs(20), future).await.unwrap()
    }

    async fn next(received: &mut UnboundedReceiver<ToolMessage>) -> ReceivedCall {
        match within(received.recv()).await {
            Some(ToolMessage::Called(call)) => call,
            other => panic!("{other:?}"),
        }
    }

    /// Makes a call, answers it, and waits until the answer is kept.
    async fn answered(
        calls: &KeyedCalls,
        received: &mut UnboundedReceiver<ToolMessage>,
        key: &str,
        answer: &str,
    ) {
        let attached = calls.attach(key, call()).unwrap();
        let made = next(received).await;
        made.answer.send(ClientResult::Output(answer.to_owned())).unwrap();
        assert!(within(attached.answer()).await.is_some());
        assert!(matches!(within(received.recv()).await, Some(ToolMessage::Withdrawn(_))));
    }

    #[tokio::test]
    async fn requests_with_one_key_are_one_call() {
        let (calls, mut received) = calls(GRACE);
        let attached = [calls.attach("a", call()).unwrap(), calls.attach("a", call()).unwrap()];
        let made = next(&mut received).await;
        made.answer.send(ClientResult::Output("x".to_owned())).unwrap();
        for attached in attached {
            assert_eq!(
                *within(attached.answer()).await.unwrap(),
                ClientResult::Output("x".to_owned())
            );
        }
        assert!(matches!(within(received.recv()).await, Some(ToolMessage::Withdrawn(_))));
        // The answer is still there, and no other call was made.
        assert!(within(calls.attach("a", call()).unwrap().answer()).await.is_some());
        assert!(received.try_recv().is_err());
    }

    /// A request may arrive after the one that has ended its call.
    #[tokio::test]
    async fn a_call_that_has_ended_is_not_made_again() {
        let (calls, mut received) = calls(GRACE);
        let ended = || Err(NotAttached::Ended("this call has ended already"));
        answered(&calls, &mut received, "a", "x").await;
        calls.end("a");
        calls.end("b");
        for key in ["a", "b"] {
            assert_eq!(calls.attach(key, call()).map(drop), ended(), "{key}");
        }
        let other = Call { generation: 1, ..call() };
        assert!(matches!(calls.attach("c", other), Err(NotAttached::Ended(_))));
        calls.close();
        assert!(matches!(calls.attach("d", call()), Err(NotAttached::Ended(_))));
        assert!(received.try_recv().is_err());
    }

    #[tokio::test]
    async fn the_answers_that_are_kept_are_bounded() {
        let (calls, mut received) = calls(GRACE);
        let is_kept = |key: &str| calls.attach(key, call()).is_ok();
        for number in 0..=MOST_ANSWERED {
            answered(&calls, &mut received, &format!("n{number}"), "x").await;
        }
        assert!(!is_kept("n0") && is_kept("n1"));
        let half = "x".repeat(LARGEST_ANSWERED / 2);
        for key in ["a", "b", "c"] {
            answered(&calls, &mut received, key, &half).await;
        }
        assert!(!is_kept("n64") && !is_kept("a") && is_kept("b") && is_kept("c"));
        // The last one is kept in any case.
        answered(&calls, &mut received, "d", &half.repeat(3)).await;
        assert!(!is_kept("c") && is_kept("d"));
        let table = lock(&calls.table);
        assert_eq!((table.calls.len(), table.answered.len()), (1, 1));
    }

    #[tokio::test]
    async fn the_keys_that_are_remembered_are_bounded() {
        let (calls, _received) = calls(GRACE);
        (0..2 * MOST_ENDED).for_each(|number| calls.end(&number.to_string()));
        assert_eq!(lock(&calls.table).ended.len(), MOST_ENDED);
    }

    /// The time is that of the test.
    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_collects_is_forgotten() {
        let (calls, mut received) = calls(GRACE);
        answered(&calls, &mut received, "a", "x").await;
        let attached = calls.attach("a", call()).unwrap();
        tokio::time::sleep(3 * GRACE).await;
        drop(attached);
        tokio::time::sleep(GRACE / 2).await;
        assert!(calls.attach("a", call()).is_ok());
        tokio::time::sleep(GRACE * 2).await;
        assert!(calls.attach("a", call()).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_for_its_caller_for_a_while() {
        let (calls, mut received) = calls(GRACE);
        let attached = calls.attach("a", call()).unwrap();
        let made = next(&mut received).await;
        tokio::time::sleep(100 * GRACE).await;
        drop(attached);
        tokio::time::sleep(GRACE / 2).await;
        let attached = calls.attach("a", call()).unwrap();
        tokio::time::sleep(2 * GRACE).await;
        assert!(!made.answer.is_closed() && received.try_recv().is_err());
        drop(attached);
        tokio::time::sleep(2 * GRACE).await;
        assert!(made.answer.is_closed());
        assert!(matches!(within(received.recv()).await, Some(ToolMessage::Withdrawn(_))));
    }
}
