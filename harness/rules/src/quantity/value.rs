//! [`Quantity`], its comparison, its sums and its form in JSON.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::{Add, Sub};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Bytes in a KiB.
pub const KIB: u64 = 1 << 10;

/// Bytes in a MiB.
pub const MIB: u64 = 1 << 20;

/// Bytes in a GiB.
pub const GIB: u64 = 1 << 30;

/// Nanos in one whole unit. A quantity counts nanos, the finest unit that Kubernetes keeps.
pub(super) const UNIT: i128 = 1_000_000_000;

/// The family of suffixes that a quantity prints with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `12e6`.
    DecimalExponent,
    /// `12Mi`, 12 × 2^20.
    BinarySi,
    /// `12M`, 12 × 10^6.
    DecimalSi,
}

/// An exact number with its [`Format`] and, if it was parsed from a canonical text, that text.
///
/// Quantities are equal if their numbers are: `1Gi == 1024Mi`. Format and text affect printing
/// only.
#[derive(Clone, Debug)]
pub struct Quantity {
    pub(super) nanos: i128,
    pub(super) format: Format,
    pub(super) text: Option<String>,
}

impl Quantity {
    /// Zero, the value of a missing request; prints `0`.
    pub const ZERO: Self = Self { nanos: 0, format: Format::DecimalSi, text: None };

    /// Returns a number of bytes in binary format, the kubelet's format for memory and disk usage.
    pub fn from_bytes(bytes: i64) -> Self {
        Self { nanos: i128::from(bytes) * UNIT, format: Format::BinarySi, text: None }
    }

    /// Returns a count in decimal format, the kubelet's format for inodes and process IDs.
    pub fn from_count(count: i64) -> Self {
        Self { nanos: i128::from(count) * UNIT, format: Format::DecimalSi, text: None }
    }

    /// Returns the number in whole units, such as bytes. Rounds away from zero and saturates at the
    /// limits of `i64`.
    pub fn value(&self) -> i64 {
        self.scaled_value(UNIT)
    }

    /// Returns the number in thousandths of a unit, such as milli-CPUs. Rounds away from zero and
    /// saturates at the limits of `i64`.
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(UNIT / 1000)
    }

    fn scaled_value(&self, scale: i128) -> i64 {
        let whole = self.nanos / scale + (self.nanos % scale).signum();
        i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
    }

    /// Returns whether the number is 0.
    pub fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// Returns whether the number is less than 0.
    pub fn is_negative(&self) -> bool {
        self.nanos < 0
    }

    /// Returns the format that the quantity prints in.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns `nanos` in the format of the first operand that is not zero, without a text.
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

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Quantity {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "title": "Kubernetes quantity, such as `128Mi`" })
    }
}

/// The two JSON types that the API accepts for a quantity.
#[derive(Deserialize)]
#[serde(untagged)]
enum JsonQuantity {
    Text(String),
    Number(serde_json::Number),
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match JsonQuantity::deserialize(deserializer)? {
            JsonQuantity::Text(text) => text,
            JsonQuantity::Number(number) => number.to_string(),
        };
        text.parse().map_err(de::Error::custom)
    }
}
