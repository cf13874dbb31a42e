//! What a shell completes, with the script that `completions` prints.

use std::process::Command;

use crate::support::run;

/// What bash offers for these words, the last of which is incomplete.
fn offered(words: &[&str]) -> Vec<String> {
    let script = run(&["completions", "bash"], b"").stdout;
    let last = (words.len() - 1).to_string();
    // As bash calls it: the command, the word to complete, and the word before it.
    let call = r#"eval "$1"; COMP_CWORD=$2; shift 2; COMP_WORDS=("$@")
        _interlingua interlingua "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let mut bash = Command::new("bash");
    let output = bash.args(["-c", call, "bash", &script, &last]).args(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let offered = String::from_utf8(output.stdout).unwrap();
    offered.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn agents_are_completed() {
    assert_eq!(offered(&["interlingua", "run", "co"]), ["codex", "copilot"]);
    assert_eq!(offered(&["interlingua", "chat", "ge"]), ["gemini", "gemini-api"]);
    assert_eq!(offered(&["interlingua", "run", "--verbose", "cl"]), ["claude"]);
}

#[test]
fn dialects_modes_and_isolation_are_completed() {
    let dialects = offered(&["interlingua", "run", "codex", "--to", "ai-"]);
    assert!(dialects.contains(&"ai-sdk".to_owned()), "{dialects:?}");
    let dialects = offered(&["interlingua", "translate", "--from", "codex"]);
    assert_eq!(dialects, ["codex", "codex-app-server"]);
    assert!(offered(&["interlingua", "check", "--as", "cla"]).contains(&"claude".to_owned()));
    assert_eq!(offered(&["interlingua", "dialects", "goo"]), ["goose"]);
    let mode = ["interlingua", "chat", "codex", "--permission-mode", "a"];
    assert_eq!(offered(&mode), ["accept-edits", "auto"]);
    assert_eq!(
        offered(&["interlingua", "run", "codex", "--isolation", "n"]),
        ["namespace", "none"]
    );
}

/// If nothing is offered, bash completes files itself, with these options.
#[test]
fn the_description_of_an_agent_is_completed_as_a_path() {
    assert_eq!(offered(&["interlingua", "run", "./my-agent"]), [""; 0]);
    let bash = run(&["completions", "bash"], b"").stdout;
    let registered = bash.lines().filter(|line| line.trim_start().starts_with("complete "));
    for line in registered {
        assert!(line.contains("-o bashdefault -o default interlingua"), "{line}");
    }
    let zsh = run(&["completions", "zsh"], b"").stdout;
    assert_eq!(zsh.matches(":_interlingua__agent' \\\n").count(), 2, "`run` and `chat`: {zsh}");
    let function = zsh.find("_interlingua__agent() {").unwrap();
    assert!(function < zsh.find("compdef _interlingua interlingua").unwrap());
    assert!(zsh.contains("agents=('claude:Claude Code' 'codex:Codex' "), "{zsh}");
    // Model APIs are agents, too.
    assert!(zsh.contains(" 'openai-api:"), "{zsh}");
    let fish = run(&["completions", "fish"], b"").stdout;
    let codex = "-n \"__fish_interlingua_using_subcommand chat\" -a \"codex\" -d 'Codex'\n";
    assert!(fish.contains(codex), "{fish}");
}
