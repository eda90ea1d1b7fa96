//! The number of files that this process may open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Limit beyond which no command opens files.
const ENOUGH: u64 = 16_384;

/// Raises the limit of this process as far as permitted, as programs in Go do: the default of 1,024
/// is too low for the connections of a cluster with 1,000 nodes.
pub(crate) fn raise() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(ENOUGH, |maximum| maximum.min(ENOUGH));
    if current.is_some_and(|current| current < wanted) {
        // Without it, large clusters are slower or fail with an error of the operating system.
        let _ignored = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}
