//! Law 13 over HTTP: a reader that joins at any offset, in any dialect, receives exactly what the
//! whole stream contains after it.

use std::sync::Arc;

use interlingua_sessions::{Durability, SqliteStore};

use crate::support::{Hands, Part, parts, serve, serve_store, transcript, written};

/// Transcripts with several turns, calls, permissions, plans, retries and cut off text.
const CASES: [&str; 5] = [
    "codex/tool-parallel",
    "codex-app-server/compact",
    "acp/both-directions",
    "claude/permission-stdio-deny-interrupt",
    "anthropic-api/server-tools",
];

#[tokio::test]
async fn every_offset_gives_the_suffix_in_every_dialect() {
    let server = serve().await;
    for (number, case) in CASES.into_iter().enumerate() {
        let entries = transcript(case);
        let log = server.transcript(&format!("case-{number}"), &entries).await;
        for dialect in written() {
            let parts = parts(&entries, dialect);
            for offset in 0..=entries.len() {
                let path = format!("{}?dialect={}&offset={offset}", log.events(), dialect.name);
                let answer = server.get(&path).await;
                assert_eq!(answer.status, 200, "{path}");
                assert_eq!(answer.next(), entries.len() as u64, "{path}");
                assert!(answer.is_closed() && answer.is_up_to_date(), "{path}");
                let served = Part::served(&answer.body, dialect.written);
                assert_eq!(served, Part::joined(&parts[offset..]), "{case}: {path}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_read_entry_by_entry_is_the_whole() {
    let server = serve().await;
    for (number, case) in CASES.into_iter().enumerate() {
        let entries = transcript(case);
        let log = server.session(&format!("case-{number}")).await;
        let dialects: Vec<_> = written().collect();
        let mut served = vec![Vec::new(); dialects.len()];
        // Readers in all dialects follow a log that grows.
        for (offset, entry) in entries.iter().enumerate() {
            log.append(vec![entry.clone()]).await;
            if offset + 1 == entries.len() {
                log.close().await;
            }
            for (dialect, served) in dialects.iter().zip(&mut served) {
                let path = format!("{}?dialect={}&offset={offset}", log.events(), dialect.name);
                let answer = server.get(&path).await;
                assert_eq!(answer.next(), offset as u64 + 1);
                served.push(Part::served(&answer.body, dialect.written));
            }
        }
        for (dialect, served) in dialects.iter().zip(&served) {
            let whole = parts(&entries, dialect);
            assert_eq!(Part::joined(served), Part::joined(&whole), "{case} {}", dialect.name);
        }
    }
    // The first request of a dialect has no writer to find. Each other one finds the last.
    let metrics = server.get("/metrics").await;
    let value = |name: &str| -> u64 {
        let line = metrics.text().lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let first = (CASES.len() * (written().count() - 1)) as u64;
    assert_eq!(value("interlingua_writer_cache_misses_total"), first);
    assert!(value("interlingua_writer_cache_hits_total") > 10 * first);
}

#[tokio::test]
async fn a_cached_writer_that_is_further_is_not_used() {
    let server = serve().await;
    let entries = transcript("acp/both-directions");
    let log = server.session("one").await;
    for dialect in written() {
        let whole = parts(&entries, dialect);
        // The first reader leaves a writer at the end, and the others begin before it.
        for count in 1..=entries.len() {
            if dialect.name == written().next().unwrap().name {
                log.append(entries[count - 1..count].to_vec()).await;
            }
            for offset in [count - 1, count - 1, count.saturating_sub(2)] {
                let path = format!("{}?dialect={}&offset={offset}", log.events(), dialect.name);
                let rest = Part::served(&server.get(&path).await.body, dialect.written);
                let end = server.head(&log.events()).await.next() as usize;
                assert_eq!(rest, Part::joined(&whole[offset..end]), "{path}");
            }
        }
    }
}

#[tokio::test]
async fn a_restarted_server_continues_every_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let hands = Hands::new();
    let open = || {
        Arc::new(SqliteStore::open_with_clock(&path, Durability::default(), hands.clock()).unwrap())
    };
    let entries = transcript("acp/both-directions");
    let half = entries.len() / 2;
    let server = serve_store(open(), hands.clone(), |_| {}).await;
    let log = server.session("lasting").await;
    log.append(entries[..half].to_vec()).await;
    let mut before = Vec::new();
    for dialect in written() {
        let path = format!("{}?dialect={}", log.events(), dialect.name);
        let answer = server.get(&path).await;
        assert_eq!(answer.next(), half as u64);
        before.push(Part::served(&answer.body, dialect.written));
    }
    let (id, events) = (log.id.clone(), log.events());
    drop(log);
    server.stop().await;
    let server = serve_store(open(), hands.clone(), |_| {}).await;
    let fence = server.store.claim(&id).await.unwrap();
    let log = crate::support::Log { store: Arc::clone(&server.store), id, fence };
    log.append(entries[half..].to_vec()).await;
    log.close().await;
    for (dialect, before) in written().zip(before) {
        let answer = server.get(&format!("{events}?dialect={}&offset={half}", dialect.name)).await;
        let after = Part::served(&answer.body, dialect.written);
        let whole = Part::joined(&parts(&entries, dialect));
        assert_eq!(Part::joined([&before, &after]), whole, "{}", dialect.name);
    }
}
