//! Runs of the model for a comparison with real kubelets.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use serde_json::{Map, Value};

use evictlab_case::{LoadedCase, case_name};
use evictlab_cluster::images::ImageCatalog;
use evictlab_cluster::{
    Backend, EmbeddedBackend, EmbeddedOptions, KubeletSource, KubeletSpec, NotModelledError, ReproCommand,
    modelled_kubelets,
};
use evictlab_embedded::OptionsError;
use evictlab_report::clock::Clock;
use evictlab_report::text::count_noun;
use evictlab_report::{
    CollectedResult, ComparedCase, KubeletParity, KubeletResults, Reports, VerdictCollector, parity,
};
use evictlab_rules::{CgroupVersion, KubeletVersion, VersionError};
use evictlab_runner::{Interrupt, RunRequest, new_run_id, run};

/// The model could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ParityError {
    /// The version in a file of results is invalid.
    #[error("failed to parse the kubelet of the results: {0}")]
    Version(#[from] VersionError),
    /// The model does not support a kubelet.
    #[error(transparent)]
    NotModelled(#[from] NotModelledError),
    /// The options of the nodes are invalid.
    #[error("failed to create the model: {0}")]
    Options(#[from] OptionsError),
    /// The thread of the reports could not be started.
    #[error("failed to start the run: {0}")]
    Start(#[from] io::Error),
}

/// Runs of cases on modelled kubelets.
pub struct ModelRun<'a> {
    /// The cases of the catalogue.
    pub cases: &'a [Arc<LoadedCase>],
    /// Images of the cases.
    pub catalog: &'a Arc<ImageCatalog>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Receives a line for each run.
    pub progress: &'a dyn Fn(&str),
}

impl ModelRun<'_> {
    /// Runs the cases of `real` on modelled kubelets of the same versions, in one run for each
    /// cgroup version, and compares the results. Simulated time requires a paused runtime clock.
    ///
    /// # Errors
    /// A kubelet is not modelled, or a run could not be started.
    pub async fn compare(
        &self,
        real: &[KubeletResults],
        interrupt: &Interrupt,
    ) -> Result<Vec<KubeletParity>, ParityError> {
        let mut by_cgroup: BTreeMap<CgroupVersion, Vec<&KubeletResults>> = BTreeMap::new();
        for results in real {
            by_cgroup.entry(results.cgroup).or_default().push(results);
        }
        let mut parities = Vec::new();
        for (cgroup, real) in by_cgroup {
            let model = self.run(cgroup, &real, interrupt).await?;
            for (real, model) in real.into_iter().zip(&model) {
                parities.push(parity(real, model, &self.compared_cases(real)?));
            }
        }
        sort_by_version(&mut parities);
        Ok(parities)
    }

    /// Returns all cases, for a comparison with the results of a kubelet.
    fn compared_cases(&self, real: &KubeletResults) -> Result<Vec<ComparedCase>, ParityError> {
        let kubelet: KubeletVersion = real.kubelet.parse()?;
        let compared = |loaded: &Arc<LoadedCase>| {
            let case = &loaded.case;
            ComparedCase {
                id: loaded.id(),
                applies: case.kubelet.matches(&kubelet) && case.cgroup.is_none_or(|only| only == real.cgroup),
                has_intermittent_bug: case.known_bugs.iter().any(|bug| bug.sometimes),
                may_be_evicted: case.expect.may_be_evicted.iter().map(ToString::to_string).collect(),
                equal_pods: equal_pods(&case.pods),
            }
        };
        Ok(self.cases.iter().map(compared).collect())
    }

    /// Runs the cases that `real` contains. Returns the results of the modelled kubelets in the
    /// same order.
    async fn run(
        &self,
        cgroup: CgroupVersion,
        real: &[&KubeletResults],
        interrupt: &Interrupt,
    ) -> Result<Vec<KubeletResults>, ParityError> {
        let versions: Vec<KubeletVersion> =
            real.iter().map(|results| results.kubelet.parse()).collect::<Result<_, _>>()?;
        let release = |version: &KubeletVersion| KubeletSpec::from(KubeletSource::Release(version.clone()));
        let specs: Vec<KubeletSpec> = versions.iter().map(release).collect();
        let mut kubelets = modelled_kubelets(&specs, self.catalog)?;
        for (kubelet, version) in kubelets.iter_mut().zip(&versions) {
            kubelet.label = version.to_string();
        }
        let is_recorded =
            |case: &&Arc<LoadedCase>| real.iter().any(|results| results.cases.contains_key(&case.id()));
        let cases: Vec<_> = self.cases.iter().filter(is_recorded).cloned().collect();
        let names: Vec<&str> = real.iter().map(|results| results.kubelet.as_str()).collect();
        (self.progress)(&format!(
            "running {} on modelled {} with cgroup {cgroup}",
            count_noun(cases.len(), "case"),
            names.join(", ")
        ));
        let clock = Clock::model();
        let options = EmbeddedOptions { kubelets, seed: self.seed, cgroup, ..EmbeddedOptions::default() };
        let backend = Backend::Embedded(EmbeddedBackend::new(options, ReproCommand::default(), &clock)?);
        let request = RunRequest::new(new_run_id(), cases, backend, self.catalog.clone());
        let collector = VerdictCollector::default();
        let reports = Reports::start(vec![Box::new(collector.clone())], clock)?;
        run(request, reports.events(), interrupt.clone()).await;
        reports.finish();
        let collected = collector.results();
        Ok(versions.iter().map(|version| kubelet_results(version, cgroup, &collected)).collect())
    }
}

/// Sorts by the version of the kubelet, then by that of cgroups.
fn sort_by_version(parities: &mut [KubeletParity]) {
    parities.sort_by_key(|one| (one.kubelet.parse::<KubeletVersion>().ok(), one.cgroup));
}

/// Returns the name of the first pod with the same spec, for the others.
fn equal_pods(pods: &[Map<String, Value>]) -> BTreeMap<String, String> {
    let names: Vec<Option<&str>> = pods.iter().map(case_name).collect();
    let later = pods.iter().enumerate().filter_map(|(at, pod)| {
        let first = pods[..at].iter().position(|other| other.get("spec") == pod.get("spec"))?;
        Some((names[at]?.to_owned(), names[first]?.to_owned()))
    });
    later.collect()
}

/// Returns the results of the kubelet with this version as its label.
fn kubelet_results(
    version: &KubeletVersion,
    cgroup: CgroupVersion,
    collected: &[CollectedResult],
) -> KubeletResults {
    let mut results = KubeletResults::new(version, cgroup);
    let label = version.to_string();
    for CollectedResult { id, result } in collected.iter().filter(|one| one.id.kubelet == label) {
        results.add(id, result);
    }
    results
}

#[cfg(test)]
mod tests {
    use CgroupVersion::{V1, V2};

    use super::*;

    #[test]
    fn patch_versions_are_sorted_as_numbers() {
        let parity = |kubelet: &str, cgroup: CgroupVersion| KubeletParity {
            kubelet: kubelet.to_owned(),
            cgroup,
            cases: Vec::new(),
        };
        let mut parities =
            [parity("v1.31.14", V2), parity("v1.31.14", V1), parity("v1.32.0", V1), parity("v1.31.9", V2)];
        sort_by_version(&mut parities);
        let order = parities.each_ref().map(|one| (one.kubelet.as_str(), one.cgroup));
        assert_eq!(order, [("v1.31.9", V2), ("v1.31.14", V1), ("v1.31.14", V2), ("v1.32.0", V1)]);
    }
}
