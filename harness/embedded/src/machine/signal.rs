//! Signals by their numbers on Linux.

/// The number of a signal.
pub(super) type Signal = u8;

pub(super) const SIGHUP: Signal = 1;
pub(super) const SIGINT: Signal = 2;
pub(super) const SIGKILL: Signal = 9;
pub(super) const SIGPIPE: Signal = 13;
pub(super) const SIGTERM: Signal = 15;
