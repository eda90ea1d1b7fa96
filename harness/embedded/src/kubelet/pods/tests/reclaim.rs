//! Garbage collection of containers and images, as under disk pressure.

use evictlab_rules::threshold::ReclaimAction;

use super::*;
use crate::Housekeeping;
use crate::kubelet::images::ImageDeletion;

const COREDNS: &str = "registry.k8s.io/coredns/coredns:v1.12.0";
const LOADED: &str = "registry.example/tool:1";

fn reclaim(lab: &mut Lab, action: ReclaimAction) {
    lab.simulation.with(|_, nodes, ctx| {
        let node = nodes.get_mut("n1").unwrap();
        node.kubelet.eviction_reclaim_node_level(&[action], &mut node.machine, ctx);
    });
}

fn load(lab: &mut Lab) {
    lab.simulation.with(|_, nodes, _| nodes.get_mut("n1").unwrap().kubelet.status.images.load(LOADED));
}

fn restart(lab: &mut Lab, changes: Value) {
    lab.simulation.with(|_, nodes, ctx| {
        nodes.get_mut("n1").unwrap().kubelet.configure(changes.as_object().unwrap(), Housekeeping::Fast, ctx);
    });
    lab.seconds(1);
}

fn has(lab: &Lab, image: &str) -> bool {
    lab.kubelet().status.images.contains(image)
}

/// `freeSpace` spares images for `imageMinimumGCAge` after their first detection. Since 1.29 this
/// applies to those that the kubelet found when it started, too.
#[test]
fn young_images_are_spared() {
    for (minor, found_are_old) in [(27, true), (28, true), (29, false), (31, false), (36, false)] {
        let mut lab = Lab::new(minor);
        restart(&mut lab, json!({}));
        lab.seconds(100);
        load(&mut lab);
        reclaim(&mut lab, ReclaimAction::DeleteImages);
        assert_eq!(has(&lab, COREDNS), !found_are_old, "1.{minor}");
        assert!(has(&lab, LOADED), "detected only now");
        lab.seconds(60);
        reclaim(&mut lab, ReclaimAction::DeleteImages);
        assert!(!has(&lab, COREDNS) && has(&lab, LOADED), "1.{minor}");
        lab.seconds(70);
        reclaim(&mut lab, ReclaimAction::DeleteImages);
        assert!(!has(&lab, LOADED), "1.{minor}");
        assert!(has(&lab, AGNHOST), "evictlab pins images of cases");
        assert!(has(&lab, "docker.io/kindest/kindnetd:v20250512-df8de77b"), "in use on every node");
    }
    // A restarted kubelet detects images again, and a minimum age of 1 s is soon over.
    let mut lab = Lab::new(31);
    lab.seconds(200);
    restart(&mut lab, json!({}));
    reclaim(&mut lab, ReclaimAction::DeleteImages);
    assert!(has(&lab, COREDNS));
    restart(&mut lab, json!({"imageMinimumGCAge": "1s"}));
    lab.seconds(2);
    reclaim(&mut lab, ReclaimAction::DeleteImages);
    assert!(!has(&lab, COREDNS));
    // The periodic detection finds an image within five minutes.
    let mut lab = Lab::new(31);
    lab.seconds(10);
    load(&mut lab);
    lab.seconds(420);
    reclaim(&mut lab, ReclaimAction::DeleteImages);
    assert!(!has(&lab, LOADED));
}

/// `detectImages`: in use are the images of containers that exist, running or dead. A deleted image
/// is pulled again.
#[test]
fn images_of_existing_containers_are_in_use() {
    const PULLED: &str = "ghcr.io/someone/tool:1";
    let mut lab = Lab::new(31);
    let waiting = json!({
        "initContainers": [{"name": "init", "command": ["sleep", "600"]}],
        "containers": [{"name": "c", "image": COREDNS}],
    });
    lab.pod("waiting", waiting);
    let dead =
        lab.pod("dead", json!({"containers": [{"name": "c", "image": PULLED, "command": ["sleep", "1"]}]}));
    lab.seconds(200);
    assert_eq!(lab.status("dead")["phase"], "Succeeded");
    reclaim(&mut lab, ReclaimAction::DeleteImages);
    assert!(!has(&lab, COREDNS), "its container does not exist yet");
    lab.seconds(130);
    reclaim(&mut lab, ReclaimAction::DeleteImages);
    assert!(has(&lab, PULLED), "the dead container uses it");
    reclaim(&mut lab, ReclaimAction::DeleteContainers);
    assert!(lab.kubelet().pods.terminated(&dead).is_empty());
    reclaim(&mut lab, ReclaimAction::DeleteImages);
    assert!(!has(&lab, PULLED));
    lab.seconds(300);
    let reasons = lab.events("waiting");
    assert!(reasons.contains(&"Pulling c".to_owned()), "{reasons:?}");
    assert!(has(&lab, COREDNS));
    // An image that cannot be pulled.
    let mut lab = Lab::new(31);
    let spec = json!({"containers": [{"name": "c", "image": COREDNS, "imagePullPolicy": "Never"}]});
    lab.seconds(200);
    reclaim(&mut lab, ReclaimAction::DeleteImages);
    lab.pod("never", spec);
    lab.seconds(3);
    assert!(lab.events("never").contains(&"ErrImageNeverPull c".to_owned()));
}

/// Every five minutes, `detectImages` notes the images that containers use.
#[test]
fn images_of_removed_containers_are_deleted_last() {
    let mut lab = Lab::new(36);
    lab.pod("p", json!({"containers": [{"name": "c", "image": COREDNS}]}));
    lab.seconds(10);
    load(&mut lab);
    lab.seconds(320);
    lab.simulation.store.remove(Kind::Pod, "default", "p");
    lab.seconds(20);
    assert!(!lab.kubelet().pods.images_in_use().contains(COREDNS));
    while has(&lab, COREDNS) {
        lab.simulation.with(|_, nodes, ctx| {
            let kubelet = &mut nodes.get_mut("n1").unwrap().kubelet;
            let used = kubelet.pods.images_in_use();
            let min_age = Duration::ZERO;
            let deletion = ImageDeletion { used, min_age, with_pinned: false, is_reversed: false, bytes: 1 };
            assert_eq!(kubelet.status.images.delete_unused(&deletion, ctx.now).len(), 1);
        });
    }
    assert!(!has(&lab, LOADED));
}

/// `evictContainers` of kuberuntime_gc.go.
#[test]
fn terminating_pods_keep_a_dead_container_per_name() {
    let stubborn = "trap '' TERM; while true; do sleep 1; done";
    let spec = json!({
        "terminationGracePeriodSeconds": 60,
        "containers": [{"name": "a", "command": ["sleep", "1"]}, {"name": "b", "command": ["sh", "-c", stubborn]}],
    });
    let dead = |lab: &Lab, pod: &str| lab.kubelet().pods.terminated(pod).len();
    let mut lab = Lab::new(31);
    let uid = lab.pod("deleted", spec.clone());
    lab.seconds(5);
    lab.simulation.store.update(Kind::Pod, "default", "deleted", |pod| {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:09Z");
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(60);
    });
    lab.seconds(5);
    reclaim(&mut lab, ReclaimAction::DeleteContainers);
    assert_eq!(dead(&lab, &uid), 1, "the pod still terminates");
    lab.seconds(70);
    assert_eq!(dead(&lab, &uid), 0);

    // `UpdatePod` of pod_workers.go: a pod that terminates already is not evicted.
    let mut lab = Lab::new(31);
    let uid = lab.pod("both", spec.clone());
    lab.seconds(5);
    lab.simulation.store.update(Kind::Pod, "default", "both", |pod| {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:09Z");
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(60);
    });
    lab.seconds(5);
    lab.evict(&uid, "low", Some(60));
    lab.seconds(3);
    reclaim(&mut lab, ReclaimAction::DeleteContainers);
    assert_eq!(dead(&lab, &uid), 1, "its status needs them");

    let mut lab = Lab::new(31);
    let uid = lab.pod("evicted", spec);
    lab.seconds(5);
    assert_eq!(dead(&lab, &uid), 1);
    lab.evict(&uid, "low", Some(60));
    reclaim(&mut lab, ReclaimAction::DeleteContainers);
    assert_eq!(dead(&lab, &uid), 0, "an evicted pod does not need them");
}

/// `StartGarbageCollection`: the deletion at the start fails, so the next failure is the second one
/// in a row. A failure after a success is the first one again.
#[test]
fn repeated_failures_to_delete_images_are_events() {
    for minor in [31, 36] {
        let mut lab = Lab::new(minor);
        restart(&mut lab, json!({"imageGCHighThresholdPercent": 1, "imageGCLowThresholdPercent": 0}));
        let counts = |lab: &Lab| {
            ["FreeDiskSpaceFailed", "ImageGCFailed"].map(|reason| {
                let events = lab.all_events("n1").into_iter().filter(|event| event["reason"] == reason);
                events.filter_map(|event| event["count"].as_u64()).sum::<u64>()
            })
        };
        assert_eq!(counts(&lab), [0, 0], "1.{minor}");
        lab.seconds(310);
        assert_eq!(counts(&lab), [1, 1], "1.{minor}");
        assert_eq!(lab.messages("n1", "ImageGCFailed"), lab.messages("n1", "FreeDiskSpaceFailed"));
        lab.simulation
            .with(|_, nodes, _| nodes.get_mut("n1").unwrap().kubelet.status.image_gc_failed = false);
        lab.seconds(300);
        assert_eq!(counts(&lab), [2, 1], "1.{minor}");
        lab.seconds(300);
        assert_eq!(counts(&lab), [3, 2], "1.{minor}");
    }
}
