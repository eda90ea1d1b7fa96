//! Amounts of memory and disk.

/// Amounts of memory and local ephemeral storage, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amounts {
    /// Memory.
    pub memory: u64,
    /// Local ephemeral storage.
    pub disk: u64,
}
