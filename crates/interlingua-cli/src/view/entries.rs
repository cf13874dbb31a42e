//! What each event changes in the view.

use std::time::Instant;

use interlingua::EntryRef;
use interlingua::event::{
    Block, BlockKind, Data, Decision, Event, FilesChanged, Log, Outcome, PermissionResolved,
    PlanUpdated, Reason, SessionEnded, SubagentEnded, SubagentStarted, ToolEnded, ToolKind,
    ToolStatus, TurnEnded, UserMessage, Withdrawn,
};
use interlingua::json::{Json, Text};

use super::calls::{self, Call, Detail};
use super::prose::{NESTED, Prose};
use super::style::{Line, Style};
use super::{Part, Turn, View, clean, nested, notes, plan, session, width};

/// The lines of the agent's log that are shown when a turn failed.
const LOG: usize = 10;
/// The notices that are remembered, so that they are not repeated.
const NOTICES: usize = 20;

impl View {
    /// Takes the next entry. It is shown with the next [`tick`](Self::tick).
    pub(crate) fn take(&mut self, entry: EntryRef<'_>, now: Instant) {
        let event = entry.event;
        if !self.turn.replay && event.parent.is_none() {
            self.activity.observe(&event.data);
        }
        match &event.data {
            Data::SessionStarted(started) => {
                self.session = session::Session::default();
                self.session.start(started);
                self.show_session();
            }
            Data::SessionUpdated(update) => {
                let before = self.session.clone();
                self.session.update(update);
                self.session_changed(&before);
            }
            Data::TurnStarted(started) => self.turn_started(started.replay, now),
            Data::TurnEnded(ended) => self.turn_ended(ended, now),
            Data::SessionEnded(ended) => self.session_ended(ended),
            Data::UserMessage(message) => self.user_message(message, event),
            _ => self.take_content(event, now),
        }
    }

    /// Takes an event of messages or calls.
    fn take_content(&mut self, event: &Event<'_>, now: Instant) {
        match &event.data {
            Data::BlockDelta(delta) => {
                self.prose(delta.block, &delta.kind, &delta.text, event.parent.as_ref());
            }
            Data::BlockEnded(ended) => self.block_ended(ended.block),
            Data::Block(block) => self.block(block, event.parent.as_ref()),
            Data::Withdrawn(withdrawn) => self.withdrawn(withdrawn),
            Data::ToolStarted(started) => {
                let mut call = Call::new(&started.call, &started.name, &started.kind, now);
                call.parent = event.parent.as_ref().map(ToString::to_string);
                self.calls.push(call);
                self.set_input(&started.call, started.input.as_ref());
            }
            Data::ToolInput(input) => self.set_input(&input.call, input.input.as_ref()),
            Data::ToolEnded(ended) => self.tool_ended(ended, event.parent.as_ref(), now),
            Data::FilesChanged(changed) => self.files_changed(changed, event, now),
            Data::PlanUpdated(plan) => self.plan_updated(plan, event),
            Data::PermissionResolved(resolved) => self.permission_resolved(resolved),
            Data::SubagentStarted(started) => self.subagent_started(started),
            Data::SubagentEnded(ended) => self.subagent_ended(ended),
            _ => self.take_note(event),
        }
    }

    /// Takes an event that is shown as a note, or not at all.
    fn take_note(&mut self, event: &Event<'_>) {
        let columns = self.columns();
        match &event.data {
            Data::Error(error) => {
                let message = error.message.to_string();
                if !self.turn.errors.contains(&message) {
                    self.commit(Part::Note, notes::error(error, columns));
                    self.turn.errors.push(message);
                }
            }
            Data::Retry(retry) => self.set_tail(Part::Note, notes::retry(retry, columns)),
            Data::Limit(limit) => {
                if let Some(lines) = notes::limit(limit, columns) {
                    self.note_once(lines);
                }
            }
            Data::Notice(notice) => self.note_once(notes::notice(notice, columns)),
            Data::Compacted(compacted) => {
                self.commit(Part::Note, notes::compacted(compacted, columns));
            }
            Data::Artifact(artifact) => self.dim_note("+", &artifact.path.to_plain()),
            // The end of the turn reports an answer that it made superfluous.
            Data::QuestionAnswered(answered) if event.synthetic.is_none() => {
                self.dim_note("·", &notes::answered(answered));
            }
            Data::Log(log) => self.log(log),
            Data::Unparsed(unparsed) if self.verbose => {
                self.dim_note("?", &unparsed.message.to_plain());
            }
            Data::Unknown(unknown) if self.verbose => {
                self.dim_note("?", &format!("unknown record: {}", unknown.name));
            }
            Data::Native(native) if self.verbose => self.dim_note("·", &native.name.to_plain()),
            // Other events structure the stream, or contain what others show.
            _ => {}
        }
    }

    /// Shows a note, unless it was shown a short while ago: agents repeat their warnings.
    fn note_once(&mut self, lines: Vec<Line>) {
        if self.notices.contains(&lines) {
            return;
        }
        if self.notices.len() == NOTICES {
            self.notices.pop_front();
        }
        self.notices.push_back(lines.clone());
        self.commit(Part::Note, lines);
    }

    fn dim_note(&mut self, mark: &str, text: &str) {
        let lines = notes::note(mark, text, Style::DIM, self.columns());
        self.commit(Part::Note, lines);
    }

    fn log(&mut self, log: &Log<'_>) {
        let text = clean::one_line(&log.text.to_plain(), self.columns());
        if text.is_empty() {
            return;
        }
        if self.verbose {
            self.dim_note("|", &text);
            return;
        }
        if self.log.len() == LOG {
            self.log.pop_front();
        }
        self.log.push_back(text);
    }
}

/// Sessions and turns.
impl View {
    /// Shows the line of the session, unless it was shown.
    fn show_session(&mut self) {
        if self.shown_session.as_ref().is_some_and(|shown| shown.is_same(&self.session)) {
            return;
        }
        let line = self.session.line(self.home.as_deref(), self.verbose, self.columns());
        let Some(line) = line else { return };
        self.set_tail(Part::Session, super::wrap::chop(&line, self.columns()));
        self.shown_session = Some(self.session.clone());
    }

    fn session_changed(&mut self, before: &session::Session) {
        let tail_is_session = self.tail.as_ref().is_some_and(|tail| tail.part == Part::Session);
        if tail_is_session || self.shown_session.is_none() || !before.is_same(&self.session) {
            let same = before.is_same(&self.session);
            if tail_is_session || !same {
                self.shown_session = None;
            }
            self.show_session();
        } else if before.model != self.session.model && !before.model.is_empty() {
            let text = format!("model: {}", self.session.model);
            self.dim_note("·", &text);
        }
    }

    fn turn_started(&mut self, replay: bool, now: Instant) {
        self.end_replay(replay);
        self.turn = Turn { replay, ..Turn::default() };
        self.failed = false;
        if !replay {
            self.activity.begin(now);
        }
    }

    /// Separates what is replayed from what happens now.
    fn end_replay(&mut self, replay: bool) {
        if replay && !self.turn.replay {
            let line = Line::new("Earlier in this session", Style::DIM);
            self.commit(Part::Prompt, vec![line]);
        }
    }

    fn turn_ended(&mut self, ended: &TurnEnded<'_>, now: Instant) {
        self.end_proses();
        self.calls.clear();
        self.nested_in = None;
        let elapsed = self.elapsed(now);
        self.activity.end();
        if ended.replay || self.turn.replay {
            return;
        }
        self.show_final_text(ended);
        let cause = ended.cause.as_ref().map(ToString::to_string).unwrap_or_default();
        let shown = self.turn.errors.contains(&cause);
        self.failed = !matches!(ended.outcome, Outcome::Completed | Outcome::WaitingForClient);
        let lines = session::turn_ended(ended, shown, elapsed, self.columns());
        self.commit(Part::TurnEnd, lines);
        if self.failed && ended.outcome != Outcome::Cancelled {
            let log = std::mem::take(&mut self.log);
            self.show_log(log.iter().map(String::as_str));
        }
        self.turn.cause = cause;
    }

    /// Shows the final text of a turn in which the agent streamed none.
    fn show_final_text(&mut self, ended: &TurnEnded<'_>) {
        let text = ended.final_text.as_ref().filter(|text| !text.is_empty());
        let Some(text) = text.filter(|_| !self.turn.has_text) else { return };
        if ended.cause.as_ref() == Some(text) || self.turn.errors.iter().any(|it| *text == **it) {
            return;
        }
        // The grammar numbers blocks from zero, so no block has this number.
        self.prose(u64::MAX, &BlockKind::Text, text, None);
        self.block_ended(u64::MAX);
    }

    fn session_ended(&mut self, ended: &SessionEnded<'_>) {
        self.end_proses();
        self.activity.end();
        let in_cause = |words: String| self.turn.cause.contains(&words);
        let signal = ended.signal.filter(|it| !in_cause(format!("signal {it} ")));
        let code = ended.exit_code.filter(|it| *it != 0 && !in_cause(format!("code {it}")));
        let line = match (signal, code) {
            (Some(signal), _) => Some(format!("the agent was terminated by signal {signal}")),
            (None, Some(code)) => Some(format!("the agent exited with code {code}")),
            (None, None) => None,
        };
        if let Some(line) = line {
            let lines = notes::note("!", &line, Style::YELLOW, self.columns());
            self.commit(Part::Note, lines);
        }
        let Some(stderr) = ended.stderr.as_ref().filter(|_| self.failed || self.verbose) else {
            return;
        };
        let stderr = stderr.to_plain();
        let mut lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
        // The last line may have been shown as the cause of a failure.
        let turn = &self.turn;
        let is_shown = |line: &str| {
            turn.cause.contains(line) || turn.errors.iter().any(|error| error.contains(line))
        };
        lines.pop_if(|line| is_shown(line.trim()));
        self.show_log(lines.iter().skip(lines.len().saturating_sub(LOG)).copied());
    }

    fn show_log<'l>(&mut self, lines: impl Iterator<Item = &'l str>) {
        let columns = self.columns();
        let line = |line: &str| {
            let text = width::shortened(&clean::one_line(line, columns), columns.saturating_sub(2));
            Line::new(format!("│ {text}"), Style::DIM)
        };
        let lines: Vec<Line> = lines.map(line).collect();
        self.commit(Part::Note, lines);
    }

    fn user_message(&mut self, message: &UserMessage<'_>, event: &Event<'_>) {
        // The prompt of a sub-agent is in the line of its call.
        if (message.injected || event.parent.is_some()) && !self.verbose {
            return;
        }
        if !self.shows_prompts && !self.turn.replay {
            return;
        }
        let columns = self.columns();
        let text = message.text.to_plain();
        let further = text.trim().lines().count().saturating_sub(1);
        let end = match further {
            0 => String::new(),
            1 => " … +1 line".to_owned(),
            many => format!(" … +{many} lines"),
        };
        let first = text.trim().lines().next().unwrap_or_default();
        let room = columns.saturating_sub(2 + end.len()).max(10);
        let first = width::shortened(&clean::one_line(first, columns), room);
        let style = if self.turn.replay { Style::DIM } else { Style::BOLD };
        let line = Line::new("› ", Style::CYAN).with(first, style).with(end, Style::DIM);
        self.commit(Part::Prompt, vec![line]);
    }
}

/// Messages.
impl View {
    fn prose(&mut self, block: u64, kind: &BlockKind, text: &Text<'_>, parent: Option<&Text<'_>>) {
        if *kind == BlockKind::HiddenReasoning || text.is_empty() {
            return;
        }
        let at = self.proses.iter().position(|prose| prose.block == block);
        let at = at.unwrap_or_else(|| {
            let parent = parent.map(ToString::to_string);
            self.proses.push(Prose::new(block, kind, parent, self.look()));
            self.proses.len() - 1
        });
        self.turn.has_text |= *kind == BlockKind::Text && parent.is_none();
        let Some(prose) = self.proses.get_mut(at) else { return };
        let lines = prose.push(&text.to_plain());
        let parent = prose.parent.clone();
        self.commit_prose(block, parent.as_deref(), lines);
    }

    fn commit_prose(&mut self, block: u64, parent: Option<&str>, lines: Vec<Line>) {
        if lines.is_empty() {
            return;
        }
        match parent {
            Some(parent) => self.commit_nested(parent, lines),
            None => {
                self.nested_in = None;
                self.commit(Part::Prose(block), lines);
            }
        }
    }

    fn block_ended(&mut self, block: u64) {
        if let Some(at) = self.proses.iter().position(|prose| prose.block == block) {
            let prose = self.proses.remove(at);
            self.end_prose(prose);
        }
    }

    pub(super) fn end_prose(&mut self, prose: Prose) {
        let (block, parent) = (prose.block, prose.parent.clone());
        let lines = prose.finish();
        self.commit_prose(block, parent.as_deref(), lines);
    }

    fn end_proses(&mut self) {
        std::mem::take(&mut self.proses).into_iter().for_each(|prose| self.end_prose(prose));
    }

    fn block(&mut self, block: &Block<'_>, parent: Option<&Text<'_>>) {
        match &block.kind {
            BlockKind::Text | BlockKind::Reasoning => {
                self.prose(block.block, &block.kind, &block.text, parent);
                self.block_ended(block.block);
            }
            BlockKind::HiddenReasoning => {}
            other => {
                let text = format!("[{}] {}", other.as_str(), block.text);
                self.dim_note("·", &text);
            }
        }
    }

    /// Drops what was not final yet. What was is marked.
    fn withdrawn(&mut self, withdrawn: &Withdrawn<'_>) {
        let is_withdrawn = |block| withdrawn.blocks.iter().any(|it| it.block == block);
        let mut visible = withdrawn.blocks.iter().any(|it| !it.open);
        self.proses.retain(|prose| {
            let gone = is_withdrawn(prose.block);
            visible |= gone && prose.has_lines();
            !gone
        });
        if visible {
            self.dim_note("·", "the text above was withdrawn, and is written again");
        }
    }
}

/// Calls.
impl View {
    fn set_input(&mut self, id: &Text<'_>, input: Option<&Json<'_>>) {
        let Some(input) = input else { return };
        let columns = self.columns();
        let Self { calls, session, verbose, .. } = self;
        let folder = &*session.folder;
        let detail = Detail { columns, everything: *verbose, compact: false, folder };
        let call = calls.iter_mut().find(|call| *id == *call.id);
        call.into_iter().for_each(|call| call.set_input(input, detail));
    }

    fn tool_ended(&mut self, ended: &ToolEnded<'_>, parent: Option<&Text<'_>>, now: Instant) {
        let at = self.calls.iter().position(|call| ended.call == *call.id);
        let mut call = match at {
            Some(at) => self.calls.remove(at),
            None => Call::new(&ended.call, &ended.name, &ended.kind, now),
        };
        if call.parent.is_none() {
            call.parent = parent.map(ToString::to_string);
        }
        if call.is_shown_otherwise() && ended.status == ToolStatus::Completed {
            return;
        }
        let parent = call.parent.clone();
        let mut detail = self.detail();
        detail.compact |= parent.is_some() && !self.verbose;
        if parent.is_some() {
            detail.columns = detail.columns.saturating_sub(NESTED);
        }
        let lines = call.ended(ended, now, detail);
        match parent {
            Some(parent) => {
                let lines = lines.into_iter().map(|line| nested(line, NESTED)).collect();
                self.commit_nested(&parent, lines);
            }
            None => {
                self.nested_in = None;
                self.commit_calls(lines);
            }
        }
    }

    fn commit_calls(&mut self, lines: Vec<Line>) {
        let lines = match self.turn.replay {
            true => lines.into_iter().map(|line| line.styled(Style::DIM)).collect(),
            false => lines,
        };
        self.commit(Part::Call, lines);
    }

    /// Shows what a sub-agent does, below the line of the call that started it.
    fn commit_nested(&mut self, parent: &str, lines: Vec<Line>) {
        if self.nested_in.as_deref() != Some(parent) {
            self.nested_in = Some(parent.to_owned());
            let columns = self.columns();
            let call = self.calls.iter().find(|call| call.id == parent);
            let line = call.map(|call| call.announced(columns));
            let line = line.unwrap_or_else(|| Line::new("▸ Agent", Style::BOLD));
            self.commit_calls(vec![line]);
        }
        self.commit_calls(lines);
    }

    fn files_changed(&mut self, changed: &FilesChanged<'_>, event: &Event<'_>, now: Instant) {
        let detail = Detail { compact: self.turn.replay, ..self.detail() };
        let folder = detail.folder.to_owned();
        let detail = Detail { folder: &folder, ..detail };
        let id = changed.call.as_ref();
        let call = self.calls.iter_mut().find(|call| id.is_some_and(|id| *id == *call.id));
        match call {
            Some(call) => call.add_changes(&changed.changes, detail),
            None if event.synthetic == Some(Reason::Refused) => {}
            None => {
                let lines = calls::changes(&changed.changes, now, detail);
                self.commit_calls(lines);
            }
        }
    }

    fn plan_updated(&mut self, plan: &PlanUpdated<'_>, event: &Event<'_>) {
        if event.synthetic == Some(Reason::Refused) {
            return self.dim_note("·", "the plan was rejected");
        }
        let lines = plan::lines(plan, self.columns());
        if lines != self.plan {
            self.plan.clone_from(&lines);
            self.set_tail(Part::Plan, lines);
        }
    }

    fn permission_resolved(&mut self, resolved: &PermissionResolved<'_>) {
        if resolved.decision != Decision::Denied {
            return;
        }
        let id = resolved.call.as_ref();
        let call = self.calls.iter_mut().find(|call| id.is_some_and(|id| *id == *call.id));
        if let Some(call) = call {
            // The answer of the call shows it.
            return call.deny(resolved.reason.as_ref());
        }
        let tool = resolved.tool.as_ref().map_or_else(String::new, |tool| {
            format!("{}: ", calls::verb(&tool.to_plain(), &ToolKind::Unspecified))
        });
        let reason = resolved.reason.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
        let text = format!("{tool}denied{reason}");
        let lines = notes::note("⊘", &text, Style::YELLOW, self.columns());
        self.commit(Part::Note, lines);
    }

    fn subagent_started(&mut self, started: &SubagentStarted<'_>) {
        if started.call.is_some() {
            return;
        }
        let task = started.description.as_ref().or(started.kind.as_ref());
        let task = task.map(ToString::to_string).unwrap_or_default();
        let lines = notes::note("▸", &format!("Agent {task}"), Style::CYAN, self.columns());
        self.commit(Part::Call, lines);
    }

    fn subagent_ended(&mut self, ended: &SubagentEnded<'_>) {
        let summary = ended.summary.as_ref().map(ToString::to_string);
        let id = ended.call.as_ref();
        let call = self.calls.iter_mut().find(|call| id.is_some_and(|id| *id == *call.id));
        match call {
            Some(call) => call.summary = summary,
            None if id.is_some() => {}
            None => self.dim_note("·", &format!("agent done: {}", summary.unwrap_or_default())),
        }
    }
}
