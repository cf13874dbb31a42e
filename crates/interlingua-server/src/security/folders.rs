//! Folders in which agents may work.

use std::path::{Component, Path, PathBuf};

use crate::error::ApiError;

/// Resolves the folder that a caller named. Links are followed before it is compared, and a path
/// with `..` is rejected whatever it leads to.
pub(crate) async fn resolve(
    wanted: Option<&str>,
    allowed: &[PathBuf],
) -> Result<Option<String>, ApiError> {
    let Some(first) = allowed.first() else {
        return match wanted {
            None => Ok(None),
            Some(_) => Err(outside()),
        };
    };
    let wanted = wanted.map_or_else(|| first.clone(), PathBuf::from);
    if !is_plain(&wanted) {
        let message = "`cwd` is an absolute path without `..`";
        return Err(ApiError::bad_request("invalid_folder", message));
    }
    let allowed = allowed.to_vec();
    let resolved = tokio::task::spawn_blocking(move || inside(&wanted, &allowed)).await;
    resolved.map_err(|problem| ApiError::internal("resolving a folder", &problem))?.map(Some)
}

/// Checks the folder of a stored session. Where a session without one has worked is not known, and the
/// first folder may be another one.
pub(super) fn check(folder: Option<&str>, allowed: &[PathBuf]) -> Result<(), ApiError> {
    match (folder.map(Path::new), allowed) {
        (None, []) => Ok(()),
        (None, _) => Err(ApiError::forbidden(
            "folder_unknown",
            "the folder of this session is not known: close it, and continue it with a new one that names `cwd`",
        )),
        (Some(folder), _) if is_plain(folder) => inside(folder, allowed).map(drop),
        // The caller has sent no folder that could be malformed.
        (Some(_), _) => Err(outside()),
    }
}

fn is_plain(folder: &Path) -> bool {
    folder.is_absolute() && !folder.components().any(|part| matches!(part, Component::ParentDir))
}

fn inside(wanted: &Path, allowed: &[PathBuf]) -> Result<String, ApiError> {
    // Whether a folder outside exists is not revealed.
    let folder = wanted.canonicalize().ok().filter(|folder| folder.is_dir()).ok_or_else(outside)?;
    let mut resolved = allowed.iter().filter_map(|allowed| allowed.canonicalize().ok());
    if !resolved.any(|allowed| folder.starts_with(allowed)) {
        return Err(outside());
    }
    let text = folder.into_os_string().into_string();
    text.map_err(|_| ApiError::bad_request("invalid_folder", "the path of the folder is not UTF-8"))
}

fn outside() -> ApiError {
    ApiError::forbidden(
        "folder_not_allowed",
        "this folder does not exist or is not allowed: name one that the server permits",
    )
}
