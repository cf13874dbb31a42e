//! The tool calls of a response: those that the client has to run, and those that the provider runs
//! itself.

use super::wire::{CodeOutput, Item};
use crate::dialect::arguments::Arguments;
use crate::dialect::{Emitter, tools};
use crate::event::{
    Executor, PlanUpdated, ToolEnded, ToolInput, ToolInputDelta, ToolKind, ToolStarted, ToolStatus,
};
use crate::json::read;
use crate::json::{Json, Text};

/// The calls of one response.
#[derive(Debug, Default)]
pub(super) struct Calls {
    message: Text<'static>,
    /// The prefix of ids that are generated.
    id_prefix: String,
    calls: Vec<Call>,
    /// A call had arguments that are no JSON object.
    pub(super) has_unusable: bool,
}

#[derive(Debug)]
struct Call {
    /// The place of its item in the output.
    index: u64,
    id: String,
    name: String,
    executor: Executor,
    arguments: Arguments,
    /// The field of the input that its free text is in.
    text_field: Option<&'static str>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its item is not complete.
    Open,
    /// The client can run it.
    Ready,
    Ended,
}

/// How an item is read as a call.
struct Tool<'a> {
    name: Text<'a>,
    kind: ToolKind,
    executor: Executor,
    text_field: Option<&'static str>,
}

impl Calls {
    pub(super) fn of(message: Text<'static>, id_prefix: String) -> Self {
        Self { message, id_prefix, ..Self::default() }
    }

    /// Whether an item is a call.
    pub(super) fn is_call(kind: &str) -> bool {
        kind.ends_with("_call") || kind == "mcp_list_tools"
    }

    /// Emits the start of a call, if an item is one. Its input follows.
    pub(super) fn begin(&mut self, index: u64, mut item: Item<'_>, out: &mut Emitter<'_, '_>) {
        let is_call = Self::is_call(item.kind.as_ref().map_or("", Text::body));
        if is_call && self.find(index).is_none() {
            self.start(index, &mut item, None, out);
        }
    }

    /// Emits the next piece of the arguments of a call.
    pub(super) fn add(&mut self, index: u64, piece: &Text<'_>, out: &mut Emitter<'_, '_>) {
        let call = self.find(index).filter(|call| call.state == State::Open);
        if let Some(call) = call.filter(|_| !piece.is_empty()) {
            call.add(piece, out);
        }
    }

    /// Emits the whole arguments of a call, unless they were streamed.
    pub(super) fn add_whole(&mut self, index: u64, whole: &Text<'_>, out: &mut Emitter<'_, '_>) {
        if self.find(index).is_some_and(|call| call.arguments.is_empty()) {
            self.add(index, whole, out);
        }
    }

    /// Reads a call whose item is complete. A call of the provider has been answered by then.
    pub(super) fn complete(&mut self, index: u64, mut item: Item<'_>, out: &mut Emitter<'_, '_>) {
        if self.find(index).is_some_and(|call| call.state != State::Open) {
            return;
        }
        let status = item.status.take().unwrap_or_default();
        let is_cut = matches!(status.body(), "incomplete" | "in_progress");
        let own = input_of(&item);
        let has_own = [&item.arguments, &item.input, &item.code].into_iter().flatten();
        let has_own = has_own.into_iter().any(|text| !text.is_empty());
        if let Some(call) = self.find(index) {
            if !is_cut {
                call.close_text(out);
            }
            // The item of a compatible server may lack what was streamed.
            let streamed = !has_own && !call.arguments.is_empty();
            let input = if streamed { call.arguments.to_input(true) } else { own };
            let input = input.filter(|_| !is_cut);
            if let Some(input) = &input {
                let (call, input) = (call.emitted_id(), Some(input.borrowed()));
                out.emit(ToolInput { call, input, ..ToolInput::default() });
            }
            self.completed(index, input, &status, item, out);
        } else {
            let input = own.filter(|_| !is_cut);
            self.start(index, &mut item, input.clone(), out);
            self.completed(index, input, &status, item, out);
        }
    }

    fn completed(
        &mut self,
        index: u64,
        input: Option<Json<'_>>,
        status: &Text<'_>,
        item: Item<'_>,
        out: &mut Emitter<'_, '_>,
    ) {
        let is_cut = matches!(status.body(), "incomplete" | "in_progress");
        let Some(call) = self.find(index) else { return };
        if call.executor == Executor::Provider {
            call.state = State::Ended;
            out.emit(answer(call.emitted_id(), status, item));
            return;
        }
        match input {
            Some(input) => {
                call.state = State::Ready;
                let kind = tools::kind_of(&Text::plain(&call.name));
                if let Some(items) = tools::plan_written(&kind, &input) {
                    let call = Some(call.emitted_id());
                    out.emit(PlanUpdated { plan: None, call, items });
                }
            }
            None if is_cut => {
                call.end("the response stopped before the call was complete", out);
            }
            None => {
                call.end("its arguments are no JSON object", out);
                self.has_unusable = true;
            }
        }
    }

    /// Reads the answer of a call that the provider ran although the client could have.
    pub(super) fn answer(&mut self, item: Item<'_>, out: &mut Emitter<'_, '_>) {
        let id = item.call_id.as_ref().map(Text::to_string).unwrap_or_default();
        if let Some(call) = self.calls.iter_mut().rfind(|call| call.id == id) {
            call.state = State::Ended;
        }
        let status = item.status.clone().unwrap_or_default();
        out.emit(answer(Text::plain(&id), &status, item));
    }

    /// Returns the calls that the client has to run, at the end of a complete response. A call whose
    /// item was never completed is run if its arguments are complete.
    pub(super) fn settle(&mut self, out: &mut Emitter<'_, '_>) -> Vec<Text<'static>> {
        for call in self.calls.iter_mut().filter(|call| call.state == State::Open) {
            call.close_text(out);
            let input = call.arguments.to_input(true);
            match input.filter(|_| call.executor == Executor::Client) {
                Some(input) => {
                    call.state = State::Ready;
                    let call = call.emitted_id();
                    out.emit(ToolInput { call, input: Some(input), ..ToolInput::default() });
                }
                None => {
                    self.has_unusable |= call.executor == Executor::Client;
                    call.end("the response ended before the call was complete", out);
                }
            }
        }
        let ready = self.calls.iter().filter(|call| call.state == State::Ready);
        ready.map(|call| call.emitted_id().into_owned()).collect()
    }

    /// Abandons all calls that are not answered.
    pub(super) fn abandon(&mut self, why: &'static str, out: &mut Emitter<'_, '_>) {
        for call in self.calls.iter_mut().filter(|call| call.state != State::Ended) {
            call.end(why, out);
        }
    }

    fn start(
        &mut self,
        index: u64,
        item: &mut Item<'_>,
        input: Option<Json<'_>>,
        out: &mut Emitter<'_, '_>,
    ) {
        let tool = tool_of(item);
        let id = item.call_id.take().or_else(|| item.id.take()).filter(|id| !id.is_empty());
        let id = id.map_or_else(|| format!("{}{}", self.id_prefix, index + 1), |id| id.to_string());
        out.emit(ToolStarted {
            call: Text::plain(&id),
            name: tool.name.borrowed(),
            kind: tool.kind,
            executor: tool.executor.clone(),
            message: Some(self.message.borrowed()),
            input,
            ..ToolStarted::default()
        });
        self.calls.push(Call {
            index,
            id,
            name: tool.name.to_string(),
            executor: tool.executor,
            arguments: Arguments::default(),
            text_field: tool.text_field,
            state: State::Open,
        });
    }

    /// The call of an item. The newest is searched first.
    fn find(&mut self, index: u64) -> Option<&mut Call> {
        self.calls.iter_mut().rfind(|call| call.index == index)
    }
}

impl Call {
    fn add(&mut self, piece: &Text<'_>, out: &mut Emitter<'_, '_>) {
        let Some(field) = self.text_field else {
            self.arguments.add(piece);
            out.emit(ToolInputDelta { call: self.emitted_id(), text: piece.borrowed() });
            return;
        };
        let start =
            if self.arguments.is_empty() { format!("{{\"{field}\":\"") } else { String::new() };
        let text = Text::from(start + &piece.literal_body());
        self.arguments.add(&text);
        out.emit(ToolInputDelta { call: self.emitted_id(), text });
    }

    /// Closes the string that contains free text.
    fn close_text(&mut self, out: &mut Emitter<'_, '_>) {
        let open = !self.arguments.is_empty() && !self.arguments.is_closed();
        if self.text_field.is_some() && open {
            let end = Text::plain("\"}");
            self.arguments.add(&end);
            out.emit(ToolInputDelta { call: self.emitted_id(), text: end });
        }
    }

    fn end(&mut self, why: &'static str, out: &mut Emitter<'_, '_>) {
        self.state = State::Ended;
        out.emit(ToolEnded {
            call: self.emitted_id(),
            status: ToolStatus::Abandoned,
            error: Some(Text::plain(why)),
            ..ToolEnded::default()
        });
    }

    fn emitted_id(&self) -> Text<'_> {
        Text::plain(&self.id)
    }
}

/// The tool of an item.
fn tool_of<'a>(item: &mut Item<'a>) -> Tool<'a> {
    let item_kind = item.kind.as_ref().map_or("", Text::body);
    let named = item.name.clone().filter(|name| !name.is_empty());
    let provider = |name: &'static str, kind| Tool {
        name: Text::plain(name),
        kind,
        executor: Executor::Provider,
        text_field: None,
    };
    match item_kind {
        "web_search_call" => provider("web_search", ToolKind::WebSearch),
        "file_search_call" => provider("file_search", ToolKind::Search),
        "code_interpreter_call" => {
            Tool { text_field: Some("code"), ..provider("code_interpreter", ToolKind::Execute) }
        }
        "image_generation_call" => provider("image_generation", ToolKind::Unspecified),
        "tool_search_call" => provider("tool_search", ToolKind::Unspecified),
        "mcp_list_tools" => provider("mcp_list_tools", ToolKind::Mcp),
        "mcp_call" => {
            let tool = provider("mcp", ToolKind::Mcp);
            Tool { name: named.unwrap_or(tool.name), ..tool }
        }
        other => {
            let own = || Text::from(other.strip_suffix("_call").unwrap_or(other).to_owned());
            let text_field = (other == "custom_tool_call").then_some("input");
            let name = named.unwrap_or_else(own);
            let kind = match other {
                "local_shell_call" | "shell_call" => ToolKind::Execute,
                "apply_patch_call" => ToolKind::Edit,
                _ => tools::kind_of(&name),
            };
            Tool { name, kind, executor: Executor::Client, text_field }
        }
    }
}

/// The input of a complete item; `None` if it has none, or one that is not JSON.
fn input_of(item: &Item<'_>) -> Option<Json<'static>> {
    let json = |json: &Json<'_>| json.clone().into_owned();
    match item.kind.as_ref().map_or("", Text::body) {
        "custom_tool_call" => {
            let input = item.input.as_ref()?;
            Some(Json::object(|fields| {
                fields.text("input", input);
            }))
        }
        "code_interpreter_call" => {
            let code = item.code.as_ref()?;
            Some(Json::object(|fields| {
                fields.text("code", code);
            }))
        }
        "file_search_call" => Some(Json::object(|fields| {
            fields.json_if("queries", item.queries.as_ref());
        })),
        "image_generation_call" => Some(Json::object(|fields| {
            fields.text_if("prompt", item.prompt.as_ref());
        })),
        "mcp_list_tools" => Some(Json::object(|fields| {
            fields.text_if("server", item.server.as_ref());
        })),
        "function_call" | "mcp_call" => {
            let mut arguments = Arguments::default();
            item.arguments.iter().for_each(|text| arguments.add(text));
            arguments.to_input(true)
        }
        _ => match (&item.action, &item.arguments) {
            (Some(action), _) => Some(json(action)),
            (None, Some(arguments)) => {
                let mut text = Arguments::default();
                text.add(arguments);
                text.to_input(true)
            }
            (None, None) => Some(Json::object(|_| {})),
        },
    }
}

/// The answer of a call that the provider ran.
fn answer<'a>(call: Text<'a>, status: &Text<'_>, item: Item<'a>) -> ToolEnded<'a> {
    let error = item.error.as_ref().map(|error| match error.as_text() {
        Some(text) => Text::from(text.to_string()),
        None => Text::from(error.get().to_owned()),
    });
    let status = match status.body() {
        "failed" => ToolStatus::Failed,
        "incomplete" | "in_progress" => ToolStatus::Cancelled,
        _ if error.is_some() => ToolStatus::Failed,
        _ => ToolStatus::Completed,
    };
    let logs = item.output.as_ref().and_then(logs_of);
    let (output, structured) = match logs {
        Some(logs) => (Some(logs), item.output),
        None => (item.output, None),
    };
    ToolEnded { call, status, output, structured, error, ..ToolEnded::default() }
}

/// What a program of the code interpreter printed, if that is part of the output.
fn logs_of(output: &Json<'_>) -> Option<Json<'static>> {
    let parts = read::records_of::<CodeOutput<'_>>(output)?;
    let logs: Vec<_> = parts.iter().filter_map(|part| part.logs.as_ref()).collect();
    let text: String = logs.iter().map(|logs| logs.to_plain()).collect();
    (!logs.is_empty()).then(|| Json::from(&Text::from(text)))
}
