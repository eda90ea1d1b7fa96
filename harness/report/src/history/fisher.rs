//! Fisher's exact test.

/// Successes and failures of a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: usize,
    pub(super) failed: usize,
}

impl Counts {
    fn total(self) -> usize {
        self.passed + self.failed
    }
}

/// The probability of at least as many failures in `recent` if both periods have the same failure
/// rate and their sum of failures is given: the p-value of the one-sided test.
pub(super) fn probability_of_more_failures(earlier: Counts, recent: Counts) -> f64 {
    let (total, failed) = (earlier.total() + recent.total(), earlier.failed + recent.failed);
    let most = failed.min(recent.total());
    let log_factorial = log_factorials(total);
    let log_choose = |n: usize, k: usize| log_factorial[n] - log_factorial[k] - log_factorial[n - k];
    let all = log_choose(total, recent.total());
    let probability = |failures: usize| {
        let passed = recent.total() - failures;
        if passed <= total - failed {
            (log_choose(failed, failures) + log_choose(total - failed, passed) - all).exp()
        } else {
            0.0
        }
    };
    (recent.failed..=most).map(probability).sum::<f64>().min(1.0)
}

/// The natural logarithms of the factorials of 0 to `max`.
fn log_factorials(max: usize) -> Vec<f64> {
    let mut sum = 0.0;
    let factors = (1..=max).map(|n| {
        sum += (n as f64).ln();
        sum
    });
    std::iter::once(0.0).chain(factors).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of R's `fisher.test(matrix, alternative = "greater")`.
    #[test]
    fn agrees_with_published_values() {
        let counts = |passed, failed| Counts { passed, failed };
        for (earlier, recent, expected) in [
            // Fisher's tea: three of four cups in each row.
            (counts(3, 1), counts(1, 3), 0.242_857_142_857),
            (counts(9, 1), counts(3, 11), 0.001_379_728_092),
            (counts(10, 0), counts(0, 10), 1.0 / 184_756.0),
            (counts(5, 5), counts(5, 0), 1.0),
            (counts(0, 0), counts(0, 3), 1.0),
            (counts(0, 0), counts(0, 0), 1.0),
        ] {
            let probability = probability_of_more_failures(earlier, recent);
            assert!((probability - expected).abs() < 1e-9, "{earlier:?} {recent:?}: {probability}");
        }
    }

    #[test]
    fn large_counts_do_not_overflow() {
        let earlier = Counts { passed: 20_000, failed: 20 };
        let recent = Counts { passed: 1_000, failed: 20 };
        let probability = probability_of_more_failures(earlier, recent);
        assert!(probability > 0.0 && probability < 1e-9, "{probability}");
    }
}
