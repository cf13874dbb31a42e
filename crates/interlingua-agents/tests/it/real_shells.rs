//! Whatever runs more than the allowed command in a real shell was not allowed.
//!
//! Command lines are generated, judged, and run in bash and sh, in an empty folder and with a path
//! that contains only stubs and bash: `good` is allowed by a rule, `bad` is not. Each stub appends
//! its name to a log, and bash traces every command that it runs, also those of a bash that it
//! starts. Only lines that were allowed are run, with an empty environment and a timeout: a line
//! that was not allowed proves nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use interlingua::event::ToolKind;
use interlingua_agents::permission::{
    Decision, Effect, Mode, PermissionRequest, Policy, Rule, Rules, Verdict,
};
use proptest::prelude::*;
use proptest::strategy::Union;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// A folder to run lines in, the stubs, and what they log.
struct Stage {
    _root: tempfile::TempDir,
    stubs: PathBuf,
    log: PathBuf,
    trace: PathBuf,
    folder: PathBuf,
}

/// The policies whose allowed lines are run.
#[derive(Clone, Copy)]
enum Allowed {
    /// `good`, with any arguments, and nothing else.
    OnlyGood,
    /// Everything that cannot be `bad`: the mode `auto`, with a rule that denies it.
    AllButBad,
}

impl Allowed {
    fn policy(self) -> Policy {
        let (mode, pattern, effect) = match self {
            Self::OnlyGood => (Mode::Ask, "good *", Effect::Allow),
            Self::AllButBad => (Mode::Auto, "bad *", Effect::Deny),
        };
        Policy { mode, rules: Rules::new(vec![Rule::new("Bash", Some(pattern), effect).unwrap()]) }
    }
}

impl Stage {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let [stubs, folder] = ["stubs", "folder"].map(|name| root.path().join(name));
        let [log, trace] = ["log", "trace"].map(|name| root.path().join(name));
        fs::create_dir(&stubs).unwrap();
        fs::create_dir(&folder).unwrap();
        for name in ["good", "bad"] {
            let path = stubs.join(name);
            // Its own commands are not traced.
            let script = format!("#!/bin/sh +x\necho {name} >> '{}'\n", log.display());
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::os::unix::fs::symlink("/bin/bash", stubs.join("bash")).unwrap();
        Self { stubs, log, trace, folder, _root: root }
    }

    fn allows(&self, allowed: Allowed, line: &str) -> bool {
        let request = PermissionRequest {
            id: "1".to_owned(),
            tool: "Bash".to_owned(),
            kind: ToolKind::Execute,
            input: Some(serde_json::json!({ "command": line }).to_string()),
            description: None,
            call: Vec::new(),
            folder: self.folder.clone(),
            ..PermissionRequest::default()
        };
        allowed.policy().judge(&request) == Verdict::Decided(Decision::Allow)
    }

    /// Runs a line, and returns what it did that was not allowed.
    fn misdeeds(&self, allowed: Allowed, shell: &str, line: &str) -> Vec<String> {
        self.run(shell, line);
        let (logged, traced) = (self.names_in(&self.log), self.traced());
        let ran = logged.into_iter().map(|name| format!("ran {name}"));
        let traced = traced.into_iter().map(|name| format!("traced {name}"));
        let is_free = |deed: &String| match allowed {
            // `bash -c` is judged by its script, and bash traces the start of a `case`.
            Allowed::OnlyGood => {
                ["ran good", "traced good", "traced bash", "traced case"].contains(&&**deed)
            }
            Allowed::AllButBad => !deed.ends_with(" bad"),
        };
        let mut found: Vec<String> = ran.chain(traced).filter(|deed| !is_free(deed)).collect();
        for entry in fs::read_dir(&self.folder).unwrap() {
            let path = entry.unwrap().path();
            if matches!(allowed, Allowed::OnlyGood) {
                found.push(format!("wrote {}", path.display()));
            }
            remove(&path);
        }
        found
    }

    fn run(&self, shell: &str, line: &str) {
        let _ = fs::remove_file(&self.log);
        // The shell inherits the file for the traces from the one that starts it.
        let mut child = Command::new("/bin/sh")
            .args(["-c", "exec \"$1\" -c \"$2\" 9>\"$0\""])
            .args([self.trace.as_os_str(), shell.as_ref(), line.as_ref()])
            .env_clear()
            .env("PATH", &self.stubs)
            .envs([("SHELLOPTS", "xtrace"), ("BASH_XTRACEFD", "9")])
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                // A loop whose condition is always true.
                child.kill().unwrap();
                child.wait().unwrap();
                break;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    fn names_in(&self, file: &Path) -> Vec<String> {
        let text = fs::read_to_string(file).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The first word of every command that bash has traced. A word with a line end is continued on
    /// the next line, which does not begin with a plus sign.
    fn traced(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&fs::read(&self.trace).unwrap_or_default()).into_owned();
        let commands = text.lines().filter(|line| line.starts_with('+'));
        let first =
            |line: &str| line.trim_start_matches('+').split_whitespace().next().map(str::to_owned);
        commands.filter_map(first).collect()
    }
}

fn remove(path: &Path) {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.unwrap();
}

/// Runs a test on generated lines, always the same ones.
fn for_each_line(cases: u32, lines: impl Strategy<Value = String>, test: impl Fn(&str)) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(config, random);
    let tested = runner.run(&lines, |line| {
        test(&line);
        Ok(())
    });
    tested.unwrap();
}

fn one_of(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::sample::select(words).prop_map(str::to_owned)
}

/// Pieces that an attacker would put together, without any grammar.
fn fragments() -> impl Strategy<Value = String> {
    let piece = one_of(&[
        "good",
        "good",
        "good",
        "bad",
        "bad",
        " ",
        " ",
        " ",
        "\n",
        "\t",
        ";",
        "&",
        "&&",
        "||",
        "|",
        "|&",
        "(",
        ")",
        "{",
        "}",
        "{ ",
        "; }",
        "$(",
        ")",
        "`",
        "\"",
        "'",
        "\\",
        "\\\n",
        "$",
        "$'",
        "$\"",
        "${x:-",
        "}",
        "$((",
        "))",
        "((",
        "[[ ",
        " ]]",
        "#",
        " #",
        "<<E",
        "\nE\n",
        "<<'E'",
        "<<-E",
        "<<<",
        "<(",
        ">(",
        ">",
        ">>",
        "<",
        ">&",
        "2>&1",
        "&>",
        "&>/dev/null ",
        ">/dev/null",
        ">x",
        "<>",
        "x=1 ",
        "x",
        "=",
        "!",
        "! ",
        "~",
        "*",
        "?",
        "[",
        "]",
        "{a,b}",
        "if ",
        "; then ",
        "; fi",
        "while ",
        "; do ",
        "; done",
        "for i in a",
        "case x in x) ",
        ";; esac",
        "f() ",
        "function f ",
        "time ",
        "coproc ",
        "exec ",
        "eval ",
        "command ",
        "env ",
        "test ",
        "1",
        "a[",
        "E",
        "'E'",
        ",",
        "@(",
        "!(",
        "\u{a0}",
        "\r",
        "$x",
        "${x}",
        "$@",
        "$[",
        "-",
        "--",
        "{fd}>",
        "in ",
        "then",
        "do",
    ]);
    proptest::collection::vec(piece, 1..10).prop_map(|pieces| format!("good {}", pieces.concat()))
}

/// Valid lines in which each command may be the wrong one.
fn programs() -> impl Strategy<Value = String> {
    let argument = one_of(&[
        "a",
        "'b c'",
        "\"d e\"",
        "f\\ g",
        "''",
        "-h",
        "--i=j",
        "\"k'l\"",
        "'m\"n'",
        "#o",
        "p#q",
        "HEAD~1",
        "'$(bad)'",
        "'`bad`'",
        "\"\\$(bad)\"",
        "\\$x",
        "'; bad'",
        "\";bad\"",
        "\\;",
        "'\nbad\n'",
        "\\\n",
        "$(bad)",
        "`bad`",
        "\"$(bad)\"",
        "\"`bad`\"",
        "`good \"\\$(bad)\"`",
        "<(bad)",
        "$x",
        "*",
        "~",
        "{r,s}",
        "$'\\'; bad #'",
        "${x:-$(bad)}",
        "$((1))",
        "$'t'",
        "'u",
        "é",
        "if",
        "then",
        "{",
        "}",
        "!",
        "[[",
        "((",
        "in",
        "case",
        "=v",
        "w=x",
    ]);
    let redirection = one_of(&[
        "",
        "",
        "",
        "",
        " >/dev/null",
        " 2>&1",
        " 2>/dev/null",
        " >x",
        " >>x",
        " &>x",
        " >&x",
        " >|x",
        " <>x",
        " 3>x",
        " <<< a",
        " <<'E'\nbad\n$(bad)\nE\n",
        " <<E\nbad\nE\n",
        " <<E\n$(bad)\nE\n",
        " <<E\na\\\nE\ngood <<Z\nE\nbad\nZ\n",
        " {v}>/dev/null",
        " <<-E\n\tbad\n\tE\n",
        " <<\"E F\"\nbad\nE F\n",
    ]);
    let name = prop_oneof![8 => Just("good".to_owned()), 1 => one_of(&[
        "bad", "b\\ad", "'bad'", "ba\\\nd", "$(echo bad)", "good; bad", "env bad", "command bad", "eval bad", "exec bad",
        "x=1 good", "bad=1", "good() { bad; }; good", "alias good=bad\ngood", ". bad", "PATH=. good", "./bad", "! bad",
        "time bad", "coproc bad", "trap bad EXIT; good", "hash -p bad good; good", "[[ a > x ]]", "((bad))", "builtin eval bad",
    ])];
    let simple = (name, proptest::collection::vec(argument, 0..3), redirection).prop_map(
        |(name, arguments, redirection)| {
            let arguments: String =
                arguments.iter().map(|argument| format!(" {argument}")).collect();
            format!("{name}{arguments}{redirection}")
        },
    );
    simple.prop_recursive(3, 8, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        Union::new(vec![
            two.clone().prop_map(|(a, b)| format!("{a}; {b}")).boxed(),
            two.clone().prop_map(|(a, b)| format!("{a}\n{b}")).boxed(),
            two.clone().prop_map(|(a, b)| format!("{a} && {b}")).boxed(),
            two.clone().prop_map(|(a, b)| format!("{a} || {b}")).boxed(),
            two.clone().prop_map(|(a, b)| format!("{a} | {b}")).boxed(),
            two.clone().prop_map(|(a, b)| format!("{a} & {b}")).boxed(),
            two.clone().prop_map(|(a, b)| format!("if {a}; then {b}; fi")).boxed(),
            two.prop_map(|(a, b)| format!("case a in a) {a};; *) {b};; esac")).boxed(),
            inner.clone().prop_map(|a| format!("({a})")).boxed(),
            inner.clone().prop_map(|a| format!("{{ {a}; }}")).boxed(),
            inner.clone().prop_map(|a| format!("! {a}")).boxed(),
            inner.clone().prop_map(|a| format!("{a} # bad\n")).boxed(),
            inner.clone().prop_map(|a| format!("until good; do {a}; done")).boxed(),
            inner.prop_map(|a| format!("{{ {a}; }} >x")).boxed(),
        ])
    })
}

/// Lines of allowed commands, with literal words.
fn harmless_programs() -> impl Strategy<Value = String> {
    let argument =
        one_of(&["a", "'b c'", "\"d e\"", "f\\ g", "-h", "--i=j", "'$x; bad'", "\"it's\"", "p#q"]);
    let suffix = one_of(&["", "", " >/dev/null", " 2>&1", " <<'E'\nbad; $x\nE\n", " <<< a"]);
    let simple = (proptest::collection::vec(argument, 0..3), suffix).prop_map(|(words, suffix)| {
        let words: String = words.iter().map(|word| format!(" {word}")).collect();
        format!("good{words}{suffix}")
    });
    simple.prop_recursive(3, 8, 2, |inner| {
        let joined = one_of(&["; ", "\n", " && ", " || ", " | ", " & "]);
        Union::new(vec![
            // A here-document ends with a newline, after which no operator may stand; and `((` would
            // be arithmetic.
            (inner.clone(), joined, inner.clone())
                .prop_map(|(a, operator, b)| format!("( {a}\n){operator}{b}"))
                .boxed(),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| format!("if {a}\nthen {b}\nfi"))
                .boxed(),
            inner.prop_map(|a| format!("{{ {a}\n}}")).boxed(),
        ])
    })
}

/// The same lines, as scripts of `bash -c`.
fn in_bash(lines: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    lines.prop_map(|line| format!("bash -c '{}'", line.replace('\'', "'\\''")))
}

fn allowed_lines_do_nothing_else(
    allowed: Allowed,
    cases: u32,
    lines: impl Strategy<Value = String>,
) {
    let stage = Stage::new();
    let count = std::cell::Cell::new(0);
    for_each_line(cases, lines, |line| {
        if !stage.allows(allowed, line) {
            return;
        }
        count.set(count.get() + 1);
        for shell in ["/bin/bash", "/bin/sh"] {
            assert_eq!(stage.misdeeds(allowed, shell, line), [""; 0], "{shell}: {line:?}");
        }
    });
    // Otherwise, nothing was tested.
    assert!(count.get() > 50, "{} of {cases} lines were allowed", count.get());
}

#[test]
fn fragments_that_are_allowed_run_nothing_else() {
    allowed_lines_do_nothing_else(Allowed::OnlyGood, 3_000, fragments());
}

#[test]
fn programs_that_are_allowed_run_nothing_else() {
    allowed_lines_do_nothing_else(Allowed::OnlyGood, 1_200, programs());
}

#[test]
fn scripts_of_bash_that_are_allowed_run_nothing_else() {
    allowed_lines_do_nothing_else(Allowed::OnlyGood, 800, in_bash(programs()));
}

#[test]
fn fragments_that_are_not_denied_do_not_run_what_is() {
    allowed_lines_do_nothing_else(Allowed::AllButBad, 1_500, fragments());
}

#[test]
fn programs_that_are_not_denied_do_not_run_what_is() {
    allowed_lines_do_nothing_else(Allowed::AllButBad, 600, programs());
}

#[test]
fn scripts_of_bash_that_are_not_denied_do_not_run_what_is() {
    allowed_lines_do_nothing_else(Allowed::AllButBad, 400, in_bash(programs()));
}

/// Lines that were allowed and ran something else, in one shell or in both.
#[test]
fn lines_that_have_deceived_the_parser_are_not_allowed() {
    let stage = Stage::new();
    for line in [
        "((true;) ); good -- <<good; bad x\ngood",
        "((good -- <<good; bad\ngood\n) )",
        "$((1)); ((true;) )\ngood <<good; bad x\ngood",
        "good &>/dev/null bad",
        "good a &>>/dev/null 2>&1 bad",
        "&>/dev/null bad good",
        "sh -c 'good &>/dev/null bad'",
    ] {
        assert!(!stage.allows(Allowed::OnlyGood, line), "{line:?}");
        assert!(!stage.allows(Allowed::AllButBad, line), "{line:?}");
    }
    assert!(stage.allows(Allowed::AllButBad, "good a &>/dev/null; good &> /dev/null 2>&1"));
}

#[test]
fn programs_of_allowed_commands_are_allowed() {
    let stage = Stage::new();
    for_each_line(500, harmless_programs(), |line| {
        assert!(stage.allows(Allowed::OnlyGood, line), "{line:?}");
    });
}

#[test]
fn the_stage_notices_what_a_line_does() {
    let stage = Stage::new();
    for shell in ["/bin/bash", "/bin/sh"] {
        let misdeeds = |line: &str| stage.misdeeds(Allowed::OnlyGood, shell, line);
        assert_eq!(misdeeds("good; (good)"), [""; 0]);
        assert!(misdeeds("good $(bad)").contains(&"ran bad".to_owned()));
        assert!(!misdeeds("good >x").is_empty());
        let ran = stage.misdeeds(Allowed::AllButBad, shell, "x=1; bad; good >x");
        assert!(ran.contains(&"ran bad".to_owned()) && !ran.iter().any(|it| it.contains("good")));
    }
}

/// Older versions of bash cannot trace to a file of their own.
#[cfg(target_os = "linux")]
#[test]
fn the_stage_notices_what_runs_no_program() {
    let stage = Stage::new();
    let misdeeds = |line: &str| stage.misdeeds(Allowed::OnlyGood, "/bin/bash", line);
    assert_eq!(misdeeds("good; x=1"), ["traced x=1"]);
    assert_eq!(misdeeds("{ good; eval good; } 2>/dev/null"), ["traced eval"]);
    assert_eq!(misdeeds("bash -c 'good; test a'"), ["traced test"]);
    assert_eq!(misdeeds("case a in a) good 'b\nc';; esac"), [""; 0]);
}
