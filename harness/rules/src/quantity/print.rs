//! Quantity to text: the canonical form, or the text it was read from where the original keeps that.

use std::fmt;

use super::arithmetic::{Format, Quantity, UNIT};

const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl Quantity {
    /// The canonical form, whatever text it was read from.
    pub fn canonical(&self) -> String {
        if self.nanos == 0 {
            return "0".to_owned();
        }
        // Under 1024 there is no binary suffix to use, and a fraction has no binary form.
        let binary =
            self.format == Format::BinarySi && self.nanos.abs() >= 1024 * UNIT && self.nanos % UNIT == 0;
        if binary { binary_text(self.nanos / UNIT) } else { decimal_text(self.nanos, self.format) }
    }
}

fn binary_text(mut whole: i128) -> String {
    let mut suffixes = BINARY_SUFFIXES.iter();
    let mut suffix = suffixes.next().copied().unwrap_or_default();
    while whole % 1024 == 0 {
        let Some(next) = suffixes.next() else { break };
        whole /= 1024;
        suffix = next;
    }
    format!("{whole}{suffix}")
}

fn decimal_text(mut mantissa: i128, format: Format) -> String {
    let mut exponent = -9;
    while mantissa % 1000 == 0 {
        mantissa /= 1000;
        exponent += 3;
    }
    let suffix = match (exponent, format) {
        (0, _) => String::new(),
        (-9, Format::DecimalSi | Format::BinarySi) => "n".to_owned(),
        (-6, Format::DecimalSi | Format::BinarySi) => "u".to_owned(),
        (-3, Format::DecimalSi | Format::BinarySi) => "m".to_owned(),
        (3, Format::DecimalSi | Format::BinarySi) => "k".to_owned(),
        (6, Format::DecimalSi | Format::BinarySi) => "M".to_owned(),
        (9, Format::DecimalSi | Format::BinarySi) => "G".to_owned(),
        (12, Format::DecimalSi | Format::BinarySi) => "T".to_owned(),
        (15, Format::DecimalSi | Format::BinarySi) => "P".to_owned(),
        (18, Format::DecimalSi | Format::BinarySi) => "E".to_owned(),
        (exponent, _) => format!("e{exponent}"),
    };
    format!("{mantissa}{suffix}")
}

impl fmt::Display for Quantity {
    /// As the kubelet prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.pad(text),
            None => f.pad(&self.canonical()),
        }
    }
}
