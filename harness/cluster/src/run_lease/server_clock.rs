//! The clocks of an API server, by which runs on several hosts agree on the age of a Lease, and of
//! nodes, whose events and logs have their own times.

use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;

/// The clock of an API server or of a node, measured once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServerClock {
    /// Time of the server minus time of this host.
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
        let Ok(request) = request else { return Self::default() };
        let Ok(response) = client.send(request).await else { return Self::default() };
        let date = response.headers().get(http::header::DATE).and_then(|date| date.to_str().ok());
        let server = date.and_then(|date| DateTimeParser::new().parse_timestamp(date).ok());
        Self { offset: server.map(|server| server.duration_since(Timestamp::now())).unwrap_or_default() }
    }

    /// Current time of the server, to the second.
    pub(crate) fn now(self) -> Timestamp {
        self.at(Timestamp::now())
    }

    /// Time of the server at a time of this host: at most a second before the exact one.
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
