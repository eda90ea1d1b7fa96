//! The clock of an API server, by which runs on several hosts agree on the age of a Lease.

use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;

/// The clock of an API server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServerClock {
    /// Time of the server minus time of this host.
    offset: SignedDuration,
}

impl ServerClock {
    /// Reads the clock from the header `Date` of a response. A server that does not send it counts
    /// as synchronous with this host.
    pub(crate) async fn read(client: &Client) -> Self {
        let request = http::Request::get("/version").body(Body::empty());
        let Ok(request) = request else { return Self::default() };
        let Ok(response) = client.send(request).await else { return Self::default() };
        let date = response.headers().get(http::header::DATE).and_then(|date| date.to_str().ok());
        let server = date.and_then(|date| DateTimeParser::new().parse_timestamp(date).ok());
        Self { offset: server.map(|server| server.duration_since(Timestamp::now())).unwrap_or_default() }
    }

    /// Current time of the server, to the second.
    pub(crate) fn now(self) -> Timestamp {
        Timestamp::now().saturating_add(self.offset).unwrap_or(Timestamp::MAX)
    }
}
