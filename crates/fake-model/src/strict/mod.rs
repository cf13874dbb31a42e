//! What a strict script finds: rules that the real APIs enforce, and that an agent of our own can
//! keep, but that published agents break or need not know.
//!
//! One module holds the rules of each protocol for a request alone. [`Threads`] compares a request
//! with the earlier ones of its conversation, and with the answers that they got.

mod chat;
mod echo;
mod gemini;
mod history;
mod messages;
mod responses;
mod threads;

use crate::check::{Breach, Breaches};
use crate::protocol::Protocol;
use crate::record::Request;

pub(crate) use threads::{SentAnswer, Threads};

/// The newest version of Anthropic's API, and the one that it replaces.
const VERSION: &str = "2026-10-21";
const OLD_VERSION: &str = "2023-06-01";

/// Checks the version of the API. Only Anthropic requires a header for it.
pub(crate) fn version(protocol: Protocol, request: &Request, strict: bool) -> Breaches {
    if protocol != Protocol::Messages {
        return Vec::new();
    }
    let detail = match request.header("anthropic-version") {
        Some(VERSION) => return Vec::new(),
        Some(OLD_VERSION) if !strict => return Vec::new(),
        Some(version) => format!("anthropic-version is {version:?}, not {VERSION}"),
        None => "there is no header anthropic-version".to_owned(),
    };
    vec![(Breach::VersionWrong, detail)]
}

/// Checks the rules of a protocol for a request alone.
pub(crate) fn rules(protocol: Protocol, request: &Request) -> Breaches {
    let body = &request.body;
    match protocol {
        Protocol::Responses => responses::rules(body),
        Protocol::Chat => chat::rules(body),
        Protocol::Messages => messages::rules(request),
        Protocol::Gemini => gemini::rules(body),
    }
}

/// A breach by a field.
fn field(detail: impl Into<String>) -> (Breach, String) {
    (Breach::FieldRefused, detail.into())
}
