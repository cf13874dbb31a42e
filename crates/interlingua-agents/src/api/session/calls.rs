//! The calls of a response: each is judged, perhaps asked about, run, and reported.
//!
//! Calls that only read run at the same time. Every other call waits for those before it, and those
//! after it wait for it, so that each sees what the calls before it did.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use interlingua::event::{
    self, PermissionRequested, PermissionResolved, ToolEnded, ToolProgress, ToolStatus,
};
use interlingua::json::Text;
use serde_json::Value;
use tokio::task::{AbortHandle, JoinError, JoinSet};

use super::Live;
use super::progress::{Progress, Reports};
use crate::api::client_tools::ClientTools;
use crate::api::structured::AnswerSchema;
use crate::api::tools::{SessionTools, ToolFacts};
use crate::api::turns::{ANSWER_TOOL, MadeCall};
use crate::permission::{Decision, Mode, PermissionRequest, Verdict};
use crate::redaction::HeldBack;
use crate::session::{CallOutcome, Wanted};
use crate::tool::{Call, Content, Output};

/// The calls of the current response.
pub(super) struct Calls {
    pub(super) tools: Arc<SessionTools>,
    pub(super) client_tools: ClientTools,
    /// The schema of the structured answer.
    schema: Option<AnswerSchema>,
    pub(super) queue: Vec<QueuedCall>,
    /// Answers of the client to calls that are about to be queued, because an earlier program made them.
    pub(super) late: HashMap<String, CallOutcome>,
    running: JoinSet<(String, Output)>,
    reports: Arc<Reports>,
    /// The number of permission requests so far.
    requests: u64,
}

/// A call that has not ended, or has.
pub(super) struct QueuedCall {
    pub(super) made: MadeCall,
    facts: ToolFacts,
    pub(super) state: CallState,
    /// Where its paths led when it was judged.
    places: Option<Vec<PathBuf>>,
    /// What may be the beginning of a key, at the end of its output so far.
    held_back: HeldBack,
}

impl QueuedCall {
    /// The input with the place that its path led to, if that is another one than it names.
    fn resolved(&self, folder: &Path) -> Option<Value> {
        let place = self.places.as_ref()?.first()?;
        let mut input = self.made.input.clone();
        let path = crate::tool::PATH_FIELDS.iter().find(|field| input.get(**field).is_some())?;
        let path = input.get_mut(*path)?;
        if folder.join(path.as_str()?) == *place {
            return None;
        }
        *path = Value::String(place.to_str()?.to_owned());
        Some(input)
    }
}

/// Where the path of a call leads, for the user, who sees only the path as the model wrote it.
fn detour(call: &QueuedCall, folder: &Path, additional: &[PathBuf]) -> Option<String> {
    call.resolved(folder)?;
    let place = call.places.as_ref()?.first()?;
    let mut folders = std::iter::once(folder).chain(additional.iter().map(PathBuf::as_path));
    let outside = match folders.any(|folder| place.starts_with(folder)) {
        true => "",
        false => ", outside of the folder",
    };
    Some(format!("it leads to {}{outside}", place.display()))
}

pub(super) enum CallState {
    Waiting,
    /// The client runs its tool.
    AtClient,
    /// The user is asked, by the request with this id.
    Asked(String),
    Running(AbortHandle),
    Ended,
}

/// What a running call reports.
pub(super) enum CallNews {
    Progress(Progress),
    Ended(String, Output),
}

impl Calls {
    pub(super) fn new(
        tools: Arc<SessionTools>,
        client_tools: ClientTools,
        schema: Option<AnswerSchema>,
    ) -> Self {
        Self {
            tools,
            client_tools,
            schema,
            queue: Vec::new(),
            late: HashMap::new(),
            running: JoinSet::new(),
            reports: Arc::default(),
            requests: 0,
        }
    }

    /// What a running call reports next; without one, it waits forever.
    pub(super) async fn next(&mut self) -> CallNews {
        let Self { running, reports, queue, .. } = self;
        loop {
            tokio::select! {
                biased;
                progress = reports.next() => return CallNews::Progress(progress),
                ended = running.join_next(), if !running.is_empty() => match ended {
                    Some(Ok((call, output))) => return CallNews::Ended(call, output),
                    Some(Err(problem)) => {
                        // The others were cancelled.
                        if let Some(call) = broken(queue, &problem) {
                            return CallNews::Ended(call, broke(&problem));
                        }
                    }
                    None => {}
                },
            }
        }
    }

    /// Whether a call runs, or waits to run.
    pub(super) fn any(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The place of the call of a permission request.
    fn place_of(&self, request: &PermissionRequest) -> Option<usize> {
        self.queue.iter().position(|call| request.call.contains(&call.made.id))
    }

    /// Whether the path of a request leads to another place than when it was judged.
    pub(super) fn leads_elsewhere(&self, request: &PermissionRequest) -> bool {
        let call = self.place_of(request).and_then(|at| self.queue.get(at));
        call.is_some_and(|call| self.tools.places(&call.made.name, &call.made.input) != call.places)
    }

    /// Ends everything that the tools have started.
    pub(super) async fn close(&mut self) {
        self.running.shutdown().await;
        self.tools.close().await;
    }

    /// The first call that can start now.
    fn next_to_start(&self) -> Option<usize> {
        let (mut others_unended, mut writes_unended) = (false, false);
        for (at, call) in self.queue.iter().enumerate() {
            let may_start = if call.facts.only_reads { !writes_unended } else { !others_unended };
            match call.state {
                CallState::Waiting if may_start => return Some(at),
                // The client's tools run elsewhere, and neither wait nor are waited for.
                CallState::Ended | CallState::AtClient => {}
                CallState::Waiting | CallState::Asked(_) | CallState::Running(_) => {
                    others_unended = true;
                    writes_unended |= !call.facts.only_reads;
                }
            }
        }
        None
    }

    /// Whether nothing is left to do but what the client does.
    pub(super) fn is_left_to_client(&self) -> bool {
        if !self.late.is_empty() {
            return false;
        }
        let is_open = |call: &&QueuedCall| !matches!(call.state, CallState::Ended);
        let mut open = self.queue.iter().filter(is_open).peekable();
        open.peek().is_some() && open.all(|call| matches!(call.state, CallState::AtClient))
    }

    pub(super) fn find(&mut self, id: &str) -> Option<&mut QueuedCall> {
        self.queue.iter_mut().find(|call| call.made.id == id)
    }

    fn start(&mut self, at: usize) {
        let Some(queued) = self.queue.get_mut(at) else { return };
        let call = Call {
            id: queued.made.id.clone(),
            name: queued.made.name.clone(),
            input: queued.made.input.clone(),
            places: queued.places.clone(),
        };
        let (tools, mut reporter) = (self.tools.clone(), self.reports.reporter(&call.id));
        let task = self.running.spawn(async move {
            let output = tools.run(&call, &mut |text| reporter.report(text)).await;
            (call.id.clone(), output)
        });
        queued.state = CallState::Running(task);
    }
}

impl Live {
    /// Runs the calls of a response.
    pub(super) fn run_calls(&mut self, made: Vec<MadeCall>) {
        let tools = self.calls.tools.clone();
        self.calls.queue = made
            .into_iter()
            .map(|made| {
                let facts = tools.facts(&made.name);
                QueuedCall {
                    made,
                    facts,
                    state: CallState::Waiting,
                    places: None,
                    held_back: HeldBack::default(),
                }
            })
            .collect();
        self.call_client();
        self.start_calls();
    }

    pub(super) fn start_calls(&mut self) {
        while let Some(at) = self.calls.next_to_start() {
            let Some(queued) = self.calls.queue.get(at) else { return };
            if queued.made.name == ANSWER_TOOL && self.calls.schema.is_some() {
                self.take_answer(at);
                continue;
            }
            let asks = match self.policy.mode {
                // Nothing runs that no rule and no user allows.
                Mode::Deny => true,
                Mode::Interactive => queued.facts.can_run,
                Mode::Ask | Mode::AcceptEdits | Mode::Auto | Mode::Plan => {
                    queued.facts.needs_permission
                }
            };
            if !asks {
                self.calls.start(at);
                continue;
            }
            let request = self.permission_request(at);
            match self.judge(&request) {
                Verdict::Decided(Decision::Allow) => self.calls.start(at),
                Verdict::Decided(Decision::Deny(why)) => self.deny(&request, None, &why),
                Verdict::AskUser { .. } => self.ask(at, request),
            }
        }
    }

    /// Judges a call by the path as it is written, and by where it led just before: the call runs
    /// only there, so a link that leads elsewhere during the judgement must not count instead.
    pub(super) fn judge(&self, request: &PermissionRequest) -> Verdict {
        let written = self.policy.judge(request);
        let call = self.calls.place_of(request).and_then(|at| self.calls.queue.get(at));
        let resolved = call.and_then(|call| call.resolved(&self.folder));
        let Some(input) = resolved else { return written };
        let resolved = PermissionRequest { input: Some(input.to_string()), ..request.clone() };
        match (written, self.policy.judge(&resolved)) {
            (deny @ Verdict::Decided(Decision::Deny(_)), _)
            | (_, deny @ Verdict::Decided(Decision::Deny(_))) => deny,
            (ask @ Verdict::AskUser { .. }, _) | (_, ask @ Verdict::AskUser { .. }) => ask,
            (allow, _) => allow,
        }
    }

    fn permission_request(&mut self, at: usize) -> PermissionRequest {
        self.calls.requests += 1;
        let id = format!("permission_{}", self.calls.requests);
        let folder = self.calls.tools.folder().to_owned();
        let additional_folders = self.calls.tools.additional_folders();
        let tools = self.calls.tools.clone();
        let Some(queued) = self.calls.queue.get_mut(at) else {
            return PermissionRequest { id, folder, ..PermissionRequest::default() };
        };
        queued.places = tools.places(&queued.made.name, &queued.made.input);
        let description = detour(queued, &folder, &additional_folders);
        PermissionRequest {
            id,
            call: vec![queued.made.id.clone()],
            tool: queued.made.name.clone(),
            kind: queued.facts.kind.clone(),
            input: Some(queued.made.input.to_string()),
            may_lack_input: false,
            description,
            folder,
            additional_folders,
            folders_are_resolved: true,
            readable_files: Vec::new(),
            skips_secrets: queued.facts.skips_secrets,
        }
    }

    /// Asks the user whether a call may run.
    fn ask(&mut self, at: usize, request: PermissionRequest) {
        let id = request.id.clone();
        let call = request.call.first().cloned().unwrap_or_default();
        self.emit(PermissionRequested {
            request: Text::from(id.clone()),
            call: Some(Text::from(call)),
            description: request.description.clone().map(Text::from),
            ..PermissionRequested::default()
        });
        if let Some(queued) = self.calls.queue.get_mut(at) {
            queued.state = CallState::Asked(id.clone());
        }
        let sequence = self.outlets.last;
        let wanted = self.pending.add(Wanted::Permission(request), sequence);
        let sent = self.input_requests.as_ref().is_some_and(|user| user.send(wanted).is_ok());
        if sent {
            self.clock.requested(id, Instant::now());
        } else {
            self.decide(&id, Decision::Deny("no user is available to allow it".to_owned()));
        }
    }

    /// Applies the decision about a request that waits.
    pub(super) fn decide(&mut self, id: &str, decision: Decision) {
        let request = match self.pending.find(id) {
            Ok(Wanted::Permission(request)) => request.clone(),
            _ => return,
        };
        self.clock.resolved(id, Instant::now());
        self.pending.remove(id);
        match decision {
            Decision::Allow => {
                self.emit(PermissionResolved {
                    request: Some(Text::from(id.to_owned())),
                    call: request.call.first().cloned().map(Text::from),
                    decision: event::Decision::Allowed,
                    ..PermissionResolved::default()
                });
                if let Some(at) = self.calls.place_of(&request) {
                    self.calls.start(at);
                }
            }
            Decision::Deny(why) => self.deny(&request, Some(id), &why),
        }
        self.start_calls();
    }

    /// Denies a call, for a reason that the model learns.
    fn deny(&mut self, request: &PermissionRequest, id: Option<&str>, why: &str) {
        let call = request.call.first().cloned().unwrap_or_default();
        self.emit(PermissionResolved {
            request: id.map(|id| Text::from(id.to_owned())),
            call: Some(Text::from(call.clone())),
            decision: event::Decision::Denied,
            reason: Some(Text::from(why.to_owned())),
            ..PermissionResolved::default()
        });
        let text = format!("Permission to use {} was denied: {why}", request.tool);
        let output = Output {
            status: ToolStatus::Denied,
            content: vec![Content::Text(text)],
            exit_code: None,
            structured: None,
            changes: Vec::new(),
        };
        self.call_ended(&call, output);
    }

    /// Denies everything that waits for the user.
    pub(super) fn deny_all(&mut self, why: &str) {
        let waiting: Vec<_> =
            self.pending.permissions().map(|request| request.id.clone()).collect();
        for id in waiting {
            self.decide(&id, Decision::Deny(why.to_owned()));
        }
    }

    /// The model gave its structured answer, which has to fit its schema.
    fn take_answer(&mut self, at: usize) {
        let Some(queued) = self.calls.queue.get(at) else { return };
        let (id, input) = (queued.made.id.clone(), queued.made.input.clone());
        let problem = self.calls.schema.as_ref().and_then(|schema| schema.problem(&input));
        let (status, text) = match problem {
            None => {
                self.agent.structured(input);
                (ToolStatus::Completed, "The answer was accepted.".to_owned())
            }
            Some(problem) => {
                (ToolStatus::Failed, format!("The answer does not fit the schema: {problem}"))
            }
        };
        let output = Output {
            status,
            content: vec![Content::Text(text)],
            exit_code: None,
            structured: None,
            changes: Vec::new(),
        };
        self.call_ended(&id, output);
    }

    pub(super) fn call_news(&mut self, news: CallNews) {
        match news {
            CallNews::Progress(Progress { call, text }) => {
                let Some(queued) = self.calls.find(&call) else { return };
                if !matches!(queued.state, CallState::Running(_)) {
                    return;
                }
                // A key may be split between two pieces. What is held back is in the result.
                let mut held_back = std::mem::take(&mut queued.held_back);
                let shown = self.redactor.redact_chunk(text.as_bytes(), &mut held_back);
                let shown = String::from_utf8_lossy(&shown).into_owned();
                if let Some(queued) = self.calls.find(&call) {
                    queued.held_back = held_back;
                }
                if !shown.is_empty() {
                    self.emit(ToolProgress {
                        call: Text::from(call),
                        output: Some(Text::from(shown)),
                        ..ToolProgress::default()
                    });
                }
            }
            CallNews::Ended(call, output) => {
                self.call_ended(&call, output);
                self.start_calls();
            }
        }
    }

    /// Cancels the calls that have not ended.
    pub(super) fn cancel_calls(&mut self, why: &str) {
        for call in std::mem::take(&mut self.calls.queue) {
            match call.state {
                CallState::Ended => continue,
                CallState::Running(task) => task.abort(),
                CallState::Asked(request) => {
                    self.clock.resolved(&request, Instant::now());
                    self.pending.remove(&request);
                }
                CallState::AtClient => self.forget_client_call(&call.made.id),
                CallState::Waiting => {}
            }
            self.emit(ToolEnded {
                call: Text::from(call.made.id),
                status: ToolStatus::Cancelled,
                error: Some(Text::from(why.to_owned())),
                ..ToolEnded::default()
            });
        }
    }
}

/// The call whose task broke, if it still has to be answered.
fn broken(queue: &[QueuedCall], problem: &JoinError) -> Option<String> {
    let is_broken = |call: &&QueuedCall| match &call.state {
        CallState::Running(task) => task.id() == problem.id(),
        CallState::Waiting | CallState::AtClient | CallState::Asked(_) | CallState::Ended => false,
    };
    queue.iter().find(is_broken).map(|call| call.made.id.clone())
}

/// The result of a call whose task broke.
fn broke(problem: &JoinError) -> Output {
    Output {
        status: ToolStatus::Failed,
        content: vec![Content::Text(format!("the tool broke: {problem}"))],
        exit_code: None,
        structured: None,
        changes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::mcp::Servers;
    use crate::tool::{Settings, Toolbox};

    #[tokio::test]
    async fn a_tool_that_panics_ends_its_call() {
        let folder = tempfile::tempdir().unwrap();
        let toolbox = Toolbox::new(Settings::new(folder.path())).unwrap();
        let tools = Arc::new(SessionTools::new(toolbox, Servers::default()));
        let mut calls = Calls::new(tools, ClientTools::default(), None);
        let task = calls.running.spawn(async { panic!("a tool with a bug") });
        let made = MadeCall { id: "1".into(), name: "Read".into(), input: Value::Null };
        calls.queue.push(QueuedCall {
            made,
            facts: ToolFacts::default(),
            state: CallState::Running(task),
            places: None,
            held_back: HeldBack::default(),
        });
        let CallNews::Ended(call, output) = calls.next().await else { panic!("it has not ended") };
        assert_eq!((&*call, output.status.clone()), ("1", ToolStatus::Failed));
        assert!(output.text().contains("the tool broke"), "{output:?}");
    }

    /// Only a path that resolves to another place is judged a second time, as that place.
    #[test]
    fn a_path_is_judged_by_where_it_led() {
        let resolved = |path: &str, place: &str| {
            let input = json!({"file_path": path, "content": "x"});
            let call = QueuedCall {
                made: MadeCall { id: "1".into(), name: "Write".into(), input },
                facts: ToolFacts::default(),
                state: CallState::Waiting,
                places: Some(vec![PathBuf::from(place)]),
                held_back: HeldBack::default(),
            };
            call.resolved(Path::new("/w"))
        };
        assert_eq!(resolved("a/b", "/w/a/b"), None);
        assert_eq!(resolved("./a", "/w/a"), None);
        assert_eq!(resolved("/w/a", "/w/a"), None);
        let expected = json!({"file_path": "/w/.env", "content": "x"});
        assert_eq!(resolved("link", "/w/.env"), Some(expected));
    }
}
