//! Settings of the clients of an API server.

use std::time::Duration;

/// Maximum time between two reads from the API server. Watches receive data, or bookmarks, at least
/// about once a minute.
const API_READ_TIMEOUT: Duration = Duration::from_secs(90);

/// Sets the timeout and the retries of a client.
pub(crate) fn apply_client_settings(config: &mut kube::Config) {
    config.read_timeout = Some(API_READ_TIMEOUT);
    // kube would retry a refused eviction (429) for minutes.
    config.default_retry = false;
}
