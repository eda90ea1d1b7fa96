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

/// The target of a figure: at most this value.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Unit of the values.
    pub unit: Unit,
    /// The highest value that reaches the target.
    pub at_most: f64,
}

/// A measured value and its target.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Figure {
    /// Description.
    pub figure: String,
    /// Unit of the values.
    pub unit: Unit,
    /// The target: at most this value.
    pub at_most: f64,
    /// The measured value; `null` if the measurement failed, for the reason in the note.
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
pub struct FigureResult {
    #[serde(flatten)]
    figure: Figure,
    /// True if the target is reached; `null` without a value.
    reached: Option<bool>,
}

impl From<&Figure> for FigureResult {
    fn from(figure: &Figure) -> Self {
        Self { reached: figure.reached(), figure: figure.clone() }
    }
}

impl Figure {
    /// Creates a figure from measured values: their median. `failure` is the note if there are no
    /// values.
    pub fn from_values(
        figure: impl Into<String>,
        Target { unit, at_most }: Target,
        values: &[f64],
        failure: &str,
    ) -> Self {
        let measured = median(values.iter().copied());
        let note = match values.iter().copied().reduce(f64::max) {
            None => failure.to_owned(),
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
        let target = Target { unit: Unit::Seconds, at_most: 15.0 };
        for (values, measured, reached, note) in [
            (&[][..], None, None, "no case ended"),
            (&[16.0, 9.0, 14.0], Some(14.0), Some(true), "median of 3, worst 16.0 s"),
            (&[14.0, 18.0], Some(16.0), Some(false), "median of 2, worst 18.0 s"),
            (&[15.0], Some(15.0), Some(true), "median of 1, worst 15.0 s"),
        ] {
            let figure = Figure::from_values("verdict", target, values, "no case ended");
            assert_eq!((figure.measured, figure.reached(), figure.note.as_str()), (measured, reached, note));
        }
    }
}
