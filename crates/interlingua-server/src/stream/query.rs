//! The parameters of a request for a stream.

use axum::extract::Query as Pairs;
use axum::http::{HeaderMap, Uri};
use interlingua::dialect::Dialect;

use crate::error::ApiError;
use crate::offset::Begin;
use crate::settings::Settings;

/// How a reader waits for news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Live {
    LongPoll,
    Sse,
}

#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) begin: Option<Begin>,
    pub(crate) live: Option<Live>,
    pub(crate) cursor: Option<u64>,
    pub(crate) dialect: &'static Dialect,
    pub(crate) turn: Option<u64>,
    pub(crate) partial: bool,
}

impl Query {
    /// Reads the parameters. Those that are not known are ignored.
    pub(crate) fn parse(
        query: &str,
        headers: &HeaderMap,
        settings: &Settings,
    ) -> Result<Self, ApiError> {
        let pairs = pairs(query)?;
        let named = |name: &'static str| -> Result<Option<&str>, ApiError> {
            let mut values = pairs.iter().filter(|(found, _)| found == name);
            let value = values.next().map(|(_, value)| value.as_str());
            match values.next() {
                None => Ok(value),
                Some(_) => Err(ApiError::bad_request(
                    "repeated_parameter",
                    format!("`{name}` is there more than once: send it once"),
                )),
            }
        };
        let offset = named("offset")?;
        let last_event = headers.get("last-event-id").map(|id| id.to_str().unwrap_or_default());
        let begin = last_event.or(offset).map(Begin::parse).transpose()?;
        let live = named("live")?.map(live).transpose()?;
        if live.is_some() && begin.is_none() {
            let message = "a live request needs `offset`: `-1` for the beginning, `now` for the end, or the last `Stream-Next-Offset`";
            return Err(ApiError::bad_request("missing_offset", message));
        }
        let name = named("dialect")?.unwrap_or("events");
        let dialect = settings.written_dialect(name).ok_or_else(|| {
            let message =
                "this dialect is not written: `interlingua dialects` lists those that are";
            ApiError::bad_request("unknown_dialect", message)
        })?;
        // A cursor that is not ours is ignored: it only has to differ from the next one.
        let cursor = named("cursor")?.and_then(|cursor| cursor.parse().ok());
        let turn = named("turn")?.map(turn).transpose()?;
        let partial = named("partial")?.map(flag).transpose()?.unwrap_or_default();
        Ok(Self { begin, live, cursor, dialect, turn, partial })
    }
}

/// The parameters of a query, decoded.
pub(crate) fn pairs(query: &str) -> Result<Vec<(String, String)>, ApiError> {
    let unreadable =
        || ApiError::bad_request("invalid_query", "the query cannot be read: encode it as a form");
    let uri: Uri = format!("/?{query}").parse().map_err(|_| unreadable())?;
    let Pairs(pairs) = Pairs::try_from_uri(&uri).map_err(|_| unreadable())?;
    Ok(pairs)
}

fn live(value: &str) -> Result<Live, ApiError> {
    match value {
        "long-poll" => Ok(Live::LongPoll),
        "sse" => Ok(Live::Sse),
        _ => Err(ApiError::bad_request("invalid_live", "`live` is `long-poll` or `sse`")),
    }
}

fn turn(value: &str) -> Result<u64, ApiError> {
    let turn = value.parse().ok().filter(|turn| *turn > 0);
    turn.ok_or_else(|| ApiError::bad_request("invalid_turn", "`turn` is a number from 1 on"))
}

fn flag(value: &str) -> Result<bool, ApiError> {
    value
        .parse()
        .map_err(|_| ApiError::bad_request("invalid_partial", "`partial` is `true` or `false`"))
}
