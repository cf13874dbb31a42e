//! The sessions of a server, over HTTP.
//!
//! A server limits how often it is asked, and may be restarted meanwhile. A request can be repeated, because a
//! command has a key, so what the server does not take now is sent again for a while. Only the deletion of a session is not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use interlingua::Entry;
use interlingua_sessions::host::Command;
use interlingua_sessions::{Acknowledgement, IdempotencyKey};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::source::Page;

/// The variable that contains the token.
const TOKEN: &str = interlingua_agents::SERVER_TOKEN;

/// How long the server may be silent. A long-poll is answered earlier.
const SILENCE: Duration = Duration::from_secs(90);

/// How long a request is sent again.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pauses before a request is sent again, unless the server names one.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The pause if a server is busy and names none.
const BUSY_PAUSE: Duration = Duration::from_secs(1);

/// A server.
#[derive(Debug)]
pub(super) struct Remote {
    client: Client,
    base: String,
    token: String,
    /// It has answered before. A wrong address is reported at once.
    has_answered: AtomicBool,
}

/// A complete answer.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    fn json<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.body)
            .context("the answer is not that of an `interlingua serve`")
    }

    /// How long to wait before the request is sent again, if the server does not take it now.
    fn pause(&self) -> Option<Duration> {
        let is_busy =
            matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let named = self.header(RETRY_AFTER.as_str()).and_then(|seconds| seconds.parse().ok());
        is_busy.then(|| named.map_or(BUSY_PAUSE, Duration::from_secs))
    }
}

impl Remote {
    pub(super) fn new(url: &str) -> Result<Self> {
        let parsed = reqwest::Url::parse(url).with_context(|| format!("the address {url:?}"))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            bail!("the address of a server begins with http:// or https://, unlike {url:?}");
        }
        let token = std::env::var(TOKEN).unwrap_or_default().trim().to_owned();
        if token.is_empty() {
            bail!("set {TOKEN} to the token of the server");
        }
        interlingua_agents::prepare_tls();
        let client = Client::builder()
            .read_timeout(SILENCE)
            .user_agent(concat!("interlingua/", env!("CARGO_PKG_VERSION")))
            // A redirect would send the token to another host.
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        let base = url.trim_end_matches('/').to_owned();
        Ok(Self { client, base, token, has_answered: AtomicBool::new(false) })
    }

    pub(super) async fn list(&self) -> Result<Vec<Value>> {
        let (mut all, mut path) = (Vec::new(), "/v1/sessions?limit=1000".to_owned());
        loop {
            let mut list: Value = self.send(self.request(Method::GET, &path)).await?.json()?;
            match list.get_mut("sessions").map(Value::take) {
                Some(Value::Array(sessions)) => all.extend(sessions),
                _ => bail!("this is not the list of sessions of an `interlingua serve`"),
            }
            match list.get("next").and_then(Value::as_str) {
                Some(next) => path = format!("/v1/sessions?limit=1000&after={next}"),
                None => return Ok(all),
            }
        }
    }

    pub(super) async fn session(&self, id: &str) -> Result<Value> {
        let path = format!("/v1/sessions/{}", named(id)?);
        self.send(self.request(Method::GET, &path)).await?.json()
    }

    /// Reads on; with `waits`, until there is something new or the server gives up.
    pub(super) async fn read(&self, id: &str, from: u64, waits: bool) -> Result<Page> {
        let live = if waits { "&live=long-poll" } else { "" };
        let path = format!("/v1/sessions/{}/events?offset={from:020}{live}", named(id)?);
        let answer = self.send(self.request(Method::GET, &path)).await?;
        let next = answer.header("stream-next-offset").and_then(|next| next.parse().ok());
        let next = next.context("the answer has no `Stream-Next-Offset`")?;
        let closed = answer.header("stream-closed") == Some("true");
        let up_to_date = answer.header("stream-up-to-date") == Some("true");
        let entries: Vec<Entry> =
            if answer.body.is_empty() { Vec::new() } else { answer.json()? };
        Ok(Page { entries, next, closed, up_to_date })
    }

    pub(super) async fn command(
        &self,
        id: &str,
        key: &IdempotencyKey,
        command: &Command,
    ) -> Result<Acknowledgement> {
        let path = format!("/v1/sessions/{}/commands", named(id)?);
        let request = self.request(Method::POST, &path).json(command);
        self.send(request.header("idempotency-key", key.as_str())).await?.json()
    }

    pub(super) async fn delete(&self, id: &str) -> Result<()> {
        let path = format!("/v1/sessions/{}", named(id)?);
        // Sent again, it would not find the session that it has deleted.
        self.checked(attempt(self.request(Method::DELETE, &path)).await).map(drop)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token)
    }

    /// Sends a request, again if need be. The error of the server is that of the command.
    async fn send(&self, request: RequestBuilder) -> Result<Answer> {
        let (begun, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            let again = request.try_clone();
            let answer = attempt(again.context("the request cannot be sent again")?).await;
            let wait = match &answer {
                Ok(answer) => {
                    self.has_answered.store(true, Ordering::Relaxed);
                    answer.pause()
                }
                Err(_) => self.has_answered.load(Ordering::Relaxed).then_some(pause),
            };
            match wait.filter(|wait| begun.elapsed() + *wait < PATIENCE) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return self.checked(answer),
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn checked(&self, answer: reqwest::Result<Answer>) -> Result<Answer> {
        let answer = answer.with_context(|| format!("the server {} does not answer", self.base))?;
        if answer.status.is_success() {
            return Ok(answer);
        }
        let body: Value = answer.json().unwrap_or_default();
        let message = body.pointer("/error/message").and_then(Value::as_str);
        Err(match message {
            Some(message) => anyhow!("{message}"),
            None if answer.status == StatusCode::NOT_FOUND => {
                anyhow!("{} is no `interlingua serve`", self.base)
            }
            None => anyhow!("the server answered with {}", answer.status),
        })
    }
}

/// Sends a request once, and reads the whole answer.
async fn attempt(request: RequestBuilder) -> reqwest::Result<Answer> {
    let answer = request.send().await?;
    let (status, headers) = (answer.status(), answer.headers().clone());
    Ok(Answer { status, headers, body: answer.bytes().await?.to_vec() })
}

/// An id that can be a part of an address.
fn named(id: &str) -> Result<&str> {
    interlingua_sessions::SessionId::new(id)?;
    Ok(id)
}
