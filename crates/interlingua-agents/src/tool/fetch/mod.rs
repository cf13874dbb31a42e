//! `WebFetch`: a page of the web as text.
//!
//! Loopback and private addresses are refused, since a page could make the model read what only
//! this machine can reach. Names are looked up by the client itself, and the addresses that it
//! connects to are the ones that are checked. Behind a proxy, the proxy looks them up.

mod address;
mod html;

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Response, Url};
use serde::Deserialize;

use super::{Failure, Outcome, Output, Settings};
use address::Resolver;

/// How long a page may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How many bytes of a page are read.
const MAX_BYTES: usize = 5 << 20;

/// How many bytes of text are returned.
const MAX_SHOWN: usize = 100_000;

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;

#[derive(Debug, Deserialize)]
pub(super) struct Input {
    url: String,
}

pub(super) async fn run(settings: &Settings, input: &Input) -> Outcome {
    within(TIMEOUT, settings, input).await
}

async fn within(limit: Duration, settings: &Settings, input: &Input) -> Outcome {
    let fetched = tokio::time::timeout(limit, fetch(settings, input)).await;
    let seconds = limit.as_secs();
    let late = || Failure(format!("{} did not answer within {seconds} s", input.url));
    fetched.map_err(|_| late())?
}

async fn fetch(settings: &Settings, input: &Input) -> Outcome {
    let mut url = Url::parse(&input.url)
        .map_err(|problem| Failure(format!("{} is not an address: {problem}", input.url)))?;
    for _ in 0..=MAX_REDIRECTS {
        let response = request(settings, &url).await?;
        let Some(next) = redirect(&url, &response)? else {
            return page(&url, response).await;
        };
        if (next.host_str(), next.port_or_known_default())
            != (url.host_str(), url.port_or_known_default())
            && !is_upgrade(&url, &next)
        {
            return Ok(Output::completed(format!(
                "{url} redirects to another host: {next}. Fetch that address if you need it."
            )));
        }
        url = next;
    }
    Err(Failure(format!("{} redirects more than {MAX_REDIRECTS} times", input.url)))
}

/// Whether a redirect only leads from http to https.
fn is_upgrade(from: &Url, to: &Url) -> bool {
    from.host_str() == to.host_str()
        && (from.scheme(), to.scheme()) == ("http", "https")
        && from.port().is_none()
        && to.port().is_none()
}

async fn request(settings: &Settings, url: &Url) -> Result<Response, Failure> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Failure(format!("{url}: only http and https can be fetched")));
    }
    let host = url.host_str().unwrap_or_default().to_owned();
    if !settings.private_addresses && address::is_private_literal(&host) {
        return Err(Failure(format!("{url} is a loopback or private address, which is refused")));
    }
    let resolver = Resolver { host, allow_private: settings.private_addresses };
    crate::tls::prepare();
    let certificates = crate::tls::certificates(&settings.certificates).map_err(Failure)?;
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .dns_resolver(Arc::new(resolver))
        .user_agent(concat!("interlingua/", env!("CARGO_PKG_VERSION")))
        .tls_certs_merge(certificates)
        .build()
        .map_err(|problem| Failure(format!("no client could be created: {problem}")))?;
    let sent = client.get(url.clone()).header("accept", "text/html, text/*;q=0.9, */*;q=0.5");
    sent.send().await.map_err(|problem| Failure(format!("{url}: {}", causes(&problem))))
}

/// An error with its causes, since the first one explains little.
fn causes(problem: &dyn std::error::Error) -> String {
    let mut text = problem.to_string();
    let mut next = problem.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// Where a response leads.
fn redirect(url: &Url, response: &Response) -> Result<Option<Url>, Failure> {
    if !response.status().is_redirection() {
        return Ok(None);
    }
    let Some(location) = response.headers().get("location") else { return Ok(None) };
    let next = location.to_str().ok().and_then(|location| url.join(location).ok());
    next.map(Some).ok_or_else(|| Failure(format!("{url} redirects to an invalid address")))
}

async fn page(url: &Url, mut response: Response) -> Outcome {
    let status = response.status();
    let header = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    let kind = header.unwrap_or("text/plain").to_ascii_lowercase();
    let is_text = ["text/", "json", "xml", "javascript"].iter().any(|word| kind.contains(word));
    if status.is_success() && !is_text {
        return Err(Failure(format!("{url} is of the type {kind}, which cannot be shown as text")));
    }
    let (mut bytes, mut is_cut) = (Vec::new(), false);
    while let Some(piece) = response
        .chunk()
        .await
        .map_err(|problem| Failure(format!("{url} could not be read: {}", causes(&problem))))?
    {
        let room = MAX_BYTES.saturating_sub(bytes.len());
        bytes.extend_from_slice(piece.get(..room).unwrap_or(&piece));
        if piece.len() > room {
            is_cut = true;
            break;
        }
    }
    // A long page would delay everything else that the session does.
    let is_html = kind.contains("html");
    let converted = tokio::task::spawn_blocking(move || {
        let text = String::from_utf8_lossy(&bytes);
        if is_html { html::to_text(&text) } else { text.into_owned() }
    });
    let mut text = converted
        .await
        .map_err(|problem| Failure(format!("{url} could not be shown as text: {problem}")))?;
    if text.len() > MAX_SHOWN {
        text.truncate(text.floor_char_boundary(MAX_SHOWN));
        is_cut = true;
    }
    let cut = if is_cut { "\n\n(the page is longer; the rest is left out)" } else { "" };
    if !status.is_success() {
        return Err(Failure(format!("{url} answered with {status}\n\n{text}{cut}")));
    }
    Ok(Output::completed(format!("{url}\n\n{text}{cut}")))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// What is tested is that the time passes, so it is short here.
    #[tokio::test]
    async fn a_server_that_does_not_go_on_is_not_awaited() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nbegin";
            stream.write_all(head).await.unwrap();
            std::future::pending::<()>().await;
        };
        let settings = Settings { private_addresses: true, ..Settings::new("/") };
        let input = Input { url };
        let fetched = within(Duration::from_millis(50), &settings, &input);
        let fetched = async {
            tokio::select! { it = fetched => it, () = server => Ok(Output::completed(String::new())) }
        };
        let limited = tokio::time::timeout(Duration::from_secs(30), fetched).await.unwrap();
        let Err(Failure(reason)) = limited else { panic!("it was fetched") };
        assert!(reason.contains("did not answer within"), "{reason}");
    }
}
