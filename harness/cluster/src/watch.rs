//! Watches: the delays before they are opened again, and their denial.

use std::time::Duration;

use kube::runtime::utils::Backoff;
use kube::runtime::watcher;

/// Delays between attempts to reopen a broken watch: 0.8 s, doubled up to 30 s, reset by success.
/// Without jitter, so that runs on the model are reproducible.
#[derive(Debug, Default)]
pub struct WatchBackoff {
    last: Option<Duration>,
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let next = self.last.map_or(Duration::from_millis(800), |last| last * 2);
        self.last = Some(next.min(Duration::from_secs(30)));
        self.last
    }
}

impl Backoff for WatchBackoff {
    fn reset(&mut self) {
        self.last = None;
    }
}

/// The API server denies a watch, or the list before it (403): the user lacks a permission.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "failed to start a watch: permission to {verb} is denied: {message}\nhelp: bind a ClusterRole with this permission; harness/guides/reference/clusters.md lists all of them"
)]
pub struct WatchDenied {
    /// Verb of the missing permission: `list` or `watch`.
    pub verb: &'static str,
    /// Message of the API server, which names the user and the resource.
    pub message: String,
}

impl WatchDenied {
    /// Returns the denial that an error of a watch states; `None` for an error that may pass.
    pub fn of(error: &watcher::Error) -> Option<Self> {
        let (verb, error) = match error {
            watcher::Error::InitialListFailed(error) => ("list", error),
            watcher::Error::WatchStartFailed(error) => ("watch", error),
            watcher::Error::WatchError(status) if status.code == 403 => {
                return Some(Self { verb: "watch", message: status.message.clone() });
            }
            _ => return None,
        };
        match error {
            kube::Error::Api(status) if status.code == 403 => {
                Some(Self { verb, message: status.message.clone() })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn delays_double_up_to_30_s() {
        let mut backoff = WatchBackoff::default();
        let delays: Vec<u128> = backoff.by_ref().take(7).map(|delay| delay.as_millis()).collect();
        assert_eq!(delays, [800, 1600, 3200, 6400, 12800, 25600, 30000]);
        backoff.reset();
        assert_eq!(backoff.next(), Some(Duration::from_millis(800)));
    }

    #[test]
    fn only_a_403_is_a_denial() {
        let status = |code| Status::failure("pods is forbidden", "").with_code(code).boxed();
        let api = |code| kube::Error::Api(status(code));
        let rows = [
            (watcher::Error::InitialListFailed(api(403)), Some("list")),
            (watcher::Error::WatchStartFailed(api(403)), Some("watch")),
            (watcher::Error::WatchError(status(403)), Some("watch")),
            (watcher::Error::WatchError(status(410)), None),
            (watcher::Error::InitialListFailed(api(401)), None),
            (watcher::Error::WatchStartFailed(api(503)), None),
            (watcher::Error::NoResourceVersion, None),
        ];
        for (error, verb) in rows {
            assert_eq!(WatchDenied::of(&error).map(|denied| denied.verb), verb, "{error}");
        }
    }
}
