//! A folder with a million entries: the tools of a model API end, report what they left out, and take
//! little memory.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use fake_model::Reply;
use serde_json::{Value, json};

use crate::inputs::peak_memory;
use crate::model_apis::Desk;

const ENTRIES: u64 = 1_000_000;

/// A folder with many entries. They are made fastest in memory, and as links to one file take the
/// kernel a fifth of the memory that files take.
fn huge_folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let has_room = |folder: &Path| {
        rustix::fs::statvfs(folder).is_ok_and(|system| system.f_favail > 2 * ENTRIES)
    };
    let folder = match has_room(memory) {
        true => tempfile::tempdir_in(memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    };
    let mut file = folder.path().join("0");
    File::create(&file).unwrap();
    for number in 1..ENTRIES {
        let path = folder.path().join(number.to_string());
        // On a disk, a file can have some thousand links.
        if std::fs::hard_link(&file, &path).is_err() {
            File::create(&path).unwrap();
            file = path;
        }
    }
    folder
}

#[test]
fn the_tools_end_report_the_cut_and_take_little_memory() {
    let folder = huge_folder();
    let path = folder.path().display().to_string();
    let call = |tool: &str, more: Value| {
        let mut input = json!({"path": path});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Reply::call(tool, input)
    };
    let desk = Desk::new([
        call("LS", json!({})),
        call("Glob", json!({"pattern": "*"})),
        call("Grep", json!({"pattern": "x"})),
        Reply::text("Done."),
    ]);
    let address = desk.model.address();
    let mut command = desk.command(&["chat", "anthropic-api", "--base-url", &address]);
    let mut chat = command.args(["--add-dir", &path]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = chat.stdin.take().unwrap();
    stdin.write_all(b"{\"prompt\":\"look\"}\n").unwrap();
    let mut lines = BufReader::new(chat.stdout.take().unwrap()).lines();
    let (mut outputs, mut end) = (Vec::new(), Value::Null);
    for line in lines.by_ref() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        match event["type"].as_str().unwrap() {
            "tool_ended" => outputs.push(event.to_string()),
            "turn_ended" => {
                end = event;
                break;
            }
            _ => {}
        }
    }
    // The process waits for another prompt.
    let kilobytes = peak_memory(chat.id()).unwrap();
    drop(stdin);
    lines.for_each(|line| drop(line.unwrap()));
    assert!(chat.wait().unwrap().success());
    assert_eq!(end["outcome"], "completed", "{end}");
    let cuts = [
        "the folder has more than 20000 entries; these are 1000 of them",
        "the search was stopped after 500000 entries",
        "the search was stopped after 500000 entries",
    ];
    assert_eq!(outputs.len(), cuts.len(), "{outputs:?}");
    for (output, cut) in outputs.iter().zip(cuts) {
        assert!(output.contains(cut), "{output}");
    }
    assert!(kilobytes < 100_000, "{kilobytes} kB");
}
