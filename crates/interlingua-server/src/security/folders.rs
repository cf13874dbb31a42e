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
    let is_plain = wanted.is_absolute()
        && !wanted.components().any(|part| matches!(part, Component::ParentDir));
    if !is_plain {
        let message = "`cwd` is an absolute path without `..`";
        return Err(ApiError::bad_request("invalid_folder", message));
    }
    let allowed = allowed.to_vec();
    let resolved = tokio::task::spawn_blocking(move || inside(&wanted, &allowed)).await;
    resolved.map_err(|problem| ApiError::internal("resolving a folder", &problem))?.map(Some)
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

pub(super) fn outside() -> ApiError {
    ApiError::forbidden(
        "folder_not_allowed",
        "this folder does not exist or is not allowed: name one that the server permits",
    )
}
