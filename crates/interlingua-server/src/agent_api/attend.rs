//! Denies what agents ask for that clients of this contract cannot decide: permissions and questions.
//!
//! A turn that was asked for is followed to its end, whether or not a client reads it: an agent may ask while
//! its client is disconnected, or while the run has ended because another call waits for the client.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use interlingua::event::Data;
use interlingua_sessions::host::{Command, Verdict};
use interlingua_sessions::{IdempotencyKey, SessionId};

use super::prompt::{LOOKED_UP, Prompt};
use crate::app::App;
use crate::error::ApiError;
use crate::stream::feed::parse;
use crate::stream::records::lines;

/// What an agent learns that asks for something else than the form of a page.
const NO_ONE: &str = "no one is available who could decide this";

/// How many bytes of a log are read at a time.
const PAGE: usize = 64 * 1024;

/// What a line has in it that matters here. Other lines are not parsed.
const MARKS: [&[u8]; 3] = [b"permission_requested", b"question_asked", b"turn_ended"];

/// The sessions that are followed, and their turns that come next. Each has one task.
#[derive(Default)]
pub(crate) struct Attendance {
    sessions: Mutex<HashMap<SessionId, VecDeque<Turn>>>,
}

/// A turn that is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Turn {
    /// The number of the first entry, or of the one from which on the prompt is searched.
    pub(super) begin: u64,
    /// What ends a turn before this entry was known before.
    pub(super) ends_from: u64,
    /// It begins with this prompt, which was not announced yet.
    pub(super) prompt: Option<Prompt>,
}

impl Attendance {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, VecDeque<Turn>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a turn. Returns whether its session has to be followed from now on.
    fn add(&self, session: &SessionId, turn: Turn) -> bool {
        let mut sessions = self.lock();
        let Some(turns) = sessions.get_mut(session) else {
            sessions.insert(session.clone(), VecDeque::from([turn]));
            return true;
        };
        // A request that is sent again and again adds nothing.
        match turns.iter_mut().find(|known| known.prompt == turn.prompt) {
            Some(known) => {
                known.begin = known.begin.min(turn.begin);
                known.ends_from = known.ends_from.max(turn.ends_from);
            }
            None => turns.push_back(turn),
        }
        false
    }

    /// The next turn of a session, which is not followed any longer if there is none.
    fn next(&self, session: &SessionId) -> Option<Turn> {
        let mut sessions = self.lock();
        let next = sessions.get_mut(session).and_then(VecDeque::pop_front);
        if next.is_none() {
            sessions.remove(session);
        }
        next
    }
}

/// Follows a turn of a session to its end, after those that are followed already.
pub(super) fn attend(app: &Arc<App>, session: &SessionId, turn: Turn) {
    if !app.attendance.add(session, turn) {
        return;
    }
    let (app, session) = (Arc::clone(app), session.clone());
    tokio::spawn(async move {
        let mut stopping = app.stopping.clone();
        while let Some(turn) = app.attendance.next(&session) {
            let followed = tokio::select! {
                followed = follow(&app, &session, turn) => followed,
                () = App::stopped(&mut stopping) => {
                    app.attendance.lock().remove(&session);
                    return;
                }
            };
            // The session may have been deleted.
            if let Err(error) = followed {
                tracing::debug!(message = error.message, "a session is not followed any longer");
            }
        }
    });
}

async fn follow(app: &App, session: &SessionId, turn: Turn) -> Result<(), ApiError> {
    let Turn { begin: mut position, mut ends_from, mut prompt } = turn;
    let mut tail = app.store().watch(session);
    loop {
        tail.mark_unchanged();
        loop {
            let page = app.store().read(session, position, PAGE).await?;
            if page.lines.is_empty() {
                if page.tail.closed {
                    return Ok(());
                }
                break;
            }
            for line in lines(&page.lines) {
                if let Some(awaited) = &prompt
                    && awaited.begins(app, session, (position, line)).await?
                {
                    prompt = None;
                    ends_from = position;
                }
                let is_marked =
                    || MARKS.iter().any(|mark| memchr::memmem::find(line, mark).is_some());
                if prompt.is_none() && is_marked() {
                    let data = parse(line, session, position)?.event.data;
                    decline(app, session, position, &data).await;
                    if matches!(&data, Data::TurnEnded(ended) if !ended.replay && position >= ends_from)
                    {
                        return Ok(());
                    }
                }
                position += 1;
            }
            tokio::task::consume_budget().await;
        }
        let is_awaited = prompt.as_ref();
        tokio::select! {
            changed = tail.changed() => if changed.is_err() { return Ok(()) },
            refused = refused(app, session, is_awaited) => if refused { return Ok(()) },
        }
    }
}

/// Looks up after a while whether a prompt is refused.
async fn refused(app: &App, session: &SessionId, prompt: Option<&Prompt>) -> bool {
    let Some(prompt) = prompt else { return std::future::pending().await };
    tokio::time::sleep(LOOKED_UP).await;
    prompt.refused(app, session).await.is_some()
}

/// Denies what an entry asks for. An entry that is read again has the same key, and is denied once.
async fn decline(app: &App, session: &SessionId, entry: u64, data: &Data<'_>) {
    let reason = Some(NO_ONE.to_owned());
    let command = match data {
        Data::PermissionRequested(asked) => {
            let (request, decision) = (asked.request.to_string(), Verdict::Deny);
            Command::Decide { request, decision, reason }
        }
        Data::QuestionAsked(asked) => {
            let request = asked.request.to_string();
            Command::Answer { request, answer: None, decline: reason }
        }
        _ => return,
    };
    // It may have been decided by a rule, or by someone at another interface.
    if let Ok(key) = IdempotencyKey::new(format!("agent-api-decline-{entry}")) {
        let _ = app.sessions.command(session, key, command).await;
    }
}
