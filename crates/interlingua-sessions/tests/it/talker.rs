//! A host whose agent is a shell script that plays Claude Code.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use interlingua::Entry;
use interlingua::event::{Data, Outcome};
use interlingua_agents::agent::Launch;
use interlingua_agents::agent::program::Program;
use interlingua_agents::driver::ClaudeDriver;
use interlingua_agents::{ClientTool, ClientToolServer, Error, Options, ProcessAgent, Request};
use interlingua_sessions::host::{
    Command, HostLimits, Launcher, Logs, NewSession, Prepared, Received,
};
use interlingua_sessions::{
    Acknowledgement, Host, MemoryStore, SessionId, SessionRecord, State, Store,
};
use tempfile::TempDir;

use crate::support::{key, parsed};

/// Reacts to words of its prompt, and otherwise repeats it: `wait` (until it is interrupted), `die`,
/// `flood` (prints without a pause), `steps` (prints 30 times, each time after the pipe `go` was written), `touch` (asks for a permission), `ask` (asks a question).
/// With tools of the client, `dial` calls one of them, and `dial two` makes two calls at once.
/// Late results let it say `resumed`. Every prompt and every result is added to a file, and its process id to another.
const TALKER: &str = r#"#!/bin/sh
say() { echo '{"type":"assistant","message":{"id":"m'$n'","role":"assistant","content":[{"type":"text","text":"'"$1"'"}]},"session_id":"s1","uuid":"u'$n'"}'; }
end() { echo '{"type":"result","subtype":"'$1'","is_error":'$2',"terminal_reason":"'$3'","result":"","session_id":"s1","uuid":"r'$n'"}'; }
request() { echo '{"type":"control_request","request_id":"q'$n'","request":{"subtype":"can_use_tool","tool_name":"'$1'","input":'"$2"',"tool_use_id":"c'$n'"}}'; }
# dial CALL: calls a tool of the client, under this id
dial() {
  open=$((open+1))
  echo '{"type":"assistant","message":{"id":"m'$n'","role":"assistant","content":[{"type":"tool_use","id":"'$1'","name":"mcp__interlingua__getFormSnapshot","input":{"instruction":"all"}}]},"session_id":"s1","parent_tool_use_id":null,"uuid":"'$1'"}'
  echo '{"type":"control_request","request_id":"r'$1'","request":{"subtype":"mcp_message","server_name":"interlingua","message":{"jsonrpc":"2.0","id":"'$1'","method":"tools/call","params":{"name":"getFormSnapshot","arguments":{"instruction":"all"},"_meta":{"claudecode/toolUseId":"'$1'"}}}}}'
}
n=$$ open=0
echo $$ > pid
while read -r line; do
  case $line in
    *'"subtype":"interrupt"'*) end error_during_execution true aborted_streaming; continue;;
    *'"mcp_response"'*)
      printf '%s\n' "$line" >> received
      open=$((open-1)); test $open -gt 0 && continue
      say connected; end success false completed; continue;;
    *'"control_response"'*)
      case $line in
        *'"behavior":"allow"'*'"answers"'*) say answered;;
        *'"behavior":"allow"'*) say allowed;;
        *) say denied;;
      esac
      end success false completed; continue;;
    *'"type":"user"'*) ;;
    *) continue;;
  esac
  n=$((n+1))
  printf '%s\n' "$line" >> received
  echo '{"type":"system","subtype":"init","session_id":"s1","model":"m","cwd":"/w","tools":[],"uuid":"i'$n'"}'
  case $line in
    *'take the following results'*) say resumed; end success false completed;;
    *'dial two'*) dial t$n; dial u$n; continue;;
    *dial*) dial t$n; continue;;
    *die*) say begins; exit 7;;
    *wait*) say begins; continue;;
    *flood*) i=0; while [ $i -lt 2000 ]; do i=$((i+1)); n=$((n+1)); say more; done; : > flooded; continue;;
    *steps*) mkfifo go; i=0; while [ $i -lt 30 ]; do i=$((i+1)); n=$((n+1)); say more; until read -r _ < go; do :; done; done; end success false completed; continue;;
    *touch*) request Bash '{"command":"touch x"}'; continue;;
    *ask*) request AskUserQuestion '{"questions":[{"question":"Which?","header":"W","options":[{"label":"Red","description":"r"},{"label":"Blue","description":"b"}],"multiSelect":false}]}'; continue;;
    *) text=${line#*content\":\"}; say "${text%%\"*}"; end success false completed;;
  esac
done
"#;

/// Launches the script, and notes each launch.
pub(crate) struct Scripts {
    folder: TempDir,
    pub(crate) launches: Mutex<Vec<SessionRecord>>,
    received: Received,
    /// Whether the agent has received a text, whatever it did of the rest.
    pub(crate) has: Mutex<Option<(&'static str, Received)>>,
    /// The times since which a prompt was looked for.
    pub(crate) looked_since: Mutex<Vec<u64>>,
    /// Called once, when the first agent is launched.
    pub(crate) at_launch: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// The agent has lost its own sessions.
    pub(crate) has_forgotten: AtomicBool,
    client_tools: OnceLock<ClientToolServer>,
    /// Folders that exist as long as the processes of agents with tools of the client.
    scratches: Mutex<Vec<PathBuf>>,
}

impl Scripts {
    pub(crate) fn new(received: Received) -> Arc<Self> {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("talker");
        std::fs::write(&script, TALKER).unwrap();
        let description = format!(
            "command = \"/bin/sh\"\narguments = [{:?}]\ndialect = \"claude\"\nprompt = \"protocol\"\n",
            script.display().to_string()
        );
        std::fs::write(folder.path().join("talker.toml"), description).unwrap();
        Arc::new(Self {
            folder,
            launches: Mutex::default(),
            received,
            has: Mutex::default(),
            looked_since: Mutex::default(),
            at_launch: Mutex::default(),
            has_forgotten: AtomicBool::new(false),
            client_tools: OnceLock::new(),
            scratches: Mutex::default(),
        })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// How often the agent received a text.
    pub(crate) fn times(&self, text: &str) -> usize {
        let received = std::fs::read_to_string(self.path("received")).unwrap_or_default();
        received.lines().filter(|line| line.contains(text)).count()
    }

    /// The last that the agent received.
    pub(crate) fn last_received(&self) -> String {
        let received = std::fs::read_to_string(self.path("received")).unwrap();
        received.lines().last().unwrap().to_owned()
    }
}

impl Scripts {
    /// The script as an agent that calls the client's tools over its control channel.
    fn calling(
        &self,
        record: &SessionRecord,
        launch: Result<Launch, Error>,
    ) -> Result<ProcessAgent, Error> {
        let mut launch = launch?;
        let server = self.client_tools.get_or_init(|| ClientToolServer::start().unwrap());
        let offer = Arc::new(server.offer(record.tools.clone()).unwrap());
        launch.driver = Box::new(ClaudeDriver::default().with_client_tools(offer.tools()));
        launch.client_tools.passes_ids = true;
        let scratch = tempfile::tempdir_in(self.folder.path()).unwrap();
        self.scratches.lock().unwrap().push(scratch.path().to_owned());
        launch.scratch = Some(scratch);
        Ok(ProcessAgent::new(launch).with_client_tools(Some(offer)))
    }

    /// Kills the agent that was started last, and waits until its session knows.
    pub(crate) async fn kill_caller(&self) {
        let pid = std::fs::read_to_string(self.path("pid")).unwrap();
        let killed = std::process::Command::new("kill").args(["-9", pid.trim()]).status();
        assert!(killed.unwrap().success());
        let scratch = self.scratches.lock().unwrap().last().unwrap().clone();
        within(async {
            while scratch.exists() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

impl Launcher for Scripts {
    fn check(&self, record: &SessionRecord) -> Result<(), String> {
        match &*record.agent {
            "talker" | "missing" => Ok(()),
            other => Err(format!("no agent is called `{other}`")),
        }
    }

    fn needs_log(&self, _record: &SessionRecord) -> bool {
        false
    }

    fn prepare(&self, record: &SessionRecord, _logs: &Logs) -> Result<Prepared, String> {
        self.launches.lock().unwrap().push(record.clone());
        let at_launch = self.at_launch.lock().unwrap().take();
        if let Some(at_launch) = at_launch {
            at_launch();
        }
        if record.agent == "missing" {
            return Err("the agent is not installed".to_owned());
        }
        let program = Program::read(&self.path("talker.toml")).map_err(|it| it.to_string())?;
        let request = Request { folder: self.folder.path().to_owned(), ..Request::default() };
        let agent = match &*record.tools {
            [] => program.prepare(&request),
            _ => self.calling(record, program.launch(&request)),
        };
        let agent = agent.map_err(|it| it.to_string())?;
        Ok(Prepared { agent: Box::new(agent), options: Options::default() })
    }

    fn remembers(&self, _: &SessionRecord) -> Option<bool> {
        self.has_forgotten.load(Ordering::SeqCst).then_some(false)
    }

    fn received(&self, _record: &SessionRecord, prompt: &str, since: u64) -> Received {
        self.looked_since.lock().unwrap().push(since);
        match *self.has.lock().unwrap() {
            Some((known, received)) if known == prompt => received,
            _ => self.received,
        }
    }
}

/// A host with the script as its agent, and a store in memory.
pub(crate) struct Fixture {
    pub(crate) host: Host,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) scripts: Arc<Scripts>,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::with(HostLimits::default()).await
    }

    pub(crate) async fn with(limits: HostLimits) -> Self {
        let (store, scripts) = (Arc::new(MemoryStore::default()), Scripts::new(Received::Unknown));
        let host = Host::open(store.clone(), scripts.clone(), limits).await.unwrap();
        Self { host, store, scripts }
    }

    pub(crate) async fn create(&self, prompt: &str) -> SessionId {
        let prompt = Some(prompt.to_owned());
        let new = NewSession { agent: "talker".to_owned(), prompt, ..NewSession::default() };
        self.host.create(new).await.unwrap().id
    }

    /// A session with tools of the client, which waits for it.
    pub(crate) async fn dial(&self, prompt: &str) -> (SessionId, Vec<String>) {
        let count = if prompt.contains("two") { 2 } else { 1 };
        let (agent, prompt) = ("talker".to_owned(), Some(prompt.to_owned()));
        let new = NewSession { agent, prompt, tools: ClientTool::form(), ..NewSession::default() };
        let id = within(self.host.create(new)).await.unwrap().id;
        let calls = self.until_called(&id, count).await;
        (id, calls)
    }

    /// Waits until these many calls wait for the client; returns them.
    pub(crate) async fn until_called(&self, id: &SessionId, count: usize) -> Vec<String> {
        let calls = |record: &SessionRecord| match &record.state {
            State::Waiting { waiting } => {
                waiting.iter().map(|it| it.request().to_owned()).collect()
            }
            _ => Vec::new(),
        };
        self.until_record(id, |record| calls(record).len() == count).await;
        calls(&self.store.load(id).await.unwrap().unwrap())
    }

    pub(crate) async fn send(
        &self,
        id: &SessionId,
        name: &str,
        command: Command,
    ) -> Acknowledgement {
        within(self.host.command(id, key(name), command)).await.unwrap()
    }

    /// Waits until the entries of a session satisfy a condition; returns them.
    pub(crate) async fn until(
        &self,
        id: &SessionId,
        done: impl Fn(&[Entry]) -> bool,
    ) -> Vec<Entry> {
        let mut tail = self.store.watch(id);
        loop {
            let log = log(&*self.store, id).await;
            if done(&log) {
                return log;
            }
            within(tail.changed()).await.unwrap();
        }
    }

    /// Waits until the record of a session satisfies a condition.
    pub(crate) async fn until_record(&self, id: &SessionId, done: impl Fn(&SessionRecord) -> bool) {
        within(async {
            while !self.store.load(id).await.unwrap().is_some_and(|record| done(&record)) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    /// Waits until a command is stored.
    pub(crate) async fn until_stored(&self, id: &SessionId, name: &str) {
        within(async {
            while self.store.acknowledged(id, &key(name)).await.unwrap().is_none() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    pub(crate) async fn until_turns(&self, id: &SessionId, count: usize) -> Vec<Entry> {
        self.until(id, |log| outcomes(log).len() >= count).await
    }
}

pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work).await.unwrap()
}

pub(crate) async fn log(store: &dyn Store, id: &SessionId) -> Vec<Entry> {
    parsed(&store.read(id, 0, usize::MAX).await.unwrap().lines)
}

pub(crate) fn outcomes(log: &[Entry]) -> Vec<Outcome> {
    let outcome = |entry: &Entry| match &entry.event.data {
        Data::TurnEnded(ended) => Some(ended.outcome.clone()),
        _ => None,
    };
    log.iter().filter_map(outcome).collect()
}

pub(crate) fn texts(log: &[Entry]) -> Vec<String> {
    let text = |entry: &Entry| match &entry.event.data {
        Data::Block(block) => Some(block.text.to_string()),
        _ => None,
    };
    log.iter().filter_map(text).collect()
}

pub(crate) fn kinds(log: &[Entry]) -> Vec<&'static str> {
    log.iter().map(|entry| entry.event.data.kind()).collect()
}

pub(crate) fn prompt(text: &str) -> Command {
    Command::prompt(text)
}
