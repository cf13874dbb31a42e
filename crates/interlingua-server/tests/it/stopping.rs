//! What a server that stops still answers.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::serve;

/// Whoever distributes requests asks whether the server takes any.
#[tokio::test]
async fn a_server_that_stops_is_not_ready() {
    let server = serve().await;
    assert_eq!(server.get("/readyz").await.status, 200);
    let address = server.address;
    let mut asking = TcpStream::connect(address).await.unwrap();
    asking.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n").await.unwrap();
    // Connections are accepted in their order, so the one before was accepted, too.
    let mut later = TcpStream::connect(address).await.unwrap();
    let alive = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    later.write_all(alive).await.unwrap();
    let mut answer = String::new();
    later.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let answers = async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        asking.write_all(b"\r\n").await.unwrap();
        let mut answer = String::new();
        asking.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("is stopping"), "{answer}");
    };
    tokio::join!(server.stop(), answers);
}
