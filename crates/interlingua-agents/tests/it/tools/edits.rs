//! Changes of files: only of what the model has read, all or nothing, and with diffs.

use interlingua::event::FileChangeKind;
use serde_json::{Value, json};

use super::{Bench, names};

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"file_path": path, "old_string": old, "new_string": new})
}

#[tokio::test]
async fn a_new_file_is_written_with_its_folders() {
    let bench = Bench::new();
    let output = bench.run("Write", json!({"file_path": "a/b/c.txt", "content": "x\ny\n"})).await;
    assert_eq!(bench.content("a/b/c.txt"), "x\ny\n");
    assert_eq!(names(&bench.root().join("a/b")), ["c.txt"]);
    let [change] = &*output.changes else { panic!("{output:?}") };
    assert_eq!(change.path, bench.root().join("a/b/c.txt"));
    assert_eq!(change.kind, FileChangeKind::Add);
    assert!(change.diff.ends_with("@@ -0,0 +1,2 @@\n+x\n+y\n"), "{}", change.diff);
    // What was written is known.
    bench.done("Edit", edit("a/b/c.txt", "y", "z")).await;
    assert_eq!(bench.content("a/b/c.txt"), "x\nz\n");
}

#[tokio::test]
async fn a_file_has_to_be_read_before_it_is_changed() {
    let bench = Bench::new();
    bench.write("a", "eins\n");
    let write = json!({"file_path": "a", "content": "neu\n"});
    for (name, input) in [("Write", write.clone()), ("Edit", edit("a", "eins", "zwei"))] {
        let text = bench.failed(name, input).await;
        assert!(text.contains("was not read yet"), "{text}");
    }
    bench.done("Read", json!({"file_path": "a"})).await;
    // Another program changes it meanwhile, to the same length.
    bench.write("b", "zwei\n");
    std::fs::rename(bench.root().join("b"), bench.root().join("a")).unwrap();
    for (name, input) in [("Write", write.clone()), ("Edit", edit("a", "zwei", "drei"))] {
        let text = bench.failed(name, input).await;
        assert!(text.contains("has changed since it was read"), "{text}");
    }
    assert_eq!(bench.content("a"), "zwei\n");
    bench.done("Read", json!({"file_path": "a"})).await;
    bench.done("Write", write).await;
    assert_eq!(bench.content("a"), "neu\n");
}

#[tokio::test]
async fn an_edit_is_exact_and_shows_its_lines() {
    let bench = Bench::new();
    bench.write("a", "1\n2\n3\n2\n5\n");
    bench.done("Read", json!({"file_path": "a"})).await;
    let text = bench.failed("Edit", edit("a", "2", "x")).await;
    assert!(text.contains("occurs 2 times, at the lines 2, 4"), "{text}");
    let text = bench.failed("Edit", edit("a", "7", "x")).await;
    assert!(text.contains("does not occur"), "{text}");
    let output = bench.run("Edit", edit("a", "3\n2", "drei\nzwei")).await;
    assert_eq!(output.text(), "a was edited.\n     3→drei\n     4→zwei\n     5→5");
    assert_eq!(
        output.changes[0].diff,
        "--- a\n+++ a\n@@ -1,5 +1,5 @@\n 1\n 2\n-3\n-2\n+drei\n+zwei\n 5\n"
    );
    let mut all = edit("a", "e", "E");
    all["replace_all"] = json!(true);
    let text = bench.done("Edit", all).await;
    assert!(text.contains("2 occurrences were replaced"), "{text}");
    assert_eq!(bench.content("a"), "1\n2\ndrEi\nzwEi\n5\n");
}

#[tokio::test]
async fn several_edits_are_made_all_or_none() {
    let bench = Bench::new();
    bench.write("a", "1\n2\n");
    bench.done("Read", json!({"file_path": "a"})).await;
    let edits = |second: &str| {
        json!({"file_path": "a", "edits": [
            {"old_string": "1", "new_string": "eins"},
            {"old_string": second, "new_string": "zwei"},
        ]})
    };
    let text = bench.failed("MultiEdit", edits("7")).await;
    assert!(text.contains("edit 2 of 2") && text.contains("Nothing was changed"), "{text}");
    assert_eq!(bench.content("a"), "1\n2\n");
    // The second edit sees the result of the first one.
    let text = bench.done("MultiEdit", edits("eins\n2")).await;
    assert!(text.starts_with("Applied 2 edits to a\n     1→eins\n"), "{text}");
    assert_eq!(bench.content("a"), "zwei\n");
}

#[tokio::test]
async fn line_ends_and_marks_are_kept() {
    let bench = Bench::new();
    bench.write("a", "\u{feff}eins\r\nzwei\r\n");
    let text = bench.done("Read", json!({"file_path": "a"})).await;
    assert!(text.starts_with("     1→eins\n     2→zwei\n"), "{text:?}");
    bench.done("Edit", edit("a", "eins\nzwei", "1\n2\n3")).await;
    assert_eq!(bench.content("a"), "\u{feff}1\r\n2\r\n3\r\n");
    bench.done("Write", json!({"file_path": "a", "content": "x\ny"})).await;
    assert_eq!(bench.content("a"), "\u{feff}x\r\ny\r\n");
}

/// Models leave out the end of the last line, and every tool then reports that it is missing.
#[tokio::test]
async fn the_end_of_the_last_line_is_kept() {
    let bench = Bench::new();
    let write = |content: &str| json!({"file_path": "a", "content": content});
    for (old, new, written) in [
        ("1\n", "2", "2\n"),
        ("1\n", "2\n", "2\n"),
        ("1\n", "2\r\n3", "2\r\n3\r\n"),
        ("1\n", "", ""),
        ("1", "2", "2"),
        ("1", "2\n", "2\n"),
    ] {
        bench.write("a", old);
        let shown = bench.done("Read", json!({"file_path": "a"})).await;
        assert_eq!(shown.contains("no line end"), !old.ends_with('\n'), "{shown}");
        bench.done("Write", write(new)).await;
        assert_eq!(bench.content("a"), written, "{old:?} {new:?}");
    }
    bench.write("a", "1\n");
    bench.done("Read", json!({"file_path": "a"})).await;
    bench.done("Edit", edit("a", "1\n", "1")).await;
    assert_eq!(bench.content("a"), "1");
}

#[tokio::test]
#[cfg(unix)]
async fn modes_and_links_inside_of_the_folder_are_kept() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let bench = Bench::new();
    let path = bench.write("run.sh", "echo 1\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o754)).unwrap();
    symlink("run.sh", bench.root().join("link")).unwrap();
    bench.done("Read", json!({"file_path": "link"})).await;
    bench.done("Edit", edit("link", "1", "2")).await;
    assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o754);
    assert!(bench.root().join("link").is_symlink());
    assert_eq!(bench.content("run.sh"), "echo 2\n");
    assert_eq!(names(&bench.root()), ["link", "run.sh"]);
}

/// Replacing a file by another one would ignore its mode.
#[tokio::test]
#[cfg(unix)]
async fn a_read_only_file_is_not_replaced() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    let path = bench.write("a", "x");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    bench.done("Read", json!({"file_path": "a"})).await;
    let text = bench.failed("Edit", edit("a", "x", "y")).await;
    assert!(text.contains("read-only"), "{text}");
}
