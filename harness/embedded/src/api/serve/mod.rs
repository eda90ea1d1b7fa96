//! The API on a port.

mod access;
mod tls;

use std::io;

use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use tokio::net::TcpListener;

pub use access::{Access, AccessError};

use super::refusal;
use super::respond::refuse;
use crate::cluster::Cluster;

/// Serves the API to those who know the token, until it is dropped.
pub(crate) async fn serve(cluster: &Cluster, listener: TcpListener, access: &Access) -> io::Result<()> {
    let router = super::router(cluster).layer(from_fn_with_state(access.token().to_owned(), admit));
    axum::serve(tls::Listener::new(listener, access.tls()), router).await
}

/// Lets those in who know the token.
async fn admit(State(token): State<String>, request: Request, next: Next) -> Response {
    if knows(request.headers(), &token) { next.run(request).await } else { refuse(&refusal::unauthorized()) }
}

fn knows(headers: &HeaderMap, token: &str) -> bool {
    let stated = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match stated.split_once(' ') {
        Some((scheme, stated)) => scheme.eq_ignore_ascii_case("bearer") && is_same(stated, token),
        None => false,
    }
}

/// Compares in a time that tells nothing of where they differ.
fn is_same(one: &str, other: &str) -> bool {
    let differ = one.bytes().zip(other.bytes()).fold(0, |differ, (one, other)| differ | (one ^ other));
    one.len() == other.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_token() {
        let knows = |value: &str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
            super::knows(&headers, "s3cret")
        };
        assert!(knows("Bearer s3cret") && knows("bearer s3cret"));
        for wrong in ["Bearer s3cre", "Bearer s3crets", "Bearer ", "Basic s3cret", "s3cret"] {
            assert!(!knows(wrong), "{wrong}");
        }
        assert!(!super::knows(&HeaderMap::new(), "s3cret"));
    }
}
