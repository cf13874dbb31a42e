//! What all requests share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use interlingua_sessions::{SessionId, SessionRecord, Store};
use tokio::sync::watch;

use crate::Sessions;
use crate::agent_api::{Attendance, Relay};
use crate::error::ApiError;
use crate::metrics::Metrics;
use crate::security::{Access, Guard};
use crate::settings::Settings;
use crate::stream::feed::Feeds;
use crate::stream::turns::TurnIndex;
use crate::stream::writers::Writers;

/// The state of the server.
pub(crate) struct App {
    pub(crate) sessions: Arc<dyn Sessions>,
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) guard: Guard,
    /// The browsers of sessions.
    pub(crate) relay: Relay,
    /// The turns in which permissions and questions are denied.
    pub(crate) attendance: Attendance,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) settings: Settings,
    /// Becomes true when the server stops, so that readers do not wait any longer.
    pub(crate) stopping: watch::Receiver<bool>,
    /// When the store was probed last, and what came of it.
    probed: Mutex<Option<(Instant, Result<(), String>)>>,
}

/// How long a probe of the store is valid. It writes to the disk, and everyone may ask for it.
const PROBED: Duration = Duration::from_secs(2);

/// How long a probe may take.
const PROBE_LIMIT: Duration = Duration::from_secs(5);

impl App {
    pub(crate) fn new(
        sessions: Arc<dyn Sessions>,
        settings: Settings,
        stopping: watch::Receiver<bool>,
    ) -> Arc<Self> {
        let metrics = Arc::new(Metrics::default());
        let feeds = Feeds {
            store: Arc::clone(sessions.store()),
            writers: Writers::new(settings.streams.cached_writers),
            turns: TurnIndex::new(settings.streams.cached_writers),
            metrics: Arc::clone(&metrics),
        };
        let guard = Guard::new(&settings);
        let (feeds, relay, probed) = (Arc::new(feeds), Relay::default(), Mutex::default());
        let attendance = Attendance::default();
        Arc::new(Self {
            sessions,
            feeds,
            guard,
            relay,
            attendance,
            metrics,
            settings,
            stopping,
            probed,
        })
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &**self.sessions.store()
    }

    /// Checks that something can be stored, unless that was checked a moment ago.
    pub(crate) async fn probe(&self) -> Result<(), String> {
        let known = self.probed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((at, result)) = known
            && at.elapsed() < PROBED
        {
            return result;
        }
        let result = match tokio::time::timeout(PROBE_LIMIT, self.store().probe()).await {
            Ok(result) => result.map_err(|problem| problem.to_string()),
            Err(_) => Err("nothing was stored in time".to_owned()),
        };
        let mut probed = self.probed.lock().unwrap_or_else(PoisonError::into_inner);
        *probed = Some((Instant::now(), result.clone()));
        result
    }

    /// Waits until the server stops.
    pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
        if stopping.wait_for(|stopping| *stopping).await.is_err() {
            // A caller that serves the router itself stops it in its own way.
            std::future::pending().await
        }
    }

    /// The record of a session that the caller may see. Others do not exist for the caller.
    pub(crate) async fn session(
        &self,
        access: &Access,
        id: &str,
    ) -> Result<SessionRecord, ApiError> {
        let id = SessionId::new(id).map_err(|error| {
            ApiError::new(StatusCode::BAD_REQUEST, "invalid_id", error.to_string())
        })?;
        if !access.may_name(&id) {
            return Err(ApiError::no_session());
        }
        let record = self.store().load(&id).await?;
        record.filter(|record| access.may_see(record)).ok_or_else(ApiError::no_session)
    }

    /// Notes that a session was read, so that it is kept. A write for every request would cost more
    /// than the request, so it is noted when a part of the time to live has passed. What is stored can
    /// be read also while nothing can be stored.
    pub(crate) async fn touch(&self, record: &SessionRecord) {
        let Some(ttl) = record.ttl_ms.filter(|_| record.state.may_expire()) else { return };
        let unused = self.settings.now_ms().saturating_sub(record.used_at);
        if unused > (ttl / 64).min(60_000)
            && let Err(problem) = self.store().touch(&record.id).await
        {
            tracing::warn!(%problem, "the use of a session was not noted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The router can be used without the server, which alone knows when it stops.
    #[tokio::test]
    async fn a_server_that_is_gone_has_not_stopped() {
        let (stop, mut stopping) = watch::channel(false);
        drop(stop);
        let stopped = tokio::time::timeout(Duration::ZERO, App::stopped(&mut stopping)).await;
        assert!(stopped.is_err(), "readers would not wait any more");
        let (stop, mut stopping) = watch::channel(false);
        stop.send_replace(true);
        App::stopped(&mut stopping).await;
    }
}
