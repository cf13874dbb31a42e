//! The commands of a session, each of which is answered: it was accepted, or why it was not.

use interlingua::event::Event;
use tokio::sync::{mpsc, oneshot};

use super::Stop;
use super::prompts::Prompt;
use crate::permission::{Always, Decision, Mode};

/// The number of commands that may wait.
const CAPACITY: usize = 16;

/// Sends commands to a session. Every call waits until the session has accepted or refused it, which
/// does not take longer than the session needs for one step; it never waits for the agent.
///
/// What answers or stops something has an effect in the stream of entries: these calls return the number
/// of the first entry after it took effect.
#[derive(Debug, Clone)]
pub struct Handle {
    commands: mpsc::Sender<Sent>,
}

/// Why a command was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The session has ended, or ends already.
    #[error("the session has ended")]
    Ended,
    /// The prompt is empty.
    #[error("the prompt is empty: describe what the agent should do")]
    EmptyPrompt,
    /// No such request is pending.
    #[error("no request or tool call `{id}` is waiting for an answer; {}", waiting(.pending))]
    UnknownRequest {
        /// The id that was given.
        id: String,
        /// The ids of the requests that are pending.
        pending: Vec<String>,
    },
    /// A permission request was answered like a question, or the reverse.
    #[error("the request `{id}` needs {needs}")]
    WrongAnswer {
        /// The id of the request.
        id: String,
        /// What it needs.
        needs: String,
    },
    /// There is no turn that could be interrupted or joined.
    #[error("no turn is running")]
    NoTurn,
    /// The agent cannot do this.
    #[error("{0}")]
    NotSupported(String),
    /// The agent could not be started for a prompt.
    #[error("{0}")]
    NotStarted(String),
}

impl Refused {
    /// A call of the client was decided as if it were a permission request.
    pub(crate) fn needs_result(call: &str) -> Self {
        let needs =
            "the result of the tool as its answer, or a reason why there is none".to_owned();
        Self::WrongAnswer { id: call.to_owned(), needs }
    }
}

fn waiting(pending: &[String]) -> String {
    match pending {
        [] => "none is".to_owned(),
        [one] => format!("the only one that is: {one}"),
        several => format!("those that are: {}", several.join(", ")),
    }
}

/// A command.
#[derive(Debug)]
pub(crate) enum Command {
    Prompt(Prompt),
    Decide { request: String, decision: Decision },
    AllowAlways { request: String, always: Always },
    Answer { request: String, answer: serde_json::Value },
    Decline { request: String, reason: String },
    Interrupt,
    SetModel(String),
    SetMode(Mode),
    Finish,
    Hold,
    Stop(Stop),
    Suspend,
    Resume,
    Emit(Box<Event<'static>>),
}

/// A command, and where its answer goes.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) command: Command,
    pub(crate) reply: Reply,
}

/// The answer to a command.
#[derive(Debug)]
pub(crate) struct Reply(oneshot::Sender<Result<u64, Refused>>);

impl Reply {
    /// Answers the command, with the number of the first entry after it took effect.
    pub(crate) fn send(self, answer: Result<u64, Refused>) {
        // The caller may not be interested any more.
        let _ = self.0.send(answer);
    }
}

/// The receiving side of a [`Handle`].
#[derive(Debug)]
pub(crate) struct Commands {
    received: mpsc::Receiver<Sent>,
}

impl Commands {
    /// A handle, and its receiving side.
    pub(crate) fn new() -> (Handle, Self) {
        let (commands, received) = mpsc::channel(CAPACITY);
        (Handle { commands }, Self { received })
    }

    /// The next command; `None` once all handles were dropped.
    pub(crate) async fn next(&mut self) -> Option<Sent> {
        self.received.recv().await
    }

    /// Refuses what still waits, and everything that follows.
    pub(crate) fn close(&mut self) {
        self.received.close();
        while let Ok(Sent { reply, .. }) = self.received.try_recv() {
            reply.send(Err(Refused::Ended));
        }
    }
}

impl Handle {
    /// Queues a prompt. It is sent when the turns before it have ended, unless it
    /// [joins](Prompt::joining) the running turn.
    pub async fn prompt(&self, prompt: impl Into<Prompt>) -> Result<(), Refused> {
        self.send(Command::Prompt(prompt.into())).await
    }

    /// Adds a prompt to the running turn. Without a running turn, it starts one. Returns the number of the
    /// first entry after that.
    pub async fn join(&self, text: impl Into<String>) -> Result<u64, Refused> {
        self.take(Command::Prompt(Prompt::joining(text))).await
    }

    /// Decides a permission request, which is named by its id, or by that of its tool call.
    pub async fn decide(&self, request: &str, decision: Decision) -> Result<u64, Refused> {
        self.take(Command::Decide { request: request.to_owned(), decision }).await
    }

    /// Allows a permission request, and for the rest of the session the same subject, whatever
    /// matches a pattern, or the tool as such. The agent only learns that this one request is
    /// allowed.
    pub async fn allow_always(&self, request: &str, always: Always) -> Result<u64, Refused> {
        self.take(Command::AllowAlways { request: request.to_owned(), always }).await
    }

    /// Answers a question. The answer is a text or a list of texts for a single question, an object
    /// with the answer to each question under its id or its text, or the content of a form.
    pub async fn answer(&self, request: &str, answer: serde_json::Value) -> Result<u64, Refused> {
        self.take(Command::Answer { request: request.to_owned(), answer }).await
    }

    /// Declines to answer a question, with a reason for the model.
    pub async fn decline(&self, request: &str, reason: &str) -> Result<u64, Refused> {
        let (request, reason) = (request.to_owned(), reason.to_owned());
        self.take(Command::Decline { request, reason }).await
    }

    /// Stops the running turn and the commands that it runs. Prompts that wait are sent afterwards.
    pub async fn interrupt(&self) -> Result<u64, Refused> {
        self.take(Command::Interrupt).await
    }

    /// Changes the model for the following turns.
    pub async fn set_model(&self, model: &str) -> Result<(), Refused> {
        self.send(Command::SetModel(model.to_owned())).await
    }

    /// Changes the permission mode, for all requests from now on.
    pub async fn set_mode(&self, mode: Mode) -> Result<(), Refused> {
        self.send(Command::SetMode(mode)).await
    }

    /// Ends the session when all prompts have had their turn. Until then, it takes further ones.
    pub async fn finish(&self) -> Result<(), Refused> {
        self.send(Command::Finish).await
    }

    /// Takes [`finish`](Self::finish) back, unless the session has begun to end.
    pub async fn hold(&self) -> Result<(), Refused> {
        self.send(Command::Hold).await
    }

    /// Ends the session now: the running turn is interrupted, and prompts that wait are dropped.
    pub async fn close(&self) -> Result<(), Refused> {
        self.stop(Stop::Closed).await
    }

    /// Ends the session now, for a reason. A second call escalates at once.
    pub async fn stop(&self, why: Stop) -> Result<(), Refused> {
        self.send(Command::Stop(why)).await
    }

    /// Suspends all processes of the session, until they are resumed.
    pub async fn suspend(&self) -> Result<(), Refused> {
        self.send(Command::Suspend).await
    }

    /// Resumes them. Time limits do not include the time between.
    pub async fn resume(&self) -> Result<(), Refused> {
        self.send(Command::Resume).await
    }

    /// Emits an event of the caller's, which becomes an entry between those of the agent.
    pub async fn emit(&self, event: Event<'static>) -> Result<(), Refused> {
        self.send(Command::Emit(Box::new(event))).await
    }

    async fn send(&self, command: Command) -> Result<(), Refused> {
        self.take(command).await.map(drop)
    }

    /// Sends a command; returns the number of the first entry after it took effect.
    async fn take(&self, command: Command) -> Result<u64, Refused> {
        let (reply, answer) = oneshot::channel();
        let sent = Sent { command, reply: Reply(reply) };
        self.commands.send(sent).await.map_err(|_| Refused::Ended)?;
        answer.await.unwrap_or(Err(Refused::Ended))
    }
}

/// Waits for a command to stop at once. A session that ends refuses all others.
pub(crate) async fn stopped_again(commands: &mut Commands) {
    loop {
        match commands.next().await {
            Some(Sent { command: Command::Stop(_), reply }) => return reply.send(Ok(0)),
            Some(Sent { reply, .. }) => reply.send(Err(Refused::Ended)),
            None => std::future::pending().await,
        }
    }
}
