//! Message and annotations of a node-pressure eviction, with the defects of a kubelet in them.

use std::collections::BTreeMap;

use evictlab_rules::KubeletVersion;
use evictlab_rules::message::{
    Annotations, NodePressure, OFFENDING_CONTAINERS_USAGE_KEY, OFFENDING_POD_KEY, OFFENDING_POD_USAGE_KEY,
    Offender, PressureEviction, STARVED_RESOURCE_KEY, ThresholdClause, container_usage, pressure_eviction,
    reportable_containers,
};
use evictlab_rules::pod::Pod;
use evictlab_rules::quantity::{MIB, Quantity};
use evictlab_rules::ranking::RankedPod;
use evictlab_rules::summary::PodStats;
use evictlab_rules::threshold::Resource;

use crate::defect::{Area, Defect, Defects};

/// Message and annotations as texts.
pub(super) struct EvictionTexts {
    /// Message of status and event.
    pub(super) message: String,
    /// Annotations of the event; `None` where the kubelet sets none.
    pub(super) annotations: Option<BTreeMap<String, String>>,
}

/// Returns the texts of the eviction of a pod to reclaim `resource`.
pub(super) fn eviction_texts(
    version: &KubeletVersion,
    ranked: &RankedPod<'_>,
    resource: Resource,
    threshold: Option<ThresholdClause>,
    defects: &Defects,
) -> EvictionTexts {
    let PressureEviction { message, annotations } = if defects.are_in(Area::Message) {
        defective(version, ranked, resource, threshold, defects)
    } else {
        pressure_eviction(version, ranked.pod, ranked.stats, resource, threshold)
    };
    let has = |defect: Defect| defects.has(defect);
    let is_empty = message.containers.is_empty() && message.pod.is_none();
    let is_missing = has(Defect::AnnotationsMissing) || has(Defect::AnnotationsOmitEmpty) && is_empty;
    let annotations = annotations.filter(|_| !is_missing).map(|annotations| {
        let mut all = annotations.to_map();
        for (defect, keys) in [
            (Defect::AnnotationsOmitResource, &[STARVED_RESOURCE_KEY][..]),
            (Defect::AnnotationsOmitUsage, &[OFFENDING_CONTAINERS_USAGE_KEY]),
            (Defect::AnnotationsOmitPod, &[OFFENDING_POD_KEY, OFFENDING_POD_USAGE_KEY]),
        ] {
            all.retain(|key, _| !(has(defect) && keys.contains(&key.as_str())));
        }
        if has(Defect::AnnotationsGiveRequests)
            && let Some(usages) = all.get_mut(OFFENDING_CONTAINERS_USAGE_KEY)
        {
            let requests = message.containers.iter().map(|container| container.request.to_string());
            *usages = requests.collect::<Vec<_>>().join(",");
        }
        all
    });
    let mut message = message.to_string();
    if has(Defect::MessageUsageInBytes) {
        message = in_bytes(&message);
    }
    EvictionTexts { message, annotations }
}

/// Returns the message of a kubelet with a defect in it, and the annotations that belong to it.
fn defective(
    version: &KubeletVersion,
    ranked: &RankedPod<'_>,
    resource: Resource,
    threshold: Option<ThresholdClause>,
    defects: &Defects,
) -> PressureEviction {
    let has = |defect: Defect| defects.has(defect);
    let (pod, stats) =
        (&reported(ranked.pod, defects), ranked.stats.map(|stats| counted_stats(stats, defects)));
    let mut eviction = pressure_eviction(version, pod, stats.as_ref(), resource, threshold);
    let message = &mut eviction.message;
    if has(Defect::MessageNamesWithinRequest)
        && let Some(stats) = &stats
    {
        message.containers = all_containers(version, pod, stats, resource);
    }
    if has(Defect::MessageNamesOnlyFirst) {
        message.containers.truncate(1);
    }
    let pod_usage = stats.as_ref().and_then(|stats| stats.memory.as_ref()?.working_set_bytes);
    message.containers.iter_mut().for_each(|container| change_amounts(container, pod_usage, defects));
    if has(Defect::MessageOmitsThreshold) {
        message.threshold = None;
    }
    if has(Defect::MessageAvailableInBytes)
        && let Some(ThresholdClause { available, .. }) = &mut message.threshold
    {
        *available = Quantity::from_count(available.value());
    }
    if has(Defect::MessageThresholdInBytes)
        && let Some(ThresholdClause { quantity, .. }) = &mut message.threshold
    {
        *quantity = Quantity::from_count(quantity.value());
    }
    if has(Defect::MessageSwapsThreshold)
        && let Some(ThresholdClause { quantity, available }) = &mut message.threshold
    {
        std::mem::swap(quantity, available);
    }
    if has(Defect::MessageResourceIsMemory) {
        message.resource = Resource::Memory;
    }
    if has(Defect::MessageOmitsPodRequest) {
        message.pod = None;
    }
    let NodePressure { pod, containers, .. } = message;
    let annotations = Annotations::new(resource, pod.as_ref(), containers);
    eviction.annotations = eviction.annotations.map(|_| annotations);
    eviction
}

/// Changes the amounts of a container in a message by defects. `pod_usage` is the working set of
/// the pod in bytes.
fn change_amounts(container: &mut Offender, pod_usage: Option<i64>, defects: &Defects) {
    if defects.has(Defect::MessageRequestIsZero) {
        container.request = Quantity::ZERO;
    }
    if defects.has(Defect::MessageUsageRounded) {
        let mib = MIB as i64;
        container.usage = Quantity::from_bytes(container.usage.value() / mib * mib);
    }
    if let Some(usage) = pod_usage.filter(|_| defects.has(Defect::MessageUsageOfPod)) {
        container.usage = Quantity::from_bytes(usage);
    }
}

/// Returns a pod with the containers that the message considers.
fn reported(pod: &Pod, defects: &Defects) -> Pod {
    let mut pod = pod.clone();
    if defects.has(Defect::MessageOmitsSidecars) {
        pod.spec.init_containers.clear();
    }
    if defects.has(Defect::MessageRequestIsLimit) {
        let containers = pod.spec.containers.iter_mut().chain(&mut pod.spec.init_containers);
        containers.for_each(|one| one.resources.requests = one.resources.limits.clone());
    }
    if defects.has(Defect::MessageNamesEphemeral) {
        pod.spec.containers.append(&mut pod.spec.ephemeral_containers);
    }
    pod
}

/// Returns the statistics of a pod that the message considers.
fn counted_stats(stats: &PodStats, defects: &Defects) -> PodStats {
    let mut stats = stats.clone();
    for container in &mut stats.containers {
        for (defect, part) in [
            (Defect::MessageOmitsLogs, &mut container.logs),
            (Defect::MessageOmitsLayers, &mut container.rootfs),
        ] {
            if defects.has(defect)
                && let Some(part) = part
            {
                part.used_bytes = Some(0);
            }
        }
    }
    stats
}

/// Returns all containers with statistics, without a comparison with their requests.
fn all_containers(
    version: &KubeletVersion,
    pod: &Pod,
    stats: &PodStats,
    resource: Resource,
) -> Vec<Offender> {
    let offender = |stats: &evictlab_rules::summary::ContainerStats| {
        let container = reportable_containers(version, pod).find(|container| container.name == stats.name)?;
        Some(Offender {
            name: stats.name.clone(),
            usage: Quantity::from_bytes(container_usage(stats, resource)?),
            request: container.request_or_zero(resource.as_str()),
        })
    };
    stats.containers.iter().filter_map(offender).collect()
}

/// Replaces the usages in a message by their numbers of bytes.
fn in_bytes(message: &str) -> String {
    const BEFORE: &str = " was using ";
    let mut parts = message.split(BEFORE);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (usage, rest) = part.split_once(',').unwrap_or((part, ""));
        let bytes =
            usage.parse::<Quantity>().map_or_else(|_| usage.to_owned(), |usage| usage.value().to_string());
        text += &format!("{BEFORE}{bytes},{rest}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usages_become_bytes() {
        let message = "Container a was using 2Ki, request is 1Ki, has larger consumption of memory. ";
        assert_eq!(
            in_bytes(message),
            "Container a was using 2048, request is 1Ki, has larger consumption of memory. "
        );
    }
}
