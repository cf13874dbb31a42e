//! What a call costs besides the time of the client. `benches/client_tools.rs` measures it.

use std::time::Instant;

use super::*;

/// Far more than a call takes, also on a busy machine: it would need a timer, or work that grows with the
/// number of calls.
const WIDE: Duration = Duration::from_millis(100);

#[tokio::test]
async fn a_call_that_is_answered_at_once_takes_no_time() {
    let mut scene = Scene::new(options()).await;
    let mut times = Vec::new();
    for _ in 0..100 {
        let begun = Instant::now();
        let waits = scene.call("all");
        let asked = scene.next().await;
        scene.session.handle.answer(asked.id(), json!("fields")).await.unwrap();
        assert_eq!(text(&within(waits).await.unwrap()), "fields");
        times.push(begun.elapsed());
        scene.ended(asked.id()).await;
    }
    times.sort();
    let median = times[times.len() / 2];
    assert!(median < WIDE, "{median:?}");
}
