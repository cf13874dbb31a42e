//! Commands that outlive their call.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::running::Running;
use crate::tool::grep::{PATTERN_CACHE, PATTERN_SIZE};
use crate::tool::{Failure, Outcome, Output};

/// How many commands may run at the same time.
const MAX_RUNNING: usize = 16;

/// How many bytes of output are kept until they are asked for.
const MAX_UNREAD: usize = 60_000;

/// Background commands have no time limit of their own.
const UNLIMITED: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// The background commands of a session.
#[derive(Debug, Default)]
pub(super) struct Backgrounds {
    all: Mutex<Vec<Arc<Background>>>,
}

#[derive(Debug)]
struct Background {
    id: String,
    unread: Mutex<Unread>,
    /// Asks the command to end.
    kill: Notify,
    /// How it ended, once it has.
    end: watch::Sender<Option<Ended>>,
}

#[derive(Debug, Clone)]
struct Ended {
    code: Option<i64>,
    description: String,
    killed: bool,
}

/// Output that was not asked for yet.
#[derive(Debug, Default)]
struct Unread {
    text: String,
    /// How many bytes before it were dropped.
    dropped: usize,
}

#[derive(Debug, Deserialize)]
pub(super) struct OutputInput {
    bash_id: String,
    filter: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct KillInput {
    shell_id: String,
}

impl Backgrounds {
    fn all(&self) -> MutexGuard<'_, Vec<Arc<Background>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that another command may start.
    pub(super) fn check_room(&self) -> Result<(), Failure> {
        let running = self.all().iter().filter(|one| one.ended().is_none()).count();
        match running < MAX_RUNNING {
            true => Ok(()),
            false => Err(Failure(format!(
                "{MAX_RUNNING} background commands are running; end one of them with KillShell"
            ))),
        }
    }

    /// Lets a command run in the background.
    pub(super) fn add(&self, running: Running, path: &Path) -> Output {
        let mut all = self.all();
        let id = format!("bash_{}", all.len() + 1);
        let background = Arc::new(Background {
            id: id.clone(),
            unread: Mutex::default(),
            kill: Notify::new(),
            end: watch::Sender::new(None),
        });
        tokio::spawn(background.clone().run(running));
        all.push(background);
        let mut output = Output::completed(format!(
            "The command runs in the background as {id}. BashOutput returns its output, KillShell \
             ends it. The output is also written to {}.",
            path.display()
        ));
        output.structured = Some(json!({"bash_id": id, "output_file": path}));
        output
    }

    fn find(&self, id: &str) -> Result<Arc<Background>, Failure> {
        let all = self.all();
        let found = all.iter().find(|background| background.id == id).cloned();
        found.ok_or_else(|| {
            let known: Vec<_> = all.iter().map(|background| &*background.id).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Failure(format!("there is no background command `{id}`; there are: {known}"))
        })
    }

    /// What is new since the last call.
    pub(super) fn output(&self, input: &OutputInput) -> Outcome {
        let mut builder = RegexMatcherBuilder::new();
        builder.line_terminator(Some(b'\n'));
        builder.size_limit(PATTERN_SIZE).dfa_size_limit(PATTERN_CACHE);
        let filter = input.filter.as_deref().map(|filter| builder.build(filter)).transpose();
        let filter = filter.map_err(|problem| {
            Failure(format!("`filter` is not a regular expression: {problem}"))
        })?;
        let background = self.find(&input.bash_id)?;
        // Before the output is taken, so that nothing is printed between the two.
        let ended = background.ended();
        let mut text = background.take(filter.as_ref(), ended.is_some());
        if text.trim().is_empty() {
            text = "(no new output)\n".to_owned();
        }
        let id = &background.id;
        let state = match &ended {
            None => format!("({id} is still running)"),
            Some(end) => format!("({id} has ended: {})", end.description),
        };
        let mut output = Output::completed(format!("{}\n{state}", text.trim_end()));
        output.exit_code = ended.as_ref().and_then(|end| end.code);
        output.structured = Some(json!({
            "status": match &ended {
                None => "running",
                Some(end) if end.killed => "killed",
                Some(_) => "completed",
            },
            "exit_code": output.exit_code,
        }));
        Ok(output)
    }

    /// Ends a command.
    pub(super) async fn kill(&self, input: &KillInput) -> Outcome {
        let background = self.find(&input.shell_id)?;
        let id = &background.id;
        if let Some(end) = background.ended() {
            return Err(Failure(format!("{id} has already ended: {}", end.description)));
        }
        background.end().await;
        Ok(Output::completed(format!("{id} was ended, with all its processes.")))
    }

    /// Ends all commands.
    pub(super) async fn close(&self) {
        let all = self.all().clone();
        all.iter().for_each(|background| background.kill.notify_one());
        for background in all {
            background.end().await;
        }
    }
}

/// A task that is not awaited any more ends its command, too.
impl Drop for Backgrounds {
    fn drop(&mut self) {
        self.all().iter().for_each(|background| background.kill.notify_one());
    }
}

impl Background {
    fn ended(&self) -> Option<Ended> {
        self.end.borrow().clone()
    }

    /// Ends the command, and waits until it has ended.
    async fn end(&self) {
        self.kill.notify_one();
        let mut end = self.end.subscribe();
        // The sender is this value itself, so it is not dropped meanwhile.
        let _ = end.wait_for(Option::is_some).await;
    }

    async fn run(self: Arc<Self>, mut running: Running) {
        let mut printed = |text: &str| self.unread().push(text);
        let until = Instant::now() + UNLIMITED;
        let exited = tokio::select! {
            exited = running.follow(until, &mut printed) => exited,
            () = self.kill.notified() => None,
        };
        let killed = exited.is_none();
        let end = match exited {
            Some(status) => running.ended(Some(status), false, &mut printed).await,
            None => running.end(false, &mut printed).await,
        };
        let description = match (killed, end.description()) {
            (true, _) => "it was killed".to_owned(),
            (false, Some(description)) => description,
            (false, None) => "exit code 0".to_owned(),
        };
        self.end.send_replace(Some(Ended { code: end.code, description, killed }));
    }

    fn unread(&self) -> MutexGuard<'_, Unread> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the output, or those of its lines that match. A line that is not complete waits for
    /// its end, if lines are filtered.
    fn take(&self, filter: Option<&RegexMatcher>, has_ended: bool) -> String {
        let mut unread = self.unread();
        let dropped = std::mem::take(&mut unread.dropped);
        let mut text = std::mem::take(&mut unread.text);
        if let Some(filter) = filter {
            let complete = text.rfind('\n').map_or(0, |at| at + 1);
            if !has_ended {
                unread.text = text.split_off(complete);
            }
            let matches = |line: &&str| filter.is_match(line.as_bytes()).unwrap_or(false);
            text =
                text.lines().filter(matches).fold(String::new(), |text, line| text + line + "\n");
        }
        match dropped {
            0 => text,
            dropped => format!("[… {dropped} bytes before this were dropped …]\n{text}"),
        }
    }
}

impl Unread {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        if self.text.len() > 2 * MAX_UNREAD {
            let excess = self.text.ceil_char_boundary(self.text.len() - MAX_UNREAD);
            self.text.drain(..excess);
            self.dropped += excess;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_output_is_bounded() {
        let mut unread = Unread::default();
        for _ in 0..100_000 {
            unread.push("zeile ä\n");
        }
        assert!(unread.text.len() <= 2 * MAX_UNREAD);
        assert_eq!(unread.text.len() + unread.dropped, 100_000 * "zeile ä\n".len());
    }
}
