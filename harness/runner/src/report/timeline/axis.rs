//! An axis: from figures to places on the picture.

use super::unit::Unit;

/// A range of figures, drawn from `first` to `last` on the picture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    first: f64,
    last: f64,
}

impl Axis {
    /// Holds all figures, with a little room on both sides of them.
    pub fn around(figures: impl Iterator<Item = f64>, (first, last): (f64, f64)) -> Self {
        let (low, high) = figures
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), one| (low.min(one), high.max(one)));
        let room = ((high - low) * 0.06).max(high.abs() * 0.001).max(1.0);
        let (low, high) = if low.is_finite() { (low - room, high + room) } else { (0.0, 1.0) };
        Self { low, high, first, last }
    }

    /// From nothing to the highest of the figures.
    pub fn from_zero(figures: impl Iterator<Item = f64>, (first, last): (f64, f64)) -> Self {
        let high = figures.fold(0.0, f64::max);
        Self { low: 0.0, high: if high > 0.0 { high * 1.06 } else { 1.0 }, first, last }
    }

    /// Where a figure is.
    pub fn at(self, value: f64) -> f64 {
        let part = (value - self.low) / (self.high - self.low);
        tenths(self.first + part * (self.last - self.first))
    }

    /// How far it is from one figure to another.
    pub fn between(self, from: f64, to: f64) -> f64 {
        tenths(self.at(to) - self.at(from))
    }

    /// Seconds that are worth a line, about six.
    pub fn seconds(self) -> Vec<f64> {
        self.multiples(step(self.high - self.low, 10.0, &[1.0, 2.0, 5.0]))
    }

    /// Figures that are worth a line, about four.
    pub fn figures(self, unit: Unit) -> Vec<f64> {
        let range = (self.high - self.low) * 1.6;
        self.multiples(match unit {
            Unit::Bytes => step(range, 2.0, &[1.0]),
            Unit::Count => step(range, 10.0, &[1.0, 2.0, 5.0]),
        })
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

/// Nobody sees more.
fn tenths(place: f64) -> f64 {
    (place * 10.0).round() / 10.0
}

/// The smallest step of those, times a power of the base and at least 1, that goes into the range at most seven times.
fn step(range: f64, base: f64, steps: &[f64]) -> f64 {
    let mut power = 1.0;
    loop {
        if let Some(step) = steps.iter().map(|step| step * power).find(|step| range / step <= 7.0) {
            return step;
        }
        power *= base;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_at_round_figures() {
        let seconds = Axis::from_zero([27.0].into_iter(), (0.0, 100.0)).seconds();
        assert_eq!(seconds, [0.0, 5.0, 10.0, 15.0, 20.0, 25.0]);
        let mi = f64::from(1 << 20);
        let axis = Axis::around([300.0 * mi, 900.0 * mi].into_iter(), (100.0, 0.0));
        assert_eq!(axis.figures(Unit::Bytes), [512.0 * mi, 768.0 * mi]);
        let counts = Axis::around([100.0, 1000.0].into_iter(), (100.0, 0.0)).figures(Unit::Count);
        assert_eq!(counts, [500.0, 1000.0]);
    }

    #[test]
    fn one_figure_or_none_is_drawn_as_well() {
        let one = Axis::around([5.0].into_iter(), (100.0, 0.0));
        assert_eq!(one.at(5.0), 50.0);
        let none = Axis::around([].into_iter(), (0.0, 10.0));
        assert!(none.at(0.5).is_finite() && !none.seconds().is_empty());
        assert!(Axis::from_zero([0.0].into_iter(), (0.0, 10.0)).at(0.0).is_finite());
    }
}
