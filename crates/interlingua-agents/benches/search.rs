//! Compares `Glob` and `Grep` with ripgrep on the same folder:
//!
//!     cargo bench --package interlingua-agents --bench search -- FOLDER
//!
//! Both search the same files: hidden ones too, without `.git` and what git ignores. The numbers of
//! ripgrep include the start of its process. Each number is the best of several runs, taken in turn.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use interlingua_agents::tool::{Call, Settings, Toolbox};
use serde_json::{Value, json};

const RUNS: usize = 15;

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    // A test run of all targets passes no `--bench`.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let folder = arguments.iter().find(|argument| !argument.starts_with('-'));
    let folder = folder.map_or(".", |folder| &**folder);
    if Command::new("rg").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("skipped: ripgrep is not installed");
        return;
    }
    let common = ["--hidden", "--no-require-git", "--glob", "!.git"];
    let names = ["--files", "--sortr", "modified", "--glob", "*.rs"];
    let grep = |mode: &str, pattern: &str| json!({"pattern": pattern, "output_mode": mode});
    let cases: [(&str, &str, Value, &[&str]); 4] = [
        ("names", "Glob", json!({"pattern": "*.rs"}), &names),
        ("a literal", "Grep", grep("files_with_matches", "permission"), &["-l", "permission"]),
        ("lines", "Grep", grep("content", "fn [a-z]+_unread"), &["-n", "fn [a-z]+_unread"]),
        ("a count", "Grep", grep("count", r"\w+ing\b"), &["-c", r"\w+ing\b"]),
    ];
    println!("{:<12} {:>10} {:>10} {:>6}", "", "tool", "rg", "ratio");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tools = Toolbox::new(Settings::new(folder)).unwrap();
    for (title, name, input, rg) in cases {
        let call = Call { name: name.to_owned(), input, ..Call::default() };
        let (mut own, mut other) = (Duration::MAX, Duration::MAX);
        for _ in 0..RUNS {
            let begun = Instant::now();
            runtime.block_on(tools.run(&call, &mut |_| {}));
            own = own.min(begun.elapsed());
            other = other.min(ripgrep(Path::new(folder), &[&common[..], rg].concat()));
        }
        let ratio = own.as_secs_f64() / other.as_secs_f64();
        println!("{title:<12} {own:>10.1?} {other:>10.1?} {ratio:>6.2}");
    }
}

fn ripgrep(folder: &Path, arguments: &[&str]) -> Duration {
    let begun = Instant::now();
    let output = Command::new("rg").args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.code().is_some_and(|code| code < 2), "{output:?}");
    begun.elapsed()
}
