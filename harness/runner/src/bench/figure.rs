//! A figure beside its target.

use serde::Serialize;

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Hundredths of one core.
    PercentOfACore,
    /// 1048576 bytes.
    Mebibytes,
}

/// What was measured, and what it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What.
    pub figure: String,
    /// In what.
    pub unit: Unit,
    /// The target: this or less.
    pub at_most: f64,
    /// What was measured; none where it could not be, and then the note says why.
    pub measured: Option<f64>,
    /// How it was measured, or why not, in one line.
    pub note: String,
}

impl Figure {
    /// The median of these values. None of them: it could not be measured, because `why`.
    pub fn median(
        figure: impl Into<String>,
        (unit, at_most): (Unit, f64),
        values: &[f64],
        why: &str,
    ) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let note = match sorted.last() {
            None => why.to_owned(),
            Some(worst) => format!("median of {}, worst {}", sorted.len(), unit.show(*worst)),
        };
        let middle = sorted.len() / 2;
        let measured = match sorted.len() {
            0 => None,
            odd if odd % 2 == 1 => Some(sorted[middle]),
            _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
        };
        Self { figure: figure.into(), unit, at_most, measured, note }
    }

    /// Whether the target is reached, if that is known.
    pub fn reached(&self) -> Option<bool> {
        self.measured.map(|measured| measured <= self.at_most)
    }
}

impl Unit {
    /// A value with its unit: `12.3 s`, `34 ms`, `0.8 %`.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Seconds => format!("{value:.1} s"),
            Self::Milliseconds => format!("{value:.0} ms"),
            Self::PercentOfACore => format!("{value:.1} %"),
            Self::Mebibytes => format!("{value:.0} MiB"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_decides() {
        for (values, measured, reached, note) in [
            (&[][..], None, None, "no case ended"),
            (&[16.0, 9.0, 14.0], Some(14.0), Some(true), "median of 3, worst 16.0 s"),
            (&[14.0, 18.0], Some(16.0), Some(false), "median of 2, worst 18.0 s"),
            (&[15.0], Some(15.0), Some(true), "median of 1, worst 15.0 s"),
        ] {
            let figure = Figure::median("verdict", (Unit::Seconds, 15.0), values, "no case ended");
            assert_eq!((figure.measured, figure.reached(), figure.note.as_str()), (measured, reached, note));
        }
    }
}
