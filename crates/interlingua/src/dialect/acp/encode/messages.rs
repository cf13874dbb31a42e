//! Text, thoughts and pictures, replayed messages of the user, files made for the user, and the
//! plan.

use super::{AcpEncoder, OpenBlock};
use crate::dialect::Output;
use crate::event::{
    Artifact, Block, BlockKind, BlockStarted, PlanItem, PlanStatus, PlanUpdated, UserMessage,
};
use crate::json::read;
use crate::json::write::{Bytes, Object};
use crate::json::{Json, Text, record};

/// The block that was written last, if nothing was written after it.
#[derive(Debug, Clone)]
pub(super) struct LastBlock {
    kind: BlockKind,
    message: Option<Text<'static>>,
}

record! {
    /// A picture, in the form of the protocol or of a provider.
    pub(super) struct Picture<'a> {
        data: text "data",
        mime: text "mimeType" | "media_type",
        source: record<PictureSource> "source",
    }
}

record! {
    pub(super) struct PictureSource<'a> {
        data: text "data",
        mime: text "media_type",
    }
}

impl AcpEncoder {
    pub(super) fn start_block(
        &mut self,
        started: &BlockStarted<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let Some(kind) = chunk_kind(&started.kind, out) else {
            let (start, end) = (Bytes::new(), Bytes::new());
            self.open.push(OpenBlock { number: started.block, start, end });
            return;
        };
        let mut start = self.head.clone();
        start.extend_from_slice(br#"{"sessionUpdate":""#);
        start.extend_from_slice(kind.as_bytes());
        start.extend_from_slice(br#"","content":{"type":"text","text":"#);
        let mut more = Bytes::new();
        let mut fields = Object::open(&mut more);
        self.write_message_id(&mut fields, started.message.as_ref(), started.block, &started.kind);
        self.write_meta(&mut fields, parent, |_| {}, false);
        fields.close();
        // These fields follow the content in the same object.
        let mut end = Bytes::from(*b"}");
        if let Some(fields) = more.strip_prefix(b"{").filter(|fields| fields.len() > 1) {
            end.push(b',');
            end.extend_from_slice(fields);
        } else {
            end.push(b'}');
        }
        end.extend_from_slice(b"}}\n");
        self.remember_block(&started.kind, started.message.as_ref());
        self.open.push(OpenBlock { number: started.block, start, end });
    }

    fn remember_block(&mut self, kind: &BlockKind, message: Option<&Text<'_>>) {
        let message = message.cloned().map(Text::into_owned);
        self.last_block = Some(LastBlock { kind: kind.clone(), message });
    }

    /// Writes the id of the message that a chunk belongs to. A client appends a chunk to the
    /// previous one if both have the same kind and the same id, or none. A block that follows
    /// another one of its kind therefore needs an id of its own.
    fn write_message_id(
        &self,
        object: &mut Object<'_>,
        message: Option<&Text<'_>>,
        block: u64,
        kind: &BlockKind,
    ) {
        let last = self.last_block.as_ref().filter(|last| last.kind == *kind);
        match (message, last) {
            (Some(id), Some(last)) if last.message.as_ref() == Some(id) => {
                object.string("messageId", &format!("{id}-{block}"));
            }
            (Some(id), _) => {
                object.text("messageId", id);
            }
            (None, Some(_)) => {
                object.string("messageId", &format!("block-{}-{block}", self.id_tag));
            }
            (None, None) => {}
        }
    }

    pub(super) fn write_block(
        &mut self,
        block: &Block<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        if block.signature.is_some() {
            out.lost("signatures");
        }
        if block.kind == BlockKind::Image {
            self.write_picture(block.content.as_ref(), parent, out);
            return;
        }
        let Some(kind) = chunk_kind(&block.kind, out) else { return };
        if block.text.is_empty() {
            return;
        }
        let fields = |update: &mut Object<'_>| {
            update.object("content", |content| {
                content.fixed(r#""type":"text""#).text("text", &block.text);
            });
            self.write_message_id(update, block.message.as_ref(), block.block, &block.kind);
        };
        self.write_update(kind, parent, out, fields, |_| {}, false);
        self.remember_block(&block.kind, block.message.as_ref());
    }

    fn write_picture(
        &mut self,
        content: Option<&Json<'_>>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let picture = content.and_then(read::record_of::<Picture<'_>>).unwrap_or_default();
        let Some((data, mime)) = picture.parts() else {
            out.lost("pictures");
            return;
        };
        let fields = |update: &mut Object<'_>| {
            update.object("content", |content| {
                content.fixed(r#""type":"image""#).text("data", data).text("mimeType", mime);
            });
        };
        self.write_update("agent_message_chunk", parent, out, fields, |_| {}, false);
        self.last_block = None;
    }

    /// Writes a replayed message of the user. A live prompt is not written, since the client sent
    /// it and already shows it.
    pub(super) fn write_user_message(
        &mut self,
        message: &UserMessage<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        if message.text.is_empty() {
            return;
        }
        // A client would show these as messages of its user.
        if parent.is_some() {
            out.lost("prompts of sub-agents");
            return;
        }
        self.last_block = None;
        if message.injected {
            out.lost("text inserted by the agent");
            return;
        }
        if !self.replay {
            out.lost("prompts");
            return;
        }
        let fields = |update: &mut Object<'_>| {
            update.object("content", |content| {
                content.fixed(r#""type":"text""#).text("text", &message.text);
            });
        };
        self.write_update("user_message_chunk", None, out, fields, |_| {}, false);
    }

    pub(super) fn write_artifact(
        &mut self,
        artifact: &Artifact<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let path = artifact.path.to_plain();
        let name = path.rsplit('/').next().unwrap_or_default();
        let fields = |update: &mut Object<'_>| {
            update.object("content", |content| {
                content.fixed(r#""type":"resource_link""#);
                content.string("uri", &self.folder.uri(&artifact.path));
                match &artifact.label {
                    Some(label) => content.text("name", label),
                    None => content.string("name", name),
                };
                content.text_if("mimeType", artifact.media_type.as_ref());
                content.number_if("size", artifact.size);
            });
        };
        self.write_update("agent_message_chunk", parent, out, fields, |_| {}, false);
        self.last_block = None;
    }

    pub(super) fn write_plan(
        &mut self,
        plan: &PlanUpdated<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        // A session has one plan, which that of a sub-agent would replace.
        if parent.is_some() {
            out.lost("plans of sub-agents");
            return;
        }
        let fields = |update: &mut Object<'_>| {
            update.objects("entries", &plan.items, write_step);
        };
        let more = |facts: &mut Object<'_>| {
            facts.text_if("planId", plan.plan.as_ref());
            facts.text_if("toolCallId", plan.call.as_ref());
        };
        let has_more = plan.plan.is_some() || plan.call.is_some();
        self.write_update("plan", None, out, fields, more, has_more);
    }
}

impl Picture<'_> {
    /// The data and its media type.
    pub(super) fn parts(&self) -> Option<(&Text<'_>, &Text<'_>)> {
        let source = self.source.as_ref();
        let data = self.data.as_ref().or(source.and_then(|source| source.data.as_ref()))?;
        let mime = self.mime.as_ref().or(source.and_then(|source| source.mime.as_ref()))?;
        Some((data, mime))
    }
}

fn chunk_kind(kind: &BlockKind, out: &mut Output) -> Option<&'static str> {
    match kind {
        BlockKind::Text => Some("agent_message_chunk"),
        BlockKind::Reasoning => Some("agent_thought_chunk"),
        BlockKind::HiddenReasoning => {
            out.lost("hidden reasoning");
            None
        }
        _ => {
            out.lost("blocks of an unknown kind");
            None
        }
    }
}

fn write_step(entry: &mut Object<'_>, item: &PlanItem<'_>) {
    let (status, is_exact) = plan_status(&item.status);
    entry.text("content", &item.text);
    let priority = item.priority.as_ref().map_or("", Text::body);
    let priority = ["high", "low"].into_iter().find(|known| *known == priority);
    entry.string("priority", priority.unwrap_or("medium"));
    entry.string("status", status);
    if is_exact && item.id.is_none() && item.active_form.is_none() {
        return;
    }
    entry.object("_meta", |meta| {
        meta.object("interlingua", |facts| {
            if !is_exact {
                facts.string("status", item.status.as_str());
            }
            facts.text_if("id", item.id.as_ref());
            facts.text_if("activeForm", item.active_form.as_ref());
        });
    });
}

/// The protocol's status for a step, and whether it is exact.
fn plan_status(status: &PlanStatus) -> (&'static str, bool) {
    match status {
        PlanStatus::Pending => ("pending", true),
        PlanStatus::InProgress => ("in_progress", true),
        PlanStatus::Completed => ("completed", true),
        // Nothing is left to do.
        PlanStatus::Cancelled => ("completed", false),
        _ => ("pending", false),
    }
}
