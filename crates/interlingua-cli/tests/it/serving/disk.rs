//! A store on a disk that becomes full.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use super::desk::Desk;
use super::script::said;
use crate::http::Answer;
use crate::log::{assert_continues, has, outcomes, turns};

/// A small disk, which processes in a namespace of their own see.
pub(super) struct SmallDisk {
    /// Keeps the namespace.
    holder: Child,
    folder: PathBuf,
}

impl SmallDisk {
    /// Lets the store of a desk be on a small disk. Returns nothing if a user cannot mount one here.
    pub(super) fn mount(desk: &mut Desk) -> Option<Self> {
        let folder = desk.path("disk");
        std::fs::create_dir(&folder).unwrap();
        let script = format!(
            "mount -t tmpfs -o size=16m tmpfs {} && echo mounted; exec cat",
            folder.display()
        );
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
        unshare.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut holder = unshare.spawn().ok()?;
        let mut line = String::new();
        let _ = BufReader::new(holder.stdout.take()?).read_line(&mut line);
        let target = format!("--target={}", holder.id());
        let disk = Self { holder, folder };
        if line != "mounted\n" {
            skipped();
            return None;
        }
        let words = ["nsenter", &target, "--user", "--mount", "--preserve-credentials"];
        desk.within = words.map(str::to_owned).into();
        desk.within.push(format!("--wd={}", desk.path("work").display()));
        desk.store = disk.folder.join("sessions.db");
        Some(disk)
    }

    /// A file on the disk, as processes see it that are not in the namespace.
    fn ballast(&self) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        root.join(self.folder.strip_prefix("/").unwrap()).join("ballast")
    }

    /// Leaves no space.
    pub(super) fn fill(&self) {
        let mut ballast = std::fs::File::create(self.ballast()).unwrap();
        let block = [0; 4096];
        while ballast.write_all(&block).is_ok() {}
    }

    /// Makes space again.
    pub(super) fn free(&self) {
        std::fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

pub(super) fn skipped() {
    let mut shown = std::io::stderr();
    writeln!(shown, "SKIPPED full disks of a server: a user cannot mount a small one here")
        .unwrap();
}

/// What cannot be stored is not acknowledged, and what was stored is served. The same command works
/// when there is space again.
#[test]
fn a_command_that_cannot_be_stored_is_not_acknowledged() {
    let mut desk = Desk::prepared();
    let Some(disk) = SmallDisk::mount(&mut desk) else { return };
    // Reading a session is noted after a 64th of this time, which the disk cannot take.
    desk.arguments = vec!["--ttl".to_owned(), "64".to_owned()];
    desk.start();
    let id = desk.create("hello", "k1");
    let before = desk.until(&id, has("turn_ended"));
    disk.fill();
    let long = format!("hello {}", "x".repeat(400_000));
    let refused = desk.prompt(&id, &long, "k2");
    assert!(refused.status >= 500, "{}", refused.text());
    // The passing of time is what is tested.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(desk.events(&id), before);
    assert_eq!(desk.session(&id)["state"], "idle");
    disk.free();
    assert_eq!(desk.prompt(&id, &long, "k2").status, 202);
    let end = desk.until(&id, |events| outcomes(events).len() == 2);
    assert_continues(&before, &end);
    assert_eq!(outcomes(&end), ["completed", "completed"]);
    assert_eq!((desk.times(&long), desk.times("hello")), (1, 1));
}

/// The output of an agent waits for space, and all of it is stored in the end.
#[test]
fn the_output_of_an_agent_waits_for_space() {
    let mut desk = Desk::prepared();
    let Some(disk) = SmallDisk::mount(&mut desk) else { return };
    desk.start();
    let go = desk.path("work/go");
    mknodat(CWD, &go, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let id = desk.create("flood", "k1");
    let readers = desk.readers(&id);
    let before = desk.until(&id, has("block"));
    disk.fill();
    std::fs::write(&go, "\n").unwrap();
    // The agent goes on, and prints more than there is space for. A prompt that is sent meanwhile is
    // answered, whether there was space for it or not.
    let sent = desk.prompt(&id, "hello", "k2");
    assert!([202, 500].contains(&sent.status), "{}", sent.text());
    assert_continues(&before, &desk.events(&id));
    disk.free();
    desk.prompt(&id, "hello", "k2");
    let end = desk.until(&id, |events| outcomes(events).len() == 2);
    assert_continues(&before, &end);
    assert_eq!(turns(&end)[0].text, said("flood"));
    assert_eq!(outcomes(&end), ["completed", "completed"]);
    assert_eq!((desk.times("flood"), desk.times("hello")), (1, 1));
    desk.command(&id, "c", json!({"type": "close"}));
    let log = desk.events(&id);
    for reader in readers {
        assert_eq!(reader.finish().records, log);
    }
}

/// The server reports that it is not ready while nothing can be stored.
#[test]
fn a_server_whose_disk_is_full_is_not_ready() {
    let mut desk = Desk::prepared();
    let Some(disk) = SmallDisk::mount(&mut desk) else { return };
    desk.start();
    let ready = || desk.request("GET", "/readyz", None, None);
    assert_eq!(ready().status, 200);
    disk.fill();
    let full = until(&ready, 503);
    assert_eq!(full.json()["error"]["code"], "not_ready");
    assert_eq!(full.header("retry-after"), Some("1"));
    assert_eq!(desk.request("GET", "/healthz", None, None).status, 200);
    disk.free();
    until(&ready, 200);
    let id = desk.create("hello", "k1");
    desk.until(&id, has("turn_ended"));
}

/// Asks again until the answer has a status: the store is probed every two seconds at most.
fn until(ask: &impl Fn() -> Answer, status: u16) -> Answer {
    let begun = Instant::now();
    loop {
        let answer = ask();
        if answer.status == status {
            return answer;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{}", answer.text());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A session that cannot be deleted is still there, and goes on; its agent may have been ended.
#[test]
fn a_session_that_cannot_be_deleted_goes_on() {
    let mut desk = Desk::prepared();
    let Some(disk) = SmallDisk::mount(&mut desk) else { return };
    desk.start();
    let id = desk.create("wait", "k1");
    let before = desk.until(&id, has("block_delta"));
    disk.fill();
    let path = format!("/v1/sessions/{id}");
    let failed = desk.request("DELETE", &path, None, None);
    assert_eq!(failed.status, 500, "{}", failed.text());
    assert_continues(&before, &desk.events(&id));
    disk.free();
    // Its turn is not left open.
    let after = desk.until(&id, has("turn_ended"));
    assert_continues(&before, &after);
    assert_eq!(outcomes(&after), ["failed"]);
    desk.prompt(&id, "hello", "k2");
    let end = desk.until(&id, |events| outcomes(events).len() == 2);
    assert_eq!(outcomes(&end), ["failed", "completed"]);
    assert_eq!((desk.times("wait"), desk.times("hello")), (1, 1));
    assert_eq!(desk.request("DELETE", &path, None, None).status, 204);
    assert_eq!(desk.request("GET", &path, None, None).status, 404);
    desk.until_no_process();
}

/// The owner of a session does not listen while it waits for space. What it was asked to do meanwhile, and
/// what was given up, is not done later.
#[test]
fn a_session_whose_output_waits_for_space_is_not_deleted_later() {
    let mut desk = Desk::prepared();
    let Some(disk) = SmallDisk::mount(&mut desk) else { return };
    desk.start();
    let go = desk.path("work/go");
    mknodat(CWD, &go, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let id = desk.create("flood", "k1");
    let before = desk.until(&id, has("block"));
    disk.fill();
    std::fs::write(&go, "\n").unwrap();
    let path = format!("/v1/sessions/{id}");
    // The agent has printed more than there is space for once its session is stuck.
    let refused = format!("hello {}", "x".repeat(400_000));
    assert_eq!(desk.prompt(&id, &refused, "k2").status, 500);
    let failed = desk.request("DELETE", &path, None, None);
    assert_eq!(failed.status, 500, "{}", failed.text());
    disk.free();
    let end = desk.until(&id, has("turn_ended"));
    assert_continues(&before, &end);
    let [turn] = &turns(&end)[..] else { panic!("{end:?}") };
    assert_eq!((turn.outcome, &*turn.text), ("completed", &*said("flood")));
    assert_eq!(desk.request("DELETE", &path, None, None).status, 204);
    desk.until_no_process();
}

/// A server that is killed while the disk is full has lost nothing that was served. The next one closes
/// the turn as soon as there is space.
#[test]
fn a_server_that_is_killed_with_a_full_disk_loses_nothing() {
    for is_free in [true, false] {
        let mut desk = Desk::prepared();
        let Some(disk) = SmallDisk::mount(&mut desk) else { return };
        desk.start();
        let id = desk.create("wait", "k1");
        desk.until(&id, has("block_delta"));
        disk.fill();
        let before = desk.events(&id);
        desk.kill();
        if is_free {
            disk.free();
        }
        desk.restart(&id, &before);
        if !is_free {
            disk.free();
        }
        let after = desk.until(&id, has("turn_ended"));
        assert_eq!(outcomes(&after), ["failed"]);
        desk.prompt(&id, "hello", "k2");
        let end = desk.until(&id, |events| outcomes(events).len() == 2);
        assert_eq!(outcomes(&end), ["failed", "completed"]);
        assert_eq!((desk.times("wait"), desk.times("hello")), (1, 1));
    }
}
