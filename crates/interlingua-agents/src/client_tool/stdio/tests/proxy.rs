//! A connection between the server and its owner that a test can cut.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

/// What the proxy does with connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It passes all bytes on.
    Open,
    /// It passes on what the server sends, and keeps back what the owner sends.
    KeepsBack,
    /// It closes every connection.
    Down,
}

#[derive(Debug)]
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    mode: watch::Sender<Mode>,
    /// The number of bytes that were kept back.
    kept_back: watch::Sender<usize>,
    /// The number of connections that were closed at once.
    refused: watch::Sender<usize>,
    connections: Arc<Mutex<JoinSet<()>>>,
    accepting: AbortHandle,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Proxy {
    pub(super) async fn to(owner: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (mode, kept_back) = (watch::Sender::new(Mode::Open), watch::Sender::new(0));
        let (refused, connections) = (watch::Sender::new(0), Arc::<Mutex<JoinSet<()>>>::default());
        let (open, kept, closed, all) =
            (mode.clone(), kept_back.clone(), refused.clone(), Arc::clone(&connections));
        let accepting = tokio::spawn(async move {
            loop {
                let (server, _) = listener.accept().await.unwrap();
                if *open.borrow() == Mode::Down {
                    drop(server);
                    closed.send_modify(|count| *count += 1);
                    continue;
                }
                let owner = TcpStream::connect(owner).await.unwrap();
                all.lock().unwrap().spawn(connect(server, owner, open.clone(), kept.clone()));
            }
        });
        let accepting = accepting.abort_handle();
        Self { address, mode, kept_back, refused, connections, accepting }
    }

    pub(super) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// Cuts all connections, and closes further ones. Returns when one was attempted.
    pub(super) async fn cut(&self) {
        self.set(Mode::Down);
        let mut refused = self.refused.subscribe();
        refused.mark_unchanged();
        let cut = std::mem::take(&mut *self.connections.lock().unwrap());
        drop(cut);
        refused.changed().await.unwrap();
    }

    /// Waits until the owner has sent something that was kept back.
    pub(super) async fn kept_back(&self) {
        self.kept_back.subscribe().wait_for(|bytes| *bytes > 0).await.unwrap();
    }
}

async fn connect(
    server: TcpStream,
    owner: TcpStream,
    mode: watch::Sender<Mode>,
    kept: watch::Sender<usize>,
) {
    let (from_server, to_server) = server.into_split();
    let (from_owner, to_owner) = owner.into_split();
    let up = copy(from_server, to_owner, |_| false);
    let down = copy(from_owner, to_server, |bytes| {
        let keeps = *mode.borrow() == Mode::KeepsBack;
        if keeps {
            kept.send_modify(|count| *count += bytes);
        }
        keeps
    });
    tokio::select! {
        () = up => {}
        () = down => {}
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    keeps_back: impl Fn(usize) -> bool,
) {
    let mut piece = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        if keeps_back(length) {
            std::future::pending().await
        }
        if to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}
