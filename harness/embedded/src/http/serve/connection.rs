//! One connection of a client.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::Response;
use http::Request;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use super::activity::{ActiveRequest, Activity};

/// Deadline of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time between the start of a connection, or the end of a response, and the end of the
/// next request's header. kube-apiserver waits as long (`staging/src/k8s.io/apiserver/pkg/server/
/// secure_serving.go`, `ReadHeaderTimeout`).
const HEADER_TIMEOUT: Duration = Duration::from_secs(32);

/// A connection, and whether it is idle.
pub(super) struct Connection {
    router: Router,
    activity: Activity,
}

impl Connection {
    /// Creates a connection whose requests the router answers.
    pub(super) fn new(router: Router) -> Self {
        Self { router, activity: Activity::new() }
    }

    /// Activity of the connection.
    pub(super) fn activity(&self) -> Activity {
        self.activity.clone()
    }

    /// Serves the connection until it ends. Errors end it: only the client can act on them.
    pub(super) async fn serve(self, acceptor: TlsAcceptor, stream: TcpStream) {
        if let Ok(Ok(stream)) = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
            self.serve_http(stream).await;
        }
    }

    /// Serves HTTP on a stream until the connection ends.
    pub(super) async fn serve_http(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Self { router, activity } = self;
        let service = service_fn(move |request| answer(router.clone(), activity.begin(), request));
        let _ended = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }
}

async fn answer(
    router: Router,
    active: ActiveRequest,
    request: Request<Incoming>,
) -> Result<Response<ActiveBody>, Infallible> {
    let response = router.oneshot(request.map(Body::new)).await?;
    Ok(response.map(|body| ActiveBody { body, _active: active }))
}

/// The body of a response. Its request is active until the body is sent.
struct ActiveBody {
    body: Body,
    _active: ActiveRequest,
}

impl HttpBody for ActiveBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::{Instant, sleep};

    /// Sends text; returns the response and the time at which the server closed the connection.
    async fn send(text: &str) -> (String, Duration) {
        let slow = || async {
            sleep(2 * HEADER_TIMEOUT).await;
            "slow"
        };
        let connection = Connection::new(Router::new().route("/slow", get(slow)));
        let (mut client, server) = duplex(1 << 10);
        let served = tokio::spawn(connection.serve_http(server));
        let began = Instant::now();
        client.write_all(text.as_bytes()).await.unwrap();
        let mut response = String::new();
        client.read_to_string(&mut response).await.unwrap();
        served.await.unwrap();
        (response, began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn closes_connections_without_a_complete_header() {
        for (text, response, closed_after) in [
            ("", "", HEADER_TIMEOUT),
            ("GET /slow HTTP/1.1\r\nhost: ", "", HEADER_TIMEOUT),
            // The timeout does not apply to responses, but to the connection after them.
            ("GET /slow HTTP/1.1\r\nhost: a\r\n\r\n", "HTTP/1.1 200 OK", 3 * HEADER_TIMEOUT),
        ] {
            let (received, closed) = send(text).await;
            assert!(
                received.starts_with(response) && (response.is_empty() == received.is_empty()),
                "{received}"
            );
            assert_eq!(closed.as_secs(), closed_after.as_secs(), "{text}");
        }
    }
}
