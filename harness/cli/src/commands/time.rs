//! Times on the command line.

use std::time::Duration;

/// A time such as `30m`.
pub fn time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| error.to_string())
}
