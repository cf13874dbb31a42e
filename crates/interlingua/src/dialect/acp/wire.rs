//! The fields of ACP messages that are read.
//!
//! Most records are chunks of text. Fields that only other records have are kept as JSON, and
//! parsed when they are needed.

use super::wire_meta::{InterlinguaMeta, Meta, WireUsage};
use crate::dialect::json_rpc;
use crate::json::read::{Field, Flaw, Record, Shaped};
use crate::json::{Json, Shape, Text, known, record};

/// A message of either side.
pub(super) type Message<'a> = json_rpc::Message<'a, Params<'a>, ResponseResult<'a>>;

/// The parameters of a request or a notification.
#[derive(Debug, Default)]
pub(super) struct Params<'a> {
    pub(super) session: Option<Text<'a>>,
    pub(super) update: Option<Update<'a>>,
    pub(super) call: Option<Json<'a>>,
    pub(super) options: Option<Json<'a>>,
    pub(super) prompt: Option<Json<'a>>,
    pub(super) cwd: Option<Text<'a>>,
    pub(super) meta: Option<Json<'a>>,
    /// The fields of a form.
    pub(super) call_id: Option<Text<'a>>,
    pub(super) message: Option<Text<'a>>,
    pub(super) schema: Option<Json<'a>>,
    pub(super) url: Option<Text<'a>>,
    /// The mode that Qwen reports in a notification of its own.
    pub(super) mode: Option<Text<'a>>,
}

impl<'a> Record<'a> for Params<'a> {
    #[inline]
    fn field(&mut self, name: &str, value: Field<'_, 'a>) -> Result<(), Flaw> {
        match name {
            "sessionId" => self.session = value.text()?,
            "update" => value.record(&mut self.update)?,
            "toolCall" => self.call = value.json()?,
            "options" => self.options = value.json()?,
            "prompt" => self.prompt = value.json()?,
            "cwd" => self.cwd = value.text()?,
            "_meta" => self.meta = value.json()?,
            "toolCallId" => self.call_id = value.text()?,
            "message" => self.message = value.text()?,
            "requestedSchema" => self.schema = value.json()?,
            "url" => self.url = value.text()?,
            "currentModeId" => self.mode = value.text()?,
            _ => value.skip()?,
        }
        Ok(())
    }

    fn shape() -> Shape {
        known!(
            "sessionId",
            "update" => Update,
            "toolCall" => Update,
            "options",
            "prompt" => Content,
            "cwd",
            "modeId",
            "_meta" => Meta,
            "toolCallId",
            "message",
            "requestedSchema",
            "url",
            "currentModeId",
        )
    }
}

/// An update of the session. A tool call in a permission request has the same fields.
#[derive(Debug, Default, Clone)]
pub(super) struct Update<'a> {
    pub(super) kind: Option<Text<'a>>,
    pub(super) content: Shaped<'a, Content<'a>>,
    pub(super) message: Option<Text<'a>>,
    pub(super) meta: Option<Json<'a>>,
    pub(super) call: Option<Text<'a>>,
    pub(super) title: Option<Text<'a>>,
    pub(super) name: Option<Text<'a>>,
    pub(super) tool_kind: Option<Text<'a>>,
    pub(super) status: Option<Text<'a>>,
    pub(super) locations: Option<Json<'a>>,
    pub(super) raw_input: Option<Json<'a>>,
    pub(super) raw_output: Option<Json<'a>>,
    /// The fields of other updates: the plan, the cost and the settings.
    pub(super) entries: Option<Json<'a>>,
    pub(super) plan: Option<Json<'a>>,
    pub(super) plan_id: Option<Text<'a>>,
    pub(super) cost: Option<Json<'a>>,
    pub(super) options: Option<Json<'a>>,
    pub(super) mode: Option<Text<'a>>,
    pub(super) severity: Option<Text<'a>>,
    pub(super) description: Option<Text<'a>>,
}

impl<'a> Record<'a> for Update<'a> {
    #[inline]
    fn field(&mut self, name: &str, value: Field<'_, 'a>) -> Result<(), Flaw> {
        match name {
            "sessionUpdate" => self.kind = value.text()?,
            "content" => value.shape(&mut self.content)?,
            "messageId" => self.message = value.text()?,
            "_meta" => self.meta = value.json()?,
            "toolCallId" => self.call = value.text()?,
            "title" => self.title = value.text()?,
            "name" => self.name = value.text()?,
            "kind" => self.tool_kind = value.text()?,
            "status" => self.status = value.text()?,
            "locations" => self.locations = value.json()?,
            "rawInput" => self.raw_input = value.json()?,
            "rawOutput" => self.raw_output = value.json()?,
            "entries" => self.entries = value.json()?,
            "plan" => self.plan = value.json()?,
            "planId" => self.plan_id = value.text()?,
            "cost" => self.cost = value.json()?,
            "configOptions" => self.options = value.json()?,
            "currentModeId" => self.mode = value.text()?,
            "severity" => self.severity = value.text()?,
            "description" => self.description = value.text()?,
            _ => value.skip()?,
        }
        Ok(())
    }

    fn shape() -> Shape {
        known!(
            "sessionUpdate",
            "content" => Content,
            "messageId",
            "_meta" => Meta,
            "toolCallId",
            "title",
            "name",
            "kind",
            "status",
            "locations" => Location,
            "rawInput",
            "rawOutput",
            "entries" => Entry,
            "plan" => NamedPlan,
            "planId",
            "cost" => Cost,
            "configOptions" => ConfigOption,
            "currentModeId",
            "severity",
            "description",
        )
    }
}

/// A content block, or a part of the content of a tool call: text, a diff or a terminal.
#[derive(Debug, Default, Clone)]
pub(super) struct Content<'a> {
    pub(super) kind: Option<Text<'a>>,
    pub(super) text: Option<Text<'a>>,
    /// The block that the part contains.
    pub(super) inner: Option<Json<'a>>,
    pub(super) path: Option<Text<'a>>,
    pub(super) old_text: Option<Json<'a>>,
    pub(super) new_text: Option<Json<'a>>,
    pub(super) uri: Option<Text<'a>>,
    pub(super) name: Option<Text<'a>>,
    pub(super) mime: Option<Text<'a>>,
    pub(super) size: Option<u64>,
    pub(super) meta: Option<Json<'a>>,
}

impl<'a> Record<'a> for Content<'a> {
    #[inline]
    fn field(&mut self, name: &str, value: Field<'_, 'a>) -> Result<(), Flaw> {
        match name {
            "type" => self.kind = value.text()?,
            "text" => self.text = value.text()?,
            "content" => self.inner = value.json()?,
            "path" => self.path = value.text()?,
            "oldText" => self.old_text = value.json()?,
            "newText" => self.new_text = value.json()?,
            "uri" => self.uri = value.text()?,
            "name" => self.name = value.text()?,
            "mimeType" => self.mime = value.text()?,
            "size" => self.size = value.number()?,
            "_meta" => self.meta = value.json()?,
            _ => value.skip()?,
        }
        Ok(())
    }

    fn shape() -> Shape {
        known!(
            "type",
            "text",
            "content" => Content,
            "path",
            "oldText",
            "newText",
            "uri",
            "name",
            "mimeType",
            "size",
            "_meta" => Meta,
        )
    }
}

record! {
    /// The content of an update, kept as JSON.
    pub(super) struct RawLine<'a> {
        params: record<RawParams> "params",
    }
}

record! {
    pub(super) struct RawParams<'a> {
        update: record<RawUpdate> "update",
    }
}

record! {
    pub(super) struct RawUpdate<'a> {
        content: json "content",
    }
}

record! {
    /// The result in a response of either side.
    pub(super) struct ResponseResult<'a> {
        protocol: number "protocolVersion",
        info: record<AgentInfo> "agentInfo",
        session: text "sessionId",
        modes: record<Modes> "modes",
        models: record<Models> "models",
        options: json "configOptions",
        stop: text "stopReason",
        usage: record<WireUsage> "usage",
        outcome: record<Selected> "outcome",
        action: text "action",
        content: json "content",
        answers: json "answers",
        meta: record<Meta> "_meta",
    }
}

record! {
    pub(super) struct AgentInfo<'a> {
        name: text "name",
        version: text "version",
    }
}

record! {
    pub(super) struct Modes<'a> {
        current: text "currentModeId",
    }
}

record! {
    pub(super) struct Models<'a> {
        current: text "currentModelId",
    }
}

record! {
    /// A setting of the session.
    pub(super) struct ConfigOption<'a> {
        id: text "id",
        category: text "category",
        value: text "currentValue",
    }
}

record! {
    /// The choice of the user.
    pub(super) struct Selected<'a> {
        outcome: text "outcome",
        option: text "optionId",
    }
}

record! {
    /// An option that a user may choose.
    pub(super) struct PermissionOption<'a> {
        id: text "optionId",
        name: text "name",
        kind: text "kind",
    }
}

record! {
    /// The data of an error.
    pub(super) struct FailureData<'a> {
        details: text "details",
        message: text "message",
        ours: record<InterlinguaMeta> "interlingua",
    }
}

record! {
    pub(super) struct Location<'a> {
        path: text "path",
        line: number "line",
    }
}

record! {
    /// One of several plans.
    pub(super) struct NamedPlan<'a> {
        kind: text "type",
        id: text "planId",
        entries: json "entries",
    }
}

record! {
    /// A step of the plan.
    pub(super) struct Entry<'a> {
        content: text "content",
        status: text "status",
        priority: text "priority",
        meta: record<Meta> "_meta",
    }
}

record! {
    pub(super) struct Cost<'a> {
        amount: float "amount",
        currency: text "currency",
    }
}

record! {
    /// The fields of a result that is an object, with the names that agents use.
    pub(super) struct RawOutput<'a> {
        content: json "content",
        output: json "output",
        text: json "text",
        message: text "message",
        code: text "code",
        contents: records<OutputPart> "contents",
        metadata: record<OutputMetadata> "metadata",
        exit_code: integer "exitCode" | "exit_code",
    }
}

record! {
    /// The old and the new text of a change, in the form of our events.
    pub(super) struct Sides<'a> {
        old: json "oldText",
        new: json "newText",
    }
}

record! {
    /// The fields that distinguish the tools of Copilot.
    pub(super) struct CopilotInput<'a> {
        path: json "path",
        file_text: json "file_text",
        old_str: json "old_str",
        command: json "command",
        query: json "query",
    }
}

record! {
    pub(super) struct OutputPart<'a> {
        kind: text "type",
        exit_code: integer "exitCode",
    }
}

record! {
    pub(super) struct OutputMetadata<'a> {
        exit: integer "exit",
        output: json "output",
    }
}

record! {
    /// A text block whose text is passed on without parsing.
    pub(super) struct ShownText<'a> {
        kind: text "type",
        text: json "text",
    }
}
