//! Numbers for operators, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use interlingua_sessions::{Counts, State};

/// What the server counts.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(&'static str, String, u16), u64>>,
    readers: AtomicI64,
    connections: AtomicI64,
    rejected_connections: AtomicU64,
    entries: AtomicU64,
    bytes: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Counts something for as long as it exists.
#[derive(Debug)]
pub(crate) struct Gauge {
    metrics: Arc<Metrics>,
    which: fn(&Metrics) -> &AtomicI64,
}

impl Drop for Gauge {
    fn drop(&mut self) {
        (self.which)(&self.metrics).fetch_sub(1, Relaxed);
    }
}

impl Metrics {
    fn gauge(self: &Arc<Self>, which: fn(&Self) -> &AtomicI64) -> Gauge {
        which(self).fetch_add(1, Relaxed);
        Gauge { metrics: Arc::clone(self), which }
    }

    /// A reader that waits or reads live.
    pub(crate) fn reader(self: &Arc<Self>) -> Gauge {
        self.gauge(|metrics| &metrics.readers)
    }

    pub(crate) fn connection(self: &Arc<Self>) -> Gauge {
        self.gauge(|metrics| &metrics.connections)
    }

    pub(crate) fn connection_rejected(&self) {
        self.rejected_connections.fetch_add(1, Relaxed);
    }

    pub(crate) fn answered(&self, method: &'static str, route: &str, status: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((method, route.to_owned(), status)).or_default() += 1;
    }

    pub(crate) fn served(&self, entries: u64, bytes: usize) {
        self.entries.fetch_add(entries, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn writer_looked_up(&self, is_hit: bool) {
        let counter = if is_hit { &self.hits } else { &self.misses };
        counter.fetch_add(1, Relaxed);
    }

    /// All numbers.
    pub(crate) fn render(&self) -> String {
        let mut out = String::new();
        let counters = [
            ("entries_served_total", "counter", "Entries that readers received", &self.entries),
            (
                "bytes_served_total",
                "counter",
                "Bytes of records that readers received",
                &self.bytes,
            ),
            ("writer_cache_hits_total", "counter", "Writers found in the cache", &self.hits),
            ("writer_cache_misses_total", "counter", "Writers advanced over the log", &self.misses),
            (
                "rejected_connections_total",
                "counter",
                "Connections beyond the limit",
                &self.rejected_connections,
            ),
        ];
        for (name, kind, help, value) in counters {
            family(&mut out, name, kind, help);
            let _ = writeln!(out, "interlingua_{name} {}", value.load(Relaxed));
        }
        let gauges = [
            ("readers", "Readers that are connected and live", &self.readers),
            ("connections", "Open connections", &self.connections),
        ];
        for (name, help, value) in gauges {
            family(&mut out, name, "gauge", help);
            let _ = writeln!(out, "interlingua_{name} {}", value.load(Relaxed));
        }
        family(&mut out, "requests_total", "counter", "Answered requests");
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        for ((method, route, status), count) in &*requests {
            let _ = writeln!(
                out,
                "interlingua_requests_total{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}} {count}",
            );
        }
        out
    }
}

/// The number of live agents.
pub(crate) fn render_agents(live: usize, out: &mut String) {
    family(out, "live_agents", "gauge", "Agents that are live");
    let _ = writeln!(out, "interlingua_live_agents {live}");
}

/// What the store has.
pub(crate) fn render_sessions(counts: &Counts, out: &mut String) {
    family(out, "sessions", "gauge", "Sessions that are stored, by state");
    for state in State::NAMES {
        let count = counts.sessions.get(state).copied().unwrap_or_default();
        let _ = writeln!(out, "interlingua_sessions{{state=\"{state}\"}} {count}");
    }
    family(out, "waiting_prompts", "gauge", "Prompts that wait for their turn");
    let _ = writeln!(out, "interlingua_waiting_prompts {}", counts.waiting_prompts);
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP interlingua_{name} {help}.\n# TYPE interlingua_{name} {kind}");
}
