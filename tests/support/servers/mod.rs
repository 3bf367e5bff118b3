//! Servers for http hooks: one that counts its connections, and one that misbehaves as told.

pub(crate) mod models;

use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    Router,
    serve::{Listener, ListenerExt},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixListener},
};

/// A server of a router; it ends with the runtime.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) async fn start(router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { address, connections: serve(listener, router) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How many connections were made to it.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// A server of a router at a Unix socket; it ends with the runtime. Returns how many connections were made to it.
pub(crate) fn serve_at_socket(path: &Path, router: Router) -> Arc<AtomicUsize> {
    serve(UnixListener::bind(path).unwrap(), router)
}

fn serve<L>(listener: L, router: Router) -> Arc<AtomicUsize>
where
    L: Listener,
    L::Addr: std::fmt::Debug,
{
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    let listener = listener.tap_io(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    connections
}

/// What a server without manners does after it has read a request and written its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Then {
    /// It closes the connection.
    Close,
    /// It resets the connection.
    Reset,
    /// It keeps the connection open and is silent.
    Silence,
    /// It writes a byte now and then, for ever.
    Drip,
    /// It writes as much as it can, for ever, in chunks.
    Flood,
}

/// A server that answers every connection with these bytes; returns its address.
pub(crate) async fn misbehaving(bytes: Vec<u8>, then: Then) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let bytes = bytes.clone();
            tokio::spawn(async move { misbehave(stream, &bytes, then).await });
        }
    });
    format!("http://{address}/")
}

async fn misbehave(mut stream: TcpStream, bytes: &[u8], then: Then) -> std::io::Result<()> {
    let mut request = vec![0; 64 << 10];
    if stream.read(&mut request).await? == 0 {
        return Ok(());
    }
    stream.write_all(bytes).await?;
    match then {
        Then::Close => stream.shutdown().await?,
        Then::Reset => stream.set_zero_linger()?,
        Then::Silence => std::future::pending().await,
        Then::Drip => {
            let mut ticks = tokio::time::interval(std::time::Duration::from_millis(20));
            loop {
                ticks.tick().await;
                stream.write_all(b" ").await?;
            }
        }
        Then::Flood => {
            let chunk = [&b"10000\r\n"[..], &vec![b' '; 0x10000], b"\r\n"].concat();
            loop {
                stream.write_all(&chunk).await?;
            }
        }
    }
    Ok(())
}
