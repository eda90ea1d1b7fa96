//! Connections with TLS.

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

/// Who does not greet within this time is let go.
const GREETING: Duration = Duration::from_secs(10);

type Greeting = Pin<Box<dyn Future<Output = Option<(TlsStream<TcpStream>, SocketAddr)>> + Send>>;

/// A port at which connections begin with a TLS handshake.
pub struct Listener {
    port: TcpListener,
    acceptor: TlsAcceptor,
    /// Handshakes under way: one that is slow keeps nobody else waiting.
    greetings: FuturesUnordered<Greeting>,
}

impl Listener {
    /// Listens at a port.
    pub fn new(port: TcpListener, tls: Arc<ServerConfig>) -> Self {
        Self { port, acceptor: TlsAcceptor::from(tls), greetings: FuturesUnordered::new() }
    }
}

impl axum::serve::Listener for Listener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            tokio::select! {
                biased;
                Some(greeted) = self.greetings.next() => {
                    if let Some(connection) = greeted {
                        return connection;
                    }
                }
                (stream, address) = axum::serve::Listener::accept(&mut self.port) => {
                    let greeting = timeout(GREETING, self.acceptor.accept(stream));
                    self.greetings.push(Box::pin(async move {
                        let stream = greeting.await.ok()?.ok()?;
                        Some((stream, address))
                    }));
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.port.local_addr()
    }
}
