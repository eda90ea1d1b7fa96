//! Clients of an API server.

use std::time::Duration;

use http::{Request, Response};
use kube::Config;
use kube::client::{Body, ClientBuilder, DynBody};
use tower::{BoxError, Service};

use crate::answer_limit::{AnswerLimit, LimitedBody};

/// Maximum time between two reads from the API server. Watches receive data, or bookmarks, at least
/// about once a minute.
const API_READ_TIMEOUT: Duration = Duration::from_secs(90);

/// A service that sends requests to an API server.
pub(crate) trait ApiService:
    Service<
        Request<Body>,
        Response = Response<LimitedBody<Box<DynBody>>>,
        Error = BoxError,
        Future: Send + 'static,
    > + Send
    + 'static
{
}

impl<S> ApiService for S where
    S: Service<
            Request<Body>,
            Response = Response<LimitedBody<Box<DynBody>>>,
            Error = BoxError,
            Future: Send + 'static,
        > + Send
        + 'static
{
}

/// Returns a builder of a client with a timeout, which reads answers of a limited length and does
/// not repeat requests.
///
/// # Errors
/// The certificates of the configuration are invalid.
pub(crate) fn client_builder(mut config: Config) -> Result<ClientBuilder<impl ApiService>, kube::Error> {
    config.read_timeout = Some(API_READ_TIMEOUT);
    // kube would retry a refused eviction (429) for minutes.
    config.default_retry = false;
    Ok(ClientBuilder::try_from(config)?.with_layer(&AnswerLimit))
}
