//! Attempts to leave the folder, and files that are no files.

use std::os::unix::fs::symlink;
use std::process::Command;

use interlingua::event::ToolStatus;
use interlingua_agents::tool::Settings;
use serde_json::{Value, json};

use super::{Bench, call, names};
use crate::support::within;

const SECRET: &str = "outside\n";

/// A bench with a file beside its folder.
fn bench() -> (Bench, tempfile::TempDir) {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.txt"), SECRET).unwrap();
    (Bench::new(), outside)
}

/// All ways to use a path.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("Read", json!({"file_path": path})),
        ("Write", json!({"file_path": path, "content": "x"})),
        ("Edit", json!({"file_path": path, "old_string": "outside", "new_string": "x"})),
        ("Grep", json!({"pattern": "o", "path": path})),
        ("Glob", json!({"pattern": "*", "path": path})),
        ("LS", json!({"path": path})),
    ]
}

#[tokio::test]
async fn no_tool_leaves_the_folder() {
    let (bench, outside) = bench();
    let name = outside.path().file_name().unwrap().to_str().unwrap();
    symlink(outside.path(), bench.root().join("link")).unwrap();
    symlink(outside.path().join("secret.txt"), bench.root().join("file-link")).unwrap();
    symlink(outside.path().join("new"), bench.root().join("dangling")).unwrap();
    std::fs::create_dir(bench.root().join("sub")).unwrap();
    let absolute = outside.path().join("secret.txt").display().to_string();
    let paths = [
        format!("../{name}/secret.txt"),
        format!("sub/../../{name}/secret.txt"),
        absolute,
        "link/secret.txt".to_owned(),
        "link/new.txt".to_owned(),
        "link".to_owned(),
        "file-link".to_owned(),
        "dangling".to_owned(),
        "..".to_owned(),
        "~/x".to_owned(),
        "/etc/passwd".to_owned(),
        "/proc/self/environ".to_owned(),
    ];
    for path in &paths {
        // Should a guard fail, the test must not change the system.
        let is_harmless = |(tool, _): &(&str, Value)| {
            let writes = matches!(*tool, "Write" | "Edit");
            !writes || !(path.starts_with("/etc") || path.starts_with("/proc"))
        };
        for (tool, input) in calls(path).into_iter().filter(is_harmless) {
            let text = bench.failed(tool, input).await;
            let refused = text.contains("is outside of") || text.contains("cannot be opened");
            assert!(refused || text.contains("not expanded"), "{tool} {path}: {text}");
            assert!(!text.contains(SECRET), "{tool} {path}: {text}");
        }
    }
    assert_eq!(names(outside.path()), ["secret.txt"]);
    // A recursive search does not follow links either.
    let text = bench.done("Grep", json!({"pattern": "outside"})).await;
    assert_eq!(text, "No matches found");
    assert_eq!(bench.done("Glob", json!({"pattern": "secret*"})).await, "No matches found");
}

#[tokio::test]
async fn a_permitted_path_outside_works_and_no_other() {
    let (bench, outside) = bench();
    let path = outside.path().join("secret.txt");
    let mut read = call("Read", json!({"file_path": path}));
    read.places = bench.tools.places(&read);
    assert_eq!(read.places, Some(vec![path.canonicalize().unwrap()]));
    let output = bench.tools.run(&read, &mut |_| {}).await;
    assert_eq!(output.text(), "     1→outside");
    // The permission was for a link that leads elsewhere now.
    let link = bench.root().join("link");
    symlink(&path, &link).unwrap();
    let mut read = call("Read", json!({"file_path": "link"}));
    read.places = bench.tools.places(&read);
    std::fs::write(outside.path().join("other.txt"), SECRET).unwrap();
    std::fs::remove_file(&link).unwrap();
    symlink(outside.path().join("other.txt"), &link).unwrap();
    let output = bench.tools.run(&read, &mut |_| {}).await;
    assert_eq!(output.status, ToolStatus::Failed, "{output:?}");
}

/// A call is judged by where its path leads. What it was judged as, it has to be when it runs.
#[tokio::test]
async fn a_path_that_leads_elsewhere_inside_of_the_folder_by_now_is_refused() {
    let bench = Bench::new();
    let root = bench.root();
    bench.write("notes.txt", "notes\n");
    bench.write(".env", "KEY=secret\n");
    bench.write("plain/a.txt", "a\n");
    bench.write(".ssh/id_rsa", "KEY=secret\n");
    bench.done("Read", json!({"file_path": ".env"})).await;
    let calls = [
        ("Read", json!({"file_path": "link"})),
        ("Write", json!({"file_path": "link", "content": "x"})),
        ("Edit", json!({"file_path": "link", "old_string": "secret", "new_string": "x"})),
        ("Grep", json!({"pattern": "KEY", "path": "link", "output_mode": "content"})),
        ("Glob", json!({"pattern": "*", "path": "folder"})),
        ("Grep", json!({"pattern": "KEY", "path": "folder", "output_mode": "content"})),
        ("LS", json!({"path": "folder"})),
    ];
    let link = |link: &str, target: &str| {
        let _ = std::fs::remove_file(root.join(link));
        symlink(root.join(target), root.join(link)).unwrap();
    };
    for (tool, input) in calls {
        link("link", "notes.txt");
        link("folder", "plain");
        let mut judged = call(tool, input);
        judged.places = bench.tools.places(&judged);
        link("link", ".env");
        link("folder", ".ssh");
        let output = bench.tools.run(&judged, &mut |_| {}).await;
        assert_eq!(output.status, ToolStatus::Failed, "{tool}: {output:?}");
        assert!(output.text().contains("not the place that was permitted"), "{}", output.text());
    }
    assert_eq!(bench.content(".env"), "KEY=secret\n");
    // A path that led nowhere was judged as such.
    link("link", "missing/deeper");
    let mut judged = call("Read", json!({"file_path": "link"}));
    judged.places = bench.tools.places(&judged);
    link("link", "notes.txt");
    let output = bench.tools.run(&judged, &mut |_| {}).await;
    assert_eq!(output.status, ToolStatus::Failed, "{output:?}");
}

/// Searches need no permission, and files with ignore rules are read by all of them.
#[tokio::test]
async fn files_with_ignore_rules_are_ordinary_and_short_or_not_used() {
    let bench = Bench::new();
    let root = bench.root();
    for folder in ["pipe", "endless", "long", "linked", "good"] {
        bench.write(&format!("{folder}/a.txt"), "needle\n");
        bench.write(&format!("{folder}/b.log"), "needle\n");
    }
    let made = Command::new("mkfifo").arg(root.join("pipe/.gitignore")).status().unwrap();
    assert!(made.success());
    symlink("/dev/zero", root.join("endless/.ignore")).unwrap();
    bench.write("long/.gitignore", "*.log\n".repeat(100_000));
    bench.write("rules", "*.log\n");
    symlink(root.join("rules"), root.join("linked/.gitignore")).unwrap();
    bench.write("good/.gitignore", "*.log\n");
    let grep = bench.done("Grep", json!({"pattern": "needle", "output_mode": "count"}));
    let text = within(grep).await;
    let expected = "endless/a.txt:1\nendless/b.log:1\ngood/a.txt:1\nlinked/a.txt:1\n\
                    linked/b.log:1\nlong/a.txt:1\nlong/b.log:1\npipe/a.txt:1\npipe/b.log:1\n\n\
                    (4 files with ignore rules were not used, because they are links, no ordinary \
                    files, too long or unreadable)";
    assert_eq!(text, expected);
    let text = within(bench.done("Glob", json!({"pattern": "*.log"}))).await;
    assert!(!text.contains("good") && text.contains("pipe/b.log"), "{text}");
}

#[tokio::test]
async fn an_additional_folder_is_inside() {
    let outside = tempfile::tempdir().unwrap();
    let bench = Bench::with(|settings: &mut Settings| {
        settings.additional_folders.push(outside.path().to_owned());
    });
    let path = outside.path().join("a.txt");
    bench.done("Write", json!({"file_path": path, "content": "x"})).await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "x");
    let place = bench.tools.places(&call("Read", json!({"file_path": path}))).unwrap().remove(0);
    assert_eq!(place, path.canonicalize().unwrap());
}

/// A thread swaps a folder for a link while files below it are read and written.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_link_that_is_swapped_in_after_the_check_is_not_followed() {
    let (bench, outside) = bench();
    std::fs::write(outside.path().join("a.txt"), SECRET).unwrap();
    let (folder, link) = (bench.root().join("sub"), bench.root().join("trap"));
    bench.write("sub/a.txt", "inside\n");
    symlink(outside.path(), &link).unwrap();
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    let done = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        let done = done.clone();
        move || {
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        }
    });
    let (mut read, mut refused) = (0, 0);
    for round in 0..1500 {
        let output = bench.run("Read", json!({"file_path": "sub/a.txt"})).await;
        assert!(!output.text().contains("outside\n") && !output.text().contains("→outside"));
        match output.status == ToolStatus::Completed {
            true => read += 1,
            false => refused += 1,
        }
        let path = format!("sub/new-{round}.txt");
        bench.run("Write", json!({"file_path": path, "content": "x"})).await;
        let grep = json!({"pattern": "outside", "path": "sub", "output_mode": "content"});
        let text = bench.run("Grep", grep).await.text();
        assert!(!text.contains(":outside"), "{text}");
    }
    done.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert_eq!(names(outside.path()), ["a.txt", "secret.txt"]);
    assert_eq!(std::fs::read_to_string(outside.path().join("a.txt")).unwrap(), SECRET);
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused: nothing was swapped");
}

/// The other name of a file is outside of the folder: it keeps its content.
#[tokio::test]
async fn a_change_of_a_hard_link_leaves_the_other_name_alone() {
    let (bench, outside) = bench();
    let other = outside.path().join("secret.txt");
    std::fs::hard_link(&other, bench.root().join("a")).unwrap();
    bench.done("Read", json!({"file_path": "a"})).await;
    let edit = json!({"file_path": "a", "old_string": "outside", "new_string": "inside"});
    let text = bench.done("Edit", edit).await;
    assert!(text.contains("2 names (hard links)"), "{text}");
    assert_eq!(bench.content("a"), "inside\n");
    assert_eq!(std::fs::read_to_string(other).unwrap(), SECRET);
}

#[tokio::test]
async fn what_is_no_file_is_refused_without_waiting() {
    let bench = Bench::new();
    let fifo = bench.root().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let _released = Released(fifo);
    let _socket = std::os::unix::net::UnixListener::bind(bench.root().join("socket")).unwrap();
    for (path, kind) in [("fifo", "a named pipe"), ("socket", "")] {
        for (tool, input) in calls(path) {
            let text = within(bench.failed(tool, input)).await;
            let is_file_tool = matches!(tool, "Read" | "Write" | "Edit" | "Grep");
            assert!(!is_file_tool || text.contains(kind), "{tool}: {text}");
        }
    }
    assert_eq!(within(bench.done("Grep", json!({"pattern": "x"}))).await, "No matches found");
    for path in ["/dev/zero", "/dev/null", "/dev/tty"] {
        let mut read = call("Read", json!({"file_path": path}));
        read.places = bench.tools.places(&read);
        let output = within(bench.tools.run(&read, &mut |_| {})).await;
        assert_eq!(output.status, ToolStatus::Failed, "{path}");
    }
}

/// Opens a pipe when the test ends, so that a tool that waits for it does not keep the test from
/// failing.
struct Released(std::path::PathBuf);

impl Drop for Released {
    fn drop(&mut self) {
        let _ = std::fs::File::options().read(true).write(true).open(&self.0);
    }
}
