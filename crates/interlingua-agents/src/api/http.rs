//! Sends requests to a model API, and passes on what arrives.
//!
//! A task reads the response, so that a slow consumer does not let the connection idle. It knows
//! nothing of what the bytes mean.

use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use interlingua::event::ErrorClass;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::failure::{Failure, Headers};
use crate::error::Error;

/// The number of pieces of a response that may wait.
const CAPACITY: usize = 1024;

/// The length up to which pieces that have arrived are joined. The connection passes on a few
/// kilobytes at a time, and everything that is done once per piece would be done too often.
const JOINED: usize = 64 << 10;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(15);

/// The longest body of an error that is read.
const MAX_ERROR: usize = 1 << 20;

/// What is added to the error of a certificate that is not accepted.
const UNTRUSTED: &str =
    " (if an authority of your own has issued it, name the file of its certificate with --ca-file)";

/// How the model API is reached.
#[derive(Clone)]
pub struct Connection {
    /// The address that paths are appended to.
    pub base_url: String,
    /// The key; empty for a server that needs none.
    pub key: String,
    /// Why there is no key, if the server needs one. Nothing is sent then, and every turn fails with
    /// this message.
    pub missing_key: Option<String>,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// Certificates of authorities to trust, in PEM, besides those of the system.
    pub certificates: Vec<u8>,
    /// How long a response may be silent.
    pub silence: Duration,
}

/// The key is a secret, and headers and parts of the address may be.
impl std::fmt::Debug for Connection {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let base_url = without_secrets(&self.base_url);
        out.debug_struct("Connection").field("base_url", &base_url).finish_non_exhaustive()
    }
}

/// A client of a model API.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    client: reqwest::Client,
    connection: Connection,
}

/// What arrives of a response.
#[derive(Debug)]
pub(crate) enum Received {
    /// The next bytes of a response.
    Bytes(Bytes),
    /// The response has ended.
    Ended,
    /// The server answered with an error.
    Refused { status: u16, headers: Headers, body: Vec<u8> },
    /// The server could not be reached, or the connection was lost.
    Failed(Failure),
}

/// A request, and what arrives of its response. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Exchange {
    received: mpsc::Receiver<Received>,
    /// Bytes that have arrived, and are returned next. Its memory is reused, once what was returned
    /// before is dropped.
    joined: BytesMut,
    /// What has arrived after them.
    after: Option<Received>,
    task: AbortHandle,
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Exchange {
    /// What arrives next. This is cancel safe.
    pub(crate) async fn next(&mut self) -> Received {
        if self.joined.is_empty() {
            if let Some(after) = self.after.take() {
                return after;
            }
            match self.received.recv().await {
                Some(Received::Bytes(bytes)) => self.joined.extend_from_slice(&bytes),
                Some(other) => return other,
                None => {
                    let lost = "the connection was lost";
                    return Received::Failed(Failure::new(ErrorClass::Network, lost));
                }
            }
        }
        self.join();
        if self.joined.len() < JOINED && self.after.is_none() {
            // The connection may have more, which it passes on piece by piece.
            tokio::task::yield_now().await;
            self.join();
        }
        Received::Bytes(self.joined.split().freeze())
    }

    /// Takes the pieces that have arrived already.
    fn join(&mut self) {
        while self.joined.len() < JOINED && self.after.is_none() {
            match self.received.try_recv() {
                Ok(Received::Bytes(bytes)) => {
                    // There are probably more.
                    self.joined.reserve(JOINED.saturating_sub(self.joined.len()) + bytes.len());
                    self.joined.extend_from_slice(&bytes);
                }
                Ok(other) => self.after = Some(other),
                Err(_) => return,
            }
        }
    }
}

impl Client {
    pub(crate) fn new(connection: Connection) -> Result<Self, Error> {
        let invalid = |problem: String| Error::InvalidConnection {
            base_url: without_secrets(&connection.base_url),
            problem,
        };
        let url =
            reqwest::Url::parse(&connection.base_url).map_err(|it| invalid(it.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid("it has to begin with http:// or https://".to_owned()));
        }
        let mut headers = reqwest::header::HeaderMap::new();
        for (name, value) in &connection.headers {
            let parsed = reqwest::header::HeaderName::from_bytes(name.as_bytes())
                .ok()
                .zip(reqwest::header::HeaderValue::from_str(value).ok());
            let Some((name, mut value)) = parsed else {
                return Err(invalid(format!("the header {name:?} is not valid")));
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        crate::tls::prepare();
        if reqwest::header::HeaderValue::from_str(&connection.key).is_err() {
            return Err(invalid("the key contains characters that no header can have".to_owned()));
        }
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .read_timeout(connection.silence)
            .default_headers(headers)
            .user_agent(concat!("interlingua/", env!("CARGO_PKG_VERSION")))
            // A redirect would send the key to another host.
            .redirect(reqwest::redirect::Policy::none());
        let certificates = crate::tls::certificates(&connection.certificates).map_err(invalid)?;
        builder = builder.tls_certs_merge(certificates);
        let client = builder.build().map_err(|problem| invalid(chain(&problem)))?;
        Ok(Self { client, connection })
    }

    pub(crate) fn key(&self) -> &str {
        &self.connection.key
    }

    /// Why there is no key, if one is needed.
    pub(crate) fn missing_key(&self) -> Option<&str> {
        self.connection.missing_key.as_deref()
    }

    /// The headers of the user, which may be secrets.
    pub(crate) fn headers(&self) -> &[(String, String)] {
        &self.connection.headers
    }

    /// Sends a request.
    pub(crate) fn send(
        &self,
        path: &str,
        headers: Vec<(&'static str, String)>,
        body: String,
    ) -> Exchange {
        let url = format!("{}{path}", self.connection.base_url.trim_end_matches('/'));
        self.send_to(&url, headers, body)
    }

    /// Sends a request to another address. The headers of the connection are sent with it.
    pub(crate) fn send_to(
        &self,
        url: &str,
        headers: Vec<(&'static str, String)>,
        body: String,
    ) -> Exchange {
        let mut request = self
            .client
            .post(url)
            .header("content-type", "application/json")
            .header("accept", "text/event-stream, application/json");
        for (name, value) in headers {
            let value = reqwest::header::HeaderValue::from_str(&value).map(|mut value| {
                value.set_sensitive(true);
                value
            });
            if let Ok(value) = value {
                request = request.header(name, value);
            }
        }
        let (send, received) = mpsc::channel(CAPACITY);
        let task = tokio::spawn(async move {
            let last = receive(request.body(body), &send).await;
            // The session may not be interested any more.
            let _ = send.send(last).await;
        });
        Exchange { received, joined: BytesMut::new(), after: None, task: task.abort_handle() }
    }
}

/// An address without what may be a secret: the user and the query.
pub(crate) fn without_secrets(address: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse(address) else {
        // What cannot be parsed has no parts that could be left out.
        return if address.contains(['@', '?']) { "(an address)" } else { address }.to_owned();
    };
    // An address without a host has no user either.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    url.set_query(None);
    url.to_string()
}

/// Passes on the bytes of a response; returns how it ended.
async fn receive(request: reqwest::RequestBuilder, send: &mpsc::Sender<Received>) -> Received {
    let mut response = match request.send().await {
        Ok(response) => response,
        Err(problem) => return Received::Failed(failure(&problem)),
    };
    if !response.status().is_success() {
        return refused(response).await;
    }
    loop {
        match response.chunk().await {
            Ok(Some(bytes)) => {
                if send.send(Received::Bytes(bytes)).await.is_err() {
                    return Received::Ended;
                }
            }
            Ok(None) => return Received::Ended,
            Err(problem) => return Received::Failed(failure(&problem)),
        }
    }
}

/// The value of `retry-after` in seconds; it may also be a date.
fn in_seconds(value: String, now: SystemTime) -> String {
    match httpdate::parse_http_date(value.trim()) {
        Ok(date) => date.duration_since(now).unwrap_or_default().as_secs_f64().to_string(),
        Err(_) => value,
    }
}

async fn refused(mut response: reqwest::Response) -> Received {
    let status = response.status().as_u16();
    let header = |name: &str| {
        let value = response.headers().get(name)?;
        value.to_str().ok().map(str::to_owned)
    };
    let headers = Headers {
        retry_after: header("retry-after").map(|value| in_seconds(value, SystemTime::now())),
        retry_after_ms: header("retry-after-ms"),
        should_retry: header("x-should-retry"),
    };
    let mut body = Vec::new();
    while let Ok(Some(bytes)) = response.chunk().await {
        body.extend_from_slice(&bytes);
        if body.len() > MAX_ERROR {
            break;
        }
    }
    Received::Refused { status, headers, body }
}

fn failure(problem: &reqwest::Error) -> Failure {
    let class = if problem.is_timeout() { ErrorClass::TimedOut } else { ErrorClass::Network };
    // The address may contain a key.
    let mut failure = Failure::new(class, chain(problem));
    failure.is_unsent = problem.is_connect();
    // Every implementation of TLS names the certificate in its error, and none has a type for it
    // that the others share.
    if problem.is_connect() && failure.message.contains("certificate") {
        failure.message.push_str(UNTRUSTED);
        // The server has the same certificate a moment later.
        failure.should_retry = Some(false);
    }
    failure
}

/// An error with its causes, without the address that it concerns.
fn chain(problem: &reqwest::Error) -> String {
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(problem);
    let mut text = match () {
        () if problem.is_connect() => "the server could not be reached".to_owned(),
        () if problem.is_timeout() => "the server did not answer in time".to_owned(),
        () if problem.is_builder() => "the request is not valid".to_owned(),
        () => "the connection was lost".to_owned(),
    };
    while let Some(next) = cause {
        let line = next.to_string();
        if !text.contains(&line) {
            text = format!("{text}: {line}");
        }
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_secrets() {
        assert_eq!(without_secrets("https://me:pass@host/v1?key=abc"), "https://host/v1");
        assert_eq!(without_secrets("ftp://host"), "ftp://host/");
        assert_eq!(without_secrets("no address"), "no address");
        assert_eq!(without_secrets("//me:pass@host"), "(an address)");
    }

    #[test]
    fn a_date_to_wait_for_is_a_delay() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let now = httpdate::parse_http_date(date).unwrap() - Duration::from_secs(30);
        assert_eq!(in_seconds(date.to_owned(), now), "30");
        assert_eq!(in_seconds(date.to_owned(), SystemTime::now()), "0");
        assert_eq!(in_seconds("12".to_owned(), now), "12");
    }

    #[tokio::test]
    async fn pieces_that_have_arrived_are_joined() {
        let (send, received) = mpsc::channel(CAPACITY);
        let task = tokio::spawn(async {}).abort_handle();
        let mut exchange = Exchange { received, joined: BytesMut::new(), after: None, task };
        let long = vec![b'x'; JOINED];
        for piece in [&b"a"[..], b"b", &long, b"c"] {
            send.try_send(Received::Bytes(Bytes::copy_from_slice(piece))).unwrap();
        }
        send.try_send(Received::Ended).unwrap();
        let mut pieces = Vec::new();
        let end = loop {
            match exchange.next().await {
                Received::Bytes(bytes) => pieces.push(bytes),
                other => break other,
            }
        };
        assert_eq!(pieces, [[&b"ab"[..], &long].concat(), b"c".to_vec()]);
        assert!(matches!(end, Received::Ended));
    }
}
