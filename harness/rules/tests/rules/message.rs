//! Vectors of the kubelet's own tests: `TestEvictionMessage` and the `VerifyPodStatus` tests.

use evictlab_rules::KubeletVersion;
use evictlab_rules::message::{
    Annotations, EvictionMessage, ThresholdClause, local_storage_eviction, pressure_eviction,
};
use evictlab_rules::pod::Pod;
use evictlab_rules::quantity::{GIB, MIB, Quantity};
use evictlab_rules::summary::PodStats;
use evictlab_rules::threshold::Resource;
use serde_json::{Value, from_value, json};

const MI: i64 = MIB as i64;

/// Builds a pod of init (`I name request`), restartable init (`RI`), regular (`C`) and ephemeral
/// (`E`) containers. A request of `-` means none.
fn pod(name: &str, containers: &[&str]) -> Value {
    let mut spec = json!({"initContainers": [], "containers": [], "ephemeralContainers": []});
    for container in containers {
        let parts: Vec<_> = container.split(' ').collect();
        let mut manifest = json!({"name": parts[1]});
        if let Some(request) = parts.get(2).filter(|request| **request != "-") {
            manifest["resources"] = json!({"requests": {"memory": request}});
        }
        let list = match parts[0] {
            "RI" => {
                manifest["restartPolicy"] = "Always".into();
                "initContainers"
            }
            "I" => "initContainers",
            "C" => "containers",
            _ => "ephemeralContainers",
        };
        spec[list].as_array_mut().unwrap().push(manifest);
    }
    json!({"metadata": {"name": name, "uid": "1"}, "spec": spec})
}

/// Builds the statistics of a pod from `name usage` with the usage in MiB.
fn stats(usages: &[&str]) -> Value {
    let container = |usage: &&str| {
        let (name, usage) = usage.split_once(' ').unwrap();
        json!({"name": name, "memory": {"workingSetBytes": usage.parse::<i64>().unwrap() * MI}})
    };
    json!({"podRef": {"uid": "1"}, "containers": usages.iter().map(container).collect::<Vec<_>>()})
}

fn compose(
    minor: u32,
    pod: &Value,
    stats: Option<&Value>,
    resource: Resource,
) -> (String, Option<Annotations>) {
    let pod: Pod = from_value(pod.clone()).unwrap();
    let stats: Option<PodStats> = stats.map(|stats| from_value(stats.clone()).unwrap());
    let eviction =
        pressure_eviction(&KubeletVersion::from_minor(minor), &pod, stats.as_ref(), resource, None);
    (EvictionMessage::NodePressure(eviction.message).to_string(), eviction.annotations)
}

/// Returns the sentence on a container, given as `name usage/request`.
fn sentence(offender: &str) -> String {
    let (name, figures) = offender.split_once(' ').unwrap();
    let (usage, request) = figures.split_once('/').unwrap();
    format!("Container {name} was using {usage}, request is {request}, has larger consumption of memory. ")
}

#[test]
fn names_containers_over_their_request() {
    type Row<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a [&'a str], &'a [&'a str]);
    // Description, containers, usages, offenders from 1.32, offenders before.
    let rows: [Row<'_>; 7] = [
        (
            "no container exceeds",
            &["I init1 100Mi", "RI restartable-init1 200Mi", "C regular1 200Mi"],
            &["restartable-init1 150", "regular1 100"],
            &[],
            &[],
        ),
        (
            "an init container exceeds",
            &["I init1 100Mi", "RI restartable-init1 200Mi", "I init2 150Mi", "C regular1 200Mi"],
            &["init1 150"],
            &["init1 150Mi/100Mi"],
            &[],
        ),
        (
            "a restartable init container exceeds; equal usage does not",
            &[
                "I init1 100Mi",
                "RI restartable-init1 200Mi",
                "RI restartable-init2 200Mi",
                "C regular1 200Mi",
            ],
            &["restartable-init1 250", "restartable-init2 150", "regular1 200"],
            &["restartable-init1 250Mi/200Mi"],
            &[],
        ),
        (
            "a regular container exceeds",
            &["I init1 100Mi", "RI restartable-init1 200Mi", "C regular1 200Mi", "C regular2 300Mi"],
            &["restartable-init1 200", "regular1 250", "regular2 250"],
            &["regular1 250Mi/200Mi"],
            &["regular1 250Mi/200Mi"],
        ),
        (
            "an ephemeral container is never named",
            &["I init1 100Mi", "RI restartable-init1 200Mi", "C regular1 200Mi", "E ephemeral1"],
            &["restartable-init1 200", "regular1 150", "ephemeral1 250"],
            &[],
            &[],
        ),
        (
            "a missing request is 0",
            &["I init1 100Mi", "RI restartable-init1 -", "RI restartable-init2 300Mi", "C regular1 -"],
            &["restartable-init1 250", "restartable-init2 250", "regular1 200"],
            &["restartable-init1 250Mi/0", "regular1 200Mi/0"],
            &["regular1 200Mi/0"],
        ),
        (
            "several exceed",
            &[
                "I init1 100Mi",
                "I init2 100Mi",
                "I init3 100Mi",
                "RI restartable-init1 100Mi",
                "RI restartable-init2 200Mi",
                "RI restartable-init3 300Mi",
                "C regular1 300Mi",
                "C regular2 200Mi",
                "C regular3 100Mi",
            ],
            &[
                "restartable-init1 150",
                "restartable-init2 250",
                "restartable-init3 250",
                "regular1 50",
                "regular2 250",
                "regular3 400",
            ],
            &[
                "restartable-init1 150Mi/100Mi",
                "restartable-init2 250Mi/200Mi",
                "regular2 250Mi/200Mi",
                "regular3 400Mi/100Mi",
            ],
            &["regular2 250Mi/200Mi", "regular3 400Mi/100Mi"],
        ),
    ];
    for (about, containers, usages, newer, older) in rows {
        for minor in 26..=KubeletVersion::NEWEST_MINOR {
            let offenders = if minor >= 32 { newer } else { older };
            let (message, annotations) =
                compose(minor, &pod("pod", containers), Some(&stats(usages)), Resource::Memory);
            let sentences: String = offenders.iter().map(|offender| sentence(offender)).collect();
            assert_eq!(
                message,
                format!("The node was low on resource: memory. {sentences}"),
                "{about}, 1.{minor}"
            );
            let names: Vec<_> =
                offenders.iter().map(|offender| offender.split_once(' ').unwrap().0).collect();
            let usages: Vec<_> = offenders
                .iter()
                .map(|offender| offender.split_once(' ').unwrap().1.split_once('/').unwrap().0)
                .collect();
            let annotations = annotations.unwrap().to_map();
            assert_eq!(annotations.len(), 3, "{about}, 1.{minor}");
            assert_eq!(annotations["offending_containers"], names.join(","), "{about}, 1.{minor}");
            assert_eq!(annotations["offending_containers_usage"], usages.join(","), "{about}, 1.{minor}");
            assert_eq!(annotations["starved_resource"], "memory", "{about}, 1.{minor}");
        }
    }
}

#[test]
fn names_pods_with_pod_level_requests_from_1_34() {
    let mut pod = pod("pod-eviction-message", &["C regular1 -", "C regular2 -"]);
    pod["spec"]["resources"] = json!({"requests": {"memory": "250Mi"}, "limits": {"memory": "1000Mi"}});
    let mut stats = stats(&["regular1 250", "regular2 350"]);
    let containers = format!("{}{}", sentence("regular1 250Mi/0"), sentence("regular2 350Mi/0"));
    for (usage, print) in [(600, "600Mi"), (100, "100Mi")] {
        stats["memory"] = json!({"workingSetBytes": usage * MI});
        let pod_sentence = format!(
            "Pod pod-eviction-message was using {print}, request is 250Mi, has larger consumption of memory. "
        );
        for minor in 26..=KubeletVersion::NEWEST_MINOR {
            let pod_sentence = if minor >= 34 { pod_sentence.as_str() } else { "" };
            let (message, annotations) = compose(minor, &pod, Some(&stats), Resource::Memory);
            assert_eq!(message, format!("The node was low on resource: memory. {pod_sentence}{containers}"));
            let annotations = annotations.unwrap().to_map();
            assert_eq!(annotations["offending_containers_usage"], "250Mi,350Mi");
            let of_pod = [annotations.get("offending_pod"), annotations.get("offending_pod_usage")];
            let expected = ["pod-eviction-message", print].map(|text| (minor >= 34).then(|| text.to_owned()));
            assert_eq!(of_pod.map(|text| text.cloned()), expected, "1.{minor}");
        }
    }
    // A limit without a request becomes the request.
    pod["spec"]["resources"] = json!({"limits": {"memory": "1000Mi"}});
    assert!(compose(34, &pod, Some(&stats), Resource::Memory).0.contains("request is 1000Mi, "));
}

#[test]
fn pod_without_statistics_has_neither_offenders_nor_annotations() {
    let (message, annotations) = compose(36, &pod("pod", &["C a -"]), None, Resource::Memory);
    assert_eq!((message.as_str(), annotations), ("The node was low on resource: memory. ", None));
}

#[test]
fn container_limit_defaults_the_request() {
    let mut pod = pod("pod", &["C a -"]);
    pod["spec"]["containers"][0]["resources"] = json!({"limits": {"memory": "100Mi"}});
    let (message, _) = compose(31, &pod, Some(&stats(&["a 150"])), Resource::Memory);
    assert!(message.ends_with(&sentence("a 150Mi/100Mi")), "{message}");
}

#[test]
fn allocated_resources_replace_requests() {
    let mut resized = pod("pod", &["C testcontainer 200Mi"]);
    resized["status"] = json!({"containerStatuses": [
        {"name": "testcontainer", "allocatedResources": {"memory": "100Mi"}}]});
    let stats: PodStats = from_value(stats(&["testcontainer 150"])).unwrap();
    let resized: Pod = from_value(resized).unwrap();
    let version = KubeletVersion::from_minor(31);
    let text = |pod: &Pod| {
        pressure_eviction(&version, pod, Some(&stats), Resource::Memory, None).message.to_string()
    };
    assert!(!text(&resized).contains("testcontainer"));
    let resized = resized.with_allocated_resources();
    assert!(text(&resized).contains("testcontainer was using 150Mi, request is 100Mi"));
}

/// `updatePodFromAllocation`: the allocation in the status contains the overhead, unlike the spec.
#[test]
fn allocated_resources_replace_pod_level_requests() {
    let mut resized = pod("pod", &["C a -"]);
    resized["spec"]["resources"] = json!({"requests": {"memory": "200Mi", "cpu": "1"}});
    resized["spec"]["overhead"] = json!({"memory": "10Mi"});
    resized["status"] = json!({"allocatedResources": {"memory": "110Mi"}});
    let resized: Pod = from_value(resized).unwrap();
    let request = |pod: &Pod, resource: &str| pod.pod_level_request(resource).unwrap().to_string();
    assert_eq!(request(&resized, "memory"), "200Mi");
    let resized = resized.with_allocated_resources();
    assert_eq!((request(&resized, "memory"), request(&resized, "cpu")), ("100Mi".to_owned(), "1".to_owned()));
}

#[test]
fn composes_threshold_clauses() {
    let pod = |request: &str| {
        json!({"spec": {"containers": [{"name": "above-requests",
            "resources": {"requests": {"ephemeral-storage": request}}}]}})
    };
    let bytes = Quantity::from_bytes;
    let rows = [
        (
            Resource::Memory,
            "2Gi",
            bytes(1500 * MI),
            "0",
            0,
            "memory. Threshold quantity: 2Gi, available: 1500Mi. ",
        ),
        (
            Resource::Pids,
            "1200",
            Quantity::from_count(500),
            "0",
            0,
            "pids. Threshold quantity: 1200, available: 500. ",
        ),
        (
            Resource::EphemeralStorage,
            "2Gi",
            bytes(1536 * MI),
            "100Mi",
            700,
            "ephemeral-storage. Threshold quantity: 2Gi, available: 1536Mi. Container above-requests was using 700Mi, \
             request is 100Mi, has larger consumption of ephemeral-storage. ",
        ),
        (
            Resource::EphemeralStorage,
            "50Gi",
            bytes(10 << 30),
            "50Gi",
            80 << 10,
            "ephemeral-storage. Threshold quantity: 50Gi, available: 10Gi. Container above-requests was using 80Gi, \
             request is 50Gi, has larger consumption of ephemeral-storage. ",
        ),
    ];
    for (resource, quantity, available, request, used, expected) in rows {
        let stats = json!({"podRef": {}, "containers": [{"name": "above-requests",
            "rootfs": {"usedBytes": used * MI}, "logs": {"usedBytes": 0}}]});
        let clause = ThresholdClause { quantity: quantity.parse().unwrap(), available };
        let (pod, stats) = (from_value(pod(request)).unwrap(), from_value(stats).unwrap());
        let written =
            pressure_eviction(&KubeletVersion::from_minor(32), &pod, Some(&stats), resource, Some(clause))
                .message;
        assert_eq!(written.to_string(), format!("The node was low on resource: {expected}"));
    }
}

#[test]
fn first_exceeded_storage_limit_counts() {
    const GI: i64 = GIB as i64;
    let limit = json!({"limits": {"ephemeral-storage": "1Gi"}});
    let container = |name: &str| json!({"name": name, "resources": limit});
    let sidecar = |name: &str| json!({"name": name, "resources": limit, "restartPolicy": "Always"});
    let volumes = json!([{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}]);
    let used = |gi: i64| json!({"usedBytes": gi * GI});
    let pod_limit = "Pod ephemeral local storage usage exceeds the total limit of containers";
    let data_limit = "Usage of EmptyDir volume \"data\" exceeds the limit \"1Gi\". ";
    let a_limit = "Container a exceeded its local ephemeral storage limit \"1Gi\". ";
    let b_limit = "Container b exceeded its local ephemeral storage limit \"1Gi\". ";
    let one = json!({"containers": [container("a")], "volumes": volumes});
    let two = json!({"containers": [container("a"), container("c"), container("d")]});
    let beside = json!({"containers": [container("a")], "initContainers": [sidecar("b")]});
    // Description, minor, spec, usage of a and of b (rootfs, logs), of the volume, of the pod,
    // message.
    let rows = [
        ("rootfs", 32, &one, (2, 0), (0, 0), 0, 2, Some(format!("{pod_limit} 1Gi. "))),
        ("logs", 32, &one, (0, 2), (0, 0), 0, 2, Some(format!("{pod_limit} 1Gi. "))),
        ("the volume comes first", 32, &one, (2, 0), (0, 0), 2, 4, Some(data_limit.to_owned())),
        ("exactly the limit", 32, &one, (1, 0), (0, 0), 1, 1, None),
        ("one container of three", 32, &two, (1, 1), (0, 0), 0, 2, Some(a_limit.to_owned())),
        (
            "sidecars count in the pod's limit",
            28,
            &beside,
            (0, 1),
            (1, 0),
            0,
            3,
            Some(format!("{pod_limit} 2Gi. ")),
        ),
        (
            "sidecars do not count in 1.27",
            27,
            &beside,
            (0, 1),
            (1, 0),
            0,
            2,
            Some(format!("{pod_limit} 1Gi. ")),
        ),
        ("a sidecar's own limit is not enforced", 36, &beside, (0, 0), (2, 0), 0, 2, None),
        (
            "a sidecar's own limit is enforced from 1.37",
            37,
            &beside,
            (0, 0),
            (2, 0),
            0,
            2,
            Some(b_limit.to_owned()),
        ),
    ];
    for (about, minor, spec, a, b, volume, whole, expected) in rows {
        let stats: PodStats = from_value(json!({"podRef": {},
            "containers": [{"name": "a", "rootfs": used(a.0), "logs": used(a.1)},
                {"name": "b", "rootfs": used(b.0), "logs": used(b.1)}],
            "volume": [{"name": "data", "usedBytes": volume * GI}], "ephemeral-storage": used(whole)}))
        .unwrap();
        let pod: Pod = from_value(json!({"spec": spec})).unwrap();
        let message = local_storage_eviction(&KubeletVersion::from_minor(minor), &pod, &stats, false);
        assert_eq!(message.map(|message| message.to_string()), expected, "{about}");
    }
}
