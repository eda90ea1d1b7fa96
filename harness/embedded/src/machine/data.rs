//! Data between processes and files: known text, or bulk bytes of which only the number is stored.

use std::sync::Arc;

/// Some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Data {
    /// Known bytes.
    Bytes(Vec<u8>),
    /// A number of unknown bytes without a newline.
    Fill(u64),
    /// A line, repeated.
    Lines(Arc<str>, u64),
}

impl Data {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Bytes(text.into().into_bytes())
    }

    /// Returns the number of bytes.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Fill(len) => *len,
            Self::Lines(line, count) => (line.len() as u64 + 1) * count,
        }
    }

    /// Returns the first bytes, at most `most`. Unknown bytes are zeros.
    pub(super) fn first_bytes(&self, most: usize) -> Vec<u8> {
        let len = self.len().min(most as u64) as usize;
        match self {
            Self::Bytes(bytes) => bytes[..len].to_vec(),
            Self::Fill(_) => vec![0; len],
            Self::Lines(line, _) => line.bytes().chain([b'\n']).cycle().take(len).collect(),
        }
    }
}
