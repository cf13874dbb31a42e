//! Encodes events without a chunk as data parts.
//!
//! The data of such a part is the payload that the event has in the dialect `events`.

use super::encode::UiMessageEncoder;
use crate::dialect::ai_parts::{Facts, harmless_json, is_redundant};
use crate::dialect::{Output, sse};
use crate::event::{Block, Data, Event};
use crate::json::read;
use crate::json::write::{self, Object};
use crate::json::{Json, Text, record};

/// How long a client keeps a data part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lifetime {
    /// It is passed to the application once, and is not part of the message.
    Transient,
    /// It is a part of the message.
    Kept,
    /// It is a part of the message, and is replaced by the next one with its id.
    Replaced,
}

impl UiMessageEncoder {
    /// Writes an event that has no chunk.
    pub(super) fn other(&mut self, event: &Event<'_>, out: &mut Output) {
        match &event.data {
            // An error of a sub-agent does not end the turn.
            Data::Error(error) if event.parent.is_none() => {
                let payload = payload(event, out);
                if payload.is_some_and(|payload| self.errors.hold(error, &payload)) {
                    return;
                }
            }
            data if is_redundant(data, event.parent.as_ref()) => return,
            _ => {}
        }
        match part_for(&event.data) {
            Some((kind, lifetime)) => {
                self.start(out);
                data_part(kind, lifetime, event, out);
            }
            None => count_losses(&event.data, out),
        }
    }

    /// Writes the errors that did not end the turn, at its end.
    pub(super) fn write_unreported_errors(&mut self, cause: Option<&Text<'_>>, out: &mut Output) {
        for error in self.errors.take_unreported(cause) {
            error_part(&error, out);
        }
    }

    /// Writes the held errors that did not end the turn, since the agent continues.
    pub(super) fn write_survived_errors(&mut self, out: &mut Output) {
        for error in self.errors.take_survived() {
            error_part(&error, out);
        }
    }

    /// Writes the facts of the session that are of interest only while the stream runs.
    pub(super) fn session_facts(&mut self, event: &Event<'_>, out: &mut Output) {
        let has_facts = match &event.data {
            Data::SessionStarted(session) => {
                session.cwd.is_some()
                    || session.permission_mode.is_some()
                    || session.tools.is_some()
            }
            Data::SessionUpdated(session) => {
                session.cwd.is_some()
                    || session.permission_mode.is_some()
                    || session.tools.is_some()
                    || session.sandbox.is_some()
                    || session.snapshot.is_some()
                    || session.relay.is_some()
            }
            _ => false,
        };
        if has_facts {
            if let Data::SessionUpdated(session) = &event.data
                && session.relay.as_ref().is_some_and(|relay| relay.token.reveal().is_some())
            {
                out.lost("tokens of relays");
            }
            data_part("data-session", Lifetime::Transient, event, out);
        }
    }
}

/// The data part of an event, and its lifetime.
fn part_for(data: &Data<'_>) -> Option<(&'static str, Lifetime)> {
    use Lifetime::{Kept, Replaced, Transient};
    Some(match data {
        Data::PlanUpdated(_) => ("data-plan", Replaced),
        // The changes of a call are part of the call.
        Data::FilesChanged(files) if files.call.is_some() => ("data-files", Transient),
        Data::FilesChanged(_) => ("data-files", Kept),
        Data::Compacted(_) => ("data-compaction", Kept),
        Data::Artifact(_) => ("data-artifact", Kept),
        Data::QuestionAsked(_) => ("data-question", Kept),
        Data::QuestionAnswered(_) => ("data-answer", Kept),
        Data::PermissionRequested(_) => ("data-permission-request", Transient),
        Data::PermissionResolved(_) => ("data-permission-decision", Transient),
        Data::ToolProgress(_) => ("data-tool-progress", Transient),
        Data::SubagentStarted(_) => ("data-subagent-start", Transient),
        Data::SubagentEnded(_) => ("data-subagent-end", Transient),
        Data::Usage(_) => ("data-usage", Transient),
        Data::Limit(_) => ("data-limit", Transient),
        Data::Retry(_) => ("data-retry", Transient),
        Data::Error(_) => ("data-error", Transient),
        Data::Notice(_) => ("data-notice", Transient),
        Data::UserMessage(_) => ("data-user-message", Transient),
        _ => return None,
    })
}

fn error_part(error: &Json<'_>, out: &mut Output) {
    sse::event(out, "data-error", |chunk| {
        harmless_json(chunk, "data", error);
        chunk.flag("transient", true);
    });
}

fn data_part(kind: &str, lifetime: Lifetime, event: &Event<'_>, out: &mut Output) {
    let Some(data) = payload(event, out) else { return };
    sse::event(out, kind, |chunk| {
        if lifetime == Lifetime::Replaced {
            plan_id(chunk, event.parent.as_ref());
        }
        harmless_json(chunk, "data", &data);
        if lifetime == Lifetime::Transient {
            chunk.flag("transient", true);
        }
    });
}

/// Writes the id by which a plan replaces the previous one. Every agent has its own.
fn plan_id(chunk: &mut Object<'_>, parent: Option<&Text<'_>>) {
    let out = chunk.name("id");
    out.extend_from_slice(b"\"plan");
    if let Some(parent) = parent {
        out.push(b'-');
        write::text_body(out, parent);
    }
    out.push(b'"');
}

/// The payload of an event, as in the dialect `events`.
fn payload(event: &Event<'_>, out: &mut Output) -> Option<Json<'static>> {
    let Ok(payload) = event.data.serialize_payload() else {
        out.lost(event.data.kind());
        return None;
    };
    Some(match &event.parent {
        None => Json::from_text(payload)?,
        parent => Json::object(|data| {
            data.text_if("parent", parent.as_ref()).fields_of(&payload);
        }),
    })
}

record! {
    /// A picture, as Claude and MCP servers write it.
    struct Picture<'a> {
        source: record<PictureSource> "source",
        data: text "data",
        media_type: text "media_type" | "mimeType",
        url: text "url" | "uri",
    }
}

record! {
    /// The data or the URL of a picture, if they are nested.
    struct PictureSource<'a> {
        data: text "data",
        media_type: text "media_type" | "mimeType",
        url: text "url" | "uri",
    }
}

/// Writes a picture as a file, with a data URL or with the URL of the picture.
pub(super) fn picture(block: &Block<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
    let picture = block.content.as_ref().and_then(read::record_of::<Picture<'_>>);
    let picture = picture.unwrap_or_default();
    let source = picture.source.unwrap_or_default();
    let (data, url) = (picture.data.or(source.data), picture.url.or(source.url));
    let media_type = picture.media_type.or(source.media_type).unwrap_or(Text::plain("image/png"));
    if data.is_none() && url.is_none() {
        out.lost("pictures");
        return;
    }
    sse::event(out, "file", |chunk| {
        match (&data, &url) {
            (Some(data), _) => data_url(chunk.name("url"), &media_type, data),
            (None, url) => {
                chunk.text_if("url", url.as_ref());
            }
        }
        chunk.text("mediaType", &media_type);
        Facts { parent, ..Facts::default() }.write(chunk);
    });
}

fn data_url(out: &mut write::Bytes, media_type: &Text<'_>, data: &Text<'_>) {
    out.extend_from_slice(b"\"data:");
    write::text_body(out, media_type);
    out.extend_from_slice(b";base64,");
    write::text_body(out, data);
    out.push(b'"');
}

/// Counts events that are not written. Events that only delimit others lose nothing.
fn count_losses(data: &Data<'_>, out: &mut Output) {
    let what = match data {
        Data::MessageStarted(_) | Data::MessageEnded(_) | Data::Interrupted(_) => return,
        Data::Native(_) => "record of the agent's own",
        Data::Unknown(_) => "unknown record",
        Data::Unparsed(_) => "unreadable line",
        Data::Log(_) => "log line",
        other => other.kind(),
    };
    out.lost(what);
}
