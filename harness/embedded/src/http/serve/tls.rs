//! TLS connections.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

/// Deadline of a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

type Handshake = Pin<Box<dyn Future<Output = Option<(TlsStream<TcpStream>, SocketAddr)>> + Send>>;

/// A TCP listener whose connections begin with a TLS handshake.
pub(crate) struct Listener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    /// Pending handshakes. They run concurrently, so that a slow client does not delay others.
    handshakes: FuturesUnordered<Handshake>,
}

impl Listener {
    /// Wraps a TCP listener.
    pub(crate) fn new(listener: TcpListener, tls: Arc<ServerConfig>) -> Self {
        Self { listener, acceptor: TlsAcceptor::from(tls), handshakes: FuturesUnordered::new() }
    }
}

impl axum::serve::Listener for Listener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            tokio::select! {
                biased;
                Some(connection) = self.handshakes.next() => {
                    if let Some(connection) = connection {
                        return connection;
                    }
                }
                (stream, address) = axum::serve::Listener::accept(&mut self.listener) => {
                    let handshake = timeout(HANDSHAKE_TIMEOUT, self.acceptor.accept(stream));
                    self.handshakes.push(Box::pin(async move {
                        let stream = handshake.await.ok()?.ok()?;
                        Some((stream, address))
                    }));
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}
