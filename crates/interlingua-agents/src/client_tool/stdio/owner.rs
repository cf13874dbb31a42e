//! The owner of the calls, as the server over standard streams reaches it.
//!
//! Each request has a connection of its own, so a lost connection concerns one request, and is
//! answered by sending it again. The connection leads to this machine, whose system reports every end
//! of it: there is nothing to probe. It is opened directly, so no proxy is used.

use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rmcp::model::{CallToolRequestParams, RequestMetaObject, Tool};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::{Pace, StdioToolServer};
use crate::client_tool::ClientResult;
use crate::client_tool::exchange::{Answer, CALLS, Call, LARGEST, Offer, TOOLS};

/// How long the system may take to connect.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// What an agent learns when the owner does not know the token any more.
const SESSION_ENDED: &str = "the session has ended, and its tools cannot be called any more";

/// The process that runs the session.
#[derive(Debug)]
pub(super) struct Owner {
    address: SocketAddr,
    path: String,
    /// It is marked as sensitive, and so not shown.
    authorization: HeaderValue,
    pace: Pace,
    /// The process of the agent that this server belongs to, as the owner counts them.
    generation: OnceLock<u64>,
    /// The owner does not know the token any more.
    ended: watch::Sender<bool>,
}

/// Why a request has no response.
enum NoResponse {
    /// The connection was lost, or there was none.
    Lost,
    /// The response is too large.
    TooLarge,
}

impl From<hyper::Error> for NoResponse {
    fn from(_: hyper::Error) -> Self {
        Self::Lost
    }
}

impl Owner {
    pub(super) fn new(url: &str, token: &str, pace: Pace) -> Result<Self, String> {
        let (address, path) = loopback(url).ok_or_else(|| {
            let name = StdioToolServer::URL;
            format!("{name} is not the address of a server of this machine, such as http://127.0.0.1:4000/mcp")
        })?;
        let authorization = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut authorization = authorization
            .ok()
            .filter(|_| !token.is_empty())
            .ok_or_else(|| format!("{} is not the token of a session", StdioToolServer::TOKEN))?;
        authorization.set_sensitive(true);
        let (generation, ended) = (OnceLock::new(), watch::Sender::new(false));
        Ok(Self { address, path, authorization, pace, generation, ended })
    }

    /// The tools of the session. This waits until the owner is there.
    pub(super) async fn tools(&self) -> Result<Vec<Tool>, String> {
        let json = self.ask(Method::GET, TOOLS, Bytes::new()).await?;
        let offer: Offer<'_> = serde_json::from_slice(&json).map_err(not_understood)?;
        let _ = self.generation.set(offer.generation);
        Ok(offer.tools.into_owned())
    }

    /// Calls a tool, and waits for the answer. The error is for the model.
    pub(super) async fn call(
        &self,
        key: &str,
        request: CallToolRequestParams,
        meta: &RequestMetaObject,
    ) -> Result<ClientResult, String> {
        if self.generation.get().is_none() {
            // An agent may know the tools from earlier.
            self.tools().await?;
        }
        let call = Call {
            generation: self.generation.get().copied().unwrap_or_default(),
            tool: request.name.into_owned(),
            input: request.arguments.unwrap_or_default(),
            meta: (*meta.0).clone(),
        };
        let body = serde_json::to_vec(&call).map_err(not_understood)?;
        drop(call);
        let json = self.ask(Method::PUT, &format!("{CALLS}{key}"), body.into()).await?;
        let answer: Answer<'_> = serde_json::from_slice(&json).map_err(not_understood)?;
        Ok(answer.into())
    }

    /// Tells the owner that a call is not waited for any more.
    pub(super) async fn end(&self, key: &str) {
        let path = format!("{CALLS}{key}");
        let told = self.ask(Method::DELETE, &path, Bytes::new());
        let _ = tokio::time::timeout(self.pace.end_of_call, told).await;
    }

    /// Sends a request until it is answered, or the session has ended.
    async fn ask(&self, method: Method, path: &str, body: Bytes) -> Result<Bytes, String> {
        let mut ended = self.ended.subscribe();
        let (status, body) = tokio::select! {
            biased;
            answered = self.persist(&method, path, &body) => answered?,
            _ = ended.wait_for(|ended| *ended) => return Err(SESSION_ENDED.to_owned()),
        };
        match status {
            status if status.is_success() => Ok(body),
            StatusCode::UNAUTHORIZED => {
                self.ended.send_replace(true);
                Err(SESSION_ENDED.to_owned())
            }
            StatusCode::GONE | StatusCode::PAYLOAD_TOO_LARGE => {
                Err(String::from_utf8_lossy(&body).into_owned())
            }
            status => Err(format!("the session has refused the request: {status}")),
        }
    }

    /// Sends a request until it is answered.
    async fn persist(
        &self,
        method: &Method,
        path: &str,
        body: &Bytes,
    ) -> Result<(StatusCode, Bytes), String> {
        let mut pause = self.pace.shortest_pause;
        loop {
            let began = Instant::now();
            match self.send(method, path, body.clone()).await {
                Ok(answered) => return Ok(answered),
                Err(NoResponse::TooLarge) => {
                    return Err(format!("the answer has more than {LARGEST} bytes"));
                }
                Err(NoResponse::Lost) if began.elapsed() > self.pace.longest_pause => {
                    // There was a connection.
                    pause = self.pace.shortest_pause;
                }
                Err(NoResponse::Lost) => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(self.pace.longest_pause);
        }
    }

    async fn send(
        &self,
        method: &Method,
        path: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), NoResponse> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}/{path}", self.path))
            .header(HOST, self.address.to_string())
            .header(AUTHORIZATION, self.authorization.clone())
            .body(Full::new(body))
            .map_err(|_| NoResponse::Lost)?;
        let connecting = tokio::time::timeout(CONNECT_WITHIN, TcpStream::connect(self.address));
        let Ok(Ok(stream)) = connecting.await else { return Err(NoResponse::Lost) };
        // A request is complete when it is written.
        let _ = stream.set_nodelay(true);
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let exchange = async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            let body = Limited::new(response.into_body(), LARGEST).collect().await;
            let body = body.map_err(|problem| match problem.is::<LengthLimitError>() {
                true => NoResponse::TooLarge,
                false => NoResponse::Lost,
            });
            Ok((status, body?.to_bytes()))
        };
        let driven = async {
            // How it ends is known to the exchange.
            let _ = connection.await;
            std::future::pending().await
        };
        tokio::select! {
            answered = exchange => answered,
            never = driven => never,
        }
    }
}

/// The address and the path of a URL on this machine.
fn loopback(url: &str) -> Option<(SocketAddr, String)> {
    let uri: Uri = url.parse().ok()?;
    let authority = uri.authority()?;
    let is_plain = uri.scheme_str() == Some("http")
        && uri.query().is_none()
        && !authority.as_str().contains('@');
    let host = uri.host()?;
    let address: IpAddr = host.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
    let port = uri.port_u16()?;
    let path = uri.path().trim_end_matches('/').to_owned();
    (is_plain && address.is_loopback()).then(|| (SocketAddr::new(address, port), path))
}

fn not_understood(problem: serde_json::Error) -> String {
    format!("this program and the session do not understand each other: {problem}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_accepted() {
        let found = loopback("http://127.0.0.1:4000/mcp").unwrap();
        assert_eq!(found, ("127.0.0.1:4000".parse().unwrap(), "/mcp".to_owned()));
        assert_eq!(loopback("http://[::1]:80/mcp/").unwrap().0, "[::1]:80".parse().unwrap());
        for other in [
            "",
            "127.0.0.1:4000",
            "http://127.0.0.1/mcp",
            "https://127.0.0.1:4000/mcp",
            "http://10.0.0.1:4000/mcp",
            "http://0.0.0.0:4000/mcp",
            "http://localhost:4000/mcp",
            "http://127.0.0.1.example:4000/mcp",
            "http://127.0.0.1@10.0.0.1:4000/mcp",
            "http://10.0.0.1@127.0.0.1:4000/mcp",
            "http://127.0.0.1:4000/mcp?a=b",
        ] {
            assert_eq!(loopback(other), None, "{other}");
        }
    }

    /// The value of a variable is not repeated, since they may have been mixed up.
    #[test]
    fn what_cannot_be_used_is_named_without_its_value() {
        let problem = |url, token| Owner::new(url, token, Pace::default()).unwrap_err();
        let url = problem("http://secret:80/", "t");
        assert!(url.starts_with("INTERLINGUA_MCP_URL") && !url.contains("secret"), "{url}");
        for token in ["", "secret\n"] {
            let token = problem("http://127.0.0.1:1/mcp", token);
            assert!(token.starts_with("INTERLINGUA_MCP_TOKEN"), "{token}");
            assert!(!token.contains("secret"), "{token}");
        }
        let owner = Owner::new("http://127.0.0.1:1/mcp", "secret", Pace::default()).unwrap();
        assert!(!format!("{owner:?}").contains("secret"));
    }
}
