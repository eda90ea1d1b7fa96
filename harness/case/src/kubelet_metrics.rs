//! The names of the kubelet's own metrics, from 1.27 to 1.36; those of 1.37 are assumed to be the
//! same: test/instrumentation/documentation/documentation-list.yaml and
//! pkg/kubelet/metrics/metrics.go.

use crate::problem::nearest;

/// Start of the names of the kubelet's own metrics. Others come from libraries.
const PREFIX: &str = "kubelet_";
/// Ends of the names of the series of a histogram.
const SERIES: [&str; 3] = ["_bucket", "_sum", "_count"];

const METRICS: [&str; 122] = [
    "kubelet_active_pods",
    "kubelet_admission_rejections_total",
    "kubelet_certificate_manager_client_expiration_renew_errors",
    "kubelet_certificate_manager_client_ttl_seconds",
    "kubelet_certificate_manager_server_rotation_seconds",
    "kubelet_certificate_manager_server_ttl_seconds",
    "kubelet_cgroup_manager_duration_seconds",
    "kubelet_cgroup_version",
    "kubelet_container_aligned_compute_resources_count",
    "kubelet_container_aligned_compute_resources_failure_count",
    "kubelet_container_log_filesystem_used_bytes",
    "kubelet_container_requested_resizes_total",
    "kubelet_containers_per_pod_count",
    "kubelet_cpu_manager_allocation_per_numa",
    "kubelet_cpu_manager_exclusive_cpu_allocation_count",
    "kubelet_cpu_manager_pinning_errors_total",
    "kubelet_cpu_manager_pinning_requests_total",
    "kubelet_cpu_manager_shared_pool_size_millicores",
    "kubelet_credential_provider_config_info",
    "kubelet_credential_provider_plugin_duration",
    "kubelet_credential_provider_plugin_errors",
    "kubelet_credential_provider_plugin_errors_total",
    "kubelet_cri_losing_support",
    "kubelet_desired_pods",
    "kubelet_device_plugin_alloc_duration_seconds",
    "kubelet_device_plugin_registration_total",
    "kubelet_evented_pleg_connection_error_count",
    "kubelet_evented_pleg_connection_latency_seconds",
    "kubelet_evented_pleg_connection_success_count",
    "kubelet_eviction_stats_age_seconds",
    "kubelet_evictions",
    "kubelet_first_network_pod_start_sli_duration_seconds",
    "kubelet_graceful_shutdown_end_time_seconds",
    "kubelet_graceful_shutdown_start_time_seconds",
    "kubelet_http_inflight_requests",
    "kubelet_http_requests_duration_seconds",
    "kubelet_http_requests_total",
    "kubelet_image_garbage_collected_total",
    "kubelet_image_manager_ensure_image_requests_total",
    "kubelet_image_pull_duration_seconds",
    "kubelet_image_volume_mounted_errors_total",
    "kubelet_image_volume_mounted_succeed_total",
    "kubelet_image_volume_requested_total",
    "kubelet_imagemanager_image_mustpull_checks_total",
    "kubelet_imagemanager_inmemory_pulledrecords_usage_percent",
    "kubelet_imagemanager_inmemory_pullintents_usage_percent",
    "kubelet_imagemanager_ondisk_pulledrecords",
    "kubelet_imagemanager_ondisk_pullintents",
    "kubelet_lifecycle_handler_http_fallbacks_total",
    "kubelet_managed_ephemeral_containers",
    "kubelet_memory_manager_pinning_errors_total",
    "kubelet_memory_manager_pinning_requests_total",
    "kubelet_memory_qos_node_memory_low_bytes",
    "kubelet_memory_qos_node_memory_min_bytes",
    "kubelet_metrics_provider",
    "kubelet_mirror_pods",
    "kubelet_node_name",
    "kubelet_node_startup_duration_seconds",
    "kubelet_node_startup_post_registration_duration_seconds",
    "kubelet_node_startup_pre_kubelet_duration_seconds",
    "kubelet_node_startup_pre_registration_duration_seconds",
    "kubelet_node_startup_registration_duration_seconds",
    "kubelet_orphan_pod_cleaned_volumes",
    "kubelet_orphan_pod_cleaned_volumes_errors",
    "kubelet_orphaned_runtime_pods_total",
    "kubelet_pleg_discard_events",
    "kubelet_pleg_last_seen_seconds",
    "kubelet_pleg_pod_relist_duration_seconds",
    "kubelet_pleg_relist_duration_seconds",
    "kubelet_pleg_relist_interval_seconds",
    "kubelet_pod_deferred_accepted_resizes_total",
    "kubelet_pod_in_progress_resizes",
    "kubelet_pod_infeasible_resizes_total",
    "kubelet_pod_pending_resizes",
    "kubelet_pod_resize_duration_milliseconds",
    "kubelet_pod_resources_endpoint_errors_get",
    "kubelet_pod_resources_endpoint_errors_get_allocatable",
    "kubelet_pod_resources_endpoint_errors_list",
    "kubelet_pod_resources_endpoint_requests_get",
    "kubelet_pod_resources_endpoint_requests_get_allocatable",
    "kubelet_pod_resources_endpoint_requests_list",
    "kubelet_pod_resources_endpoint_requests_total",
    "kubelet_pod_start_duration_seconds",
    "kubelet_pod_start_sli_duration_seconds",
    "kubelet_pod_start_total_duration_seconds",
    "kubelet_pod_status_sync_duration_seconds",
    "kubelet_pod_watch_events_dropped_total",
    "kubelet_pod_worker_duration_seconds",
    "kubelet_pod_worker_start_duration_seconds",
    "kubelet_podcertificate_states",
    "kubelet_preemptions",
    "kubelet_restarted_pods_total",
    "kubelet_run_podsandbox_duration_seconds",
    "kubelet_run_podsandbox_errors_total",
    "kubelet_running_containers",
    "kubelet_running_pods",
    "kubelet_runtime_operations_duration_seconds",
    "kubelet_runtime_operations_errors_total",
    "kubelet_runtime_operations_total",
    "kubelet_server_expiration_renew_errors",
    "kubelet_sleep_action_terminated_early_total",
    "kubelet_started_containers_errors_total",
    "kubelet_started_containers_total",
    "kubelet_started_host_process_containers_errors_total",
    "kubelet_started_host_process_containers_total",
    "kubelet_started_pods_errors_total",
    "kubelet_started_pods_total",
    "kubelet_started_user_namespaced_pods_errors_total",
    "kubelet_started_user_namespaced_pods_total",
    "kubelet_terminated_containers_total",
    "kubelet_topology_manager_admission_duration_ms",
    "kubelet_topology_manager_admission_errors_total",
    "kubelet_topology_manager_admission_requests_total",
    "kubelet_volume_metric_collection_duration_seconds",
    "kubelet_volume_stats_available_bytes",
    "kubelet_volume_stats_capacity_bytes",
    "kubelet_volume_stats_health_status_abnormal",
    "kubelet_volume_stats_inodes",
    "kubelet_volume_stats_inodes_free",
    "kubelet_volume_stats_inodes_used",
    "kubelet_volume_stats_used_bytes",
    "kubelet_working_pods",
];

/// A metric that no kubelet has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnknownMetric {
    /// The most similar metric of kubelets.
    pub(crate) nearest: Option<&'static str>,
}

/// Returns `None` for a metric that kubelets may have. Metrics of libraries are not known, except
/// by a name that is nearly one of the kubelet's own.
pub(crate) fn unknown_metric(name: &str) -> Option<UnknownMetric> {
    const NEARLY_EQUAL: f64 = 0.9;
    let is_known = |name: &str| METRICS.contains(&name);
    if is_known(name) || SERIES.iter().any(|end| name.strip_suffix(end).is_some_and(is_known)) {
        return None;
    }
    let nearest = nearest(name, METRICS);
    let is_slip = nearest.is_some_and(|near| strsim::jaro_winkler(name, near) >= NEARLY_EQUAL);
    (name.starts_with(PREFIX) || is_slip).then_some(UnknownMetric { nearest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_metrics_are_unknown() {
        for known in [
            "kubelet_evictions",
            "kubelet_pod_start_duration_seconds_sum",
            "go_goroutines",
            "workqueue_depth",
        ] {
            assert_eq!(unknown_metric(known), None, "{known}");
        }
        for (misspelt, nearest) in [
            ("kubelet_evictoins", Some("kubelet_evictions")),
            ("kublet_preemptions", Some("kubelet_preemptions")),
        ] {
            assert_eq!(unknown_metric(misspelt), Some(UnknownMetric { nearest }), "{misspelt}");
        }
        assert!(unknown_metric("kubelet_zzz").is_some());
    }
}
