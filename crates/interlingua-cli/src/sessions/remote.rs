//! The sessions of a server, over HTTP.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use interlingua::Entry;
use interlingua_sessions::host::Command;
use interlingua_sessions::{Acknowledgement, IdempotencyKey};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;

use super::source::Page;

/// The variable that contains the token.
const TOKEN: &str = interlingua_agents::SERVER_TOKEN;

/// How long the server may be silent. A long-poll is answered earlier.
const SILENCE: Duration = Duration::from_secs(90);

/// A server.
#[derive(Debug)]
pub(super) struct Remote {
    client: Client,
    base: String,
    token: String,
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
        Ok(Self { client, base: url.trim_end_matches('/').to_owned(), token })
    }

    pub(super) async fn list(&self) -> Result<Vec<Value>> {
        let answer = self.send(self.request(Method::GET, "/v1/sessions?limit=1000")).await?;
        let mut list: Value = answer.json().await?;
        match list.get_mut("sessions").map(Value::take) {
            Some(Value::Array(sessions)) => Ok(sessions),
            _ => bail!("this is not the list of sessions of an `interlingua serve`"),
        }
    }

    pub(super) async fn session(&self, id: &str) -> Result<Value> {
        let path = format!("/v1/sessions/{}", named(id)?);
        Ok(self.send(self.request(Method::GET, &path)).await?.json().await?)
    }

    /// Reads on; with `waits`, until there is something new or the server gives up.
    pub(super) async fn read(&self, id: &str, from: u64, waits: bool) -> Result<Page> {
        let live = if waits { "&live=long-poll" } else { "" };
        let path = format!("/v1/sessions/{}/events?offset={from:020}{live}", named(id)?);
        let answer = self.send(self.request(Method::GET, &path)).await?;
        let header = |name: &str| answer.headers().get(name).and_then(|it| it.to_str().ok());
        let next = header("stream-next-offset").and_then(|next| next.parse().ok());
        let next = next.context("the answer has no `Stream-Next-Offset`")?;
        let closed = header("stream-closed") == Some("true");
        let up_to_date = header("stream-up-to-date") == Some("true");
        let body = answer.bytes().await?;
        let entries: Vec<Entry> =
            if body.is_empty() { Vec::new() } else { serde_json::from_slice(&body)? };
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
        Ok(self.send(request.header("idempotency-key", key.as_str())).await?.json().await?)
    }

    pub(super) async fn delete(&self, id: &str) -> Result<()> {
        let path = format!("/v1/sessions/{}", named(id)?);
        self.send(self.request(Method::DELETE, &path)).await.map(drop)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token)
    }

    /// Sends a request. The error of the server is that of the command.
    async fn send(&self, request: RequestBuilder) -> Result<Response> {
        let answer = request.send().await;
        let answer = answer.with_context(|| format!("the server {} does not answer", self.base))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let body: Value = answer.json().await.unwrap_or_default();
        let message = body.pointer("/error/message").and_then(Value::as_str);
        Err(match message {
            Some(message) => anyhow!("{message}"),
            None if status == StatusCode::NOT_FOUND => {
                anyhow!("{} is no `interlingua serve`", self.base)
            }
            None => anyhow!("the server answered with {status}"),
        })
    }
}

/// An id that can be a part of an address.
fn named(id: &str) -> Result<&str> {
    interlingua_sessions::SessionId::new(id)?;
    Ok(id)
}
