//! The working folders of sessions. Each has a name below a folder of its owner, and never a path.

use std::io;
use std::path::{Path, PathBuf};

use interlingua_sessions::SessionRecord;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::problem::Problem;
use super::request::is_sandbox;
use crate::error::ApiError;

/// The name under which the metadata of a session names its sandbox.
const METADATA: &str = "agentApi";

/// A digest as hexadecimal digits, which is different for different words and does not reveal them.
pub(super) fn digest(words: &[&str]) -> String {
    let mut hash = Sha256::new();
    for word in words {
        hash.update((word.len() as u64).to_le_bytes());
        hash.update(word);
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The metadata of a session in a sandbox, and of the chat that it belongs to.
pub(super) fn metadata(sandbox: &str, chat: Option<&str>) -> Map<String, Value> {
    let chat = chat.map(|chat| digest(&["chat", chat]));
    Map::from_iter([(METADATA.to_owned(), json!({ "sandbox": sandbox, "chat": chat }))])
}

/// Whether a session is that of a chat.
pub(super) fn is_of_chat(record: &SessionRecord, chat: &str) -> bool {
    let own = record.metadata.get(METADATA).and_then(|own| own.get("chat")?.as_str());
    own == Some(&*digest(&["chat", chat]))
}

/// The name of the sandbox that a session says it has.
pub(super) fn named(record: &SessionRecord) -> Option<String> {
    Some(record.metadata.get(METADATA)?.get("sandbox")?.as_str()?.to_owned())
}

/// The sandbox of a session, if it works in one. The metadata alone proves nothing, since callers of
/// other routes can write the same.
pub(super) fn of(root: &Path, record: &SessionRecord) -> Option<(String, PathBuf)> {
    let name = named(record)?;
    let folder = path(root, record.owner.as_deref(), &name)?;
    let is_there = record.folder.as_deref().map(Path::new) == Some(&folder);
    is_there.then_some((name, folder))
}

/// Where a sandbox of an owner is. The folder of all sandboxes is resolved first.
fn path(root: &Path, owner: Option<&str>, name: &str) -> Option<PathBuf> {
    let owner = match owner {
        None => "admin".to_owned(),
        Some(owner) => format!("owner-{}", digest(&[owner])),
    };
    is_sandbox(name).then_some(())?;
    Some(root.canonicalize().ok()?.join(owner).join(name))
}

/// Creates a sandbox, unless there is one. Returns its path.
pub(super) async fn create(
    root: &Path,
    owner: Option<&str>,
    name: &str,
) -> Result<String, Problem> {
    let (root, owner, name) = (root.to_owned(), owner.map(str::to_owned), name.to_owned());
    let created = tokio::task::spawn_blocking(move || {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        make(&root, true)?;
        let folder = path(&root, owner.as_deref(), &name).ok_or_else(invalid)?;
        make(folder.parent().ok_or_else(invalid)?, false)?;
        make(&folder, false)?;
        // A link could lead anywhere.
        match folder.canonicalize()? == folder && folder.is_dir() {
            true => folder.into_os_string().into_string().map_err(|_| invalid()),
            false => Err(invalid()),
        }
    });
    let failed = |problem: &dyn std::fmt::Display| {
        Problem::from(ApiError::internal("creating a working folder", problem))
    };
    created.await.map_err(|problem| failed(&problem))?.map_err(|problem| failed(&problem))
}

/// Creates a folder that only the server's user can read.
fn make(folder: &Path, with_parents: bool) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(with_parents);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        Err(problem) if problem.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created,
    }
}

#[cfg(test)]
mod tests {
    use interlingua_sessions::SessionId;

    use super::*;

    #[tokio::test]
    async fn a_sandbox_is_private_and_found_again() {
        let root = tempfile::tempdir().unwrap();
        let one = create(root.path(), Some("ann"), "sbx_1").await.unwrap();
        assert_eq!(create(root.path(), Some("ann"), "sbx_1").await.unwrap(), one);
        assert_ne!(create(root.path(), Some("bob"), "sbx_1").await.unwrap(), one);
        assert_ne!(create(root.path(), None, "sbx_1").await.unwrap(), one);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&one).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
        for name in ["", "..", "a/b", "/tmp"] {
            assert!(create(root.path(), None, name).await.is_err(), "{name}");
        }
        let id = SessionId::new("s").unwrap();
        let mut record = SessionRecord {
            owner: Some("ann".to_owned()),
            folder: Some(one.clone()),
            metadata: metadata("sbx_1", None),
            ..SessionRecord::new(id, "codex", 0)
        };
        assert_eq!(of(root.path(), &record), Some(("sbx_1".to_owned(), one.into())));
        // Written by someone else, who names the folder of another owner.
        record.owner = Some("bob".to_owned());
        assert_eq!(of(root.path(), &record), None);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_link_is_no_sandbox() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        create(root.path(), None, "sbx_1").await.unwrap();
        let link = root.path().join("admin/sbx_2");
        std::os::unix::fs::symlink(outside.path(), link).unwrap();
        assert!(create(root.path(), None, "sbx_2").await.is_err());
    }
}
