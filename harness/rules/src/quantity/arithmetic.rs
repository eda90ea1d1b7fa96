//! The quantity itself, its order and its sums.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::{Add, Sub};

/// One whole unit, in the nanos that a quantity counts.
pub(super) const UNIT: i128 = 1_000_000_000;

/// How a quantity prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `12e6`.
    DecimalExponent,
    /// `12Mi`, 12 × 2^20.
    BinarySi,
    /// `12M`, 12 × 10^6.
    DecimalSi,
}

/// An exact amount with the format it prints in, and sometimes the text it was read from.
///
/// Compared by value alone: `1Gi == 1024Mi`. The text counts only for printing.
#[derive(Clone, Debug)]
pub struct Quantity {
    pub(super) nanos: i128,
    pub(super) format: Format,
    pub(super) text: Option<String>,
}

impl Quantity {
    /// What a missing request counts as; prints `0`.
    pub const ZERO: Self = Self { nanos: 0, format: Format::DecimalSi, text: None };

    /// Bytes, as the kubelet makes quantities of memory and disk figures.
    pub fn from_bytes(bytes: i64) -> Self {
        Self { nanos: i128::from(bytes) * UNIT, format: Format::BinarySi, text: None }
    }

    /// A count, as the kubelet makes quantities of inodes and process ids.
    pub fn from_count(count: i64) -> Self {
        Self { nanos: i128::from(count) * UNIT, format: Format::DecimalSi, text: None }
    }

    /// The amount in whole units (bytes), rounded away from zero; saturates at the limits of `i64`.
    pub fn value(&self) -> i64 {
        let whole = self.nanos / UNIT + (self.nanos % UNIT).signum();
        i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
    }

    /// The amount in thousandths of a unit, as CPU is counted, rounded away from zero; saturates at the limits of `i64`.
    pub fn milli_value(&self) -> i64 {
        const MILLI: i128 = UNIT / 1000;
        let whole = self.nanos / MILLI + (self.nanos % MILLI).signum();
        i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
    }

    /// Whether it is nothing.
    pub fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// Whether it is less than nothing.
    pub fn is_negative(&self) -> bool {
        self.nanos < 0
    }

    /// The format it prints in.
    pub fn format(&self) -> Format {
        self.format
    }

    /// A sum takes the format of its first part that is not zero and forgets the texts.
    fn combined(self, other: &Self, nanos: i128) -> Self {
        let format = if self.nanos == 0 { other.format } else { self.format };
        Self { nanos, format, text: None }
    }
}

impl Add<&Quantity> for Quantity {
    type Output = Self;

    fn add(self, other: &Self) -> Self {
        let nanos = self.nanos.saturating_add(other.nanos);
        self.combined(other, nanos)
    }
}

impl Sub<&Quantity> for Quantity {
    type Output = Self;

    fn sub(self, other: &Self) -> Self {
        let nanos = self.nanos.saturating_sub(other.nanos);
        self.combined(other, nanos)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}
