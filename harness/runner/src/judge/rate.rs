//! How often something was right, over many pods or many runs of a case.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Check, Judgement, Verdict};
use crate::case::{Case, KnownBug};
use crate::cel::Scope;

/// So many of so many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// What was counted.
    pub what: String,
    /// How many were right.
    pub right: u64,
    /// Of how many.
    pub of: u64,
}

impl Rate {
    /// Counts what a case counts in one run of it.
    ///
    /// # Errors
    /// What it asks for is not there, or no list of booleans.
    pub(super) fn of(case: &Case, scope: &Scope<'_>) -> Option<Result<Self, Check>> {
        let rate = case.expect.rate.as_ref()?;
        let fault = |observed: String| Check {
            name: rate.what.clone(),
            holds: false,
            expected: "a list of true and false".to_owned(),
            observed,
        };
        let counted = rate.of.value(scope).map_err(|why| fault(format!("it cannot be told: {why}")));
        Some(counted.and_then(|value| {
            let list = if let Value::Array(list) = value { list } else { vec![value] };
            let right = list.iter().filter(|one| **one == Value::Bool(true)).count() as u64;
            match list.iter().all(Value::is_boolean) {
                true => Ok(Self { what: rate.what.clone(), right, of: list.len() as u64 }),
                false => Err(fault(Value::Array(list).to_string())),
            }
        }))
    }

    /// The bounds between which the true share lies in 95 of 100 such counts, from 0 to 1 (Wilson's score interval, which is fit for few counts and
    /// for shares near 0 and 1).
    pub fn interval(&self) -> (f64, f64) {
        const Z: f64 = 1.959_964;
        if self.of == 0 {
            return (0.0, 1.0);
        }
        let (n, share) = (self.of as f64, self.right as f64 / self.of as f64);
        let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
        let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
        ((middle - half).max(0.0), (middle + half).min(1.0))
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (least, most) = self.interval();
        let Self { what, right, of } = self;
        // Of many, a tenth of a percent means something.
        let digits = if *of < 100 { 0 } else { 1 };
        let (least, most) = (least * 100.0, most * 100.0);
        write!(f, "{what}: {right} of {of} (95 % interval {least:.digits$} to {most:.digits$} %)")
    }
}

/// One judgement over all runs of a case that counts: the counts are added up. A run that did not come to its end, or in which something else was
/// wrong, is the judgement.
pub fn over_runs(bug: Option<&KnownBug>, runs: Vec<Judgement>) -> Judgement {
    let mut all = Rate { what: String::new(), right: 0, of: 0 };
    let mut last = None;
    for run in runs {
        let counted = match (&run.rate, run.verdict) {
            (Some(rate), Verdict::Passed | Verdict::Reproduced | Verdict::Fixed) => rate.clone(),
            _ => return run,
        };
        all = Rate { what: counted.what, right: all.right + counted.right, of: all.of + counted.of };
        last = Some(run);
    }
    let Some(last) = last else {
        return Judgement::without_evidence(Verdict::Error, "no run of the case");
    };
    let wrong = all.of - all.right;
    let bug = bug.filter(|bug| bug.sometimes);
    let verdict = match (wrong, bug) {
        _ if all.of == 0 => Verdict::Inconclusive,
        (0, _) => Verdict::Passed,
        (_, Some(_)) => Verdict::Reproduced,
        (_, None) => Verdict::Failed,
    };
    let mut why = all.to_string();
    if let (Verdict::Reproduced, Some(about)) = (verdict, bug.and_then(|bug| bug.about.as_deref())) {
        why = format!("{about} {}", super::ruling::sentence(&why));
    }
    if let (Verdict::Passed, Some(_)) = (verdict, bug) {
        why += "; the known bug, which comes by chance, did not show";
    }
    let check = Check {
        name: all.what.clone(),
        holds: wrong == 0,
        expected: format!("{} of {}", all.of, all.of),
        observed: format!("{} of {}", all.right, all.of),
    };
    let doubt = (all.of == 0).then_some(super::Doubt::EvidenceLost);
    let known_bug = (verdict == Verdict::Reproduced).then(|| bug.map(super::ruling::named)).flatten();
    let checks = [vec![check], last.checks].concat();
    Judgement { verdict, why, doubt, known_bug, checks, rate: Some(all), ..last }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_wilsons() {
        // The figures of R's binom.confint(method = "wilson").
        for (right, of, least, most) in [(20, 20, 0.8389, 1.0), (0, 10, 0.0, 0.2775), (7, 10, 0.3968, 0.8922)]
        {
            let (from, to) = Rate { what: String::new(), right, of }.interval();
            assert!(
                (from - least).abs() < 1e-3 && (to - most).abs() < 1e-3,
                "{right} of {of}: {from} to {to}"
            );
        }
    }
}
