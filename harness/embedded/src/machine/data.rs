//! What flows between processes and files: text that matters, and masses of bytes that do not.

use std::sync::Arc;

/// Some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Data {
    /// These.
    Bytes(Vec<u8>),
    /// So many, without any line's end.
    Fill(u64),
    /// The same line so many times.
    Lines(Arc<str>, u64),
}

impl Data {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Bytes(text.into().into_bytes())
    }

    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Fill(len) => *len,
            Self::Lines(line, count) => (line.len() as u64 + 1) * count,
        }
    }

    /// How many lines end in it.
    pub fn lines(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.iter().filter(|byte| **byte == b'\n').count() as u64,
            Self::Fill(_) => 0,
            Self::Lines(_, count) => *count,
        }
    }

    /// Parts it after so many bytes. Lines that are cut lose their shape.
    pub fn split(self, at: u64) -> (Self, Option<Self>) {
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

    /// Parts it after about so many bytes, between lines: there is one at least on each side.
    pub fn split_near(self, at: u64) -> (Self, Option<Self>) {
        let at = match &self {
            Self::Lines(line, _) => {
                let each = line.len() as u64 + 1;
                (at / each).max(1) * each
            }
            _ => at,
        };
        self.split(at)
    }

    /// Parts it after so many lines.
    pub fn split_lines(self, at: u64) -> (Self, Option<Self>) {
        if at >= self.lines() && !matches!(&self, Self::Bytes(_)) {
            return (self, None);
        }
        match self {
            Self::Bytes(bytes) => {
                let mut ends =
                    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
                let cut = if at == 0 { 0 } else { ends.nth(at as usize - 1).unwrap_or(bytes.len()) };
                Self::Bytes(bytes).split(cut as u64)
            }
            Self::Lines(line, count) => (Self::Lines(line.clone(), at), Some(Self::Lines(line, count - at))),
            Self::Fill(len) => (Self::Fill(len), None),
        }
    }

    /// The bytes themselves, if there are no more than `most` of them.
    pub fn bytes(&self, most: usize) -> Option<Vec<u8>> {
        if self.len() > most as u64 {
            return None;
        }
        Some(match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::Fill(len) => vec![0; *len as usize],
            Self::Lines(line, count) => format!("{line}\n").repeat(*count as usize).into_bytes(),
        })
    }
}
