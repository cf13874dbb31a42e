//! A server that is killed, and whose agent is not ended at once: its guard has a moment for that, and the
//! next server waits for it. Here the guard is suspended meanwhile, as on a machine that is too busy.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};
use serde_json::json;

use super::desk::Desk;
use super::script::{LATER, LISTENER, TALKER};
use crate::log::{cause, has, intents, outcomes};

/// How long the guard is suspended once the next server is there: long enough for one that does not wait,
/// and much shorter than the time that a server waits for guards.
const LATE: Duration = Duration::from_millis(500);

/// The guards of the agents of a desk.
fn guards(desk: &Desk) -> Vec<Pid> {
    let is_guard = |path: &PathBuf| {
        let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
        !line.starts_with(b"/bin/sh\0")
    };
    let number = |path: PathBuf| path.file_name()?.to_str()?.parse().ok();
    let guards = desk.processes().into_iter().filter(is_guard).filter_map(number);
    guards.filter_map(Pid::from_raw).collect()
}

fn signal(processes: &[Pid], signal: Signal) {
    processes.iter().for_each(|process| kill_process(*process, signal).unwrap());
}

/// Kills the server, and lets its agents live until they are [ended](end_late).
fn kill_but_not_agents(desk: &mut Desk) -> Vec<Pid> {
    let guards = guards(desk);
    assert!(!guards.is_empty());
    // A suspended process whose parent ends is resumed by the system, unless another one adopts it that is
    // in the same session.
    set_child_subreaper(Some(getpid())).unwrap();
    signal(&guards, Signal::STOP);
    desk.kill();
    guards
}

/// The process that holds the only session.
fn holder(store: &Path) -> Option<String> {
    let connection = Connection::open(store).unwrap();
    connection.query_row("SELECT holder FROM sessions", [], |row| row.get(0)).unwrap()
}

/// Lets something happen, and ends the lost agents, after the next server has taken their session.
fn end_late(
    desk: &Desk,
    guards: Vec<Pid>,
    happens: impl FnOnce() + Send + 'static,
) -> JoinHandle<()> {
    let store = desk.store.clone();
    let before = holder(&store);
    std::thread::spawn(move || {
        let begun = Instant::now();
        while holder(&store) == before {
            assert!(begun.elapsed() < Duration::from_secs(30), "no server has taken the session");
            std::thread::yield_now();
        }
        // The passing of time is what is tested.
        std::thread::sleep(LATE);
        happens();
        signal(&guards, Signal::CONT);
    })
}

/// The files of an agent decide whether it has received a prompt. One that is still running may write to
/// them.
#[test]
fn the_files_of_a_lost_agent_are_read_after_its_end() {
    // It writes the prompt to its file once the pipe `go` is written, as an agent that stores late.
    let record = json!({"content": "again", "timestamp": LATER});
    let late = format!(
        "[ -e mute ] && {{ echo > ready; read -r _ < go; echo '{record}' >> \"$kept/s1.jsonl\"; echo > done; }};"
    );
    let mut desk = Desk::of_qwen(
        &LISTENER.replace("*'\"initialize\"'*)", &format!("*'\"initialize\"'*) {late}")),
    );
    let pipes = ["work/go", "work/done", "work/ready"].map(|name| desk.path(name));
    for pipe in &pipes {
        mknodat(CWD, pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    }
    desk.start();
    let id = desk.create("hello", "k1");
    desk.until(&id, |events| outcomes(events) == ["completed"]);
    desk.stop();
    std::fs::write(desk.path("work/mute"), "").unwrap();
    desk.start();
    desk.prompt(&id, "again", "k2");
    desk.until(&id, |events| intents(events) == ["k1", "k2"]);
    let [go, done, ready] = pipes;
    std::fs::read(ready).unwrap();
    let guards = kill_but_not_agents(&mut desk);
    std::fs::remove_file(desk.path("work/mute")).unwrap();
    let writes = move || {
        std::fs::write(go, "\n").unwrap();
        std::fs::read(done).unwrap();
    };
    let late = end_late(&desk, guards, writes);
    desk.start();
    late.join().unwrap();
    let after = desk.until(&id, |events| outcomes(events).len() == 2);
    assert_eq!(outcomes(&after), ["completed", "failed"]);
    assert!(cause(&after).contains("the process that ran the agent ended"), "{}", cause(&after));
    let same = desk.prompt(&id, "again", "k2");
    assert_eq!((same.status, &same.json()["status"]), (202, &json!("delivered")));
    assert_eq!(desk.times("again"), 0, "it is not sent to another agent");
}

/// An agent that notes if another one is running. It goes on when its input ends, as an agent does that
/// works.
fn exclusive() -> Desk {
    let locked = "exec 9>>held; flock --nonblock 9 || echo overlap >> overlaps\n";
    Desk::with_agent(&format!("{locked}{TALKER}\nsleep 1000"), "claude")
}

/// Two agents that continue the same session of their own at once would spoil it.
#[test]
fn an_agent_is_started_again_after_the_end_of_the_lost_one() {
    let mut desk = exclusive();
    desk.start();
    let id = desk.create("wait", "k1");
    desk.prompt(&id, "hello", "k2");
    desk.until(&id, has("block_delta"));
    let guards = kill_but_not_agents(&mut desk);
    let late = end_late(&desk, guards, || {});
    desk.start();
    late.join().unwrap();
    let end = desk.until(&id, |events| outcomes(events).len() == 2);
    assert_eq!(outcomes(&end), ["failed", "completed"]);
    assert_eq!((desk.times("wait"), desk.times("hello")), (1, 1));
    assert!(!desk.path("work/overlaps").exists(), "two agents were running at once");
}

/// The session has recovered, and rests, before the lost agent has ended.
#[test]
fn a_prompt_after_the_recovery_waits_for_the_end_of_the_lost_agent() {
    let mut desk = exclusive();
    desk.start();
    let id = desk.create("wait", "k1");
    desk.until(&id, has("block_delta"));
    let guards = kill_but_not_agents(&mut desk);
    let late = end_late(&desk, guards, || {});
    desk.start();
    desk.until(&id, |events| outcomes(events) == ["failed"]);
    desk.prompt(&id, "hello", "k2");
    late.join().unwrap();
    let end = desk.until(&id, |events| outcomes(events).len() == 2);
    assert_eq!(outcomes(&end), ["failed", "completed"]);
    assert!(!desk.path("work/overlaps").exists(), "two agents were running at once");
}
