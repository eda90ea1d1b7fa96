//! Texts of all errors of this crate, in one snapshot.

#[path = "../../error_row.rs"]
mod error_row;

use std::time::Duration;

use error_row::row;
use evictlab_case::PressureSignal;
use evictlab_case::expression::ExpressionError;
use evictlab_cluster::kubelet_config::ConfigureError;
use evictlab_cluster::wait::StalledError;
use evictlab_cluster::workload::StageError;
use evictlab_cluster::{ClusterError, LeaseLost, NodeError, PressureForbidden, ProbeError};
use evictlab_evidence::{DecodeError, Recorded};
use evictlab_rules::CgroupVersion;
use evictlab_rules::quantity::MIB;
use serde_json::json;

use crate::case_runner::{CaseError, SummaryError};
use crate::dispatch::cluster_run::PrepareError;
use crate::dispatch::plan_cases::NoUsableNode;
use crate::node_access::node_policy::PlanError;
use crate::node_access::pressure_permits::PermitsLost;
use crate::node_access::run_node::RunNodeError;
use crate::node_access::steady_statistics::{UnsteadyError, UnsteadyReason};
use crate::pressure::host_budget::{HostError, HostTooSmall};
use crate::recovery::verify_recovered::RecoveryError;
use crate::skip_reason::{LimitedResource, SkipReason, ThresholdKind};

const SIGNAL: &str = "memory.available";

fn text(text: &str) -> String {
    text.to_owned()
}

fn worker() -> String {
    text("lab-worker")
}

fn stalled() -> StalledError {
    StalledError::without_progress(Duration::from_secs(120), text("the kubelet does not answer"))
}

fn node_error() -> NodeError {
    NodeError::NotHeld { node: worker(), lost: LeaseLost::Deleted }
}

fn stage_error() -> StageError {
    StageError::NamespaceNotReady { namespace: text("evictlab-web"), stalled: stalled() }
}

fn decode_error() -> DecodeError {
    Recorded::<Vec<u8>>::decode(json!(["one"])).unwrap_err()
}

fn too_small() -> HostTooSmall {
    HostTooSmall { resource: "memory", available: 2048, takes: 2560, reserve: 1024, missing: 1536 }
}

fn cases() -> Vec<String> {
    vec![
        row(CaseError::Node(node_error())),
        row(CaseError::Configure(ConfigureError::Node(node_error()))),
        row(CaseError::Stage(stage_error())),
        row(CaseError::Decode(decode_error())),
        row(CaseError::RunNode(RunNodeError::Node(node_error()))),
        row(CaseError::ApiRejected(text(
            "failed to create pod web: the API server rejected it: exceeded quota",
        ))),
        row(CaseError::Rejection { pod: text("web"), source: Box::new(decode_error()) }),
        row(CaseError::NotRunning(text("web/main"))),
        row(CaseError::NoPodToResize(text("web"))),
        row(CaseError::CommandFailed {
            command: text("cat /data/file"),
            container: text("web/main"),
            code: 1,
            output: text(": no such file"),
        }),
        row(CaseError::Unreachable(text("connection refused"))),
        row(CaseError::HostTooSmall(too_small())),
        row(CaseError::Skip(SkipReason::Cordoned)),
        row(CaseError::DistanceNotAvailable { node: worker(), signal: SIGNAL }),
        row(CaseError::NotReady { node: worker(), stalled: stalled() }),
        row(CaseError::Condition {
            key: "until",
            source: ExpressionError::NoValue(text("pods.web.status.reason is not a number")),
        }),
        row(CaseError::EndedByGuard(text("a pod of another namespace arrived"))),
        row(CaseError::PermitsLost(PermitsLost(text("condition MemoryPressure is True")))),
        row(CaseError::Interrupted),
    ]
}

fn nodes() -> Vec<String> {
    vec![
        row(SummaryError::Node(node_error())),
        row(SummaryError::TimedOut { node: worker(), seconds: 10 }),
        row(PrepareError::Open(ClusterError::Interrupted)),
        row(PrepareError::RunNode(RunNodeError::Node(node_error()))),
        row(PrepareError::Canaries(stage_error())),
        row(PrepareError::Interrupted),
        row(RunNodeError::Configure(ConfigureError::Node(node_error()))),
        row(RunNodeError::Node(node_error())),
        row(RunNodeError::Recovery(RecoveryError::NotRecovered { node: worker(), stalled: stalled() })),
        row(RunNodeError::Leftover { namespace: text("evictlab-web"), source: stage_error() }),
        row(UnsteadyError { node: worker(), last: UnsteadyReason::Changing }),
        row(PermitsLost(text("condition MemoryPressure is True"))),
        row(PlanError::Skip(SkipReason::Cordoned)),
        row(PlanError::Node(node_error())),
        row(too_small()),
        row(HostError::TooSmall(too_small())),
        row(HostError::Node(node_error())),
        row(RecoveryError::NotRecovered { node: worker(), stalled: stalled() }),
        row(RecoveryError::Canary(ProbeError::Stage(stage_error()))),
    ]
}

fn unusable_nodes() -> Vec<String> {
    let reasons = vec![(worker(), SkipReason::Cordoned), (text("lab-worker2"), SkipReason::RunsCommands)];
    vec![
        row(NoUsableNode::Kubelet(text(">=1.31"))),
        row(NoUsableNode::Model(text("PSI of the kernel"))),
        row(NoUsableNode::Faults),
        row(NoUsableNode::Cgroup(SkipReason::Cgroup(CgroupVersion::V2))),
        row(NoUsableNode::Reasons(reasons)),
    ]
}

fn skips() -> Vec<String> {
    vec![
        row(SkipReason::Cgroup(CgroupVersion::V1)),
        row(SkipReason::FileSystems(text("requires an imagefs"))),
        row(SkipReason::HugePages { needs: 65 * MIB, has: 2 * MIB }),
        row(SkipReason::Swap { needs: 64 * MIB, has: 0 }),
        row(SkipReason::MemoryTooLarge { has: 131_072 * MIB, most: 93_750 * MIB }),
        row(SkipReason::PressureForbidden {
            cause: text("the case exhausts memory"),
            forbidden: PressureForbidden::NotAllowed,
        }),
        row(SkipReason::Privileged(text("pod web is privileged"))),
        row(SkipReason::LimitsOverCap { limits: 900 * MIB, cap: 512 * MIB }),
        row(SkipReason::LimitsOverRoom {
            resource: LimitedResource::Memory,
            limits: 900 * MIB,
            room: 512 * MIB,
        }),
        row(SkipReason::Configuration(text("eviction-hard"))),
        row(SkipReason::ChangesNode(text("drain"))),
        row(SkipReason::RunsCommands),
        row(SkipReason::InsufficientMemory { requested: 900 * MIB, allocatable: 512 * MIB }),
        row(SkipReason::Cordoned),
        row(SkipReason::ClusterScoped),
        row(SkipReason::NoKubeletLog),
        row(SkipReason::NoImage {
            image: text("registry.k8s.io/pause:3.10"),
            why: text("connection refused"),
        }),
        row(SkipReason::NotBytes(PressureSignal::NodefsInodesFree)),
        row(SkipReason::SharedResource {
            signal: PressureSignal::PidAvailable,
            shared_with: vec![text("lab-worker2")],
        }),
    ]
}

fn skips_by_threshold() -> Vec<String> {
    let (signal, available, threshold) = (PressureSignal::MemoryAvailable, 4096 * MIB, 100 * MIB);
    vec![
        row(SkipReason::NoThreshold { signal, kind: ThresholdKind::Soft }),
        row(SkipReason::OtherThresholdFirst {
            signal,
            first: ThresholdKind::Soft,
            first_threshold: 300 * MIB,
            tested: ThresholdKind::Hard,
            tested_threshold: threshold,
        }),
        row(SkipReason::NoStatistics(signal)),
        row(SkipReason::TooClose { signal, available: 120 * MIB, threshold, needs: 64 * MIB }),
        row(SkipReason::OverCap {
            signal,
            available,
            threshold,
            takes: available - threshold,
            cap: 512 * MIB,
        }),
    ]
}

#[test]
fn texts() {
    let rows = [cases(), nodes(), unusable_nodes(), skips(), skips_by_threshold()];
    insta::assert_snapshot!(rows.concat().concat());
}
