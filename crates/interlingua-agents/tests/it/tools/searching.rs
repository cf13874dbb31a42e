//! Searching for names and contents.

use std::time::{Duration, SystemTime};

use serde_json::json;

use super::Bench;

fn project() -> Bench {
    let bench = Bench::new();
    bench.write(".gitignore", "target/\n*.log\n");
    bench.write("src/main.rs", "fn main() {\n    needle();\n}\n");
    bench.write("src/deep/lib.rs", "// needle\n// x\n// y\n// Needle\n");
    bench.write("src/deep/data.json", "{\"needle\": 1}\n");
    bench.write("target/out.rs", "needle\n");
    bench.write("debug.log", "needle\n");
    bench.write(".github/ci.yml", "needle\n");
    bench.write(".git/config.rs", "needle\n");
    bench.write("bin", b"needle\0needle\n");
    bench.write(".env", "KEY=needle\n");
    bench.write("keys/server.pem", "needle\n");
    for (age, path) in ["src/main.rs", "src/deep/lib.rs", ".github/ci.yml"].iter().enumerate() {
        let file = std::fs::File::options().write(true).open(bench.root().join(path)).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age as u64);
        file.set_modified(time).unwrap();
    }
    bench
}

const SKIPPED: &str =
    "\n\n(2 entries that usually contain secrets were skipped; name one as `path` to search it)";

fn native(text: &str) -> String {
    text.replace('/', std::path::MAIN_SEPARATOR_STR)
}

#[tokio::test]
async fn names_are_found_newest_first() {
    let bench = project();
    let found = async |pattern: &str| bench.done("Glob", json!({"pattern": pattern})).await;
    let rust = native("src/main.rs\nsrc/deep/lib.rs");
    assert_eq!(found("**/*.rs").await, rust);
    assert_eq!(found("*.rs").await, rust);
    assert_eq!(found("src/**/*.{rs,json}").await.lines().count(), 3);
    assert_eq!(found("src/*.rs").await, native("src/main.rs"));
    assert_eq!(found(".github/*").await, native(".github/ci.yml"));
    assert_eq!(found("*.log").await, "No matches found");
    let text = bench.done("Glob", json!({"pattern": "*.rs", "path": "src/deep"})).await;
    assert_eq!(text, native("src/deep/lib.rs"));
    bench.failed("Glob", json!({"pattern": "../*"})).await;
    bench.failed("Glob", json!({"pattern": "*", "path": "src/main.rs"})).await;
}

#[tokio::test]
async fn contents_are_found_in_every_mode() {
    let bench = project();
    let content = json!({"pattern": "needle", "output_mode": "content"});
    assert_eq!(
        bench.done("Grep", content).await,
        native(
            ".github/ci.yml:1:needle\nsrc/deep/data.json:1:{\"needle\": 1}\n\
             src/deep/lib.rs:1:// needle\nsrc/main.rs:2:    needle();"
        ) + SKIPPED
    );
    let files = json!({"pattern": "needle", "glob": "*.rs"});
    let expected = native("src/main.rs\nsrc/deep/lib.rs");
    assert_eq!(bench.done("Grep", files).await, expected);
    let count = json!({"pattern": "needle", "-i": true, "output_mode": "count", "type": "rust"});
    let expected = native("src/deep/lib.rs:2\nsrc/main.rs:1");
    assert_eq!(bench.done("Grep", count).await, expected);
    let none = json!({"pattern": "nothing", "path": "src"});
    assert_eq!(bench.done("Grep", none).await, "No matches found");
}

#[tokio::test]
async fn context_pages_and_lines_across_are_supported() {
    let bench = project();
    let grep = async |mut input: serde_json::Value| {
        input["output_mode"] = json!("content");
        input["path"] = json!("src/deep/lib.rs");
        bench.done("Grep", input).await.replace(&native("src/deep/lib.rs"), "F")
    };
    let text = grep(json!({"pattern": "(?i)needle", "-A": 1})).await;
    assert_eq!(text, "F:1:// needle\nF-2-// x\n--\nF:4:// Needle");
    let text = grep(json!({"pattern": "x", "-C": 1, "-n": false})).await;
    assert_eq!(text, "F-// needle\nF:// x\nF-// y");
    let text = grep(json!({"pattern": "//", "head_limit": 1, "offset": 1})).await;
    assert_eq!(text, "F:2:// x\n\n(2 more lines: use `offset` 2 to see them)");
    let text = grep(json!({"pattern": "x.*y", "multiline": true})).await;
    assert_eq!(text, "F:2:// x\nF:3:// y");
}

/// A recursive search needs no question because of a secret, since it leaves secrets out.
#[tokio::test]
async fn secrets_are_searched_only_if_they_are_named() {
    let bench = project();
    let text = bench.done("Grep", json!({"pattern": "KEY"})).await;
    assert_eq!(text, format!("No matches found{SKIPPED}"));
    let named = json!({"pattern": "KEY", "path": ".env", "output_mode": "content"});
    assert_eq!(bench.done("Grep", named).await, ".env:1:KEY=needle");
    let text = bench.done("Glob", json!({"pattern": "*.pem"})).await;
    assert!(text.starts_with("No matches found") && text.contains("skipped"), "{text}");
}

#[tokio::test]
async fn long_lines_are_cut() {
    let bench = Bench::new();
    bench.write("a", format!("x{}\n", "ä".repeat(10_000)));
    let text = bench.done("Grep", json!({"pattern": "x", "output_mode": "content"})).await;
    assert!(text.ends_with("ä… (cut)") && text.len() < 600, "{text}");
}

/// The rules are those of git: of all folders above, the innermost first, with exceptions.
#[tokio::test]
async fn what_git_ignores_is_left_out() {
    let bench = Bench::new();
    bench.write(".gitignore", "*.log\n/only-here.txt\nbuild/\n");
    bench.write(".git/info/exclude", "private.txt\n");
    bench.write("sub/.gitignore", "!keep.log\n/own.txt\n");
    bench.write("sub/deep/.ignore", "*.tmp\n!shown.log\n");
    for path in [
        "a.log",
        "only-here.txt",
        "private.txt",
        "build/x.txt",
        "sub/keep.log",
        "sub/other.log",
        "sub/own.txt",
        "sub/only-here.txt",
        "sub/build/x.txt",
        "sub/deep/own.txt",
        "sub/deep/x.tmp",
        "sub/deep/shown.log",
        "sub/deep/private.txt",
    ] {
        bench.write(path, "x\n");
    }
    let grep = json!({"pattern": "x", "output_mode": "count", "glob": "*.{log,txt,tmp}"});
    let expected = "sub/deep/own.txt:1\nsub/deep/shown.log:1\nsub/keep.log:1\nsub/only-here.txt:1";
    assert_eq!(bench.done("Grep", grep.clone()).await, native(expected));
    // The rules above the folder that is searched count, too.
    let mut below = grep;
    below["path"] = json!("sub/deep");
    let expected = "sub/deep/own.txt:1\nsub/deep/shown.log:1";
    assert_eq!(bench.done("Grep", below).await, native(expected));
}

#[tokio::test]
async fn the_newest_of_many_files_are_returned() {
    let bench = Bench::new();
    for number in 0..250 {
        let path = bench.write(&format!("{number:03}.txt"), "");
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(number)).unwrap();
    }
    let text = bench.done("Glob", json!({"pattern": "*.txt"})).await;
    let lines: Vec<_> = text.lines().collect();
    assert_eq!((lines[0], lines[99]), ("249.txt", "150.txt"));
    assert_eq!(lines[100..], ["", "(150 more files match: use a narrower pattern)"]);
}

/// A pattern that needs much memory is refused, also as a filter.
#[tokio::test]
async fn a_pattern_that_is_too_large_is_refused() {
    let bench = Bench::new();
    bench.write("a", "x\n");
    let text = bench.failed("Grep", json!({"pattern": r"(\w{200}){200}"})).await;
    assert!(text.contains("size limit"), "{text}");
}
