//! Prints a quantity in the canonical form, or as the text it was parsed from if that was kept.

use std::fmt;

use super::value::{Format, Quantity, UNIT};

const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl Quantity {
    /// Returns the canonical form, ignoring a kept text.
    pub fn canonical(&self) -> String {
        if self.nanos == 0 {
            return "0".to_owned();
        }
        // Numbers below 1024 and fractions do not have a binary form.
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
    let suffix = match exponent {
        0 => "",
        _ if format == Format::DecimalExponent => return format!("{mantissa}e{exponent}"),
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => return format!("{mantissa}e{exponent}"),
    };
    format!("{mantissa}{suffix}")
}

impl fmt::Display for Quantity {
    /// Prints the quantity as the kubelet does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.pad(text),
            None => f.pad(&self.canonical()),
        }
    }
}
