//! Figures and their targets.

use evictlab_report::median;
use schemars::JsonSchema;
use serde::Serialize;

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Percent of one core.
    PercentOfACore,
    /// 1048576 bytes.
    Mebibytes,
}

/// A measured value and its target.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Description.
    pub figure: String,
    /// Unit of the values.
    pub unit: Unit,
    /// The target: at most this value.
    pub at_most: f64,
    /// The measured value; `None` if the measurement failed, for the reason in the note.
    pub measured: Option<f64>,
    /// The method, or the reason for the failure, in one line.
    pub note: String,
    /// Time and memory up to the size of the figure; empty for a figure without sizes.
    pub growth: Vec<GrowthPoint>,
}

/// Time and memory at one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GrowthPoint {
    /// Number of nodes, or of events.
    pub size: usize,
    /// Time in seconds.
    pub seconds: f64,
    /// Peak memory in MiB; `None` if the system does not report it.
    pub mebibytes: Option<f64>,
}

/// A figure with its outcome, as `evictlab bench --json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FigureResult {
    /// Description.
    figure: String,
    /// Unit of the values.
    unit: Unit,
    /// The target: at most this value.
    at_most: f64,
    /// The measured value; `null` if the measurement failed, for the reason in the note.
    measured: Option<f64>,
    /// True if the target is reached; `null` without a value.
    reached: Option<bool>,
    /// The method, or the reason for the failure, in one line.
    note: String,
    /// Time and memory up to the size of the figure; empty for a figure without sizes.
    growth: Vec<GrowthPoint>,
}

impl From<&Figure> for FigureResult {
    fn from(figure: &Figure) -> Self {
        let Figure { figure: name, unit, at_most, measured, note, growth } = figure.clone();
        Self { figure: name, unit, at_most, measured, reached: figure.reached(), note, growth }
    }
}

impl Figure {
    /// Returns the median of the values. Without values the measurement failed for this reason.
    pub fn median(
        figure: impl Into<String>,
        (unit, at_most): (Unit, f64),
        values: &[f64],
        reason: &str,
    ) -> Self {
        let measured = median(values.iter().copied());
        let note = match values.iter().copied().reduce(f64::max) {
            None => reason.to_owned(),
            Some(worst) => format!("median of {}, worst {}", values.len(), unit.format(worst)),
        };
        Self { figure: figure.into(), unit, at_most, measured, note, growth: Vec::new() }
    }

    /// Returns whether the target is reached; `None` without a value.
    pub fn reached(&self) -> Option<bool> {
        self.measured.map(|measured| measured <= self.at_most)
    }
}

impl Unit {
    /// Formats a value with its unit: `12.3 s`, `34 ms`, `0.8 %`.
    pub fn format(self, value: f64) -> String {
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
    fn compares_the_median_with_the_target() {
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
