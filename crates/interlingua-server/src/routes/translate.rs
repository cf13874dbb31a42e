//! Translates a stream from one dialect into another, while it is being sent.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, BodyDataStream};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use interlingua::dialect::{EncodeOptions, Written};
use interlingua::{Exit, Options, Source, Translator};

use super::body;
use crate::app::App;
use crate::error::{ApiError, ErrorBody};
use crate::security::Access;
use crate::stream::query_pairs;

/// A translation that is running.
struct Translation {
    translator: Option<Translator>,
    input: BodyDataStream,
    /// How many more bytes may be sent.
    left: u64,
    /// How long the next bytes may take. An agent may be silent for a while.
    patience: Duration,
}

/// Why a translation was cut off.
#[derive(Debug, thiserror::Error)]
enum CutOff {
    #[error("the input was cut off")]
    Input,
    #[error("the input is too large")]
    TooLarge,
}

/// Translates a stream. Nothing of it is stored.
#[utoipa::path(
    post,
    path = "/v1/translate",
    tag = "translation",
    params(
        ("from" = Option<String>, Query, description = "The dialect of the body; it is recognised unless named."),
        ("to" = String, Query, description = "The dialect of the response."),
        ("partial" = Option<bool>, Query, description = "Also write deltas, in dialects in which they are optional."),
    ),
    request_body(content = String, content_type = "application/octet-stream"),
    responses(
        (status = 200, description = "The records, as they are complete.", content((String = "application/x-ndjson"), (String = "text/event-stream"), (String = "text/plain"))),
        (status = 400, description = "An unknown dialect.", body = ErrorBody),
        (status = 401, description = "The token is missing or unknown.", body = ErrorBody),
        (status = 403, description = "The token is for one session.", body = ErrorBody),
        (status = 413, description = "The body is too large.", body = ErrorBody),
        (status = 429, description = "Too many requests.", body = ErrorBody),
    ),
)]
pub(crate) async fn translate(
    State(app): State<Arc<App>>,
    Extension(access): Extension<Access>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    input: Body,
) -> Result<Response, ApiError> {
    access.require_many_sessions()?;
    let limit = app.settings.limits.translate_bytes;
    body::check_length(&headers, limit)?;
    let pairs = query_pairs(query.as_deref().unwrap_or_default())?;
    let named =
        |name: &str| pairs.iter().find(|(found, _)| found == name).map(|(_, value)| &**value);
    let unknown = |problem: &dyn std::fmt::Display| {
        ApiError::bad_request("unknown_dialect", problem.to_string())
    };
    let from = match named("from") {
        Some(name) => Source::named(name).map_err(|problem| unknown(&problem))?,
        None => Source::Recognise,
    };
    let to = named("to").and_then(|name| app.settings.written_dialect(name)).ok_or_else(|| {
        unknown(
            &"`to` names no dialect that is written: `interlingua dialects` lists those that are",
        )
    })?;
    let encode =
        EncodeOptions { partial: named("partial") == Some("true"), ..EncodeOptions::default() };
    let options = Options { encode, ..Options::default() };
    let translator = Translator::new(from, to, options).map_err(|problem| unknown(&problem))?;
    let input = input.into_data_stream();
    let patience = app.settings.limits.translate_silence;
    let translation = Translation { translator: Some(translator), input, left: limit, patience };
    let output = stream::unfold(translation, |mut translation| async {
        let output = translation.next().await?;
        Some((output, translation))
    });
    let mut response = Response::new(Body::from_stream(output));
    let kind = match to.written {
        Written::Lines => "application/x-ndjson",
        Written::ServerSentEvents => "text/event-stream",
        Written::Text => "text/plain; charset=utf-8",
    };
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

impl Translation {
    /// The next records. What is cut off ends the connection, so that it does not look complete.
    async fn next(&mut self) -> Option<Result<Bytes, CutOff>> {
        loop {
            let chunk = match tokio::time::timeout(self.patience, self.input.next()).await {
                Ok(Some(Ok(chunk))) => chunk,
                Ok(Some(Err(_))) | Err(_) => {
                    self.translator = None;
                    return Some(Err(CutOff::Input));
                }
                Ok(None) => {
                    let finished = self.translator.take()?.finish(&Exit::default(), None);
                    return Some(Ok(finished.bytes.into()));
                }
            };
            let Some(left) = self.left.checked_sub(chunk.len() as u64) else {
                self.translator = None;
                return Some(Err(CutOff::TooLarge));
            };
            self.left = left;
            let written = self.translator.as_mut()?.push(&chunk, None);
            if !written.is_empty() {
                return Some(Ok(Bytes::copy_from_slice(written)));
            }
        }
    }
}
