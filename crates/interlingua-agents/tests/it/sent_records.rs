//! The bytes that reach an agent, and what a recording keeps of them.

use interlingua_agents::agent::{InputFraming, Launch};
use interlingua_agents::driver::{Driver, Step};
use interlingua_agents::process::Input;
use interlingua_agents::{Options, Recorder};

use crate::support::*;

const RECORD: &str = r#"{"method":"open","params":{"key":"sk-1","name":"é"}}"#;
const REDACTED: &str = r#"{"method":"open","params":{"key":"[secret]","name":"é"}}"#;

/// Sends one record in place of the prompt, and closes the input.
#[derive(Debug)]
struct OneRecord(Step);

impl Driver for OneRecord {
    fn prompt(&mut self, _prompt: &str, steps: &mut Vec<Step>) {
        steps.extend([self.0.clone(), Step::CloseInput]);
    }
}

/// What an agent reads from its standard input.
async fn read_by_agent(step: Step, input_framing: InputFraming, options: Options) -> String {
    let folder = tempfile::tempdir().unwrap();
    let read = folder.path().join("read");
    let keeps = format!("cat > '{}'", read.display());
    let lines = [keeps.as_str(), BEGINS, COMPLETES];
    let launch = with_driver(&lines, "codex", Input::Open, Box::new(OneRecord(step)));
    let (ended, events) = run(Launch { input_framing, ..launch }, options).await;
    assert_eq!(ended.code(), 0, "{events:?}");
    std::fs::read_to_string(read).unwrap()
}

#[tokio::test]
async fn a_record_has_the_framing_of_its_launch() {
    let header = format!("Content-Length: {}\r\n\r\n", RECORD.len());
    let cases = [
        (InputFraming::Lines, format!("{RECORD}\n")),
        (InputFraming::ContentLength, format!("{header}{RECORD}")),
    ];
    for (framing, expected) in cases {
        let step = Step::Send(RECORD.to_owned());
        assert_eq!(read_by_agent(step, framing, options()).await, expected);
    }
}

/// The key of a provider was in the file with the times.
#[tokio::test]
async fn a_secret_reaches_the_agent_but_not_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let record = Some(Recorder::create(&path).unwrap());
    let step = Step::SendSecret { record: RECORD.to_owned(), redacted: REDACTED.to_owned() };
    let read =
        read_by_agent(step, InputFraming::ContentLength, Options { record, ..options() }).await;
    assert!(read.ends_with(RECORD), "{read}");
    let mut files = Vec::new();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        files.push(std::fs::read_to_string(file.unwrap().path()).unwrap());
    }
    let all = files.concat();
    assert!(!all.contains("sk-1"), "{all}");
    let sent = serde_json::to_string(REDACTED).unwrap();
    assert!(all.contains(&sent), "{all}");
}
