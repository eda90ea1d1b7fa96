//! The clocks of an API server, by which runs on several hosts agree on the age of a Lease, and of
//! nodes, whose events and logs have their own times.

use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;

use super::moment::Moment;

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
    /// Reads the clock from the header `Date` of a response. A server that does not send it counts
    /// as synchronous with this host.
    pub(crate) async fn read(client: &Client) -> Self {
        Self::read_at(client, "/version").await
    }

    /// Reads the clock of a node: the API server passes the kubelet's header `Date` on.
    pub(crate) async fn read_of_node(client: &Client, node: &str) -> Self {
        Self::read_at(client, &format!("/api/v1/nodes/{node}/proxy/healthz")).await
    }

    async fn read_at(client: &Client, path: &str) -> Self {
        let request = http::Request::get(path).body(Body::empty());
        let response = match request {
            Ok(request) => client.send(request).await.ok(),
            Err(_) => None,
        };
        let date = response.as_ref().and_then(|response| response.headers().get(http::header::DATE));
        let date = date.and_then(|date| date.to_str().ok());
        let server = date.and_then(|date| DateTimeParser::new().parse_timestamp(date).ok());
        let now = Timestamp::now();
        let read = server.unwrap_or(now);
        Self { read, since: Moment::now(), offset: read.duration_since(now) }
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

#[cfg(test)]
mod tests {
    use http::{Request, Response};

    use super::*;

    /// An API server whose clock, and that of its node, are wrong.
    fn client() -> Client {
        let service = tower::service_fn(async |request: Request<Body>| {
            let date = match request.uri().path() {
                "/version" => Some("Tue, 24 Nov 2071 10:00:00 GMT"),
                "/api/v1/nodes/a/proxy/healthz" => Some("Tue, 24 Nov 1998 10:00:00 GMT"),
                _ => None,
            };
            let response = Response::builder();
            let response = date.into_iter().fold(response, |it, date| it.header("Date", date));
            response.body(Body::empty())
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn times_are_those_of_the_server_or_the_node() {
        let client = client();
        let now = Timestamp::now();
        let year = |clock: ServerClock| clock.at(now).to_string()[..4].to_owned();
        assert_eq!(year(ServerClock::read(&client).await), "2071");
        assert_eq!(year(ServerClock::read_of_node(&client, "a").await), "1998");
        assert_eq!(ServerClock::read_of_node(&client, "b").await.at(now), now, "without a header");
    }
}
