//! Recordings, and disks that are full, missing or read-only.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{Ran, ran};

const TURN: &str = r#"echo '{"type":"thread.started","thread_id":"t"}'; echo '{"type":"turn.started"}'
i=0; while [ $i -lt 300 ]; do echo "{\"type\":\"item.completed\",\"item\":{\"id\":\"$i\",\"type\":\"agent_message\",\"text\":\"$(printf %0400d $i)\"}}"; i=$((i+1)); done
echo '{"type":"turn.completed","usage":{"input_tokens":5,"cached_input_tokens":0,"output_tokens":2}}'"#;

/// A folder with the description of an agent that prints about 150 KB.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("agent.sh");
    fs::write(&script, TURN).unwrap();
    let text =
        format!("command = '/bin/sh'\narguments = ['{}']\ndialect = 'codex'", script.display());
    fs::write(folder.path().join("agent.toml"), text).unwrap();
    folder
}

fn arguments(folder: &Path, more: &[&str]) -> Vec<String> {
    let agent = folder.join("agent.toml").display().to_string();
    [&["run", &agent, "do it"], more].concat().into_iter().map(str::to_owned).collect()
}

fn run(folder: &Path, more: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_interlingua"));
    command.args(arguments(folder, more)).stdin(Stdio::null());
    ran(command.output().unwrap())
}

fn record(folder: &Path, name: &str, more: &[&str]) -> (PathBuf, Ran) {
    let path = folder.join(name);
    let ran = run(folder, &[&["--record", path.to_str().unwrap()], more].concat());
    (path, ran)
}

#[test]
fn only_its_owner_can_read_a_recording() {
    let folder = folder();
    let (path, ran) = record(folder.path(), "record", &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    for file in [path.clone(), folder.path().join("record.times.jsonl")] {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
}

#[test]
fn a_recording_is_never_written_over_a_file_unasked() {
    let folder = folder();
    for existing in ["record", "record.times.jsonl"] {
        let path = folder.path().join(existing);
        fs::write(&path, "mine").unwrap();
        let (_, ran) = record(folder.path(), "record", &[]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        assert!(ran.stderr.contains(&format!("{existing}: the file exists (--force")), "{ran:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        let (_, ran) = record(folder.path(), "record", &["--force"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        assert!(fs::read_to_string(&path).unwrap().starts_with('{'));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_file(folder.path().join("record")).unwrap();
        fs::remove_file(folder.path().join("record.times.jsonl")).unwrap();
    }
}

#[test]
fn a_recording_is_never_written_through_a_symbolic_link() {
    let folder = folder();
    let target = folder.path().join("target");
    for (name, exists) in [("record", true), ("record.times.jsonl", false)] {
        if exists {
            fs::write(&target, "mine").unwrap();
        }
        symlink(&target, folder.path().join(name)).unwrap();
        let (_, ran) = record(folder.path(), "record", &["--force"]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("symbolic link"), "{}", ran.stderr);
        let content = fs::read_to_string(&target).ok();
        assert_eq!(content, exists.then(|| "mine".to_owned()));
        fs::remove_file(folder.path().join(name)).unwrap();
        let _ = fs::remove_file(&target);
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let folder = folder();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_interlingua"));
    command.args(arguments(folder.path(), &[])).stdin(Stdio::null()).stdout(full);
    let ran = ran(command.output().unwrap());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("could not be written: No space left on device"), "{}", ran.stderr);
}

/// Runs the command where `disk` is a file system of its own, mounted with an option, and possibly
/// the temporary folder. Returns nothing if it cannot be mounted.
fn on_disk(disk: &Path, option: &str, temporary: bool, arguments: &[String]) -> Option<Ran> {
    let script = format!(
        "mount -t tmpfs -o {option} tmpfs {disk} || exit 99; exec \"$@\"",
        disk = disk.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh"]);
    command.arg(env!("CARGO_BIN_EXE_interlingua")).args(arguments);
    command.envs(temporary.then_some(("TMPDIR", disk)));
    let ran = ran(command.stdin(Stdio::null()).output().ok()?);
    let mounted = ran.code != Some(99) && !ran.stderr.contains("unshare failed");
    mounted.then_some(ran)
}

fn skipped() {
    use std::io::Write;
    let mut shown = std::io::stderr();
    writeln!(shown, "skipped with a small disk: a user cannot mount one here").unwrap();
}

#[test]
fn a_recording_that_cannot_be_written_is_reported() {
    let folder = folder();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let record = disk.join("record").display().to_string();
    let arguments = arguments(folder.path(), &["--record", &record]);
    let Some(ran) = on_disk(&disk, "size=8k", false, &arguments) else {
        return skipped();
    };
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let words = "the recording is incomplete";
    assert!(ran.stderr.contains(words) && ran.stderr.contains("No space left"), "{}", ran.stderr);
    assert!(ran.stdout.contains("\"outcome\":\"completed\""), "the run itself is complete");
}

#[test]
fn a_temporary_folder_that_cannot_be_used_is_named() {
    let folder = folder();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let arguments = arguments(folder.path(), &[]);
    let named = format!("the temporary folder {} cannot be used", disk.display());
    let missing = Command::new(env!("CARGO_BIN_EXE_interlingua"))
        .args(&arguments)
        .env("TMPDIR", disk.join("missing"))
        .stdin(Stdio::null())
        .output();
    let missing = ran(missing.unwrap());
    assert_eq!(missing.code, Some(2), "{}", missing.stderr);
    assert!(missing.stderr.contains("disk/missing cannot be used"), "{}", missing.stderr);
    let Some(read_only) = on_disk(&disk, "ro", true, &arguments) else { return skipped() };
    assert_eq!(read_only.code, Some(2), "{}", read_only.stderr);
    assert!(read_only.stderr.contains(&named), "{}", read_only.stderr);
}

#[test]
fn a_temporary_folder_that_becomes_full_is_named() {
    let folder = folder();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let arguments = arguments(folder.path(), &[]);
    let Some(full) = on_disk(&disk, "size=16k", true, &arguments) else { return skipped() };
    assert_eq!(full.code, Some(1), "{}", full.stderr);
    let named = format!("the temporary folder {} is full", disk.display());
    let errors: Vec<_> =
        full.stdout.lines().filter(|line| line.contains("\"type\":\"error\"")).collect();
    assert!(errors.iter().any(|error| error.contains(&named)), "{errors:?}");
}

#[test]
fn a_variable_can_be_passed_without_its_value() {
    let folder = folder();
    fs::write(folder.path().join("agent.sh"), "echo \"[$SECRET]\" >&2; exit 1").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_interlingua"));
    command.args(arguments(folder.path(), &["--env", "SECRET"])).env("SECRET", "hunter2");
    let ran = ran(command.stdin(Stdio::null()).output().unwrap());
    assert!(ran.stdout.contains("[hunter2]"), "{}", ran.stdout);
}
