//! Writes as data what the protocol has no chunk for.
//!
//! The data of such a part are the payload of our own event, as the dialect `events` writes it.

use super::encode::UiMessageEncoder;
use crate::dialect::ai_parts::{Facts, harmless_json, is_redundant};
use crate::dialect::{Output, sse};
use crate::event::{Block, Data, Event};
use crate::json::read;
use crate::json::write::{self, Object};
use crate::json::{Json, Text, record};

/// How long a part of data lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lives {
    /// It is told to who watches, and is no part of the message.
    Transient,
    /// It is a part of the message.
    Kept,
    /// It is a part of the message, and the next one with its id takes its place.
    InPlace,
}

impl UiMessageEncoder {
    /// Writes an event that is neither said nor done by the model.
    pub(super) fn other(&mut self, event: &Event<'_>, out: &mut Output) {
        match &event.data {
            // What a sub-agent failed of is not what ends the turn.
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
            Some((kind, lives)) => {
                self.start(out);
                data_part(kind, lives, event, out);
            }
            None => unsayable(&event.data, out),
        }
    }

    /// Tells the errors that did not end the turn, once it is over.
    pub(super) fn other_errors(&mut self, told: Option<&Text<'_>>, out: &mut Output) {
        for error in self.errors.take_unreported(told) {
            error_part(&error, out);
        }
    }

    /// Tells the errors that did not end the turn, since the agent goes on.
    pub(super) fn outlived_errors(&mut self, out: &mut Output) {
        for error in self.errors.take_survived() {
            error_part(&error, out);
        }
    }

    /// What is known of the session, and is of use only now.
    pub(super) fn session_facts(&mut self, event: &Event<'_>, out: &mut Output) {
        let news = match &event.data {
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
        if news {
            if let Data::SessionUpdated(session) = &event.data
                && session.relay.as_ref().is_some_and(|relay| relay.token.reveal().is_some())
            {
                out.lost("token of a relay");
            }
            data_part("data-session", Lives::Transient, event, out);
        }
    }
}

/// The part that tells an event, and how long it lives.
fn part_for(data: &Data<'_>) -> Option<(&'static str, Lives)> {
    use Lives::{InPlace, Kept, Transient};
    Some(match data {
        Data::PlanUpdated(_) => ("data-plan", InPlace),
        // What a call changed belongs to that call.
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

fn data_part(kind: &str, lives: Lives, event: &Event<'_>, out: &mut Output) {
    let Some(data) = payload(event, out) else { return };
    sse::event(out, kind, |chunk| {
        if lives == Lives::InPlace {
            place(chunk, event.parent.as_ref());
        }
        harmless_json(chunk, "data", &data);
        if lives == Lives::Transient {
            chunk.flag("transient", true);
        }
    });
}

/// The id by which one plan takes the place of the one before: every agent has its own.
fn place(chunk: &mut Object<'_>, parent: Option<&Text<'_>>) {
    let out = chunk.name("id");
    out.extend_from_slice(b"\"plan");
    if let Some(parent) = parent {
        out.push(b'-');
        write::text_body(out, parent);
    }
    out.push(b'"');
}

/// The event as our own dialect tells it, without its place in the stream.
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
    /// Where its bytes are, where that is told apart.
    struct PictureSource<'a> {
        data: text "data",
        media_type: text "media_type" | "mimeType",
        url: text "url" | "uri",
    }
}

/// Writes a picture as a file whose address holds all of it, or says where it is.
pub(super) fn picture(block: &Block<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
    let picture = block.content.as_ref().and_then(read::record_of::<Picture<'_>>);
    let picture = picture.unwrap_or_default();
    let source = picture.source.unwrap_or_default();
    let (data, url) = (picture.data.or(source.data), picture.url.or(source.url));
    let media_type = picture.media_type.or(source.media_type).unwrap_or(Text::plain("image/png"));
    if data.is_none() && url.is_none() {
        out.lost("picture");
        return;
    }
    sse::event(out, "file", |chunk| {
        match (&data, &url) {
            (Some(data), _) => data_address(chunk.name("url"), &media_type, data),
            (None, url) => {
                chunk.text_if("url", url.as_ref());
            }
        }
        chunk.text("mediaType", &media_type);
        Facts { parent, ..Facts::default() }.write(chunk);
    });
}

fn data_address(out: &mut write::Bytes, media_type: &Text<'_>, data: &Text<'_>) {
    out.extend_from_slice(b"\"data:");
    write::text_body(out, media_type);
    out.extend_from_slice(b";base64,");
    write::text_body(out, data);
    out.push(b'"');
}

/// Counts what is not told at all; what only frames other events has nothing to lose.
fn unsayable(data: &Data<'_>, out: &mut Output) {
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
