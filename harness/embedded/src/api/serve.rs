//! The API on a port.

use std::io;
use std::net::SocketAddr;

use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use tokio::net::TcpListener;

use super::refusal;
use super::respond::refuse;
use crate::cluster::Cluster;

/// The name before the token where a client sends a password.
const USER: &str = "evictlab";

/// Serves the API to those who know the token, until it is dropped.
pub(crate) async fn serve(cluster: &Cluster, listener: TcpListener, token: String) -> io::Result<()> {
    let router = super::router(cluster).layer(from_fn_with_state(token, admit));
    axum::serve(listener, router).await
}

/// A kubeconfig for a served API.
///
/// Over plain HTTP kubectl sends no token (`clientcmd/client_config.go` reads the user only for TLS), but a password in the server's address; other
/// clients send the token.
pub fn kubeconfig(address: SocketAddr, token: &str) -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: evictlab-embedded
  cluster:
    server: http://{USER}:{token}@{address}
users:
- name: evictlab-embedded
  user:
    token: {token}
contexts:
- name: evictlab-embedded
  context:
    cluster: evictlab-embedded
    user: evictlab-embedded
current-context: evictlab-embedded
"
    )
}

/// Lets those in who know the token.
async fn admit(State(token): State<String>, request: Request, next: Next) -> Response {
    if knows(request.headers(), &token) { next.run(request).await } else { refuse(&refusal::unauthorized()) }
}

fn knows(headers: &HeaderMap, token: &str) -> bool {
    let stated = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match stated.split_once(' ') {
        Some((scheme, stated)) if scheme.eq_ignore_ascii_case("bearer") => is_same(stated, token),
        Some((scheme, stated)) if scheme.eq_ignore_ascii_case("basic") => {
            let stated = STANDARD.decode(stated).unwrap_or_default();
            is_same(&String::from_utf8_lossy(&stated), &format!("{USER}:{token}"))
        }
        _ => false,
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
    fn knows_the_token_in_both_forms() {
        let knows = |value: &str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
            super::knows(&headers, "s3cret")
        };
        assert!(knows("Bearer s3cret"));
        assert!(knows(&format!("Basic {}", STANDARD.encode("evictlab:s3cret"))));
        for wrong in ["Bearer s3cre", "Bearer s3crets", "Bearer ", "Basic s3cret", "s3cret"] {
            assert!(!knows(wrong), "{wrong}");
        }
        assert!(!super::knows(&HeaderMap::new(), "s3cret"));
    }
}
