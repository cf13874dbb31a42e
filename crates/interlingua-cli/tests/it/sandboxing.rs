//! The command as the sandbox of a tool's command, which it starts itself.

use std::os::unix::fs::MetadataExt;

use crate::support::{Ran, run};

#[test]
fn the_command_becomes_the_sandboxed_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let metadata = std::fs::metadata(path).unwrap();
    let identity = format!("{}:{}", metadata.dev(), metadata.ino());
    let script = "echo ran; exit 3";
    let ran = run(&["sandbox", "--write", &identity, path, "--", "/bin/sh", "-c", script], b"");
    let expected = Ran { code: Some(3), stdout: "ran\n".to_owned(), stderr: String::new() };
    assert_eq!(ran, expected);
    let probed = run(&["sandbox", "--probe"], b"").stdout;
    if probed.trim() == "0" {
        // Without Landlock, nothing is restricted, and the tools do not use the sandbox.
        return;
    }
    let script = format!("echo x > {path}/inside; echo x > {path}-outside");
    let inside = ["sandbox", "--write", &identity, path, "--", "/bin/sh", "-c", &script];
    assert_ne!(run(&inside, b"").code, Some(0));
    assert!(folder.path().join("inside").exists());
    assert!(!std::path::Path::new(&format!("{path}-outside")).exists());
}

#[test]
fn nothing_runs_if_the_sandbox_is_not_understood() {
    let ran = run(&["sandbox", "--wirte", "/", "--", "/bin/echo", "ran"], b"");
    assert_eq!((ran.code, &*ran.stdout), (Some(2), ""));
    assert!(ran.stderr.contains("not the arguments of a sandbox"), "{}", ran.stderr);
    let ran = run(&["sandbox", "--write", "1:1", "/", "--", "/bin/echo", "ran"], b"");
    assert_eq!((ran.code, &*ran.stdout), (Some(2), ""));
    assert!(ran.stderr.contains("/ is not what it was"), "{}", ran.stderr);
    let ran = run(&["sandbox", "--", "/no/such/program"], b"");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("/no/such/program"), "{}", ran.stderr);
}
