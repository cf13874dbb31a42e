//! What a permission request of an agent contains: everything that would be allowed.

use std::path::{Path, PathBuf};
use std::pin::Pin;

use fake_model::{Reply, Script};
use interlingua_agents::permission::Mode;
use serde_json::{Value, json};

use crate::changing::write;
use crate::home::Home;
use crate::situations::{Outcome, expect};

type Situation = fn(&'static str, PathBuf) -> Pin<Box<dyn Future<Output = Outcome>>>;

macro_rules! situations {
    ($($name:ident),+ $(,)?) => {
        pub(crate) const REQUESTED: &[(&str, Situation)] =
            &[$((stringify!($name), |agent, program| Box::pin($name(agent, program)))),+];
    };
}

situations![a_command_is_requested_as_it_would_run, a_write_is_requested_with_its_content];

/// A line end that could pass for a blank, and a mark that would turn the text around.
const COMMAND: &str = "touch made; \\\ntouch 'a\u{202e}b'";

/// A call that runs a command in a folder, and the name by which the request states that folder. The
/// tools of the others have no field for it.
fn command_in(agent: &str, folder: &Path) -> (Reply, Option<&'static str>) {
    let words = "A scripted step";
    match agent {
        "codex" => {
            (Reply::call("exec_command", json!({"cmd": COMMAND, "workdir": folder})), Some("cwd"))
        }
        "gemini" => {
            let input = json!({"command": COMMAND, "description": words, "is_background": false,
                "dir_path": folder});
            (Reply::call("run_shell_command", input), Some("cwd"))
        }
        "qwen" => {
            let input = json!({"command": COMMAND, "is_background": false, "directory": folder});
            (Reply::call("run_shell_command", input), Some("directory"))
        }
        "opencode" => {
            let input = json!({"command": COMMAND, "description": words, "workdir": folder});
            (Reply::call("bash", input), Some("workdir"))
        }
        _ => (Reply::shell(COMMAND), None),
    }
}

/// The inputs of the permission requests that name this word.
fn inputs<'r>(requests: &'r [&'r Value], word: &str) -> Vec<&'r Value> {
    let inputs = requests.iter().map(|request| &request["input"]);
    inputs.filter(|input| input.to_string().contains(word)).collect()
}

async fn a_command_is_requested_as_it_would_run(agent: &'static str, program: PathBuf) -> Outcome {
    let script = |work: &Path| {
        let (call, _) = command_in(agent, &work.join("sub"));
        Script::new().reply(call).reply(Reply::text("Done.")).any_stream()
    };
    let home = Home::scripted(agent, program, script)?;
    let folder = home.work().join("sub");
    std::fs::create_dir(&folder).map_err(|error| error.to_string())?;
    let report = home.run(&home.request(Mode::Ask)).await?;
    report.lawful()?;
    let requests = report.of("permission_requested");
    let inputs = inputs(&requests, "touch made");
    expect(!inputs.is_empty(), "no request contains the command", &report)?;
    let folder_name = command_in(agent, &folder).1;
    for input in inputs {
        // Codex states the command with its shell around it, in quotes.
        let quoted = format!(" -lc \"{}\"", COMMAND.replace('\\', "\\\\"));
        let command = input["command"].as_str().unwrap_or_default();
        let is_complete = command == COMMAND || (agent == "codex" && command.ends_with(&quoted));
        expect(is_complete, &format!("the command is not complete: {input}"), &report)?;
        if let Some(name) = folder_name {
            let is_named = input[name].as_str().is_some_and(|it| Path::new(it) == folder);
            expect(is_named, &format!("the folder is not named: {input}"), &report)?;
        }
    }
    let place = if folder_name.is_some() { folder } else { home.work() };
    expect(place.join("a\u{202e}b").exists(), "the command ran in another folder", &report)
}

async fn a_write_is_requested_with_its_content(agent: &'static str, program: PathBuf) -> Outcome {
    let script = |work: &Path| Script::new().reply(write(&work.join("made.txt")));
    let script = |work: &Path| script(work).reply(Reply::text("Done.")).any_stream();
    let home = Home::scripted(agent, program, script)?;
    let report = home.run(&home.request(Mode::Ask)).await?;
    report.lawful()?;
    let requests = report.of("permission_requested");
    let inputs = inputs(&requests, "made.txt");
    expect(!inputs.is_empty(), "no request names the file", &report)?;
    for input in inputs {
        expect(input.to_string().contains("new"), &format!("no content: {input}"), &report)?;
    }
    Ok(())
}
