//! The clocks of an API server, by which runs on several hosts agree on the age of a Lease, and of
//! nodes, whose events and logs have their own times.

use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use kube::core::Status;

use super::moment::Moment;
use crate::wait::retry_while_unavailable;

/// Maximum time of a request, and of its repetitions, after which the clock is unknown.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The clock of an API server or of a node, as it was read once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerClock {
    /// Time of the server when it was read.
    read: Timestamp,
    /// Time since then: a change of this host's clock does not move that of the server.
    since: Moment,
    /// Time of the server minus time of this host, when it was read.
    offset: SignedDuration,
}

impl ServerClock {
    /// Reads the clock from the header `Date` of a response. A modelled API server, which does not
    /// send it, has the clock of this host.
    ///
    /// # Errors
    /// The API server does not answer, or only with errors without the header, for 10 s.
    pub(crate) async fn read(client: &Client) -> Result<Self, kube::Error> {
        retry_while_unavailable(READ_TIMEOUT, async || Self::read_at(client, "/version").await).await
    }

    /// Reads the clock of a node: the API server passes the kubelet's header `Date` on.
    ///
    /// # Errors
    /// The API server or the kubelet does not answer, or with an error without the header.
    pub(crate) async fn read_of_node(client: &Client, node: &str) -> Result<Self, kube::Error> {
        Self::read_at(client, &format!("/api/v1/nodes/{node}/proxy/healthz")).await
    }

    async fn read_at(client: &Client, path: &str) -> Result<Self, kube::Error> {
        let request = http::Request::get(path).body(Body::empty()).map_err(kube::Error::HttpError)?;
        let sent = tokio::time::timeout(READ_TIMEOUT, client.send(request)).await;
        let response = sent.map_err(|elapsed| kube::Error::Service(elapsed.into()))??;
        let date = response.headers().get(http::header::DATE).and_then(|date| date.to_str().ok());
        let now = Timestamp::now();
        let read = match date.and_then(|date| DateTimeParser::new().parse_timestamp(date).ok()) {
            Some(read) => read,
            None if response.status().is_success() => now,
            None => return Err(without_date(response.status())),
        };
        Ok(Self { read, since: Moment::now(), offset: read.duration_since(now) })
    }

    /// Current time of the server, to the second.
    pub(crate) fn now(self) -> Timestamp {
        self.read.saturating_add(self.since.elapsed()).unwrap_or(Timestamp::MAX)
    }

    /// Time of the server at a time of this host, at most a second before the exact one, if this
    /// host's clock was not changed in between.
    pub(crate) fn at(self, time: Timestamp) -> Timestamp {
        time.saturating_add(self.offset).unwrap_or(Timestamp::MAX)
    }
}

fn without_date(status: http::StatusCode) -> kube::Error {
    let problem = Status::failure(&format!("{status} without a header Date"), "").with_code(status.as_u16());
    kube::Error::Api(Box::new(problem))
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};

    use super::*;

    /// An API server whose clock, and that of its node, are wrong, and whose first answers are
    /// these failures: no answer, or a status without a header.
    fn client(failures: &'static [Option<u16>]) -> Client {
        let requests = std::sync::atomic::AtomicUsize::new(0);
        let answer = move |path: &str| {
            let nth = requests.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let response = Response::builder();
            let response = match (failures.get(nth), path) {
                (Some(None), _) => return Err(std::io::Error::other("connection reset")),
                (Some(Some(status)), _) => response.status(*status),
                (None, "/version") => response.header("Date", "Tue, 24 Nov 2071 10:00:00 GMT"),
                (None, "/api/v1/nodes/a/proxy/healthz") => {
                    response.header("Date", "Tue, 24 Nov 1998 10:00:00 GMT")
                }
                _ => response,
            };
            Ok(response.body(Body::empty()).unwrap())
        };
        let answer = std::sync::Arc::new(answer);
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = answer.clone();
            async move { answer(request.uri().path()) }
        });
        Client::new(service, "default")
    }

    fn year(clock: ServerClock) -> String {
        clock.now().to_string()[..4].to_owned()
    }

    #[tokio::test]
    async fn times_are_those_of_the_server_or_the_node() {
        let client = client(&[]);
        let now = Timestamp::now();
        assert_eq!(year(ServerClock::read(&client).await.unwrap()), "2071");
        let of_node = ServerClock::read_of_node(&client, "a").await.unwrap();
        assert_eq!(year(of_node), "1998");
        assert!(of_node.at(now).to_string().starts_with("1998"));
        let without_header = ServerClock::read_of_node(&client, "b").await.unwrap();
        assert!(without_header.now().duration_since(now).as_secs() < 10);
    }

    /// Leases are not written and judged by the clock of the host because a request failed.
    #[tokio::test(start_paused = true)]
    async fn a_failed_request_is_repeated_and_then_an_error() {
        let recovered = client(&[None, Some(503), Some(500)]);
        assert_eq!(year(ServerClock::read(&recovered).await.unwrap()), "2071");
        assert!(ServerClock::read(&client(&[None; 100])).await.is_err());
        let error = ServerClock::read(&client(&[Some(503); 100])).await.unwrap_err().to_string();
        assert!(error.contains("503 Service Unavailable without a header Date"), "{error}");
    }
}
