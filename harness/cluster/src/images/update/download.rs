//! Downloads a document.

use http::header::{ACCEPT, USER_AGENT};
use http::{Request, Uri};
use kube::Config;

use crate::api_client::client_builder;
use crate::api_error::api_error_message;

/// Address of the list of kind's releases.
pub const RELEASES: &str = "https://api.github.com/repos/kubernetes-sigs/kind/releases?per_page=100";

/// A document could not be downloaded.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The address is invalid.
    #[error("failed to download {url}: it is not an address: {source}")]
    Address {
        /// The address.
        url: String,
        /// The reason.
        source: http::Error,
    },
    /// The server did not answer with the document.
    #[error(
        "failed to download {url}: {}\nhelp: download it elsewhere (`gh api {path}`), and pass the file: --from FILE",
        api_error_message(source),
        path = path(url)
    )]
    Request {
        /// The address.
        url: String,
        /// The reason.
        source: Box<kube::Error>,
    },
}

/// Downloads a text by HTTP or HTTPS, with the TLS of the Kubernetes client.
///
/// # Errors
/// The address is invalid, or the server does not answer with the document.
pub async fn download(url: &str) -> Result<String, DownloadError> {
    let invalid = |source: http::Error| DownloadError::Address { url: url.to_owned(), source };
    let failed = |source| DownloadError::Request { url: url.to_owned(), source: Box::new(source) };
    let address: Uri = url.parse().map_err(|error: http::uri::InvalidUri| invalid(error.into()))?;
    let path = address.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let mut server = address.into_parts();
    server.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
    let server = Uri::from_parts(server).map_err(|error| invalid(error.into()))?;
    let request = Request::get(path)
        .header(USER_AGENT, concat!("evictlab/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "application/vnd.github+json")
        .body(Vec::new())
        .map_err(invalid)?;
    let client = client_builder(Config::new(server)).map_err(failed)?.build();
    client.request_text(request).await.map_err(failed)
}

/// Path of an address in GitHub's API.
fn path(url: &str) -> &str {
    url.strip_prefix("https://api.github.com/").unwrap_or(url)
}
