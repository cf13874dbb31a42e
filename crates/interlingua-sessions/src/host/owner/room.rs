//! How the agent of a session gives its place to that of another one.

use std::time::Duration;

use interlingua_agents::Stop;
use tokio::time::Instant;

use super::{Live, Owner};
use crate::Error;
use crate::host::delivery::Turn;
use crate::host::room::Pause;

/// How long a session waits for its client before it gives way. Agents that are killed within milliseconds of their
/// first call have not stored their session yet, and a client that is a program answers sooner.
const PATIENCE: Duration = Duration::from_secs(2);

impl Owner {
    /// Notes whether the agent can do without its process.
    pub(super) fn note_pause(&mut self) {
        let rests = self.observed.turn == Turn::Resting && !self.may_begin();
        let waits = self.observed.turn == Turn::Running && self.observed.waits_for_client_alone();
        let pause = match (rests, waits) {
            (true, _) => Some(Pause::Rests),
            (_, true) => Some(Pause::WaitsForClient),
            _ => None,
        };
        let Some(live) = &mut self.agent else {
            return self.shared.note_pause(&self.id, None, false);
        };
        let since = live.pause.filter(|(known, _)| Some(*known) == pause).map(|(_, since)| since);
        let pause = pause.filter(|_| !live.ends);
        live.pause = pause.map(|pause| (pause, since.unwrap_or_else(Instant::now)));
        let gives_way = live.pause.filter(|pause| gives_way_at(*pause) <= Instant::now());
        self.shared.note_pause(&self.id, gives_way, live.ends);
    }

    /// When the agent has rested long enough.
    pub(super) fn idle_at(&self) -> Option<Instant> {
        match self.agent.as_ref()?.pause? {
            (Pause::Rests, since) => since.checked_add(self.shared.limits.idle),
            (Pause::WaitsForClient, _) => None,
        }
    }

    /// When the agent can give way that cannot yet.
    pub(super) fn gives_way_at(&self) -> Option<Instant> {
        let at = self.agent.as_ref()?.pause.map(gives_way_at)?;
        Some(at).filter(|at| *at > Instant::now())
    }

    /// Gives the place of the agent to another session. One that works again passes on that room is needed.
    pub(super) async fn give_way(&mut self) -> Result<(), Error> {
        self.note_pause();
        let Some(live) = &self.agent else { return Ok(()) };
        match live.pause.filter(|pause| gives_way_at(*pause) <= Instant::now()) {
            Some((Pause::Rests, _)) => self.close_agent().await,
            Some((Pause::WaitsForClient, _)) => self.suspend_agent().await?,
            None if live.ends => {}
            None => self.shared.make_room(),
        }
        Ok(())
    }

    /// Ends the agent, whose turn goes on with another one when the client has answered.
    async fn suspend_agent(&mut self) -> Result<(), Error> {
        if let Some(Live { handle, .. }) = &self.agent {
            let _ = handle.stop(Stop::Suspended).await;
        }
        self.until_agent_ended().await?;
        self.agent_ended().await
    }
}

fn gives_way_at((pause, since): (Pause, Instant)) -> Instant {
    match pause {
        Pause::Rests => since,
        Pause::WaitsForClient => since + PATIENCE,
    }
}
