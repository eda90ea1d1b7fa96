//! Explanations of recorded evictions of real kubelets, and of messages from bug reports.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;

use evictlab_explain::{ContainerKind, Explanation, Input, explain, render};
use evictlab_rules::KubeletVersion;
use serde_json::Value;

fn recordings() -> Vec<(String, Value)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../rules/recordings");
    let mut all = Vec::new();
    for version in fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
        for file in fs::read_dir(version.path()).unwrap().flatten() {
            let name = format!("{}/{}", version.file_name().display(), file.file_name().display());
            all.push((name, serde_json::from_slice(&fs::read(file.path()).unwrap()).unwrap()));
        }
    }
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

fn explained(recording: &Value, kinds: &[&str]) -> Vec<Explanation> {
    let list = |field: &str| recording[field].as_array().cloned().unwrap_or_default();
    let mut input = Input::default();
    if kinds.contains(&"events") {
        list("events").into_iter().for_each(|event| input.add_event(event).unwrap());
    }
    if kinds.contains(&"pods") {
        list("podsFinal").into_iter().for_each(|pod| input.add_pod(pod).unwrap());
    }
    let version: KubeletVersion = recording["kubeletVersion"].as_str().unwrap().parse().unwrap();
    explain(&input, Some(&version.into())).unwrap_or_default()
}

fn recording(name: &str) -> Value {
    recordings().into_iter().find(|(own, _)| own == name).unwrap().1
}

#[test]
fn recorded_evictions_are_explained_and_consistent() {
    let mut count = 0;
    for (name, recording) in recordings() {
        let events = recording["events"].as_array().unwrap();
        let evicted = events.iter().any(|event| event["reason"] == "Evicted");
        let all = explained(&recording, &["events", "pods"]);
        assert_eq!(!all.is_empty(), evicted, "{name}");
        for explanation in &all {
            count += 1;
            let wrong: Vec<_> = explanation.checks.iter().filter(|check| !check.agrees).collect();
            assert!(wrong.is_empty(), "{name}: {wrong:?}");
            assert!(!explanation.why.is_empty() && explanation.missing.is_empty(), "{name}");
            assert!(explanation.containers.iter().all(|report| report.kind.is_some()), "{name}");
        }
    }
    assert!(count > 40, "{count}");
}

#[test]
fn event_without_pod_has_missing_input() {
    let all = explained(&recording("v1.32.13/sidecars.json"), &["events"]);
    let [explanation] = &all[..] else { panic!("{all:?}") };
    let named: Vec<&str> = explanation.containers.iter().map(|report| report.name.as_str()).collect();
    assert!(
        named.contains(&"el-sidecar1") && explanation.containers.iter().all(|report| report.kind.is_none())
    );
    assert!(explanation.missing[0].contains("kubectl get pod"), "{:?}", explanation.missing);
}

#[test]
fn sidecars_are_named_from_1_32_on() {
    let bugs = |name: &str| {
        let all = explained(&recording(name), &["events", "pods"]);
        let sidecar = all[0]
            .containers
            .iter()
            .find(|report| report.kind == Some(ContainerKind::Sidecar))
            .unwrap()
            .clone();
        let upstream: Vec<_> = all[0].bugs.iter().filter_map(|bug| bug.upstream).collect();
        (sidecar.named, upstream)
    };
    let (named, upstream) = bugs("v1.31.14/sidecars.json");
    assert!(!named && upstream.contains(&"kubernetes/kubernetes#124938"), "{upstream:?}");
    let (named, upstream) = bugs("v1.32.13/sidecars.json");
    assert!(named && !upstream.contains(&"kubernetes/kubernetes#124938"), "{upstream:?}");
}

#[test]
fn unnamed_containers_have_a_reason() {
    let why = |name: &str, container: &str| {
        let all = explained(&recording(name), &["events", "pods"]);
        all[0].containers.iter().find(|report| report.name == container).unwrap().why.clone()
    };
    let rows = [
        ("v1.31.14/sidecars.json", "el-sidecar2", "considers only regular containers"),
        ("v1.36.2/terminated-init.json", "init1", "the container had terminated"),
        ("v1.32.13/ephemeral.json", "debugger", "ephemeral containers are never named"),
        ("v1.32.13/pid.json", "el1", "messages for pids name no containers"),
    ];
    for (name, container, expected) in rows {
        let why = why(name, container);
        assert!(why.contains(expected), "{name}: {why}");
    }
}

#[test]
fn text_of_an_explanation() {
    let all = explained(&recording("v1.31.14/sidecars.json"), &["events", "pods"]);
    insta::assert_snapshot!(all[0]);
}

#[test]
fn hints_name_the_pod_and_several_pods_share_them() {
    let event = |pod: &str, node: &str| {
        format!(
            "{{kind: Event, reason: Evicted, metadata: {{namespace: shop}}, \
             involvedObject: {{kind: Pod, namespace: shop, name: '{pod}'}}, source: {{host: '{node}'}}, \
             message: 'The node was low on resource: memory. Threshold quantity: 100Mi, available: 61Mi. '}}"
        )
    };
    let rendered = |events: &[String]| {
        let input = Input::read(&format!("{{kind: List, items: [{}]}}", events.join(", "))).unwrap();
        render(&explain(&input, None).unwrap())
    };
    let one = rendered(&[event("web-0", "node-3")]);
    assert!(one.starts_with("Pod shop/web-0 on node node-3\n"), "{one}");
    for command in ["kubectl get pod web-0 -n shop -o yaml", "kubectl get node node-3 -o yaml"] {
        assert!(one.contains(command), "{one}");
    }
    // A name that a shell would not take as one word.
    let strange = rendered(&[event("web;ls", "$(id)")]);
    for command in ["kubectl get pod NAME -o yaml", "kubectl get node NAME -o yaml"] {
        assert!(strange.contains(command), "{strange}");
    }
    let two = rendered(&[event("web-0", "node-3"), event("db-0", "node-4")]);
    assert_eq!(two.matches("missing input").count(), 1, "{two}");
    let end = "\n\nmissing input\n  the pods and nodes: kubectl get events,pods,nodes -A -o yaml\n";
    assert!(two.ends_with(end), "{two}");
}

/// Messages from bug reports: of old kubelets, wrapped by `kubectl describe`, without their last
/// space, with surrounding text.
#[test]
fn pasted_messages_are_explained() {
    let rows: [(&str, &str); 20] = [
        (
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 87608Ki. Container manager was using 48458972Ki, request is 15Gi, has larger consumption of memory. ",
            "14Mi below the threshold of 100Mi",
        ),
        (
            "The node was low on resource: memory. Container kilo was using 30332Ki, which exceeds its request of 0.",
            "does not state the threshold",
        ),
        (
            "Message:        The node was low on resource: memory. Container node was using 35505620Ki,\n    which exceeds its request of 12Gi. ",
            "22385Mi above its request",
        ),
        (
            "  Warning  Evicted  3m  kubelet  The node was low on resource: ephemeral-storage. Threshold quantity: 2727346284, available: 432908Ki. Container app was using 20Ki, request is 0, has larger consumption of ephemeral-storage. ",
            "2178Mi below the threshold of 2601Mi",
        ),
        (
            "The node was low on resource: ephemeral-storage. \n  Threshold quantity: 16015370671, available: 13389604Ki. Container step-push was using 60Ki, request is 0, has larger consumption of ephemeral-storage.",
            "2198Mi below the threshold of 15273Mi (nodefs.available, imagefs.available or containerfs.available)",
        ),
        (
            "The node was low on resource: ephemeral-storage. Threshold quantity: 75100960885, available: 49664872Ki.",
            "No container is named",
        ),
        (
            "The node was low on resource: memory. Threshold quantity: 12Gi, available: 12536420Ki. Container p1 was using 788244Ki, request is 128M, has larger consumption of memory. ",
            "648Mi above its request",
        ),
        (
            "Status:  Failed\nReason:  Evicted\nMessage: The node was low on resource: memory. Threshold quantity: 100Mi, available: 91244Ki. Container batch was using 1843Mi, request is 256Mi, has larger consumption of memory.\nIP: 10.0.0.7",
            "1587Mi above its request",
        ),
        ("The node was low on resource: inodes. ", "Messages for inodes name no containers"),
        (
            "The node was low on resource: inodes. Threshold quantity: 327680, available: 327011. ",
            "669 inodes below the threshold of 327680 inodes (nodefs.inodesFree",
        ),
        (
            "The node was low on resource: pids. Threshold quantity: 3276, available: 2811. ",
            "465 pids below the threshold of 3276 pids (pid.available)",
        ),
        (
            "message: 'The node was low on resource: memory. Threshold quantity: 1Gi, available: 900Mi. Container app was using 900Mi, request is 128Mi, has larger consumption of memory.'",
            "124Mi below",
        ),
        ("The node had condition: [MemoryPressure]. ", "admits no BestEffort pods"),
        (
            "Pod was rejected: The node had condition: [DiskPressure]. ",
            "its node had DiskPressure. The pod never ran there",
        ),
        ("Pod The node had condition: [MemoryPressure DiskPressure]. ", "MemoryPressure and DiskPressure"),
        (
            "Usage of EmptyDir volume \"cache\" exceeds the limit \"10Gi\". ",
            "The emptyDir volume cache exceeded its sizeLimit of 10Gi",
        ),
        (
            "Pod ephemeral local storage usage exceeds the total limit of containers 512Mi. ",
            "the sum of its containers' ephemeral-storage limits",
        ),
        (
            "Container builder exceeded its local ephemeral storage limit \"5Gi\". ",
            "of container builder exceeded its ephemeral-storage limit",
        ),
        (
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 112Mi. ",
            "not below the threshold",
        ),
        (
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. Pod web was using 700Mi, request is 600Mi, has larger consumption of memory. Container a was using 650Mi, request is 0, has larger consumption of memory. ",
            "any usage exceeds it",
        ),
    ];
    for (text, expected) in rows {
        let input = Input::read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let all = explain(&input, None).unwrap();
        let text: String = all.iter().map(Explanation::to_string).collect();
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn errors_describe_other_objects() {
    let rows = [
        (
            "{kind: Event, reason: Created, involvedObject: {kind: Pod, name: web}}",
            "an event Created about Pod web",
        ),
        (
            "{kind: Event, reason: Preempted, involvedObject: {kind: Workload, namespace: shop, name: job}}",
            "an event Preempted about Workload shop/job",
        ),
        ("{kind: Pod, metadata: {name: web}, status: {phase: Running}}", "pod web in phase Running"),
        (
            "{kind: Event, reason: Evicted, message: 'The node was low on resource: mem', involvedObject: {kind: Pod, namespace: a, name: web}}",
            "failed to explain the eviction of a/web: its message is cut after \"mem\"",
        ),
        (
            "{kind: Event, reason: Evicted, message: moved by a descheduler, involvedObject: {kind: Pod, namespace: a, name: web}}",
            "failed to explain the eviction of a/web: not evicted by a kubelet, or by an unknown version: not an eviction message: at byte 0, after \"\"",
        ),
    ];
    for (text, expected) in rows {
        let text = format!("{text}\n");
        let error = explain(&Input::read(&text).unwrap(), None).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn other_causes_are_distinguished() {
    let condition = |reason: &str| {
        format!("conditions: [{{type: DisruptionTarget, status: 'True', reason: {reason}, message: m}}]")
    };
    let rows = [
        (condition("PreemptionByScheduler"), "preempted the pod for a pod of higher priority"),
        (condition("DeletionByTaintManager"), "has a NoExecute taint"),
        (condition("EvictionByEvictionAPI"), "kubectl drain"),
        (
            "reason: Preempting, message: Preempted in order to admit critical pod".to_owned(),
            "to admit a critical pod",
        ),
        ("reason: OutOfmemory, message: no".to_owned(), "rejected the pod (OutOfmemory)"),
        (
            "containerStatuses: [{name: c, state: {terminated: {reason: OOMKilled, exitCode: 137}}}]"
                .to_owned(),
            "The kernel OOM-killed container c",
        ),
    ];
    for (status, expected) in rows {
        let text = format!("{{kind: Pod, metadata: {{name: web}}, status: {{phase: Failed, {status}}}}}\n");
        let all = explain(&Input::read(&text).unwrap(), None).unwrap();
        assert!(all[0].to_string().contains(expected), "{}", all[0]);
    }
}

/// Text that people have: each line of a table is an input, and what its explanation contains.
#[test]
fn copied_text_is_explained() {
    let describe = format!(
        "Name:             web-0\nNamespace:        shop\nPriority:         0\nNode:             node-3/10.0.0.3\nStatus:           Failed\nReason:           Evicted\nMessage:          {LOW} \nIP:               \nInit Containers:\n  proxy:\n    Image:  envoy\n    State:          Terminated\n      Reason:       Error\nContainers:\n  web:\n    Image:  nginx\n    State:          Terminated\n      Reason:       Error\n      Exit Code:    137\n    Requests:\n      memory:     2Gi\n    Environment:  <none>\n  idle:\n    Image:  pause\n    Requests:\n      memory:     64Mi\nConditions:\n  Type    Status\n  Ready   False\nEvents:\n  Type     Reason     Age   From               Message\n  ----     ------     ----  ----               -------\n  Normal   Scheduled  5m    default-scheduler  Successfully assigned shop/web-0 to node-3\n  Warning  Evicted    2m    kubelet            {LOW}\n  Normal   Killing    2m    kubelet            Stopping container web\n"
    );
    let oom = "Name: java-1\nNamespace: shop\nNode: node-3/10.0.0.3\nStatus: Running\nContainers:\n  java:\n    State:          Running\n    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\nEvents: <none>\n";
    let log = "I1124 13:00:00.000000     812 eviction_manager.go:369] \"Eviction manager: attempting to reclaim\" resourceName=\"memory\"\nI1124 13:00:00.002000     812 eviction_manager.go:398] \"Eviction manager: pods ranked for eviction\" pods=[\"kube-system/etcd\",\"shop/web\"]\nI1124 13:00:01.002000     812 eviction_manager.go:627] \"Eviction manager: pod is evicted successfully\" pod=\"shop/web\"\n";
    let journal = "Nov 24 13:00:01 node-3 kubelet[812]: I1124 13:00:01.002000     812 eviction_manager.go:627] \"Eviction manager: pod is evicted successfully\" pod=\"shop/web\"";
    let named = |text: &str| format!("shop/web-0 {text}");
    let quoted =
        |text: &str, quote: &str| text.lines().map(|line| format!("{quote}{line}\n")).collect::<String>();
    let boxed: String = describe.lines().map(|line| format!("│ {line:<120} │\n")).collect();
    let evicted =
        "eviction_manager.go:627] \"Eviction manager: pod is evicted successfully\" pod=\"shop/web\"";
    let yaml = format!(
        "---\napiVersion: v1\nitems:\n- apiVersion: v1\n  count: 1\n  eventTime: null\n  involvedObject:\n    kind: Pod\n    name: web-0\n    namespace: shop\n  kind: Event\n  message: '{LOW} '\n  metadata:\n    name: web-0.17a\n    managedFields:\n    - manager: kubelet\n  reason: Evicted\n  source:\n    component: kubelet\n    host: node-3\nkind: EventList\nmetadata: {{}}\n"
    );
    let rows: Vec<(String, usize, &str)> = vec![
        (describe.clone(), 1, "shop/web-0 on node node-3"),
        (describe.clone(), 1, "not named  idle (regular)"),
        (describe.replace("Failed", "Failed\nQoS Class: Burstable"), 1, "2245Mi above its request"),
        (format!("{describe}\n\n{}", describe.replace("web-0", "web-1")), 2, "shop/web-1"),
        (oom.to_owned(), 1, "OOM-killed container java"),
        (format!("on prod we saw \"{LOW} \" this morning, any idea?"), 1, "14Mi below the threshold"),
        (format!("> {LOW}"), 1, "14Mi below the threshold"),
        (format!("`{LOW}`"), 1, "14Mi below the threshold"),
        (format!("\u{1b}[33mWarning\u{1b}[0m  Evicted  2m  kubelet  {LOW}"), 1, "14Mi below the threshold"),
        (format!("LAST SEEN   TYPE      REASON    OBJECT      MESSAGE\n2m          Warning   Evicted   pod/web-0   {LOW}"), 1, "web-0"),
        (format!("shop   2m   Warning   Evicted   pod/web-0   {LOW}"), 1, "shop/web-0"),
        (format!("2m (x2 over 3m)   Warning   Evicted   Pod/web-0   {LOW}"), 1, "web-0"),
        (format!("{LOW}\n{LOW}\n"), 1, "14Mi below the threshold"),
        ("NAME    READY   STATUS    RESTARTS   AGE\nweb-0   0/1     Evicted   0          5m\nweb-1   1/1     Running   0   5m".to_owned(), 1, "kubectl get pod web-0 -o yaml"),
        ("shop   web-0   0/2   Evicted   0   5m   <none>   node-3".to_owned(), 1, "shop/web-0"),
        (log.to_owned(), 1, "It was number 2 of 2 in the order of eviction"),
        (log.replace("\"kube-system/etcd\",", ""), 1, "It was the first of 1"),
        (log.lines().take(2).collect::<Vec<_>>().join("\n"), 1, "kube-system/etcd\n  The kubelet ranked pods for eviction to reclaim memory; this was the first of 2"),
        (journal.to_owned(), 1, "The kubelet evicted the pod, as its log states"),
        ("[ 1234.567] Memory cgroup out of memory: Killed process 4242 (java) total-vm:9000000kB, anon-rss:2097152kB, file-rss:0kB".to_owned(), 1, "It used 2048 MiB"),
        ("Nov 24 13:00:01 node-3 kernel: Out of memory: Killed process 4242 (java) total-vm:9kB, anon-rss:1kB".to_owned(), 1, "the node had no memory left"),
        ("Warning  SystemOOM  3m  kubelet  System OOM encountered, victim process: java, pid: 4242".to_owned(), 1, "process java (PID 4242)"),
        ("Preempted in order to admit critical pod".to_owned(), 1, "to admit a critical pod"),
        (named("2m  Warning  Preempting  Preempted in order to admit critical pod"), 1, "to admit a critical pod"),
        ("2m   Normal   Preempted   pod/web-0   Preempted by a pod on node node-3".to_owned(), 1, "higher priority"),
        ("Pod was terminated in response to imminent node shutdown.".to_owned(), 1, "graceful node shutdown"),
        ("evicting pod shop/web-0".to_owned(), 1, "Eviction API"),
        ("error when evicting pods/\"web-0\" -n \"shop\": Cannot evict pod as it would violate the pod's disruption budget.".to_owned(), 1, "PodDisruptionBudget"),
        ("2m   Normal   TaintManagerEviction   pod/web-0   Marking for deletion Pod shop/web-0".to_owned(), 1, "NoExecute taint"),
        ("PodGC: node no longer exists".to_owned(), 1, "garbage collector"),
        ("web-0   0/1   OOMKilled   3   5m".to_owned(), 1, "OOM-killed a container"),
        ("2m   Warning   OutOfmemory   pod/web-0   Node didn't have enough resource: memory, requested: 1, used: 2, capacity: 2".to_owned(), 1, "rejected the pod at admission"),
        ("2m   Warning   FailedScheduling   pod/web-0   0/3 nodes are available: 3 Insufficient memory.".to_owned(), 1, "no node with enough resources"),
        (format!("{{\"kind\":\"Event\",\"reason\":\"Evicted\",\"message\":\"{LOW} \",\"involvedObject\":{{\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"a\"}}}}\n{{\"kind\":\"Event\",\"reason\":\"Evicted\",\"message\":\"{LOW} \",\"involvedObject\":{{\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"b\"}}}}"), 2, "shop/b"),
        ("{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"namespace\":\"d\"},\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\"}}".to_owned(), 1, "does not have the message"),
        // Prefixes of journalctl: short-iso, with-unit, export.
        (format!("2026-11-24T13:00:01+0000 node-3 kubelet[812]: I1124 13:00:01.002000     812 {evicted}"), 1, "shop/web"),
        (format!("__REALTIME_TIMESTAMP=1795525201002000\n_HOSTNAME=node-3\nMESSAGE=I1124 13:00:01.002000     812 {evicted}\n"), 1, "as its log states"),
        (format!("{{\"MESSAGE\": \"I1124 13:00:01.002000     812 {}\", \"_HOSTNAME\": \"node-3\"}}", evicted.replace('"', "\\\"")), 1, "shop/web"),
        // `kubectl get events -A -o wide`.
        (format!("NAMESPACE   LAST SEEN   TYPE      REASON    OBJECT      SUBOBJECT   SOURCE            MESSAGE   FIRST SEEN   COUNT   NAME\nshop        2m5s        Warning   Evicted   pod/web-0               kubelet, node-3   {LOW}     2m5s         1       web-0.187a6c7f2d0b"), 1, "shop/web-0"),
        // Logs of containers and of runtimes.
        (format!("2026-11-24T13:00:01.002345678Z stderr F {LOW} "), 1, "14Mi below the threshold"),
        ("time=\"2026-11-24T13:00:01.002Z\" level=info msg=\"TaskOOM event container_id:\\\"4f1c\\\"\"".to_owned(), 1, "OOM-killed a container"),
        // Quotes of GitHub and Slack.
        (quoted(&describe, "> "), 1, "not named  idle (regular)"),
        (quoted(&describe, "&gt; "), 1, "shop/web-0 on node node-3"),
        (format!("> {LOW}\n\nSame here on 1.31, any news?"), 1, "14Mi below the threshold"),
        (quoted(&yaml, "> "), 1, "shop/web-0 on node node-3"),
        // Files of Windows.
        (describe.replace('\n', "\r\n"), 1, "not named  idle (regular)"),
        (format!("\u{feff}{}", yaml.replace('\n', "\r\n")), 1, "shop/web-0 on node node-3"),
        // A description in k9s.
        (boxed.clone(), 1, "not named  idle (regular)"),
        // Structured logs.
        (format!("{{\"line\":\"{LOW} \",\"timestamp\":\"2026-11-24T13:00:01Z\",\"labels\":{{\"job\":\"events\"}}}}"), 1, "14Mi below the threshold"),
        (format!("2026-11-24T13:00:01Z {{node=\"node-3\", unit=\"kubelet.service\"}} I1124 13:00:01.002000     812 {evicted}"), 1, "shop/web"),
        (format!("{{\"verb\":\"ADDED\",\"event\":{{\"reason\":\"Evicted\",\"involvedObject\":{{\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"web-0\"}},\"message\":\"{LOW} \"}}}}"), 1, "shop/web-0"),
        (format!("level=warning msg=\"{LOW} \" reason=Evicted pod=shop/web-0 count=1"), 1, "shop/web-0"),
        (format!("Nov 24 13:00:01.002 kube_namespace:shop pod_name:web-0 source:kubernetes {LOW}"), 1, "shop/web-0"),
        ("ts=1 level=info msg=\"Usage of EmptyDir volume \\\"cache\\\" exceeds the limit \\\"10Gi\\\". \" pod=web-0".to_owned(), 1, "The emptyDir volume cache exceeded its sizeLimit of 10Gi"),
        // must-gather.
        (yaml.clone(), 1, "shop/web-0 on node node-3"),
        // Shortened by a table or a chat.
        (format!("{}…", &LOW[..LOW.len() - 30]), 1, "14Mi below the threshold"),
        (format!("2m   Warning   Evicted   pod/web-0   {}...", &LOW[..60]), 1, "does not state the threshold"),
    ];
    for (text, count, expected) in rows {
        let input = Input::read(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let all = explain(&input, None).unwrap_or_else(|error| panic!("{text}: {error}"));
        let shown: String = all.iter().map(Explanation::to_string).collect();
        assert!(all.len() == count && shown.contains(expected), "{text}\n{expected}\n{shown}");
    }
}

/// Explains each row's text; the result contains the second text and does not contain the third.
fn assert_explained(rows: &[(String, &str, &str)]) {
    for (text, expected, absent) in rows {
        let input = Input::read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let all = explain(&input, None).unwrap_or_else(|error| panic!("{text}: {error}"));
        let shown: String = all.iter().map(Explanation::to_string).collect();
        assert!(shown.contains(expected), "{text}\n{expected}\n{shown}");
        assert!(absent.is_empty() || !shown.contains(absent), "{text}\n{absent}\n{shown}");
    }
}

const LOW: &str = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 87608Ki. Container web was using 4395616Ki, request is 2Gi, has larger consumption of memory.";

#[test]
fn wrapped_and_shortened_messages_are_not_completed() {
    let wrapped = |width: usize| {
        let lines = LOW.as_bytes().chunks(width).map(String::from_utf8_lossy);
        lines.collect::<Vec<_>>().join("\n")
    };
    let none_named = "No container is named";
    let mut rows: Vec<(String, &str, &str)> =
        (20..90).map(|width| (wrapped(width), "2245Mi above its request", none_named)).collect();
    rows.extend([
        (
            LOW.replace("memory. Thr", "memory.\nThr"),
            "14Mi below the threshold",
            "does not state the threshold",
        ),
        (format!("message: \"{}", LOW.replace("n of", "n\\\n    \\ of")), "2245Mi above", none_named),
        (LOW.replace(". ", ".\n    ").replace("was using ", "was using\n"), "2245Mi above", none_named),
        (
            format!("Message:  {}\nIP:  10.0.0.7", LOW.replace("has larger", "has\n  larger")),
            "2245Mi above",
            "",
        ),
        (format!("{}...", &LOW[..116]), "The message is shortened", none_named),
        (format!("{}43...", &LOW[..109]), "The message is shortened", none_named),
        (format!("{}\n2m  Normal  Killing  pod/b  x", &LOW[..92]), "The message is shortened", none_named),
        (format!("{}…", &LOW[..45]), "The message is shortened and does not state the threshold", none_named),
        (
            format!("{}avail…", &LOW[..65]),
            "The message is shortened and does not state the threshold with the available amount",
            none_named,
        ),
        // A whole amount without a full stop, and one that may be longer.
        (LOW[..83].to_owned(), "14Mi below the threshold", "shortened"),
        (LOW[..82].to_owned(), "The message is shortened", "14Mi"),
        // Other words after a whole message.
        (format!("{} Container web was restarted.", &LOW[..85]), none_named, "shortened"),
        (format!("{} Pod web-0 is gone.", &LOW[..85]), none_named, "shortened"),
        (format!("{LOW} {}", LOW.replace("memory", "ephemeral-storage")), "low on disk space", ""),
    ]);
    for (before, after) in [
        ("(", ") this"),
        ("", ", please"),
        ("*", "* on node-3"),
        ("<b>", "</b>"),
        ("“", "” it said"),
        ("„", "“ – wie?"),
    ] {
        rows.push((format!("{before}{LOW}{after}"), "2245Mi above its request", ""));
    }
    let quoted = "Usage of EmptyDir volume QcacheQ exceeds the limit Q10GiQ. ";
    for quote in ["", "\"", "\"\"", "\\\"", "&quot;"] {
        rows.push((
            quoted.replace('Q', quote),
            "The emptyDir volume cache exceeded its sizeLimit of 10Gi",
            "",
        ));
    }
    assert_explained(&rows);
}

#[test]
fn marks_around_names_and_amounts_are_not_read() {
    let named = "named  web  usage 4395616Ki  request 2Gi  2245Mi above its request";
    let marks = [
        ("&quot;", "&quot;"),
        ("&amp;quot;", "&amp;quot;"),
        ("&#39;", "&#39;"),
        ("\"", "\""),
        ("'", "'"),
        ("`", "`"),
        ("*", "*"),
        ("**`", "`**"),
        ("“", "”"),
        ("„", "“"),
        ("‘", "’"),
        ("<code>", "</code>"),
    ];
    let mut rows = Vec::new();
    for (open, close) in marks {
        for word in ["web", "4395616Ki", "2Gi", "87608Ki"] {
            rows.push((LOW.replace(word, &format!("{open}{word}{close}")), named, "No container is named"));
        }
    }
    assert_explained(&rows);
}

#[test]
fn rest_that_is_not_read_is_quoted() {
    let rest = "the rest could not be read: \"Container wéb was using 4395616Ki, request is 2Gi, has larger consumption of memory.\"";
    let (none_named, unreadable) = ("No container is named", LOW.replace("web", "wéb"));
    let rows = [
        (unreadable.clone(), rest, none_named),
        (unreadable.replace("Ki. Con", "Ki.\n    Con"), rest, none_named),
        (format!("msg=\"{unreadable} \" pod=shop/web-0"), rest, "A pod"),
        (
            LOW.replace("Container", "Conteneur"),
            "the rest could not be read: \"Conteneur web was",
            none_named,
        ),
        (
            LOW.replace("100Mi", "[100Mi]"),
            "The part of the message that could be read does not state the threshold",
            none_named,
        ),
        (format!("{LOW} Container wéb was using 5Gi"), "2245Mi above its request", "cause the pressure"),
    ];
    assert_explained(&rows);
}

/// Messages that end at any character, and those of which any character is another one or missing.
#[test]
fn damaged_messages_do_not_hide_their_containers() {
    for name in ["web", "&quot;web&quot;", "“web”", "<b>web</b>"] {
        let whole = LOW.replace("web", name);
        for (at, c) in whole.char_indices() {
            let (before, after) = (&whole[..at], &whole[at + c.len_utf8()..]);
            for text in [before.to_owned(), format!("{before}é{after}"), format!("{before}{after}")] {
                let Ok(all) = Input::read(&text).map(|input| explain(&input, None).unwrap()) else {
                    continue;
                };
                let states =
                    |part: &str| all.iter().any(|explanation| explanation.to_string().contains(part));
                let has_container = text.len() > LOW.find("Container").unwrap();
                assert!(!has_container || !states("No container is named"), "{text}");
            }
        }
    }
}

/// Copied objects lack the space at the end of their messages.
#[test]
fn objects_without_the_last_space_are_explained() {
    let event = |message: &str, more: &str| {
        format!(
            "{{kind: Event, reason: Evicted, message: '{message}', involvedObject: {{kind: Pod, name: a{more}}}}}\n"
        )
    };
    let rows = [
        (event(LOW, ", namespace: shop"), "shop/a\n  The node was low on memory: 86Mi available", ""),
        (
            event("Usage of EmptyDir volume \"cache\" exceeds the limit \"10Gi\".", ""),
            "sizeLimit of 10Gi",
            "/a",
        ),
        (
            event("Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.", ""),
            "together exceeded 1Gi",
            "/a",
        ),
        (event("Container web exceeded its local ephemeral storage limit \"1Gi\".", ""), "limit of 1Gi", ""),
        (event("The node had condition: [DiskPressure].", ""), "its node had DiskPressure", ""),
        (
            format!(
                "kind: List\nitems:\n- {{kind: Pod, metadata: {{name: a, namespace: shop}}, spec: {{containers: [{{name: web, resources: {{requests: {{memory: 2Gi}}}}}}]}}, status: {{phase: Failed, reason: Evicted, message: '{LOW}'}}}}\n- {{kind: Event, reason: Evicted, message: '{LOW} ', involvedObject: {{kind: Pod, name: a, namespace: shop}}}}\n"
            ),
            "✓ the pod's status message repeats the event",
            "✗ violated: the pod's status",
        ),
    ];
    assert_explained(&rows);
}

#[test]
fn events_without_a_message_are_explained() {
    let event = |more: &str| {
        format!(
            "{{kind: Event, reason: Evicted, involvedObject: {{kind: Pod, namespace: shop, name: a}}{more}}}\n"
        )
    };
    let pod = format!(
        "kind: Pod\nmetadata: {{namespace: shop, name: a}}\nstatus: {{reason: Evicted, message: '{LOW}'}}\n---\n"
    );
    let unknown = "shop/a\n  The pod was evicted, and the event has no message: the cause is unknown";
    let rows = [
        (event(""), unknown, "byte 0"),
        (event(", message: ''"), "kubectl get pod NAME -o yaml", "byte 0"),
        (event(", message: null, source: {component: kubelet}"), unknown, "byte 0"),
        (
            event(", source: {component: karpenter}"),
            "karpenter evicted the pod, and the event has no message",
            "",
        ),
        ("2m   Warning   Evicted   pod/a   ".to_owned(), "the event has no message", ""),
        (format!("{pod}{}", event("")), "14Mi below the threshold", "has no message"),
        (pod.replace(LOW, ""), "its status does not have the message", "byte 0"),
    ];
    assert_explained(&rows);
}

#[test]
fn other_terminations_of_events_are_explained() {
    let event = |reason: &str, message: &str, object: &str| {
        format!(
            "kind: Event\nreason: {reason}\nmessage: '{message}'\ninvolvedObject: {{kind: Pod, {object}}}\n"
        )
    };
    let (shop, admit) = ("namespace: shop, name: a", "Preempted in order to admit critical pod");
    let by_kubelet = "shop/a\n  The kubelet preempted the pod to admit a critical pod";
    let by_scheduler = "shop/a\n  The scheduler preempted the pod";
    let marked = "shop/a\n  The pod was marked for deletion because its node has a NoExecute taint";
    let row = "2m   Normal   TaintManagerEviction   pod/a   Marking for deletion Pod shop/a".to_owned();
    let rows = [
        (event("Preempting", admit, shop), by_kubelet, ""),
        (event("Preempted", "Preempted by pod 1f-2e on node node-3", shop), by_scheduler, ""),
        (event("Preempted", "m", shop), by_scheduler, ""),
        (event("TaintManagerEviction", "Marking for deletion Pod shop/a", shop), marked, ""),
        (event("TaintManagerEviction", "Marking for deletion Pod shop/a", "name: a"), marked, ""),
        (
            event("TaintManagerEviction", "Cancelling deletion of Pod shop/a", shop),
            "the deletion was cancelled",
            "marked",
        ),
        (row, marked, ""),
    ];
    assert_explained(&rows);

    let pod = "kind: Pod\nmetadata: {namespace: shop, name: a}\nstatus: {phase: Failed, conditions: [{type: DisruptionTarget, status: 'True', reason: PreemptionByScheduler, message: m}]}\n";
    let preempted = event("Preempted", "m", shop);
    for text in [format!("{pod}---\n{preempted}"), format!("{preempted}---\n{preempted}")] {
        let all = explain(&Input::read(&text).unwrap(), None).unwrap();
        assert_eq!(all.len(), 1, "{all:?}");
    }
}

#[test]
fn exported_events_and_logs_of_controllers_name_their_pod() {
    let shut_down = "Name: web-0\nNamespace: shop\nNode: node-3/10.0.3.17\nStatus: Failed\nReason: Terminated\n\
                     Message: Pod was terminated in response to imminent node shutdown.\n";
    let deleting = "I0617 09:14:02.11 1 taint_eviction.go:111] \"Deleting pod\" \
                    controller=\"taint-eviction-controller\" pod=\"shop/web-0\"";
    let rows = [
        (
            format!(
                "insertId: abc\njsonPayload:\n  involvedObject: {{kind: Pod, name: web-0, namespace: shop}}\n  \
                 message: '{LOW} '\n  reason: Evicted\n"
            ),
            "Pod shop/web-0",
            "A pod",
        ),
        (shut_down.to_owned(), "Pod shop/web-0 on node node-3\n", "A pod"),
        (
            deleting.to_owned(),
            "Pod shop/web-0\n  The pod was deleted because its node has a NoExecute taint",
            "",
        ),
    ];
    assert_explained(&rows);
}

#[test]
fn attempts_to_evict_are_not_evictions() {
    let refused = "error when evicting pods/\"web-0\" -n \"shop\" (will retry after 5s): Cannot evict pod as it would violate the pod's disruption budget.";
    let attempted = "An eviction of the pod through the Eviction API was attempted";
    let evicted = "The pod was evicted through the Eviction API";
    let first = "evicting pod shop/web-0";
    let two = format!("{first}\nevicting pod shop/web-1\npod/web-1 evicted");
    let rows = [
        (first.to_owned(), attempted, evicted),
        (format!("{first}\n{refused}"), "refused by a PodDisruptionBudget", attempted),
        (format!("{first}\n{refused}"), "refused by a PodDisruptionBudget", evicted),
        (format!("{first}\n{refused}\n{first}\npod/web-0 evicted"), evicted, attempted),
        (two.clone(), "shop/web-1\n  The pod was evicted", "shop/web-0\n  The pod was evicted"),
        (two, "shop/web-0\n  An eviction of the pod", "shop/web-1\n  An eviction of the pod"),
        // The pod may be any of the two.
        (
            format!("{first}\nevicting pod b/web-0\npod/web-0 evicted"),
            evicted,
            "/web-0\n  The pod was evicted",
        ),
    ];
    assert_explained(&rows);
}

#[test]
fn evictions_by_others_do_not_hide_those_by_the_kubelet() {
    let event = |pod: &str, message: &str, component: &str| {
        format!(
            "- {{kind: Event, reason: Evicted, message: '{message}', source: {{component: {component}, host: node-3}}, involvedObject: {{kind: Pod, namespace: shop, name: {pod}}}}}\n"
        )
    };
    let karpenter = event("k-0", "Evicted pod: Underutilized", "karpenter");
    let list = |events: &[&str]| format!("kind: List\nitems:\n{}", events.concat());
    let unknown = event("u-0", "moved", "kubelet");
    let kubelet = event("web-0", LOW, "kubelet");
    let reporting =
        karpenter.replace("source: {component: karpenter, host: node-3}", "reportingComponent: karpenter");
    let by_karpenter =
        "shop/k-0\n  karpenter evicted the pod, with the message \"Evicted pod: Underutilized\"";
    let rows = [
        (list(&[&karpenter, &kubelet]), by_karpenter, ""),
        (list(&[&karpenter, &kubelet]), "shop/web-0 on node node-3\n  The node was low on memory", "k-0 on node"),
        (list(&[&karpenter]), by_karpenter, ""),
        (list(&[&reporting]), by_karpenter, ""),
        (list(&[&unknown, &kubelet]), "not a complete one of a kubelet of 1.26 to 1.37: \"moved\"", ""),
        (list(&[&event("web-0", "Evicted pod: Drifted", "karpenter"), &kubelet]), "14Mi below the threshold", ""),
        (
            "Normal   Evicted   12s   karpenter   Evicted pod: Underutilized".to_owned(),
            "karpenter evicted the pod",
            "",
        ),
        ("2m  Normal  Evicted  pod/a  Evicted pod: Drifted".to_owned(), "Pod a\n  karpenter evicted the pod", ""),
        ("Normal EvictedByVPA 10s vpa-updater Pod was evicted by VPA Updater to apply resource recommendation.".to_owned(), "Vertical Pod Autoscaler", ""),
        ("Normal  Descheduled  10s  sigs.k8s.io/descheduler  pod eviction from node-3 node by sigs.k8s.io/descheduler".to_owned(), "A pod\n  The descheduler evicted the pod", ""),
    ];
    assert_explained(&rows);
}

/// Messages for inodes and process IDs name no containers.
#[test]
fn no_pod_is_asked_for_where_it_explains_nothing() {
    let rows = ["inodes", "pids"].map(|resource| {
        let message =
            format!("The node was low on resource: {resource}. Threshold quantity: 6553, available: 412. ");
        (message, "Messages for", "the pod, to explain")
    });
    assert_explained(&rows);
}

#[test]
fn causes_are_not_overstated() {
    let row = |text: &str| format!("2m   Warning   {text}");
    let scheduling = "FailedScheduling   pod/a   0/3 nodes are available:";
    let rows = [
        (
            row("TaintManagerEviction   pod/a   Cancelling deletion of Pod shop/a"),
            "the deletion was cancelled",
            "was deleted",
        ),
        (
            row("TaintManagerEviction   pod/a   Marking for deletion Pod shop/a"),
            "marked for deletion",
            "was deleted",
        ),
        (
            row(&format!(
                "{scheduling} 3 node(s) had untolerated taint {{node.kubernetes.io/memory-pressure: }}."
            )),
            "under pressure and has a taint",
            "enough resources",
        ),
        (
            "0/5 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/memory-pressure: }, 4 Insufficient memory.".to_owned(),
            "under pressure and has a taint",
            "enough resources",
        ),
        (
            row(&format!(
                "{scheduling} 3 Insufficient memory. no new claims to deallocate, preemption: 0/3 nodes are available: \
                 3 No preemption victims found for incoming pod."
            )),
            "no node with enough resources",
            "evicted",
        ),
        (
            row(&format!("{scheduling} 3 node(s) didn't match Pod's node affinity.")),
            "no node for the pod",
            "resources",
        ),
        (
            "Pod was rejected: Node didn't have enough resource: memory, requested: 1, used: 2, capacity: 2"
                .to_owned(),
            "rejected the pod at admission",
            "",
        ),
        (
            "Pod was rejected: Predicate NodeAffinity failed".to_owned(),
            "rejected the pod at admission",
            "too little",
        ),
    ];
    assert_explained(&rows);
}

#[test]
fn pods_are_those_that_the_text_names() {
    let event = format!(
        "{{\"message\": \"{LOW} \", \"reason\": \"Evicted\", \"involvedObject\": {{\"kind\": \"Pod\", \"namespace\": \"shop\", \"name\": \"a\"}}}}"
    );
    let pretty =
        |text: &str| serde_json::to_string_pretty(&serde_json::from_str::<Value>(text).unwrap()).unwrap();
    let escaped = |text: &str| serde_json::to_string(text).unwrap();
    let rows = [
        ("evicting pod shop/web-0\npod/web-0 evicted".to_owned(), "shop/web-0\n", "A pod"),
        ("error when evicting pods/\"web-0\" -n \"shop\" (will retry after 5s): Cannot evict pod as it would violate the pod's disruption budget.".to_owned(), "shop/web-0\n", ""),
        ("web-3   0/1   OOMKilled   3 (12s ago)   5m".to_owned(), "web-3\n", "A pod"),
        (pretty(&format!("{{\"jsonPayload\": {event}}}")), "shop/a\n", "A pod"),
        (format!("[{event}]"), "shop/a\n", "A pod"),
        (format!("{{\"pod\": \"a\", \"namespace\": \"shop\", \"msg\": \"{LOW} \"}}"), "shop/a\n", "A pod"),
        (format!("{{\"log\": {}}}", escaped(&event)), "shop/a\n", "A pod"),
        (format!("{{\"log\": {}}}", escaped(&format!("{{\"inner\": {}}}", escaped(&event)))), "shop/a\n", "A pod"),
        (format!("Pod web-0 was evicted: {LOW}"), "web-0\n", "A pod"),
        (format!("“shop/web-0” {LOW}"), "shop/web-0\n", "A pod"),
        (format!("&quot;shop/web-0&quot;: {LOW}"), "shop/web-0\n", "A pod"),
        (format!("shop/web-0: {LOW}"), "shop/web-0\n", "A pod"),
        ("shop/web-0: Preempted in order to admit critical pod".to_owned(), "shop/web-0\n", "A pod"),
        (format!("node/node-3: {LOW}"), "A pod", "node/node-3"),
        (format!("{LOW} shop/web-1: restarted"), "A pod", "web-1"),
        (format!("namespace,pod,message\nshop,web-0,\"{LOW} \""), "shop/web-0\n", "A pod"),
        (format!("| pod | message |\n|---|---|\n| web-0 | {LOW} |"), "web-0\n", "A pod"),
        ("I1124 13:00:03.1 1 event.go:389] \"Event occurred\" object=\"shop/a\" kind=\"Pod\" message=\"The node had condition: [DiskPressure]. \"".to_owned(), "shop/a\n", "A pod"),
        ("msg=\"eviction_manager.go:592] \\\"Eviction manager: pod is evicted successfully\\\" pod=\\\"shop/a\\\"\"".to_owned(), "shop/a\n", ""),
        ("eviction_manager.go:340] eviction manager: attempting to reclaim memory\neviction_manager.go:592] eviction manager: pod a_shop(9b5c) is evicted successfully".to_owned(), "shop/a\n  The kubelet evicted the pod to reclaim memory", ""),
        // The pods that wrote the logs are others.
        (format!("{{namespace=\"logs\", pod=\"exporter-1\"}} {LOW}"), "A pod", "exporter"),
        (format!("{{\"log\": \"{LOW} \", \"kubernetes\": {{\"pod_name\": \"exporter-1\"}}}}"), "A pod", "exporter"),
    ];
    assert_explained(&rows);
}

#[test]
fn text_with_braces_and_lists_without_a_kind_are_read() {
    let event = |pod: &str| {
        format!(
            "{{\"kind\": \"Event\", \"reason\": \"Evicted\", \"message\": \"{LOW}\", \"involvedObject\": {{\"kind\": \"Pod\", \"name\": \"{pod}\"}}}}"
        )
    };
    let rows = [
        (format!("{{code}}\n{LOW}\n{{code}}"), "14Mi below the threshold", ""),
        (format!("{{namespace=\"shop\"}} {LOW}"), "14Mi below the threshold", ""),
        (format!("{}\n-- restarted --\n{}\n", event("a"), event("b")), "b\n  The node was low", ""),
        (format!("[{}, {}]", event("a"), event("b")), "b\n  The node was low", ""),
        (
            format!(
                "- kind: Pod\n  metadata: {{name: a}}\n  status: {{reason: Evicted, message: '{LOW}'}}\n"
            ),
            "a\n",
            "",
        ),
    ];
    assert_explained(&rows);
}

#[test]
fn kernel_logs_name_cgroup_and_pod() {
    const POD: &str = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1234abcd_5678_90ab_cdef_1234567890ab.slice";
    const UID: &str = "UID 1234abcd-5678-90ab-cdef-1234567890ab";
    let summary = |constraint: &str, limited: &str, cgroup: &str| {
        format!(
            "[1.3] oom-kill:constraint={constraint},nodemask=(null),cpuset=x,mems_allowed=0{limited},task_memcg={cgroup},task=java,pid=4242,uid=1000\n"
        )
    };
    let container = format!("{POD}/cri-containerd-4f1c.scope");
    let killed = "[1.4] Memory cgroup out of memory: Killed process 4242 (java) total-vm:9kB, anon-rss:2097152kB, file-rss:0kB\n";
    let of_pod = summary("CONSTRAINT_MEMCG", &format!(",oom_memcg={POD}"), &container);
    let of_container = summary("CONSTRAINT_MEMCG", &format!(",oom_memcg={container}"), &container);
    let of_service = summary("CONSTRAINT_NONE", ",global_oom", "/system.slice/sshd.service");
    let cgroupfs = "/kubepods/burstable/pod1234abcd-5678-90ab-cdef-1234567890ab";
    let rows = [
        (format!("{of_pod}{killed}"), "its pod reached its memory limit. It used 2048 MiB", "Another line"),
        (format!("{of_pod}{killed}"), UID, "A pod\n  The kernel OOM-killed the process java (PID 4242)\n"),
        (of_container.clone(), "its container reached its memory limit", "It used"),
        (of_container, UID, ""),
        (
            of_service,
            "the cgroup /system.slice/sshd.service, which is not that of a pod",
            "stays on its node",
        ),
        (
            "Killed process 4242 (java), UID 1000, total-vm:9kB, anon-rss:2097152kB, file-rss:0kB".to_owned(),
            "the process java (PID 4242). It used 2048 MiB",
            "memory limit",
        ),
        (
            format!(
                "Task in {cgroupfs}/4f1c killed as a result of limit of {cgroupfs}\nMemory cgroup out of memory: Kill process 4242 (java) score 1985 or sacrifice child\nKilled process 4242 (java) total-vm:9kB, anon-rss:2097152kB"
            ),
            "its pod reached its memory limit. It used 2048 MiB",
            "It used 0 MiB",
        ),
        (
            summary("CONSTRAINT_MEMCG", "", "/kubepods/burstable/pod0123456789abcdef0123456789abcdef/4f1c"),
            "the static pod with the annotation kubernetes.io/config.hash: 0123456789abcdef0123456789abcdef",
            "UID",
        ),
        (
            summary("CONSTRAINT_MEMCG", ",oom_memcg=/system.slice/foo.service", "/system.slice/foo.service"),
            "A process outside of pods\n  The kernel OOM-killed the process java (PID 4242): the cgroup /system.slice/foo.service reached its memory limit.",
            "its pod",
        ),
        (
            summary("CONSTRAINT_MEMCG", &format!(",oom_memcg={cgroupfs}"), "/system.slice/foo.service"),
            "pod1234abcd-5678-90ab-cdef-1234567890ab reached its memory limit",
            "its pod",
        ),
        // The newest line first.
        (format!("{killed}{of_pod}"), "its pod reached its memory limit. It used 2048 MiB", "Another line"),
        (killed.to_owned(), "Another line of the kernel's log may name the cgroup", "its container reached"),
    ];
    assert_explained(&rows);
    let input = Input::read(&format!("{of_pod}{killed}")).unwrap();
    assert_eq!(explain(&input, None).unwrap().len(), 1, "two lines about one kill");
}

#[test]
fn text_without_an_eviction_is_described() {
    let running = "Name: web\nNamespace: shop\nStatus: Running\nContainers:\n  web:\n    Container ID:  containerd://4f1c\n";
    let rows = [
        (running.to_owned(), "it contains only pod shop/web in phase Running"),
        (
            "LAST SEEN TYPE REASON OBJECT MESSAGE\n2m  Normal  Pulled  pod/a  Container image \"nginx\" already present".to_owned(),
            "failed to find an eviction in this text",
        ),
        (
            "Warning  EvictionThresholdMet   2m    kubelet  Attempting to reclaim memory".to_owned(),
            "a node was under pressure, and no evicted pod is named",
        ),
        (
            "Name: node-3\nRoles: worker\nConditions:\n  Type  Status\n  MemoryPressure   True   x".to_owned(),
            "a node was under pressure, and no evicted pod is named",
        ),
        ("kind: Pod\nmetadata:\n  name: a\n b: c\n".to_owned(), "line 4, column 2: expected a key at the indentation"),
        ("{\"kind\": \"Pod\", ".to_owned(), "column 16: the text ends within a value"),
    ];
    for (text, expected) in rows {
        let error = match Input::read(&text) {
            Ok(input) => explain(&input, None).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(expected), "{text}: {error}");
        assert!(!error.contains(" at line"), "the position is stated once: {error}");
    }
}

#[test]
fn other_text_is_refused_in_plain_words() {
    for (text, expected) in [
        ("hello world", "failed to find an eviction in this text, which begins with \"hello world\""),
        (
            "NAME   READY   STATUS    RESTARTS   AGE\nweb-1   1/1   Running   0   5m",
            "failed to find an eviction",
        ),
        ("Name: node-3\nRoles: <none>\nLabels: a=b\n", "failed to find an eviction"),
        (
            "The node was low on resource: patience. ",
            "after \"The node was low on resource: \", expected memory",
        ),
    ] {
        let error = match Input::read(text) {
            Ok(input) => explain(&input, None).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(expected), "{text}: {error}");
    }
}

/// Rows of events without an age: no word of the message is the component that sent the event.
#[test]
fn rows_of_events_need_no_age() {
    let not_foreign = "evicted the pod, with the message";
    let volume = "Usage of EmptyDir volume \"data\" exceeds the limit \"1Gi\".";
    let container = "Container main exceeded its local ephemeral storage limit \"1Gi\".";
    let pod = "Pod ephemeral local storage usage exceeds the total limit of containers 2Gi. ";
    let low = "web-0\n  The node was low on memory: 86Mi available";
    let rows = [
        (format!("Warning   Evicted   pod/web-0   {LOW}"), low, not_foreign),
        (format!("Warning Evicted pod/web-0 {LOW}"), low, not_foreign),
        (
            format!("TYPE   REASON   OBJECT   MESSAGE\nWarning   Evicted   pod/web-0   {LOW}"),
            low,
            not_foreign,
        ),
        (
            format!(
                "NAMESPACE   TYPE   REASON   OBJECT   MESSAGE\nshop   Warning   Evicted   pod/web-0   {LOW}"
            ),
            "shop/web-0\n  The node was low",
            not_foreign,
        ),
        (format!("Warning   Evicted   pod/web-0   {LOW}").replace(' ', "\u{a0}"), low, "\u{a0}"),
        (format!("Warning  Evicted  {LOW}"), "14Mi below", not_foreign),
        (format!("Warning  Evicted  5m  {LOW}"), "14Mi below", not_foreign),
        (format!("Warning Evicted pod/web-0 {volume}"), "web-0\n  The emptyDir volume data", not_foreign),
        (format!("Warning Evicted web-0 {container}"), "logs of container main exceeded", not_foreign),
        (format!("Warning Evicted 5m {container}"), "logs of container main exceeded", not_foreign),
        (format!("Warning   Evicted   pod/web-0   {pod}"), "web-0\n  The pod's writable layers", not_foreign),
        (format!("Warning  Evicted  <unknown>  kubelet  {LOW}"), "14Mi below", not_foreign),
        ("Warning  Evicted  3m10s  The pod was moved.".to_owned(), "not a complete one", "The evicted"),
        (
            "Warning  Evicted  3m (x2 over 4m)  karpenter  Evicted pod: Drifted".to_owned(),
            "karpenter evicted the pod",
            "",
        ),
    ];
    assert_explained(&rows);
}

#[test]
fn the_usage_of_the_whole_pod_is_reported() {
    let pod = |usage: &str, rest: &str| {
        format!(
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 61Mi. Pod web-0 was using {usage}, request is 512Mi, has larger consumption of memory. {rest}"
        )
    };
    let container = "Container api was using 300Mi, request is 0, has larger consumption of memory. ";
    let row = "named  web-0 (pod)  usage 900Mi  request 512Mi  388Mi above its pod-level request";
    let event = |message: &str| {
        format!(
            "{{kind: Event, reason: Evicted, message: '{message}', involvedObject: {{kind: Pod, namespace: shop, name: web-0}}}}\n"
        )
    };
    let no_statistics = "no statistics of the pod";
    let rows = [
        (pod("900Mi", ""), "web-0\n  The node was low on memory: 61Mi available", no_statistics),
        (pod("900Mi", ""), row, "A pod"),
        (pod("900Mi", container), row, "No container is named"),
        (event(&pod("900Mi", "")), "shop/web-0\n", no_statistics),
        (event(&pod("900Mi", "")), row, ""),
        (pod("400Mi", ""), "request 512Mi  named although its usage does not exceed", "above its pod-level"),
        (
            format!("evicted from shop/web-0: {}", pod("900Mi", "")),
            "usage of the whole pod, as it has a pod-level request",
            "",
        ),
    ];
    assert_explained(&rows);
    let all = explain(&Input::read(&pod("900Mi", "")).unwrap(), None).unwrap();
    let report = all[0].pod_level.as_ref().unwrap();
    assert_eq!((report.usage.to_string(), report.request.to_string()), ("900Mi".into(), "512Mi".into()));
}

/// A user may know only the minor version.
#[test]
fn a_version_is_printed_as_it_is_stated() {
    let message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi. ";
    for version in ["v1.31", "v1.31.0", "v1.31.14"] {
        let all = explain(&Input::read(message).unwrap(), Some(&version.parse().unwrap())).unwrap();
        assert!(render(&all).starts_with(&format!("A pod, kubelet {version}\n")), "{}", render(&all));
        assert_eq!(serde_json::to_value(&all).unwrap()[0]["kubelet"], version);
    }
}

/// Every kubelet writes these records.
#[test]
fn records_of_every_kubelet_are_consistent() {
    let records = |event: &str, status: &str| {
        format!(
            "kind: Event\nreason: Evicted\nmessage: '{event}'\ninvolvedObject: {{kind: Pod, namespace: shop, name: a}}\n---\nkind: Pod\nmetadata: {{namespace: shop, name: a}}\nstatus: {{phase: Failed, reason: Evicted, message: '{status}'}}\n"
        )
    };
    let rejected = "The node had condition: [DiskPressure]. ";
    let both = "The node had condition: [DiskPressure MemoryPressure]. ";
    let reclaimed =
        "The node was low on resource: memory. Threshold quantity: 15835Mi, available: 16702971669. ";
    let repeats = "✓ the pod's status message repeats the event";
    let rows = [
        (records(rejected, &format!("Pod was rejected: {rejected}")), repeats, "violated"),
        (records(both, &format!("Pod was rejected: {both}")), repeats, "violated"),
        (records(rejected, &format!("Pod {rejected}")), repeats, "violated"),
        (records(rejected, &format!("Pod was rejected: {both}")), "✗ violated: the pod's status message", ""),
        (records(reclaimed, reclaimed), "stays met until evictionMinimumReclaim is available", "violated"),
        (reclaimed.to_owned(), "stays met until evictionMinimumReclaim is available", "violated"),
        (records(LOW, LOW), "✓ the available amount is below the threshold", "evictionMinimumReclaim"),
    ];
    assert_explained(&rows);
}

#[test]
fn pods_rejected_by_a_node_that_shuts_down_did_not_run() {
    let pod = |reason: &str, message: &str, more: &str| {
        format!(
            "kind: Pod\nmetadata: {{name: a}}\nstatus: {{phase: Failed, reason: {reason}, message: '{message}'{more}}}\n"
        )
    };
    let (rejected, never_ran) = ("rejected as the node is shutting down.", "the pod never ran there");
    let ended = "Pod was terminated in response to imminent node shutdown.";
    let ran = ", containerStatuses: [{name: c, containerID: 'containerd://4f1c', state: {terminated: {reason: Completed, startedAt: '2026-01-05T10:00:00Z'}}}]";
    let rows = [
        (pod("NodeShutdown", &format!("Pod was {rejected}"), ""), never_ran, "was shut down"),
        (pod("NodeShutdown", &format!("Pod was {rejected}"), ran), "The kubelet rejected the pod", never_ran),
        (format!("Warning  NodeShutdown  10s  kubelet  Pod was {rejected}"), never_ran, "was shut down"),
        (pod("Terminated", ended, ""), "The pod's node was shut down", "rejected"),
        (
            pod("Shutdown", "Node is in progress of shutting down, not admitting any new pods", ""),
            never_ran,
            "was shut down",
        ),
        (ended.to_owned(), "The pod's node was shut down", "rejected"),
    ];
    assert_explained(&rows);
}

#[test]
fn pods_are_found_in_the_text_around_a_message() {
    let two = format!("POD                 MSG\netl-28391-xk2p9     {LOW}\nweb-0    {}", &LOW[..85]);
    let alert = format!(
        "Labels:\n - alertname = KubePodEvicted\n - namespace = prod\n - pod = api-9\nAnnotations:\n - message = {LOW}\n"
    );
    let rows = [
        (two.clone(), "etl-28391-xk2p9\n", "A pod"),
        (two, "web-0\n", "A pod"),
        (
            format!("NS   POD     REASON    MESSAGE\nbatch   etl-1   Evicted   {LOW}"),
            "batch/etl-1\n",
            "A pod",
        ),
        (
            format!("NAMESPACE   NAME    REASON    MESSAGE\nshop   web-0   Evicted   {LOW}"),
            "shop/web-0\n",
            "A pod",
        ),
        (format!("NAME    STATUS   REASON    MESSAGE\nweb-0   Failed   Evicted   {LOW}"), "web-0\n", "A pod"),
        (
            "POD     MESSAGE\nweb-0   Preempted in order to admit critical pod".to_owned(),
            "web-0\n  The kubelet preempted",
            "A pod",
        ),
        (
            format!(
                "ts=1 level=info name=api-1 kind=Pod action=Evicted reason=Evicted sourcehost=n1 msg=\"{LOW} \""
            ),
            "api-1 on node n1\n",
            "A pod",
        ),
        (alert.clone(), "prod/api-9\n", "A pod"),
        (alert.replace(" - pod", " - exported_pod"), "\napi-9", "A pod"),
        (
            format!("hey, pod `checkout-66c4` in ns `shop` got kicked, k9s says:\n> {LOW}\nany ideas?"),
            "shop/checkout-66c4\n",
            "A pod",
        ),
        (format!("1) shop/web-0 — \"{LOW} \"\n2) shop/web-1 — \"{} \"", &LOW[..85]), "shop/web-1\n", "A pod"),
        (
            format!("unser Pod payment-0 wurde heute Nacht entfernt, mit folgender Meldung: „{LOW}“"),
            "payment-0\n",
            "A pod",
        ),
        (format!("pods shop/web-0 and shop/web-1:\n{LOW}"), "A pod", "web-0"),
        (format!("Pod shop/web-0 was moved to node-3.\n{LOW}"), "A pod", "web-0"),
        (format!("name=node-3 kind=Node msg=\"{LOW} \""), "A pod", "node-3"),
    ];
    // The exported label has no namespace: that of the exporter is not its own.
    let rows: Vec<_> =
        rows.into_iter().map(|(text, expected, absent)| (text, expected.trim_start(), absent)).collect();
    assert_explained(&rows);
}

#[test]
fn objects_that_are_cut_are_explained_by_their_message() {
    let cut = "only the eviction message was read";
    let yaml = format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web-0\n  namespace: shop\nspec:\n  nodeName: n1\nstatus:\n  message: \"{LOW}"
    );
    let json = format!(
        "{{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{{\"name\":\"web-0\",\"namespace\":\"shop\"}},\"status\":{{\"phase\":\"Failed\",\"message\":\"{LOW} \",\"startTime\":\"2026-01"
    );
    let folded = yaml
        .replace("Threshold quantity", "Threshold\n    quantity")
        .replace("request is", "request\n    is");
    let list = format!("{{\"kind\": \"List\", \"items\": [{{\"kind\": \"Pod\"}}, {json}");
    let event = format!(
        "{{\"kind\": \"Event\", \"involvedObject\": {{\"kind\": \"Pod\", \"name\": \"a\"}}, \"message\": \"{LOW}\", \"rea"
    );
    let rows = [
        (yaml.clone(), "shop/web-0 on node n1\n", "A pod"),
        (yaml.clone(), cut, ""),
        (yaml.clone(), "2245Mi above its request", "consistency"),
        (folded, "shop/web-0 on node n1\n  The node was low on memory: 86Mi available", "A pod"),
        (yaml[..yaml.len() - 30].to_owned(), "The message is shortened", "No container is named"),
        (format!("{yaml}\"\n  pha"), "shop/web-0 on node n1\n", "A pod"),
        // The reason is missing.
        (format!("{yaml}\"\n  phase: Failed\n"), "shop/web-0 on node n1\n  The node was low", "A pod"),
        (json, "shop/web-0\n  The node was low", "A pod"),
        (list, "A pod\n  The node was low", "web-0"),
        (event, "a\n  The node was low", "A pod"),
    ];
    assert_explained(&rows);
    let broken = format!("kind: Pod\nmetadata:\n  name: a\n b: c\nstatus:\n  message: '{LOW}'\n");
    let error = Input::read(&broken).unwrap_err().to_string();
    assert!(error.contains("line 4, column 2"), "an error within the text is reported: {error}");
}

#[test]
fn lines_about_pods_that_the_kubelet_and_others_chose_are_explained() {
    let log = |text: &str| format!("I0105 10:16:50.001000    1123 eviction_manager.go:614] {text}");
    let critical = log("\"Eviction manager: cannot evict a critical pod\" pod=\"kube-system/etcd-node-a\"");
    let evicted = log("\"Eviction manager: pod is evicted successfully\" pod=\"shop/web\"");
    let condition = |message: &str| {
        format!(
            "kind: Pod\nmetadata: {{name: p, namespace: d}}\nstatus: {{phase: Succeeded, conditions: [{{type: DisruptionTarget, status: 'True', reason: TerminationByKubelet, message: '{message}'}}]}}\n"
        )
    };
    let rows = [
        (critical.clone(), "kube-system/etcd-node-a\n  The kubelet did not evict the pod", "A pod"),
        (format!("{critical}\n{evicted}"), "shop/web\n  The kubelet evicted the pod", "did not evict"),
        (
            log("\"Eviction manager: pod failed to evict\" err=\"timed out\" pod=\"shop/web-0\""),
            "shop/web-0\n  The kubelet chose the pod for eviction, and failed to terminate it, as its log states: timed out.",
            "evicted the pod",
        ),
        (
            "Normal  Descheduled  2m  sigs.k8s.io/descheduler  pod evicted from ip-10-0-0-1 node by sigs.k8s.io/descheduler".to_owned(),
            "The descheduler evicted the pod",
            "",
        ),
        (
            "Normal  ScaleDown  9m  cluster-autoscaler  deleting pod for node scale down".to_owned(),
            "The cluster autoscaler evicts the pod, to remove its node",
            "",
        ),
        (LOW.to_uppercase(), "named  web  usage 4395616Ki  request 2Gi  2245Mi above its request", "A node"),
        (condition(LOW), "d/p\n  The node was low on memory: 86Mi available", ""),
        (condition(LOW), "gets phase Succeeded (since 1.27)", "status is Evicted"),
    ];
    assert_explained(&rows);
    let other = condition("Pod was preempted by Kubelet to accommodate a critical pod.");
    assert!(explain(&Input::read(&other).unwrap(), None).is_err(), "not an eviction");
}

#[test]
fn nodes_of_logs_and_events_are_reported() {
    let evicted =
        "eviction_manager.go:627] \"Eviction manager: pod is evicted successfully\" pod=\"shop/web\"";
    let old = |first: &str| {
        format!(
            "Jan 05 10:16:48 worker-2 kubelet[1123]: W0105 10:16:48.1 1123 eviction_manager.go:340] eviction manager: {first} memory\nJan 05 10:16:50 worker-2 kubelet[1123]: I0105 10:16:50.1 1123 eviction_manager.go:592] eviction manager: pod a_shop(9b5c) is evicted successfully"
        )
    };
    let rows = [
        (
            format!("Jan 05 10:16:50 worker-2 kubelet[1123]: I0105 10:16:50.1 1123 {evicted}"),
            "shop/web on node worker-2\n",
            "",
        ),
        (
            format!(
                "shop   4m   Warning   Evicted   pod/api-0      kubelet, node-7   {LOW}   4m   1   api-0.17a"
            ),
            "shop/api-0 on node node-7\n",
            "",
        ),
        (format!("Warning  Evicted  3m  kubelet, node-7  {LOW}"), "A pod on node node-7\n", ""),
        (
            format!(
                "{{\"reason\":\"Evicted\",\"message\":\"{LOW} \",\"source\":{{\"component\":\"kubelet\",\"host\":\"n1\"}},\"involvedObject\":{{\"kind\":\"Pod\",\"name\":\"a\"}}}}"
            ),
            "a on node n1\n",
            "",
        ),
        (format!("Jan 05 10:16:50 logs-1 exporter[7]: {LOW}"), "A pod\n", "logs-1"),
        (
            old("must evict pod(s) to reclaim"),
            "shop/a on node worker-2\n  The kubelet evicted the pod to reclaim memory",
            "",
        ),
        (old("attempting to reclaim"), "The kubelet evicted the pod to reclaim memory", ""),
    ];
    assert_explained(&rows);
}

#[test]
fn amounts_are_those_of_the_message() {
    let low = "The node was low on resource: memory. Threshold quantity: 10Gi, available: 9Gi. ";
    let rows = [
        (low.to_owned(), "9Gi available, 1Gi below the threshold of 10Gi", "Mi"),
        (low.replace("9Gi", "9728Mi"), "9728Mi available, 512Mi below the threshold of 10Gi", ""),
        (low.replace("9Gi", "9961472Ki"), "9728Mi available", ""),
        (
            "Killed process 4242 (java) total-vm:9kB, anon-rss:2000kB, file-rss:0kB".to_owned(),
            "It used 2000 KiB",
            "",
        ),
    ];
    assert_explained(&rows);
}
