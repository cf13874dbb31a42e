//! Files that an agent leaves in `./artifacts/` of its working folder: how they are announced, and served.
//!
//! Nothing that is opened below the working folder follows a link, so that no file outside of it is served.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

use std::convert::Infallible;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use interlingua_sessions::{Filter, SessionRecord};
use serde_json::{Value, json};

use super::problem::Problem;
use super::{Enabled, sandbox};
use crate::app::App;
use crate::error::ApiError;
use crate::security::Access;
use crate::stream::query_pairs;

#[cfg(not(unix))]
use other as system;
#[cfg(unix)]
use unix as system;

/// The folder below the working folder.
const ARTIFACTS: &str = "artifacts";

/// The most files that are announced, and how deep folders may be.
const MOST: usize = 1000;
const DEEPEST: usize = 16;

/// How many bytes of a file are read at a time.
const CHUNK: usize = 64 * 1024;

/// The records that announce the files of a working folder, in the order of their paths.
pub(super) async fn artifacts(folder: &Path) -> Vec<Value> {
    let folder = folder.to_owned();
    let listed = tokio::task::spawn_blocking(move || system::list(&folder, MOST, DEEPEST)).await;
    let mut files = listed.unwrap_or_default();
    files.sort();
    let record = |(names, size): (Vec<String>, u64)| {
        let label = names.last().cloned().unwrap_or_default();
        json!({
            "type": "artifact", "path": format!("./{}", names.join("/")), "size_bytes": size,
            "mime_type": media_type(&label), "label": label,
        })
    };
    files.into_iter().map(record).collect()
}

/// Serves a file of a session.
pub(super) async fn serve(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    access.require_many_sessions()?;
    let enabled = Enabled::of(&app)?;
    let pairs = query_pairs(query.as_deref().unwrap_or_default())?;
    let named = |name: &str| {
        let found = pairs.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    };
    let path = named("path").ok_or_else(|| Problem::invalid("`path` is missing."))?;
    let names = names(path).ok_or_else(|| {
        Problem::invalid(
            "`path` begins with `./artifacts/` and has no `..`: send one of an artifact.",
        )
    })?;
    let none = || Problem::not_found("There is no such session, or it has expired.");
    let record = match (named("chat_id"), named("session_id")) {
        (Some(chat), _) => of_chat(&app, &access, chat).await?,
        (None, Some(id)) => app.session(&access, id).await.ok(),
        (None, None) => return Err(Problem::invalid("`chat_id` or `session_id` is missing.")),
    };
    let record = record.ok_or_else(none)?;
    let (_, folder) = sandbox::of(enabled.folder, &record).ok_or_else(none)?;
    app.touch(&record).await;
    let label = names.last().cloned().unwrap_or_default();
    let opened = tokio::task::spawn_blocking(move || system::open(&folder, &names)).await;
    let opened = opened.map_err(|problem| ApiError::internal("opening a file", &problem))?;
    let (file, size) = opened.map_err(|_| Problem::not_found("There is no such file."))?;
    Ok(response(file, size, &label, named("download") == Some("1")))
}

/// The session of a chat.
async fn of_chat(
    app: &App,
    access: &Access,
    chat: &str,
) -> Result<Option<SessionRecord>, ApiError> {
    let owner = access.owner().map(str::to_owned);
    let records = app.store().list(&Filter { owner, ..Filter::default() }).await?;
    let is_own = |record: &SessionRecord| record.owner.as_deref() == access.owner();
    let mut own = records.into_iter().filter(is_own);
    Ok(own.find(|record| sandbox::is_of_chat(record, chat)))
}

/// The names of a path below the working folder, if it is one of an artifact.
fn names(path: &str) -> Option<Vec<String>> {
    let rest = path.strip_prefix("./artifacts/")?;
    // Elsewhere, they are characters like any other, and files with them are announced.
    let is_special = |name: &str| cfg!(windows) && name.contains(['\\', ':']);
    let is_plain = |name: &str| {
        !matches!(name, "" | "." | "..")
            && !name.contains('\0')
            && !is_special(name)
            && name.len() <= 255
    };
    let names: Vec<_> = rest.split('/').collect();
    if names.len() > DEEPEST || !names.iter().all(|name| is_plain(name)) {
        return None;
    }
    Some(std::iter::once(ARTIFACTS).chain(names).map(str::to_owned).collect())
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, end)| end) {
        Some("md") => "text/markdown; charset=utf-8",
        Some("json") => "application/json; charset=utf-8",
        Some("csv") => "text/csv; charset=utf-8",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn response(file: File, size: u64, label: &str, is_download: bool) -> Response {
    // What is appended meanwhile is not served, so that the length stays true.
    let chunks = stream::unfold((file, size), |(file, left)| async move {
        let (bytes, file) = tokio::task::spawn_blocking(move || read(file, left)).await.ok()?;
        let left = left.checked_sub(bytes.len() as u64).filter(|_| !bytes.is_empty())?;
        Some((Ok::<_, Infallible>(bytes), (file, left)))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type(label)));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(size));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    let is_plain = |it: char| it == ' ' || (it.is_ascii_graphic() && !matches!(it, '"' | '\\'));
    let name: String = label.chars().map(|it| if is_plain(it) { it } else { '_' }).collect();
    let how = if is_download { "attachment" } else { "inline" };
    if let Ok(value) = HeaderValue::try_from(format!("{how}; filename=\"{name}\"")) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    response
}

/// Reads the next bytes of a file.
fn read(mut file: File, left: u64) -> (Bytes, File) {
    let mut bytes = Vec::new();
    let limit = left.min(CHUNK as u64);
    if let Err(problem) = (&mut file).take(limit).read_to_end(&mut bytes) {
        tracing::warn!(%problem, "a file was not read to its end");
        bytes.clear();
    }
    (bytes.into(), file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_into_the_folder_of_artifacts() {
        let path = names("./artifacts/a/b c.md").unwrap();
        assert_eq!(path, ["artifacts", "a", "b c.md"]);
        for path in [
            "",
            "./artifacts/",
            "artifacts/a",
            "/etc/passwd",
            "./artifacts/../a",
            "./artifacts/a/../b",
            "./artifacts//a",
            "./artifacts/./a",
            "./artifacts/a\0",
            "./artifactsb/a",
        ] {
            assert_eq!(names(path), None, "{path:?}");
        }
        // They separate names on Windows, or name a stream of a file there.
        for path in ["./artifacts/a\\..\\b", "./artifacts/12:30.md"] {
            assert_eq!(names(path).is_some(), cfg!(not(windows)), "{path:?}");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn links_and_pipes_are_no_artifacts() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        assert_eq!(artifacts(folder.path()).await, Vec::<Value>::new());
        let artifacts_folder = folder.path().join("artifacts");
        std::fs::create_dir_all(artifacts_folder.join("deep")).unwrap();
        std::fs::write(artifacts_folder.join("deep/report.md"), "# R").unwrap();
        std::fs::write(artifacts_folder.join("b.bin"), "12345").unwrap();
        symlink(outside.path().join("secret"), artifacts_folder.join("link")).unwrap();
        symlink(outside.path(), artifacts_folder.join("folder")).unwrap();
        let announced = artifacts(folder.path()).await;
        let report = json!({
            "type": "artifact", "path": "./artifacts/deep/report.md", "size_bytes": 3,
            "mime_type": "text/markdown; charset=utf-8", "label": "report.md",
        });
        assert_eq!((announced.len(), &announced[1]), (2, &report));
        let open = |path: &str| system::open(folder.path(), &names(path).unwrap()).is_ok();
        assert!(open("./artifacts/deep/report.md"));
        for path in ["./artifacts/link", "./artifacts/folder/secret", "./artifacts/deep"] {
            assert!(!open(path), "{path}");
        }
        // The folder itself may be a link, too.
        std::fs::remove_dir_all(&artifacts_folder).unwrap();
        symlink(outside.path(), &artifacts_folder).unwrap();
        assert!(!open("./artifacts/secret"));
        assert_eq!(artifacts(folder.path()).await, Vec::<Value>::new());
    }
}
