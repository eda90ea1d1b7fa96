//! Axes: mapping from values to coordinates.

use super::unit::Unit;

/// Margin beside the values, as a part of their range.
const MARGIN: f64 = 0.06;

/// A range of values, mapped to coordinates from `start` to `end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    start: f64,
    end: f64,
}

impl Axis {
    /// An axis that covers all values, with a margin on both sides.
    pub(super) fn around(values: impl Iterator<Item = f64>, (start, end): (f64, f64)) -> Self {
        let (low, high) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), one| (low.min(one), high.max(one)));
        let room = ((high - low) * MARGIN).max(high.abs() * 0.001).max(1.0);
        let (low, high) = if low.is_finite() { (low - room, high + room) } else { (0.0, 1.0) };
        Self { low, high, start, end }
    }

    /// An axis from zero to the maximum of the values.
    pub(super) fn from_zero(values: impl Iterator<Item = f64>, (start, end): (f64, f64)) -> Self {
        let high = values.fold(0.0, f64::max);
        Self { low: 0.0, high: if high > 0.0 { high * (1.0 + MARGIN) } else { 1.0 }, start, end }
    }

    /// The coordinate of a value.
    pub(super) fn position(self, value: f64) -> f64 {
        let part = (value - self.low) / (self.high - self.low);
        round_to_tenth(self.start + part * (self.end - self.start))
    }

    /// The distance between the coordinates of two values.
    pub(super) fn distance(self, from: f64, to: f64) -> f64 {
        round_to_tenth(self.position(to) - self.position(from))
    }

    /// Grid values of a time axis in seconds, about six.
    pub(super) fn time_ticks(self) -> Vec<f64> {
        self.multiples(round_step(self.high - self.low))
    }

    /// Grid values of an axis in `unit`, about four, with their labels. All labels have the same
    /// prefix and number of digits, and even distances: `22.8Gi`, `22.9Gi`, `23.0Gi`.
    pub(super) fn ticks(self, unit: Unit) -> Vec<(f64, String)> {
        let (factor, prefix) = unit.prefix(self.low.abs().max(self.high.abs()));
        let range = (self.high - self.low) * 1.2 / factor;
        // The smallest step of a value with a prefix is a thousandth.
        let places = if factor > 1.0 { 1000.0 } else { 1.0 };
        let step = round_step(range * places) / places;
        let digits = (0..3).find(|digits| (step * 10_f64.powi(*digits)).fract().abs() < 1e-9).unwrap_or(3);
        let label = |value: f64| match value {
            0.0 => "0".to_owned(),
            value => format!("{:.*}{prefix}", digits as usize, value / factor),
        };
        self.multiples(step * factor).into_iter().map(|value| (value, label(value))).collect()
    }

    fn multiples(self, step: f64) -> Vec<f64> {
        let first = (self.low / step).ceil();
        let count = ((self.high / step).floor() - first).max(0.0) as u32 + 1;
        (0..count.min(20))
            .map(|nth| (first + f64::from(nth)) * step)
            .filter(|one| *one <= self.high)
            .collect()
    }
}

fn round_to_tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Returns the smallest of 1, 2, 5, 10, 20, … that fits into `range` at most seven times.
fn round_step(range: f64) -> f64 {
    const STEPS: [f64; 3] = [1.0, 2.0, 5.0];
    const MAX_COUNT: f64 = 7.0;
    let mut power = 1.0;
    loop {
        if let Some(step) = STEPS.iter().map(|step| step * power).find(|step| range / step <= MAX_COUNT) {
            return step;
        }
        power *= 10.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let seconds = Axis::from_zero([27.0].into_iter(), (0.0, 100.0)).time_ticks();
        assert_eq!(seconds, [0.0, 5.0, 10.0, 15.0, 20.0, 25.0]);
        let mi = f64::from(1 << 20);
        let axis = Axis::around([300.0 * mi, 900.0 * mi].into_iter(), (100.0, 0.0));
        assert_eq!(axis.ticks(Unit::Bytes)[0].0, 400.0 * mi);
        for (values, unit, labels) in [
            ([300.0 * mi, 900.0 * mi], Unit::Bytes, &["400Mi", "600Mi", "800Mi"][..]),
            ([23_300.0 * mi, 23_700.0 * mi], Unit::Bytes, &["22.8Gi", "22.9Gi", "23.0Gi", "23.1Gi"]),
            ([1000.0 * mi, 2100.0 * mi], Unit::Bytes, &["1.0Gi", "1.5Gi", "2.0Gi"]),
            ([0.0, 9.0 * mi], Unit::Bytes, &["0", "2Mi", "4Mi", "6Mi", "8Mi"]),
            ([100.0, 900.0], Unit::Count, &["200", "400", "600", "800"]),
            ([31_900.0, 32_768.0], Unit::Count, &["32.0k", "32.2k", "32.4k", "32.6k", "32.8k"]),
        ] {
            let ticks = Axis::around(values.into_iter(), (100.0, 0.0)).ticks(unit);
            let shown: Vec<&str> = ticks.iter().map(|(_, label)| label.as_str()).collect();
            assert_eq!(shown, labels);
        }
    }

    #[test]
    fn accepts_one_value_and_none() {
        let one = Axis::around([5.0].into_iter(), (100.0, 0.0));
        assert_eq!(one.position(5.0), 50.0);
        let none = Axis::around([].into_iter(), (0.0, 10.0));
        assert!(none.position(0.5).is_finite() && !none.time_ticks().is_empty());
        assert!(Axis::from_zero([0.0].into_iter(), (0.0, 10.0)).position(0.0).is_finite());
    }
}
