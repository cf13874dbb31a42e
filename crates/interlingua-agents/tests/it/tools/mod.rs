//! The tools of a model API, from a call to its output.

#[cfg(target_os = "linux")]
mod background;
#[cfg(target_os = "linux")]
mod bash;
mod edits;
#[cfg(unix)]
mod escapes;
mod fetch;
mod inputs;
mod reading;
#[cfg(target_os = "linux")]
mod sandbox;
mod searching;

use std::path::{Path, PathBuf};

use interlingua::event::ToolStatus;
use interlingua_agents::tool::{Call, Output, Settings, Toolbox};
use serde_json::Value;

/// A folder, and tools that work in it.
struct Bench {
    folder: tempfile::TempDir,
    tools: Toolbox,
}

impl Bench {
    fn new() -> Self {
        Self::with(|_| {})
    }

    /// A bench with other settings.
    fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::new(folder.path());
        settings.caches.clear();
        change(&mut settings);
        Self { tools: Toolbox::new(settings).unwrap(), folder }
    }

    /// The folder, without links.
    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    fn content(&self, path: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(path)).unwrap()
    }

    async fn run(&self, name: &str, input: Value) -> Output {
        self.tools.run(&call(name, input), &mut |_| {}).await
    }

    /// Runs a call that has to succeed; returns its text.
    async fn done(&self, name: &str, input: Value) -> String {
        let output = self.run(name, input).await;
        assert_eq!(output.status, ToolStatus::Completed, "{output:?}");
        output.text()
    }

    /// Runs a call that has to fail; returns its text.
    async fn failed(&self, name: &str, input: Value) -> String {
        let output = self.run(name, input).await;
        assert_eq!(output.status, ToolStatus::Failed, "{output:?}");
        assert!(output.changes.is_empty());
        output.text()
    }
}

fn call(name: &str, input: Value) -> Call {
    Call { id: "1".to_owned(), name: name.to_owned(), input, ..Call::default() }
}

/// The names of all entries of a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The program that is the guard and the sandbox of the tests.
#[cfg(target_os = "linux")]
mod program {
    use interlingua_agents::process::Guard;
    use interlingua_agents::tool::{Sandbox, Settings};

    const PROGRAM: &str = env!("CARGO_BIN_EXE_agents-test-program");

    pub(super) fn guard() -> Guard {
        Guard { program: PROGRAM.into(), arguments: vec!["guard".into()] }
    }

    pub(super) fn sandbox() -> Sandbox {
        Sandbox { program: PROGRAM.into(), arguments: vec!["sandbox".into()] }
    }

    /// Everything that `interlingua` would use.
    pub(super) fn protect(settings: &mut Settings) {
        settings.guard = Some(guard());
        settings.sandbox = Some(sandbox());
    }
}
