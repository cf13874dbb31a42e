//! Pages of the web, from a server on loopback.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::Bench;
use crate::support::within;

/// Answers each path with a response; returns the address.
async fn serve(responses: &'static [(&'static str, &'static str)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            let path = request.split(' ').nth(1).unwrap().to_owned();
            let response = responses.iter().find(|(known, _)| *known == path);
            let response = response.map_or("HTTP/1.1 404 Not Found\r\n\r\nnope", |(_, it)| it);
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    format!("http://{address}")
}

fn fetching() -> Bench {
    Bench::with(|settings| (settings.web_fetch, settings.private_addresses) = (true, true))
}

fn input(url: &str) -> serde_json::Value {
    json!({"url": url, "prompt": "What is it?"})
}

#[tokio::test]
async fn a_page_is_fetched_as_text() {
    let address = serve(&[
        ("/a", "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<h1>A</h1><p>b &lt; c</p>"),
        ("/to-a", "HTTP/1.1 302 Found\r\nlocation: /a\r\n\r\n"),
        ("/away", "HTTP/1.1 302 Found\r\nlocation: http://example.org/x\r\n\r\n"),
        ("/loop", "HTTP/1.1 302 Found\r\nlocation: /loop\r\n\r\n"),
        ("/image", "HTTP/1.1 200 OK\r\ncontent-type: image/png\r\n\r\nx"),
    ])
    .await;
    let bench = fetching();
    let text = bench.done("WebFetch", input(&format!("{address}/to-a"))).await;
    assert_eq!(text, format!("{address}/a\n\nA\n\nb < c"));
    let text = bench.done("WebFetch", input(&format!("{address}/away"))).await;
    assert!(text.contains("redirects to another host: http://example.org/x"), "{text}");
    for (path, expected) in
        [("/loop", "more than 5 times"), ("/image", "image/png"), ("/none", "404")]
    {
        let text = bench.failed("WebFetch", input(&format!("{address}{path}"))).await;
        assert!(text.contains(expected), "{text}");
    }
}

/// Answers one request with a page that never ends.
async fn serve_without_end() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await.unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let piece = "plum\n".repeat(10_000);
        while stream.write_all(piece.as_bytes()).await.is_ok() {}
    });
    format!("http://{address}")
}

/// The memory of the session would be the only limit.
#[tokio::test]
async fn of_a_page_without_an_end_the_beginning_is_returned() {
    let address = serve_without_end().await;
    let text = within(fetching().done("WebFetch", input(&address))).await;
    assert!(text.contains("plum\nplum") && text.ends_with("the rest is left out)"));
}

#[tokio::test]
async fn a_long_page_is_cut() {
    let page = format!("HTTP/1.1 200 OK\r\n\r\n{}", "plum\n".repeat((6 << 20) / 5));
    let pages = Vec::leak(vec![("/", &*page.leak())]);
    let address = serve(pages).await;
    let text = within(fetching().done("WebFetch", input(&address))).await;
    assert!(text.ends_with("(the page is longer; the rest is left out)"));
    assert!((99_000..101_000).contains(&text.len()), "{}", text.len());
}

#[tokio::test]
async fn private_addresses_and_other_schemes_are_refused() {
    let address = serve(&[("/", "HTTP/1.1 200 OK\r\n\r\nprivate")]).await;
    let bench = Bench::with(|settings| settings.web_fetch = true);
    let port = address.rsplit(':').next().unwrap();
    let urls = [
        address.clone(),
        format!("http://localhost:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://2130706433:{port}/"),
        "http://169.254.169.254/latest/meta-data".to_owned(),
        "file:///etc/passwd".to_owned(),
    ];
    for url in &urls {
        let text = bench.failed("WebFetch", input(url)).await;
        assert!(text.contains("refused") || text.contains("only http"), "{url}: {text}");
    }
}

#[tokio::test]
async fn nothing_is_fetched_unless_it_is_allowed() {
    let bench = Bench::with(|settings| settings.private_addresses = true);
    let text = bench.failed("WebFetch", input("http://127.0.0.1:1/")).await;
    assert!(text.contains("there is no tool `WebFetch`"), "{text}");
}

/// `--ca-file` reaches the pages, too: certificates that cannot be read are an error.
#[tokio::test]
async fn certificates_of_the_session_are_used() {
    let bench = Bench::with(|settings| {
        settings.web_fetch = true;
        settings.private_addresses = true;
        settings.certificates =
            b"-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n".to_vec();
    });
    let text = bench.failed("WebFetch", json!({"url": "http://127.0.0.1:9", "prompt": ""})).await;
    assert!(text.contains("the certificates cannot be read"), "{text}");
}
