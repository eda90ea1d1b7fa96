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

    /// Splits the data after `at` bytes. The content of a line that is cut becomes unknown.
    pub(super) fn split(self, at: u64) -> (Self, Option<Self>) {
        let len = self.len();
        if at >= len {
            return (self, None);
        }
        match self {
            Self::Bytes(mut bytes) => {
                let rest = bytes.split_off(at as usize);
                (Self::Bytes(bytes), Some(Self::Bytes(rest)))
            }
            Self::Lines(line, count) if at.is_multiple_of(line.len() as u64 + 1) => {
                let whole = at / (line.len() as u64 + 1);
                (Self::Lines(line.clone(), whole), Some(Self::Lines(line, count - whole)))
            }
            Self::Fill(_) | Self::Lines(..) => (Self::Fill(at), Some(Self::Fill(len - at))),
        }
    }

    /// Splits the data after about `at` bytes, between lines, and after the first line at the
    /// earliest.
    pub(super) fn split_near(self, at: u64) -> (Self, Option<Self>) {
        let at = match &self {
            Self::Lines(line, _) => {
                let len = line.len() as u64 + 1;
                (at / len).max(1) * len
            }
            _ => at,
        };
        self.split(at)
    }

    /// Splits the data after its first line. Data without a newline stays whole.
    pub(super) fn split_line(self) -> (Self, Option<Self>) {
        match self {
            Self::Bytes(bytes) => {
                let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
                Self::Bytes(bytes).split(end as u64)
            }
            Self::Lines(line, count) if count > 1 => {
                (Self::Lines(line.clone(), 1), Some(Self::Lines(line, count - 1)))
            }
            whole => (whole, None),
        }
    }

    /// Returns the bytes, if there are at most `most`. Unknown bytes are zeros.
    pub(super) fn bytes(&self, most: usize) -> Option<Vec<u8>> {
        (self.len() <= most as u64).then(|| self.first_bytes(most))
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
