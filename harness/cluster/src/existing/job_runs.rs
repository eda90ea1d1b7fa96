//! Runs of a Job's pods: what a pod that was killed left in the cluster, and its removal.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::client::ClusterClient;
use super::gc::delete_namespaces;
use crate::error::ExistingError;
use crate::job_index::{JobIndex, JobName};
use crate::run_lease::{LEASE_DURATION, ServerClock, list_leases};
use crate::workload::{Namespace, NamespaceRecord};

/// Interval of checks of an earlier attempt's Lease.
const CHECK_INTERVAL: Duration = Duration::from_secs(3);

impl ClusterClient {
    /// Deletes the namespaces of all runs of a Job, whose pods have ended; returns their number.
    ///
    /// # Errors
    /// The API server refuses or does not answer.
    pub async fn remove_runs_of_job(&self, job: &JobName) -> Result<usize, ExistingError> {
        let runs = self.runs_of(|index| index.job == *job).await?;
        self.remove_runs(runs.into_keys()).await
    }

    /// Deletes the namespaces of earlier attempts of an index, after their Leases have expired:
    /// Kubernetes retries an index when its pod is gone, and its containers may still be running on
    /// a node that does not answer. Returns the number of namespaces.
    ///
    /// # Errors
    /// The API server refuses or does not answer.
    pub async fn remove_earlier_attempts(
        &self,
        index: &JobIndex,
        step: &dyn Fn(&str),
    ) -> Result<usize, ExistingError> {
        let mut is_wait_reported = false;
        loop {
            let runs = self.runs_of(|other| other == index).await?;
            if !runs.values().any(|is_active| *is_active) {
                return self.remove_runs(runs.into_keys()).await;
            }
            if !is_wait_reported {
                is_wait_reported = true;
                step("waiting until the Lease of an earlier attempt expires");
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    async fn remove_runs(&self, runs: impl Iterator<Item = String>) -> Result<usize, ExistingError> {
        let mut removed = 0;
        for run in runs {
            removed += delete_namespaces(&self.client, &self.name, &run).await?;
        }
        Ok(removed)
    }

    /// Returns the runs of some indexes, each with whether it is active.
    async fn runs_of(
        &self,
        is_wanted: impl Fn(&JobIndex) -> bool,
    ) -> Result<BTreeMap<String, bool>, ExistingError> {
        let mut records = Namespace::list_records(&self.client).await?;
        records.retain(|record| record.owner.iter().flat_map(|owner| &owner.job).any(&is_wanted));
        if records.is_empty() {
            return Ok(BTreeMap::new());
        }
        let leases = list_leases(&self.client).await.map_err(|error| self.error("list Leases", &error))?;
        let clock = ServerClock::read(&self.client).await;
        let now = clock.map_err(|error| self.error("read the clock", &error))?.now();
        let with_lease: BTreeSet<&str> = leases.iter().map(|lease| lease.run.as_str()).collect();
        let active: BTreeSet<&str> =
            leases.iter().filter(|lease| lease.is_live(now)).map(|lease| lease.run.as_str()).collect();
        let is_active = |record: &NamespaceRecord| {
            let local = record.owner.as_ref().filter(|owner| owner.is_local());
            match local {
                Some(owner) if owner.is_alive() => true,
                _ if with_lease.contains(record.run.as_str()) => active.contains(record.run.as_str()),
                Some(_) => false,
                // A run that is killed between the creation of its namespace and that of its Lease.
                None => record.created.is_some_and(|created| {
                    Duration::try_from(now.duration_since(created)).unwrap_or_default() < LEASE_DURATION
                }),
            }
        };
        let mut runs = BTreeMap::new();
        for record in &records {
            *runs.entry(record.run.clone()).or_default() |= is_active(record);
        }
        Ok(runs)
    }
}
