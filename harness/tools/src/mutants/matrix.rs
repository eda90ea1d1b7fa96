//! Results of all mutants and cases.

use std::collections::BTreeMap;

use evictlab_judge::Verdict;
use schemars::JsonSchema;
use serde::Serialize;

/// Result of a case on a kubelet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MutantCaseOutcome {
    /// Verdict.
    pub verdict: Verdict,
    /// Reason for the verdict.
    pub why: String,
}

impl MutantCaseOutcome {
    /// Returns whether the case kills the mutant. A verdict other than `failed` does not.
    pub fn is_kill(&self) -> bool {
        self.verdict == Verdict::Failed
    }

    /// Returns whether the case can show defects: it passes on a sound kubelet.
    pub fn is_sound(&self) -> bool {
        self.verdict.is_success()
    }
}

/// Case that does not pass on a sound kubelet, and is not run on the mutants of that kubelet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// `suite/case`.
    pub case: String,
    /// Label of the kubelet.
    pub kubelet: String,
    /// Result on the sound kubelet.
    #[serde(flatten)]
    pub outcome: MutantCaseOutcome,
}

/// Mutant: a defect in a kubelet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MutantRow {
    /// Name of the defect.
    pub defect: String,
    /// Part of the kubelet that the defect is in.
    pub area: String,
    /// Description of the defect.
    pub about: String,
    /// Label of the kubelet.
    pub kubelet: String,
    /// Results of the cases that were run, by `suite/case`.
    pub outcomes: BTreeMap<String, MutantCaseOutcome>,
}

impl MutantRow {
    /// Returns the cases that kill the mutant.
    pub fn killers(&self) -> impl Iterator<Item = &str> {
        self.outcomes.iter().filter(|(_, outcome)| outcome.is_kill()).map(|(case, _)| case.as_str())
    }

    /// Returns whether no case kills the mutant.
    pub fn survives(&self) -> bool {
        self.killers().next().is_none()
    }
}

/// Case with its kills.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaseRow {
    /// `suite/case`.
    pub case: String,
    /// Reason that the case states why no mutant can fail it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_mutant: Option<String>,
    /// True if the case passed on a sound kubelet, and so was run on mutants.
    pub ran: bool,
    /// Number of mutants that the case kills, of those that it was run on.
    pub kills: usize,
}

/// Results of all mutants and cases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Matrix {
    /// True if every case was run on every mutant. Otherwise, the cases of a mutant end with its
    /// first kill.
    pub full: bool,
    /// Mutants, in the order of the defects.
    pub mutants: Vec<MutantRow>,
    /// Cases, by name.
    pub cases: Vec<CaseRow>,
    /// Cases that were left out on a kubelet.
    pub left_out: Vec<LeftOut>,
}

impl Matrix {
    /// Returns the mutants that no case kills.
    pub fn survivors(&self) -> impl Iterator<Item = &MutantRow> {
        self.mutants.iter().filter(|mutant| mutant.survives())
    }

    /// Returns the cases that kill no mutant and state no reason for it.
    pub fn idle_cases(&self) -> impl Iterator<Item = &CaseRow> {
        self.cases.iter().filter(|case| case.ran && case.kills == 0 && case.no_mutant.is_none())
    }

    /// Returns the cases that state a reason but kill a mutant.
    pub fn needless_reasons(&self) -> impl Iterator<Item = &CaseRow> {
        self.cases.iter().filter(|case| case.kills > 0 && case.no_mutant.is_some())
    }

    /// Returns whether every mutant is killed, and every case kills one or states why it cannot.
    pub fn is_complete(&self) -> bool {
        self.survivors().next().is_none()
            && self.idle_cases().next().is_none()
            && self.needless_reasons().next().is_none()
    }

    /// Updates the numbers of kills of the cases.
    pub(super) fn count_kills(&mut self) {
        for case in &mut self.cases {
            let is_kill =
                |mutant: &&MutantRow| mutant.outcomes.get(&case.case).is_some_and(MutantCaseOutcome::is_kill);
            case.kills = self.mutants.iter().filter(is_kill).count();
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn outcome(verdict: Verdict) -> MutantCaseOutcome {
        MutantCaseOutcome { verdict, why: "why".to_owned() }
    }

    pub(in super::super) fn matrix() -> Matrix {
        let mutant = |defect: &str, outcomes: &[(&str, Verdict)]| MutantRow {
            defect: defect.to_owned(),
            area: "events".to_owned(),
            about: format!("About {defect}."),
            kubelet: "v1.33.1".to_owned(),
            outcomes: outcomes
                .iter()
                .map(|(case, verdict)| ((*case).to_owned(), outcome(*verdict)))
                .collect(),
        };
        let case = |case: &str, no_mutant: Option<&str>, ran| CaseRow {
            case: case.to_owned(),
            no_mutant: no_mutant.map(str::to_owned),
            ran,
            kills: 0,
        };
        let mut matrix = Matrix {
            full: true,
            mutants: vec![
                mutant("killed", &[("a/one", Verdict::Failed), ("a/two", Verdict::Passed)]),
                mutant("alive", &[("a/one", Verdict::Inconclusive), ("a/two", Verdict::Error)]),
            ],
            cases: vec![
                case("a/one", Some("It checks the API server."), true),
                case("a/two", None, true),
                case("a/three", None, false),
                case("a/four", Some("It checks a controller."), true),
            ],
            left_out: vec![LeftOut {
                case: "a/three".to_owned(),
                kubelet: "v1.33.1".to_owned(),
                outcome: outcome(Verdict::Skipped),
            }],
        };
        matrix.count_kills();
        matrix
    }

    #[test]
    fn only_failures_are_kills() {
        let matrix = matrix();
        let names = |cases: Vec<&CaseRow>| cases.into_iter().map(|one| one.case.clone()).collect::<Vec<_>>();
        assert_eq!(matrix.survivors().map(|mutant| mutant.defect.as_str()).collect::<Vec<_>>(), ["alive"]);
        assert_eq!(names(matrix.idle_cases().collect()), ["a/two"]);
        assert_eq!(names(matrix.needless_reasons().collect()), ["a/one"]);
        assert!(!matrix.is_complete());
    }
}
