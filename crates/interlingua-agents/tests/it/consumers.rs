//! Consumers that are fast, stalled or gone: nothing is lost, and the agent is not blocked.

use interlingua_agents::{ProcessAgent, Stop};

use crate::support::*;

#[tokio::test]
async fn all_output_of_an_agent_that_exits_at_once_arrives() {
    let many = r#"i=0; while [ $i -lt 3000 ]; do echo "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_$i\",\"type\":\"agent_message\",\"text\":\"$i;\"}}"; i=$((i+1)); done"#;
    let (ended, events) = run(script(&[BEGINS, many, COMPLETES]), options()).await;
    let expected: String = (0..3000).map(|number| format!("{number};")).collect();
    assert_eq!((ended.code(), text(&events)), (0, expected));
}

#[tokio::test]
async fn a_consumer_that_stalls_loses_nothing() {
    let filler = "x".repeat(2000);
    let many = format!(
        r#"i=0; while [ $i -lt 2000 ]; do echo "{{\"type\":\"item.completed\",\"item\":{{\"id\":\"item_$i\",\"type\":\"agent_message\",\"text\":\"${{i}}{filler}\"}}}}"; i=$((i+1)); done"#
    );
    let done = Fifo::new();
    let launch = script(&[BEGINS, &many, COMPLETES, &done.signal_command()]);
    let run = Watched::start(launch, options()).await;
    // The agent is not blocked: it exits although the consumer has taken nothing.
    within(done.signalled()).await;
    let (ended, events) = run.end().await;
    let received = text(&events);
    let expected: String = (0..2000).map(|number| format!("{number}{filler}")).collect();
    assert_eq!((ended.code(), received.len(), received == expected), (0, expected.len(), true));
}

/// A caller who consumes the entries itself once waited forever: the session had read all output of
/// an agent that had exited, and did not answer before the consumer took some.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn commands_are_answered_while_the_consumer_stalls() {
    let filler = "x".repeat(20_000);
    let many = format!(
        r#"i=0; while [ $i -lt 200 ]; do echo "{{\"type\":\"item.completed\",\"item\":{{\"id\":\"item_$i\",\"type\":\"agent_message\",\"text\":\"{filler}\"}}}}"; i=$((i+1)); done"#
    );
    let folder = tempfile::tempdir().unwrap();
    let own_id = folder.path().join("pid");
    let states_id = format!("echo $$ > {}", own_id.display());
    let launch = script(&[BEGINS, &many, COMPLETES, &states_id]);
    let run = Watched::open(ProcessAgent::new(launch), options()).await;
    run.handle.prompt("do it").await.unwrap();
    let has_exited = || {
        let id = std::fs::read_to_string(&own_id).unwrap_or_default();
        !id.is_empty() && !std::path::Path::new("/proc").join(id.trim()).exists()
    };
    // Once the agent has exited, the session soon waits for nothing but the consumer.
    let mut commands_after_exit = 0;
    while commands_after_exit < 100 {
        within(run.handle.hold()).await.unwrap();
        tokio::task::yield_now().await;
        commands_after_exit += usize::from(has_exited());
    }
    within(run.handle.finish()).await.unwrap();
    let (ended, events) = run.end().await;
    assert_eq!((ended.code(), text(&events).len()), (0, 200 * filler.len()));
}

#[tokio::test]
async fn an_agent_whose_consumer_has_gone_is_stopped() {
    let stopped = Fifo::new();
    let trap = format!("trap '{}; exit 1' INT TERM", stopped.signal_command());
    let launch = script(&[&trap, BEGINS, MESSAGE, "sleep 1000 & wait"]);
    let mut run = Watched::start(launch, options()).await;
    run.until(|event| event["type"] == "block").await;
    let Watched { handle, entries, .. } = run;
    drop(entries);
    within(stopped.signalled()).await;
    // The session has ended once it answers no more.
    while within(handle.stop(Stop::Interrupted)).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

/// Unread output is kept on disk, so it must have a limit.
#[tokio::test]
async fn an_agent_with_too_much_unread_output_is_stopped() {
    let stopped = Fifo::new();
    let trap = format!("trap '{}; exit 1' INT TERM", stopped.signal_command());
    let much = r#"i=0; while [ $i -lt 20000 ]; do echo "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_$((i=i+1))\",\"type\":\"agent_message\",\"text\":\"and so on\"}}"; done"#;
    let mut options = options();
    options.max_unread = 100_000;
    let lines = [&*trap, BEGINS, much, "sleep 1000 & wait"];
    let run = Watched::start(script(&lines), options).await;
    within(stopped.signalled()).await;
    let (ended, _) = run.end().await;
    let Some(Stop::TimedOut(why)) = &ended.stop else { panic!("{ended:?}") };
    assert!(why.contains("slow"), "{why}");
}

/// An agent whose output is not read because the consumer is stalled does not count as silent.
#[tokio::test]
async fn a_consumer_that_stalls_does_not_make_the_agent_silent() {
    let done = Fifo::new();
    let filler = "x".repeat(1000);
    let many = format!(
        r#"i=0; while [ $i -lt 2000 ]; do echo "{{\"type\":\"item.completed\",\"item\":{{\"id\":\"item_$i\",\"type\":\"agent_message\",\"text\":\"${{i}}{filler}\"}}}}"; i=$((i+1)); done"#
    );
    let mut options = options();
    options.deadlines.silence = Some(std::time::Duration::from_secs(1));
    // The agent is quiet for longer than the silence limit; the test depends on real time.
    let launch = script(&[BEGINS, &many, "sleep 2", COMPLETES, &done.signal_command()]);
    let run = Watched::start(launch, options).await;
    within(done.signalled()).await;
    let (ended, _) = run.end().await;
    assert_eq!((ended.stop.clone(), ended.code()), (None, 0), "{ended:?}");
}

/// Background work produces results of its own: the run ends when the process exits.
#[tokio::test]
async fn several_results_are_one_run() {
    let again = MESSAGE.replace("item_0", "item_2").replace("hello", " and more");
    let lines =
        [BEGINS, MESSAGE, COMPLETES, r#"echo '{"type":"turn.started"}'"#, &again, COMPLETES];
    let (ended, events) = run(script(&lines), options()).await;
    assert_eq!((ended.code(), text(&events)), (0, "hello and more".to_owned()));
    let ends = kinds(&events).into_iter().filter(|kind| *kind == "turn_ended").count();
    assert_eq!(ends, 2);
    assert_eq!(kinds(&events).last(), Some(&"session_ended"));
}
