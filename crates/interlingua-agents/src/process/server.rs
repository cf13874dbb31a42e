//! Agents that are servers: HTTP on loopback, turned into lines.
//!
//! Such an agent prints the address at which it listens, and streams its events to every client.
//! The bridge appends each event, as one line, to the spool from which every agent's output is read,
//! so a slow reader never slows the agent down. A record that is written to the agent describes a
//! request, and its response is a line too:
//!
//! ```text
//! {"id":1,"method":"POST","path":"/session","body":{}}
//! {"id":1,"status":200,"body":{"id":"ses_1"}}
//! {"id":2,"error":"the connection was closed"}
//! {"stream":"connected"}
//! {"stream":"lost"}
//! {"stream":"failed","error":"the server answered with status 401"}
//! ```
//!
//! The last three report the state of the event stream. A lost stream is opened again for as long as
//! the process lives; what was missed is for the driver to find out. The bridge knows nothing of
//! what requests and events mean, and does not end the server.

mod output;
mod password;
#[cfg(test)]
mod tests;

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::Spool;
use output::{Lines, Output};
pub(super) use password::Password;

/// How an agent serves HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The text on standard output that precedes the address.
    pub announcement: &'static str,
    /// The path of the stream of events.
    pub events: &'static str,
    /// The type of an event that only keeps the connection alive; it is dropped.
    pub heartbeat: &'static str,
    /// The user name.
    pub user: &'static str,
    /// The environment variable through which the agent receives the password of the run.
    pub password_variable: &'static str,
}

/// The time limit of a request. Requests that last as long as a turn must not be used.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);

/// The delay before a lost stream of events is opened again.
const RECONNECT_DELAY: Duration = Duration::from_millis(100);

/// How long to wait for the last events of a server that has exited.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The task that turns HTTP into lines.
#[derive(Debug)]
pub(super) struct Bridge {
    task: JoinHandle<()>,
    exited: watch::Sender<bool>,
    /// A line could not be written.
    failed: watch::Receiver<bool>,
}

impl Bridge {
    /// Starts the bridge of a server that prints into the one spool. Returns the queue for requests.
    pub(super) fn start(
        server: Server,
        password: Password,
        stdout: Spool,
        output: std::fs::File,
    ) -> io::Result<(Self, mpsc::UnboundedSender<Vec<u8>>)> {
        crate::tls::prepare();
        // A proxy would receive the password.
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(io::Error::other)?;
        let (requests, queue) = mpsc::unbounded_channel();
        let (exited, has_exited) = watch::channel(false);
        let (output, failed) = Output::new(output);
        let connection = Connection {
            client,
            base: String::new(),
            server,
            password,
            output,
            exited: has_exited,
        };
        let task = tokio::spawn(connection.run(stdout, queue));
        Ok((Self { task, exited, failed }, requests))
    }

    /// Waits until a line cannot be written: the rest of the output would be lost.
    pub(super) async fn failed(&mut self) {
        if self.failed.wait_for(|failed| *failed).await.is_err() {
            std::future::pending().await
        }
    }

    /// Waits until everything that the server sent was written, once all processes have ended.
    pub(super) async fn done(mut self) {
        // The task may have ended.
        let _ = self.exited.send(true);
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, &mut self.task).await;
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A request, as a record describes it.
#[derive(Deserialize)]
struct Request {
    id: u64,
    method: String,
    path: String,
    body: Option<Box<RawValue>>,
}

/// The line for a response.
#[derive(Serialize)]
struct Response {
    id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The line for the state of the event stream.
#[derive(Serialize)]
struct StreamState<'a> {
    stream: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl StreamState<'_> {
    const CONNECTED: Self = Self { stream: "connected", error: None };
    const LOST: Self = Self { stream: "lost", error: None };

    fn failed(error: String) -> Self {
        Self { stream: "failed", error: Some(error) }
    }
}

/// A connection to a server.
#[derive(Debug, Clone)]
struct Connection {
    client: reqwest::Client,
    /// The address, without a path.
    base: String,
    server: Server,
    password: Password,
    output: Output,
    exited: watch::Receiver<bool>,
}

impl Connection {
    async fn run(mut self, stdout: Spool, queue: mpsc::UnboundedReceiver<Vec<u8>>) {
        let (address, found) = watch::channel(None);
        let printed = follow_stdout(stdout, address, self.clone());
        let served = async {
            let Some(base) = self.found(found).await else { return };
            self.base = base;
            tokio::join!(self.clone().follow_events(), self.clone().perform_all(queue));
        };
        tokio::join!(printed, served);
    }

    /// Waits for the address; `None` if the process exits without one, or it is not on loopback.
    async fn found(&self, mut found: watch::Receiver<Option<String>>) -> Option<String> {
        let line = found.wait_for(Option::is_some).await.ok()?.clone()?;
        let base = loopback_address(&line);
        if base.is_none() {
            let error = format!("the server listens at an address that is not on loopback: {line}");
            self.output.record(&StreamState::failed(error));
        }
        base
    }

    /// Copies events until the process has exited.
    async fn follow_events(mut self) {
        loop {
            match self.open_events().await {
                Ok(response) => {
                    if !self.output.record(&StreamState::CONNECTED) {
                        return;
                    }
                    self.copy_events(response).await;
                    if *self.exited.borrow() || !self.output.record(&StreamState::LOST) {
                        return;
                    }
                }
                Err(Refused::Permanently(error)) => {
                    self.output.record(&StreamState::failed(error));
                    return;
                }
                Err(Refused::ForNow) => {}
            }
            tokio::select! {
                _ = self.exited.wait_for(|exited| *exited) => return,
                () = tokio::time::sleep(RECONNECT_DELAY) => {}
            }
        }
    }

    async fn open_events(&self) -> Result<reqwest::Response, Refused> {
        let request = self.client.get(format!("{}{}", self.base, self.server.events));
        let response = self.password.authorize(request, self.server.user).send().await;
        let response = response.map_err(|_| Refused::ForNow)?;
        let status = response.status();
        if status.is_server_error() {
            return Err(Refused::ForNow);
        }
        if !status.is_success() {
            let error = format!("the server answered with status {}", status.as_u16());
            return Err(Refused::Permanently(error));
        }
        Ok(response)
    }

    async fn copy_events(&self, mut response: reqwest::Response) {
        let mut events = output::Events::new(self.server.heartbeat);
        while let Ok(Some(chunk)) = response.chunk().await {
            if !events.copy(&chunk, &self.output) {
                return;
            }
        }
    }

    /// Performs requests side by side until the process has exited.
    async fn perform_all(mut self, mut queue: mpsc::UnboundedReceiver<Vec<u8>>) {
        let (mut lines, mut running) = (Lines::default(), JoinSet::new());
        loop {
            tokio::select! {
                _ = self.exited.wait_for(|exited| *exited) => return,
                Some(_) = running.join_next() => {}
                piece = queue.recv() => match piece {
                    Some(piece) => lines.each(&piece, |line| {
                        if let Ok(request) = serde_json::from_str::<Request>(line) {
                            running.spawn(perform(
                                self.client.clone(),
                                format!("{}{}", self.base, request.path),
                                self.password.clone(),
                                self.server.user,
                                request,
                                self.output.clone(),
                            ));
                        }
                    }),
                    // No further request follows.
                    None => return,
                },
            }
        }
    }
}

/// Why events are not served.
enum Refused {
    ForNow,
    Permanently(String),
}

async fn perform(
    client: reqwest::Client,
    address: String,
    password: Password,
    user: &str,
    request: Request,
    output: Output,
) {
    let id = request.id;
    let response = match respond(client, address, password, user, request).await {
        Ok((status, body)) => Response { id, status: Some(status), body: Some(body), error: None },
        // The address has no secrets, but it is of no interest either.
        Err(problem) => Response {
            id,
            status: None,
            body: None,
            error: Some(problem.without_url().to_string()),
        },
    };
    output.record(&response);
}

async fn respond(
    client: reqwest::Client,
    address: String,
    password: Password,
    user: &str,
    request: Request,
) -> reqwest::Result<(u16, Box<RawValue>)> {
    let method = request.method.parse().unwrap_or_default();
    let mut prepared = client.request(method, address).timeout(REQUEST_TIMEOUT);
    if let Some(body) = request.body {
        prepared = prepared
            .header(reqwest::header::CONTENT_TYPE, "application/json")
            .body(String::from(Box::<str>::from(body)));
    }
    let response = password.authorize(prepared, user).send().await?;
    let status = response.status().as_u16();
    Ok((status, output::json(response.text().await?)))
}

/// Copies what the server prints, and reports the address that follows the announcement.
async fn follow_stdout(
    mut stdout: Spool,
    address: watch::Sender<Option<String>>,
    mut connection: Connection,
) {
    let mut lines = Lines::default();
    loop {
        // The process may print between the last read and its exit.
        let is_last = *connection.exited.borrow();
        while let Ok(piece @ [_, ..]) = stdout.read() {
            lines.each(piece, |line| match line.split_once(connection.server.announcement) {
                Some((_, rest)) if address.borrow().is_none() => {
                    address.send_replace(Some(rest.trim().to_owned()));
                }
                _ => {
                    connection.output.line(line);
                }
            });
        }
        if is_last {
            if let Some(rest) = lines.rest() {
                connection.output.line(&rest);
            }
            return;
        }
        tokio::select! {
            () = stdout.grown() => {}
            _ = connection.exited.wait_for(|exited| *exited) => {}
        }
    }
}

/// An address without its path, if it is plain HTTP on loopback.
fn loopback_address(text: &str) -> Option<String> {
    let address = reqwest::Url::parse(text).ok()?;
    let host: std::net::IpAddr =
        address.host_str()?.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
    let is_ours = address.scheme() == "http" && host.is_loopback() && address.username().is_empty();
    let origin = address.origin().ascii_serialization();
    is_ours.then_some(origin)
}
