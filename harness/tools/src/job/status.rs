//! The progress of a Job: its indexes, with the pods and verdicts of each.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use evictlab_cluster::{ClusterClient, JobName, Typed};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::error::JobError;
use super::labels::{JOB_LABEL, job_label, pod_selector};
use super::worker::IndexReport;

/// Annotation and label of a pod with its index.
const INDEX_ANNOTATION: &str = "batch.kubernetes.io/job-completion-index";
/// Time for which the API server may not answer.
const OUTAGE_TIMEOUT: Duration = Duration::from_secs(300);
/// Interval of requests during an outage.
const OUTAGE_INTERVAL: Duration = Duration::from_secs(3);
/// Interval of looks at the Job.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(2);

/// Phase of a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JobPhase {
    /// Indexes are running or waiting.
    Running,
    /// All indexes succeeded.
    Complete,
    /// An index failed, or the deadline has passed.
    Failed,
}

/// State of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IndexState {
    /// The index has no pod yet, or waits for its retry.
    Pending,
    /// Its pod does not run yet.
    Starting,
    /// Its pod runs cases.
    Running,
    /// Its run was successful.
    Succeeded,
    /// Its run was not successful, or ended too often without results.
    Failed,
}

impl fmt::Display for IndexState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pending => "pending",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
        })
    }
}

/// An index of a Job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IndexStatus {
    /// The index, from 0.
    pub index: usize,
    /// Its state.
    pub state: IndexState,
    /// Number of its pods.
    pub attempts: usize,
    /// The newest of its pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Node of the newest pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Verdicts of the newest pod that ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<IndexReport>,
    /// Reason that the newest pod waits, or ended without verdicts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The progress of a Job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobView {
    /// Namespace and name.
    pub job: JobName,
    /// Phase of the Job.
    pub phase: JobPhase,
    /// Reason and message of a failed Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its indexes.
    pub indexes: Vec<IndexStatus>,
}

/// A Job and its pods.
pub(super) struct JobState {
    pub(super) view: JobView,
    /// Pods that belong to an index, oldest first.
    pub(super) pods: Vec<(usize, Pod)>,
}

/// Reads the progress of a Job.
///
/// # Errors
/// The Job does not exist, or evictlab did not create it; the API server refuses or does not
/// answer.
pub async fn read_status(cluster: &ClusterClient, name: &JobName) -> Result<JobView, JobError> {
    Ok(read_job(cluster, name).await?.view)
}

/// Reads a Job, again while the API server does not answer.
pub(super) async fn read_job_through_outages(
    cluster: &ClusterClient,
    name: &JobName,
) -> Result<JobState, JobError> {
    let began = Instant::now();
    loop {
        match read_job(cluster, name).await {
            Err(JobError::Api { .. }) if began.elapsed() < OUTAGE_TIMEOUT => sleep(OUTAGE_INTERVAL).await,
            read => return read,
        }
    }
}

/// Calls `changed` with the progress of a Job, now and after each change, until the Job has ended.
///
/// # Errors
/// As [`read_status`]; an outage of the API server may last for five minutes.
pub async fn follow_status<E: From<JobError>>(
    cluster: &ClusterClient,
    name: &JobName,
    mut changed: impl FnMut(&JobView) -> Result<(), E>,
) -> Result<JobView, E> {
    let mut last = None;
    loop {
        let view = read_job_through_outages(cluster, name).await?.view;
        if last.as_ref() != Some(&view) {
            changed(&view)?;
        }
        if view.phase != JobPhase::Running {
            return Ok(view);
        }
        last = Some(view);
        sleep(FOLLOW_INTERVAL).await;
    }
}

pub(super) async fn read_job(cluster: &ClusterClient, name: &JobName) -> Result<JobState, JobError> {
    let jobs: Api<Typed<Job>> = Api::namespaced(cluster.client.clone(), &name.namespace);
    let found = jobs.get_opt(&name.name).await;
    let found = found.map_err(|source| JobError::api(format!("read job {name}"), source))?;
    let job = found.ok_or_else(|| JobError::NoJob(name.clone()))?;
    if job.labels().get(JOB_LABEL) != Some(&job_label(name)) {
        return Err(JobError::Foreign(name.clone()));
    }
    let pods: Api<Typed<Pod>> = Api::namespaced(cluster.client.clone(), &name.namespace);
    let listed = pods.list(&ListParams::default().labels(&pod_selector(name))).await;
    let listed = listed.map_err(|source| JobError::api(format!("list the pods of job {name}"), source))?;
    Ok(state(name, &job, listed.items.into_iter().map(|pod| pod.0).collect()))
}

fn state(name: &JobName, job: &Job, pods: Vec<Pod>) -> JobState {
    let index = |pod: Pod| Some((pod.annotations().get(INDEX_ANNOTATION)?.parse().ok()?, pod));
    let mut pods: Vec<(usize, Pod)> = pods.into_iter().filter_map(index).collect();
    pods.sort_by_key(|(_, pod)| pod.creation_timestamp());
    let status = job.status.clone().unwrap_or_default();
    let indexes = job.spec.as_ref().and_then(|spec| spec.completions).unwrap_or_default();
    let indexes = usize::try_from(indexes).unwrap_or_default();
    let succeeded = parse_indexes(status.completed_indexes.as_deref(), indexes);
    let failed = parse_indexes(status.failed_indexes.as_deref(), indexes);
    let ended = status.conditions.iter().flatten().find(|condition| {
        condition.status == "True" && ["Complete", "Failed"].contains(&condition.type_.as_str())
    });
    let phase = match ended.map(|condition| condition.type_.as_str()) {
        None => JobPhase::Running,
        Some("Complete") => JobPhase::Complete,
        Some(_) => JobPhase::Failed,
    };
    let reason = ended.filter(|_| phase == JobPhase::Failed).map(|condition| {
        let texts = [condition.reason.clone(), condition.message.clone()];
        texts.into_iter().flatten().collect::<Vec<_>>().join(": ")
    });
    let mut pods_of: BTreeMap<usize, Vec<&Pod>> = BTreeMap::new();
    pods.iter().for_each(|(index, pod)| pods_of.entry(*index).or_default().push(pod));
    let indexes = (0..indexes)
        .map(|index| {
            let mut status = index_status(index, pods_of.get(&index).map_or(&[][..], Vec::as_slice));
            if succeeded.contains(&index) {
                status.state = IndexState::Succeeded;
            } else if failed.contains(&index) {
                status.state = IndexState::Failed;
            }
            status
        })
        .collect();
    JobState { view: JobView { job: name.clone(), phase, reason, indexes }, pods }
}

/// Status of an index by its pods, oldest first.
fn index_status(index: usize, pods: &[&Pod]) -> IndexStatus {
    let newest = pods.last();
    let state = match newest.and_then(|pod| phase(pod)) {
        Some("Running") => IndexState::Running,
        None if newest.is_none() => IndexState::Pending,
        Some("Succeeded" | "Failed") => IndexState::Pending,
        _ => IndexState::Starting,
    };
    let report = pods.iter().rev().find_map(|pod| report(pod));
    IndexStatus {
        index,
        state,
        attempts: pods.len(),
        pod: newest.map(|pod| pod.name_any()),
        node: newest.and_then(|pod| pod.spec.as_ref()?.node_name.clone()),
        reason: newest.and_then(|pod| reason(pod)).filter(|_| report.is_none()),
        report,
    }
}

/// Parses indexes below `count`, such as `0,2-4`.
fn parse_indexes(text: Option<&str>, count: usize) -> BTreeSet<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..count.min(last.parse::<usize>().ok()?.saturating_add(1)))
    };
    text.unwrap_or_default().split(',').filter_map(range).flatten().collect()
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

/// Returns whether the containers of a pod have ended, so that its log is complete.
pub(super) fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), Some("Succeeded" | "Failed"))
}

fn terminated(pod: &Pod) -> Option<&ContainerStateTerminated> {
    pod.status.as_ref()?.container_statuses.as_ref()?.first()?.state.as_ref()?.terminated.as_ref()
}

fn report(pod: &Pod) -> Option<IndexReport> {
    serde_json::from_str(terminated(pod)?.message.as_deref()?).ok()
}

fn reason(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let waiting = || {
        let state = status.container_statuses.as_ref()?.first()?.state.as_ref()?;
        state.waiting.as_ref()?.reason.clone()
    };
    let ended = || Some(format!("exit status {}", terminated(pod)?.exit_code));
    let unscheduled = || {
        let conditions = status.conditions.as_ref()?;
        conditions.iter().find(|one| one.type_ == "PodScheduled" && one.status == "False")?.message.clone()
    };
    status.reason.clone().or_else(waiting).or_else(ended).or_else(unscheduled)
}

impl JobView {
    /// Number of indexes by state.
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for index in &self.indexes {
            let name = match index.state {
                IndexState::Pending => "pending",
                IndexState::Starting => "starting",
                IndexState::Running => "running",
                IndexState::Succeeded => "succeeded",
                IndexState::Failed => "failed",
            };
            *counts.entry(name).or_default() += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(index: usize, name: &str, created: &str, status: Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": name, "creationTimestamp": created, "annotations": {INDEX_ANNOTATION: index.to_string()}},
            "spec": {"nodeName": "n", "containers": []},
            "status": status,
        }))
        .unwrap()
    }

    fn ended(phase: &str, code: i32, message: &str) -> Value {
        let state = json!({"terminated": {"exitCode": code, "message": message}});
        let status = json!({"name": "evictlab", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
        json!({"phase": phase, "containerStatuses": [status]})
    }

    #[test]
    fn an_index_has_the_state_of_its_newest_pod_until_the_job_decides() {
        let name: JobName = "evictlab/nightly".parse().unwrap();
        let job: Job = serde_json::from_value(json!({
            "metadata": {}, "spec": {"completions": 6, "template": {}},
            "status": {"completedIndexes": "0", "failedIndexes": "4-4"},
        }))
        .unwrap();
        let message = r#"{"exitCode": 0, "verdicts": {"passed": 3}}"#;
        let pods = vec![
            pod(1, "b2", "2026-01-01T00:00:02Z", json!({"phase": "Running"})),
            pod(1, "b1", "2026-01-01T00:00:01Z", ended("Failed", 137, "")),
            pod(0, "a", "2026-01-01T00:00:01Z", ended("Succeeded", 0, message)),
            pod(2, "c", "2026-01-01T00:00:01Z", json!({"phase": "Pending"})),
            pod(3, "d", "2026-01-01T00:00:01Z", ended("Failed", 4, "")),
            pod(4, "e", "2026-01-01T00:00:01Z", ended("Failed", 1, "")),
        ];
        let view = state(&name, &job, pods).view;
        let rows: Vec<String> = view
            .indexes
            .iter()
            .map(|index| {
                let pod = index.pod.as_deref().unwrap_or("-");
                let reason = index.reason.as_deref().unwrap_or("-");
                format!("{} {} {pod} {} {reason}", index.index, index.state, index.attempts)
            })
            .collect();
        let expected = [
            "0 succeeded a 1 -",
            "1 running b2 2 -",
            "2 starting c 1 -",
            "3 pending d 1 exit status 4",
            "4 failed e 1 exit status 1",
            "5 pending - 0 -",
        ];
        assert_eq!(rows, expected);
        assert_eq!(view.indexes[0].report.as_ref().unwrap().verdicts["passed"], 3);
        assert_eq!(view.phase, JobPhase::Running);
    }

    #[test]
    fn parses_index_lists() {
        assert_eq!(parse_indexes(Some("0,2-4,7"), 8), [0, 2, 3, 4, 7].into());
        assert!(parse_indexes(None, 8).is_empty() && parse_indexes(Some(""), 8).is_empty());
        // The status of an object of others.
        assert_eq!(parse_indexes(Some("1-18446744073709551615"), 3), [1, 2].into());
    }
}
