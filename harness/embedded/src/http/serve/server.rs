//! The API over TLS, for clients with the token.

use std::io;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::access::Access;
use super::connection::Connection;
use super::connections::Connections;
use crate::cluster::Cluster;
use crate::http::{errors, responses};

impl Cluster {
    /// Serves the API over TLS to clients with the token, until the future is dropped. The number
    /// of connections is limited by the number of files that the process may open; a connection
    /// beyond it takes the place of the one that has been idle longest.
    ///
    /// # Errors
    /// Those of the listener.
    pub async fn serve(&self, mut listener: TcpListener, access: &Access) -> io::Result<()> {
        let router = self.router().layer(from_fn_with_state(access.token().to_owned(), authenticate));
        let acceptor = TlsAcceptor::from(access.tls());
        let mut connections = Connections::new();
        loop {
            connections.make_room().await;
            let (stream, _) = axum::serve::Listener::accept(&mut listener).await;
            let connection = Connection::new(router.clone());
            connections.add(connection.activity(), connection.serve(acceptor.clone(), stream));
        }
    }
}

/// Serves a router over plain HTTP, until the future is dropped, on at most `max` connections. One
/// beyond them takes the place of the connection that has been idle longest. A connection is closed
/// after `longest`, whatever it does.
pub async fn serve_http(mut listener: TcpListener, router: Router, max: usize, longest: Duration) {
    let mut connections = Connections::with_max(max);
    loop {
        connections.make_room().await;
        let (stream, _) = axum::serve::Listener::accept(&mut listener).await;
        let connection = Connection::new(router.clone());
        connections.add(connection.activity(), async move {
            // A connection has no result.
            let _ended = timeout(longest, connection.serve_http(stream)).await;
        });
    }
}

/// Rejects requests without the token.
async fn authenticate(State(token): State<String>, request: Request, next: Next) -> Response {
    if has_token(request.headers(), &token) {
        next.run(request).await
    } else {
        responses::error(&errors::unauthorized())
    }
}

fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let stated = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match stated.split_once(' ') {
        Some((scheme, stated)) => scheme.eq_ignore_ascii_case("bearer") && is_equal(stated, token),
        None => false,
    }
}

/// Compares in constant time.
fn is_equal(one: &str, other: &str) -> bool {
    let differ = one.bytes().zip(other.bytes()).fold(0, |differ, (one, other)| differ | (one ^ other));
    one.len() == other.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requires_the_bearer_token() {
        let accepts = |value: &str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
            super::has_token(&headers, "s3cret")
        };
        assert!(accepts("Bearer s3cret") && accepts("bearer s3cret"));
        for wrong in ["Bearer s3cre", "Bearer s3crets", "Bearer ", "Basic s3cret", "s3cret"] {
            assert!(!accepts(wrong), "{wrong}");
        }
        assert!(!super::has_token(&HeaderMap::new(), "s3cret"));
    }
}
