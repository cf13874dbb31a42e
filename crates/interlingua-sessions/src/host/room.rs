//! Which sessions give the places of their agents to others that need one.

use tokio::time::Instant;

use crate::SessionId;

/// Why an agent can do without its process. One that rests gives way before one that waits for its client, because
/// that one goes on in another turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pause {
    /// No turn is running.
    Rests,
    /// The turn waits for nothing but results of the client's tools.
    WaitsForClient,
}

/// The sessions that can give way, and those that are about to.
#[derive(Debug, Default)]
pub(super) struct Room {
    pausing: Vec<(Pause, Instant, SessionId)>,
    /// Those that were asked, and those whose agents are ending.
    leaving: Vec<SessionId>,
}

impl Room {
    /// Notes why and since when a session can give way, if it can, and whether its agent is ending.
    pub(super) fn note(&mut self, id: &SessionId, pause: Option<(Pause, Instant)>, ends: bool) {
        self.pausing.retain(|(.., known)| known != id);
        let is_leaving = self.leaving.contains(id);
        match pause {
            _ if ends && !is_leaving => self.leaving.push(id.clone()),
            _ if ends => {}
            Some((pause, since)) if !is_leaving => self.pausing.push((pause, since, id.clone())),
            Some(_) => {}
            None => self.leaving.retain(|known| known != id),
        }
    }

    /// The session that gives way next, if these many need a place. One that waits for its client does so only if
    /// the others that are leaving are not enough.
    pub(super) fn next(&mut self, wanting: usize) -> Option<SessionId> {
        let (at, longest) = self.pausing.iter().enumerate().min_by_key(|(_, pausing)| *pausing)?;
        if longest.0 == Pause::WaitsForClient && self.leaving.len() >= wanting {
            return None;
        }
        let (.., id) = self.pausing.remove(at);
        self.leaving.push(id.clone());
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn id(name: &str) -> SessionId {
        SessionId::new(name).unwrap()
    }

    #[test]
    fn no_more_sessions_that_wait_give_way_than_places_are_needed() {
        let (mut room, now) = (Room::default(), Instant::now());
        let later = |seconds| now + Duration::from_secs(seconds);
        for (name, pause, since) in [
            ("second", Pause::WaitsForClient, 2),
            ("first", Pause::WaitsForClient, 1),
            ("rests", Pause::Rests, 3),
        ] {
            room.note(&id(name), Some((pause, later(since))), false);
        }
        assert_eq!(room.next(1), Some(id("rests")));
        // The agent that rested is ending.
        room.note(&id("rests"), None, true);
        assert_eq!(room.next(1), None);
        assert_eq!(room.next(2), Some(id("first")));
        // It has not been suspended yet.
        room.note(&id("first"), Some((Pause::WaitsForClient, later(1))), false);
        assert_eq!(room.next(2), None);
        // The one that rested works again, and the other one has given way.
        room.note(&id("rests"), None, false);
        room.note(&id("first"), None, false);
        assert_eq!(room.next(1), Some(id("second")));
    }
}
