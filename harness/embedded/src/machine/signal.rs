//! Signals by their numbers on Linux.

/// The number of a signal.
pub(super) type SignalNumber = u8;

pub(super) const SIGHUP: SignalNumber = 1;
pub(super) const SIGINT: SignalNumber = 2;
pub(super) const SIGKILL: SignalNumber = 9;
pub(super) const SIGPIPE: SignalNumber = 13;
pub(super) const SIGTERM: SignalNumber = 15;
