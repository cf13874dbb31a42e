//! What the files of a repository make an agent do unasked.

use std::path::{Path, PathBuf};
use std::pin::Pin;

use fake_model::{Reply, Script};
use interlingua_agents::Request;
use interlingua_agents::permission::Mode;

use crate::changing::write;
use crate::home::{Home, exists};
use crate::situations::{Outcome, add_settings, expect};

type Situation = fn(&'static str, PathBuf) -> Pin<Box<dyn Future<Output = Outcome>>>;

macro_rules! situations {
    ($($name:ident),+ $(,)?) => {
        pub(crate) const REPOSITORY: &[(&str, Situation)] =
            &[$((stringify!($name), |agent, program| Box::pin($name(agent, program)))),+];
    };
}

situations![programs_that_start_unasked];

/// Files that start programs, for all agents. Each program makes a file.
const FILES: &[(&str, &str)] = &[
    (
        ".mcp.json",
        r#"{"mcpServers":{"a":{"type":"local","command":"touch","args":["WORK/made-1"],"tools":["*"]}}}"#,
    ),
    (".vscode/mcp.json", r#"{"servers":{"a":{"command":"touch","args":["WORK/made-2"]}}}"#),
    (
        ".github/hooks/all.json",
        r#"{"version":1,"hooks":{"sessionStart":[{"type":"command","bash":"touch WORK/made-3"}]}}"#,
    ),
    (
        ".claude/settings.json",
        r#"{"apiKeyHelper":"touch WORK/made-10; echo key","enableAllProjectMcpServers":true,"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"touch WORK/made-4"}]}]}}"#,
    ),
    (".codex/config.toml", "[mcp_servers.a]\ncommand=\"touch\"\nargs=[\"WORK/made-5\"]\n"),
    (
        ".gemini/settings.json",
        r#"{"mcpServers":{"a":{"command":"touch","args":["WORK/made-6"]}},"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"touch WORK/made-6"}]}]},"tools":{"discoveryCommand":"touch WORK/made-6"}}"#,
    ),
    (
        ".qwen/settings.json",
        r#"{"mcpServers":{"a":{"command":"touch","args":["WORK/made-7"]}},"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"touch WORK/made-7"}]}]},"tools":{"discoveryCommand":"touch WORK/made-12"}}"#,
    ),
    (
        "opencode.json",
        r#"{"mcp":{"a":{"type":"local","command":["touch","WORK/made-8"]}},"formatter":{"a":{"command":["touch","WORK/made-11"],"extensions":[".txt"]}}}"#,
    ),
    (
        ".opencode/plugin/a.js",
        "import fs from 'fs';\nexport const A = async () => (fs.writeFileSync('WORK/made-9', ''), {});\n",
    ),
];

/// The files that the warning about an agent names.
fn named(agent: &str) -> &'static [&'static str] {
    match agent {
        "claude" => &[".claude/settings.json: apiKeyHelper, enableAllProjectMcpServers, hooks"],
        "copilot" => &[".mcp.json: mcpServers"],
        "gemini" => &[".gemini/settings.json: hooks, mcpServers, tools"],
        "opencode" => &["opencode.json: formatter, mcp", ".opencode/plugin"],
        "qwen" => &[".mcp.json: mcpServers", ".qwen/settings.json: hooks, mcpServers, tools"],
        _ => &[],
    }
}

/// The programs that the agent starts in a folder that the user trusts. Without any, the files would
/// prove nothing. Codex never trusts the folder, and Gemini only where the user does so in Gemini.
fn started(agent: &str) -> &'static [u32] {
    match agent {
        "claude" => &[4, 10],
        "copilot" => &[1],
        "opencode" => &[8, 9, 11],
        "qwen" => &[7],
        _ => &[],
    }
}

/// No program of a repository is started, also not by an edit that is allowed, and the user learns
/// which files the agent ignores. A user who trusts the folder is not warned.
async fn programs_that_start_unasked(agent: &'static str, program: PathBuf) -> Outcome {
    for trusts_folder in [false, true] {
        let script = |work: &Path| Script::new().reply(write(&work.join("edited.txt")));
        let script = |work: &Path| script(work).reply(Reply::text("Done.")).repeat_last();
        let home = Home::scripted(agent, program.clone(), |work| script(work).any_stream())?;
        home.be_repository()?;
        let work = home.work().display().to_string();
        for (path, text) in FILES {
            let text = text.replace("WORK", &work);
            add_settings(&home.work().join(path), &text).map_err(|error| error.to_string())?;
        }
        let mut request = Request { trusts_folder, ..home.request(Mode::AcceptEdits) };
        // A user who trusts the folder in Gemini has decided that it uses its settings.
        request.environment.retain(|(name, _)| name != "GEMINI_CLI_TRUST_WORKSPACE");
        let report = home.run(&request).await?;
        report.lawful()?;
        expect(exists(&home.work().join("edited.txt")), "there was no edit", &report)?;
        let warnings = report.of("notice").into_iter().filter_map(|notice| notice["text"].as_str());
        let warnings: Vec<_> = warnings.filter(|text| text.contains("without asking")).collect();
        let named = if trusts_folder { &[] } else { named(agent) };
        let warned = warnings.len() == usize::from(!named.is_empty())
            && named.iter().all(|file| warnings[0].contains(file));
        expect(warned, &format!("the warnings are {warnings:?}"), &report)?;
        let is_made = |number: &u32| exists(&home.work().join(format!("made-{number}")));
        let made: Vec<_> = (1..13).filter(is_made).collect();
        let missing = started(agent).iter().any(|number| !made.contains(number));
        let holds = if trusts_folder { !missing } else { made.is_empty() };
        expect(holds, &format!("trusted: {trusts_folder}, started: {made:?}"), &report)?;
    }
    Ok(())
}
