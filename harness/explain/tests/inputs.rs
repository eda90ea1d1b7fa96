//! Inputs that people have: logs of kubelets, kernels and services, sessions, and alerts.

#![allow(clippy::unwrap_used)]

use evictlab_explain::{Input, explain, render};

const LOW: &str = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi. Container web was using 2Gi, request is 1Gi, has larger consumption of memory. ";
const UID: &str = "UID 5a8d9d3e-0f0c-4e6f-9d0c-3b1f5b6b1e11";
const CGROUP: &str = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod5a8d9d3e_0f0c_4e6f_9d0c_3b1f5b6b1e11.slice/cri-containerd-2f3a.scope";

/// Returns the explanations, or the error.
fn explained(text: &str) -> String {
    let input = match Input::read(text) {
        Ok(input) => input,
        Err(error) => return error.to_string(),
    };
    explain(&input, None).map_or_else(|error| error.to_string(), |all| render(&all))
}

/// Explains each row's text; the result contains the second text and does not contain the third.
fn assert_explained(rows: &[(String, &str, &str)]) {
    for (text, expected, absent) in rows {
        let shown = explained(text);
        assert!(shown.contains(expected), "{text}\n{expected}\n{shown}");
        assert!(absent.is_empty() || !shown.contains(absent), "{text}\n{absent}\n{shown}");
    }
}

#[test]
fn described_containers_ran_if_the_description_shows_it() {
    let describe = |message: &str, init: &str, state: &str| {
        format!(
            "Name: web-0\nNamespace: shop\nNode: n1/10.0.0.1\nStatus: Failed\nReason: Evicted\nMessage: {message}\n\
             Init Containers:\n  init:\n    Container ID:  {init}\n    State:          Terminated\n      Reason:       Completed\n      Exit Code:    0\n      Started:      Tue, 14 May 2024 09:41:19 +0200\n    Restart Count:  0\n    Requests:\n      memory:     40Mi\n\
             Containers:\n  web:\n    {state}\n    Requests:\n      memory:  1Gi\nEvents: <none>\n"
        )
    };
    let rejected = "Pod was rejected: The node had condition: [DiskPressure].";
    let unknown = "Container ID:   \n    State:          Waiting\n      Reason:       ContainerStatusUnknown\n    Last State:     Terminated\n      Reason:       ContainerStatusUnknown\n      Exit Code:    137\n    Restart Count:  1";
    let waiting = "Container ID:   \n    State:          Waiting\n      Reason:       ContainerCreating\n    Restart Count:  0";
    let never = waiting.replace("Waiting", "Terminated").replace(
        "ContainerCreating",
        "ContainerStatusUnknown\n      Started:      Mon, 01 Jan 0001 00:00:00 +0000",
    );
    let rows = [
        (
            describe(LOW, "containerd://1", waiting),
            "init (init)    usage –    request 40Mi  the container had terminated",
            "never ran",
        ),
        (describe(rejected, "", unknown), "Its containers had run before", "never ran there"),
        (
            describe(rejected, "", waiting)
                .replace("Started:      Tue, 14 May 2024", "Started:      Mon, 01 Jan 0001")
                .replace("Completed", "ContainerStatusUnknown"),
            "The pod never ran there",
            "run before",
        ),
        (
            describe(LOW, "containerd://1", &never).replace("Container web", "Container web2"),
            "web (regular)",
            "A pod",
        ),
    ];
    assert_explained(&rows);
}

#[test]
fn logs_of_kubelets_in_every_format_are_explained() {
    let json = |message: &str, pairs: &str| {
        format!(
            "{{\"ts\":1715687000123.4,\"caller\":\"eviction/eviction_manager.go:398\",\"msg\":\"{message}\",\"v\":0{pairs}}}\n"
        )
    };
    let evicted = json("Eviction manager: attempting to reclaim", ",\"resourceName\":\"memory\"")
        + &json(
            "Eviction manager: pods ranked for eviction",
            ",\"pods\":[{\"name\":\"etl-0\",\"namespace\":\"batch\"},{\"name\":\"web-1\",\"namespace\":\"shop\"}]",
        )
        + &json(
            "Eviction manager: pod is evicted successfully",
            ",\"pod\":{\"name\":\"etl-0\",\"namespace\":\"batch\"}",
        );
    let event = format!(
        "{{\"ts\":1.5,\"caller\":\"record/event.go:307\",\"msg\":\"Event occurred\",\"object\":{{\"name\":\"web-0\",\"namespace\":\"shop\"}},\"fieldPath\":\"\",\"kind\":\"Pod\",\"reason\":\"Evicted\",\"message\":\"{LOW}\"}}"
    );
    let line = |program: &str| {
        format!(
            "Feb 02 03:14:07 pi-2 {program}[742]: I0202 03:14:07.3 742 eviction_manager.go:592] \"Eviction manager: pod is evicted successfully\" pod=\"shop/web-0\""
        )
    };
    let reduced = "I0514 15:24:41.0 1331 eviction_manager.go:383] \"Eviction manager: attempting to reclaim\" resourceName=\"memory\"\nI0514 15:24:41.1 1331 eviction_manager.go:400] \"Eviction manager: able to reduce resource pressure without evicting pods.\" resourceName=\"memory\"\n";
    let shutdown = "I0514 15:24:41.2 1331 nodeshutdown_manager_linux.go:331] \"Shutdown manager killing pod with gracePeriod\" pod=\"shop/web-0\" gracePeriod=30\n";
    let cleanup = |pods: &str| {
        format!(
            "I0514 15:24:42.1 1331 eviction_manager.go:626] \"Eviction manager: pods evicted, waiting for pod to be cleaned up\" pods={pods}\n"
        )
    };
    let cleanup_json = json(
        "Eviction manager: pods evicted, waiting for pod to be cleaned up",
        ",\"pods\":[{\"name\":\"etl-0\",\"namespace\":\"batch\"}]",
    );
    let old_cleanup = "I0514 15:24:42.1 1331 eviction_manager.go:563] eviction manager: pods web-0_shop(5a8d) evicted, waiting for pod to be cleaned up\n";
    let rows = [
        (
            cleanup("[\"shop/web-0\",\"shop/web-1\"]"),
            "Pod shop/web-1\n  The kubelet evicted the pod, as its log states.",
            "not find",
        ),
        (cleanup("[shop/web-0 shop/web-1]"), "Pod shop/web-1\n  The kubelet evicted the pod", "\""),
        (cleanup_json.clone(), "Pod batch/etl-0\n  The kubelet evicted the pod, as", "not find"),
        (old_cleanup.to_owned(), "Pod shop/web-0\n  The kubelet evicted the pod, as", "not find"),
        (format!("{evicted}{cleanup_json}"), "to reclaim memory", "evicted the pod, as"),
        (evicted.clone(), "Pod batch/etl-0\n  The kubelet evicted the pod to reclaim memory", "not find"),
        (evicted, "It was the first of 2 in the order of eviction", ""),
        (event, "Pod shop/web-0\n  The node was low on memory: 80Mi available", "A pod"),
        (line("k3s"), "Pod shop/web-0 on node pi-2\n", ""),
        (line("rke2"), "Pod shop/web-0 on node pi-2\n", ""),
        (
            reduced.to_owned(),
            "no evicted pod is named: \"able to reduce resource pressure without evicting pods (memory)\"",
            "",
        ),
        (
            shutdown.repeat(2),
            "Pod shop/web-0\n  The pod's node was shut down (graceful node shutdown)",
            "not find",
        ),
    ];
    assert_explained(&rows);
    assert_eq!(explained(&shutdown.repeat(2)).matches("shop/web-0").count(), 1);
}

#[test]
fn kernels_and_services_that_kill_processes_are_named() {
    let kill = |pid: u32| {
        format!(
            "[9.1] Memory cgroup out of memory: Killed process {pid} (postgres) total-vm:9kB, anon-rss:2097152kB, file-rss:0kB, UID:999\n"
        )
    };
    let group = format!(
        "{}[9.2] Tasks in {CGROUP} are going to be killed due to memory.oom.group set\n{}{}{}",
        kill(42),
        kill(42),
        kill(43),
        kill(44)
    );
    let oomd = format!(
        "May 14 15:21:08 node-a systemd-oomd[613]: Killed {CGROUP} due to memory pressure for /kubepods.slice being 71.32% > 60.00% for > 30s with reclaim activity"
    );
    let node_events = "kind: List\nitems:\n- {kind: Event, reason: SystemOOM, message: 'System OOM encountered, victim process: java, pid: 22', involvedObject: {kind: Node, name: n1}, source: {component: kubelet, host: n1}}\n- {kind: Event, reason: OOMKilling, message: 'Out of memory: Killed process 22 (java) total-vm:9kB, anon-rss:2097152kB, file-rss:0kB', involvedObject: {kind: Node, name: n1}}\n";
    let rows = [
        (group.clone(), UID, "PID 43"),
        (group, "It killed 2 other processes of the container with it (memory.oom.group).", "A process"),
        (
            oomd.clone(),
            "A pod on node node-a\n  systemd-oomd killed the processes of a cgroup due to memory pressure for /kubepods.slice being 71.32%",
            "not find",
        ),
        (oomd.clone(), UID, "kernel"),
        (
            oomd.replace(CGROUP, "/system.slice/a.service"),
            "A process outside of pods on node node-a\n  systemd-oomd killed",
            "UID",
        ),
        // The process may be one of the node.
        (kill(42), "A process\n  The kernel OOM-killed the process postgres (PID 42)", "A pod"),
        (
            node_events.to_owned(),
            "A process on node n1\n  The kernel OOM-killed the process java (PID 22): the node had no memory left. It used 2048 MiB.",
            "contains only",
        ),
        (format!("May 14 15:21:08 node-a kernel: {}", kill(42)), "A process on node node-a\n", ""),
        (
            "container init was OOM-killed (memory limit too low?): unknown".to_owned(),
            "The container could not start",
            "not find",
        ),
        (
            "conmon 2f3a <ninfo>: OOM event received".to_owned(),
            "The kernel OOM-killed a container",
            "not find",
        ),
        (
            "\"Status\": \"exited\",\n\"OOMKilled\": false,\n\"ExitCode\": 1,".to_owned(),
            "failed to find an eviction",
            "The kernel",
        ),
        ("\"OOMKilled\": true,".to_owned(), "The kernel OOM-killed a container", ""),
    ];
    assert_explained(&rows);
    assert_eq!(explained(node_events).matches("The kernel").count(), 1);
}

#[test]
fn deadlines_lost_nodes_and_audit_events_are_explained() {
    let deadline = "Pod was active on the node longer than the specified deadline";
    let pod = |reason: &str, message: &str| {
        format!(
            "kind: Pod\nmetadata: {{name: a, namespace: b}}\nstatus: {{phase: Failed, reason: {reason}, message: '{message}'}}\n"
        )
    };
    let audit = |code: u16| {
        format!(
            "{{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\",\"verb\":\"create\",\"user\":{{\"username\":\"karpenter\"}},\"objectRef\":{{\"resource\":\"pods\",\"namespace\":\"shop\",\"name\":\"web-0\",\"subresource\":\"eviction\"}},\"responseStatus\":{{\"code\":{code}}}}}\n"
        )
    };
    let rejected = "kind: Event\nreason: OutOfmemory\nmessage: 'Node didn''t have enough resource: memory, requested: 1, used: 2, capacity: 2'\ninvolvedObject: {kind: Pod, namespace: b, name: a}\n";
    let table = "NAMESPACE  NAME   READY  STATUS                  RESTARTS  AGE\nb          a      0/1    ContainerStatusUnknown  1         3d\nb          shut   0/1    Terminated              0         4d\nb          late   0/1    DeadlineExceeded        0         4d\nb          gone   0/1    Evicted                 0         4d\n";
    let ended = "kind: Pod\nmetadata: {name: a, namespace: b}\nstatus: {phase: Failed, containerStatuses: [{name: java, state: {terminated: {reason: Error, exitCode: 137}}}]}\n";
    let rows = [
        (
            pod("DeadlineExceeded", deadline),
            "Pod b/a\n  The kubelet ended the pod: it ran longer than its activeDeadlineSeconds.",
            "contains only",
        ),
        (format!("Warning  DeadlineExceeded  45s  kubelet  {deadline}"), "activeDeadlineSeconds", "not find"),
        (
            "Warning  DeadlineExceeded  1m  job-controller  Job was active longer than specified deadline"
                .to_owned(),
            "The Job controller deleted the pods of a Job",
            "kubelet",
        ),
        (
            pod("NodeLost", "Node n2 which was running pod a is unresponsive"),
            "The pod's node stopped responding. This is not a node-pressure eviction.",
            "",
        ),
        (
            "Node n2 which was running pod web-0 is unresponsive".to_owned(),
            "Pod web-0\n  The pod's node stopped responding",
            "",
        ),
        (
            audit(201),
            "Pod shop/web-0\n  The pod was evicted through the Eviction API, as by kubectl drain. The request was of the user karpenter.",
            "?",
        ),
        (audit(429), "was refused by a PodDisruptionBudget", "The pod was evicted"),
        (audit(500), "was attempted", "The pod was evicted"),
        (audit(201).replace("eviction", "log"), "found an audit event", "?"),
        (rejected.to_owned(), "Pod b/a\n  The kubelet rejected the pod at admission", "contains only"),
        (table.to_owned(), "Pod b/a\n  The kubelet lost the state of a container", ""),
        (table.to_owned(), "Pod b/shut\n  The pod's node was shut down", ""),
        (table.to_owned(), "Pod b/late\n  The kubelet ended the pod", ""),
        (table.to_owned(), "kubectl get pod gone -n b -o yaml", ""),
        (ended.to_owned(), "pod b/a in phase Failed (container java ended with exit code 137)", ""),
        (
            "  DiskPressure                  True    Tue, 14 May 2024   KubeletHasDiskPressure".to_owned(),
            "\"DiskPressure True Tue, 14 May 2024 KubeletHasDiskPressure\"",
            "",
        ),
    ];
    assert_explained(&rows);
}

#[test]
fn messages_of_pages_chats_and_old_kubelets_are_read() {
    let above = "named  web  usage 2Gi  request 1Gi  1Gi above its request";
    let rows = [
        (
            format!("<td>{}</td>", LOW.replace(". C", ".&nbsp;C").replace(' ', "&nbsp;")),
            above,
            "could not be read",
        ),
        (LOW.to_lowercase(), above, "not find"),
        (
            "The node was low on resource: memory".to_owned(),
            "The message is shortened and does not state the threshold",
            "No container is named",
        ),
        ("The node was low on resource: [DiskPressure].".to_owned(), "its node had DiskPressure", "failed"),
        (
            "The node was low on resource: nodefs. ".to_owned(),
            "or it is an old one, which names none",
            "failed",
        ),
        (format!("`api-0` and `api-1` got evicted:\n{LOW}"), "A pod", "api-1"),
        ("The node was low on resource: imagefsInodes.".to_owned(), "The node was low on inodes", "failed"),
        (
            "2m  Warning  Evicted  pod/web-0  The node was low on".to_owned(),
            "Pod web-0\n  The kubelet evicted the pod, and the message is cut",
            "1.26",
        ),
        (format!("notre pod « web-0 » a été expulsé : « {LOW}»"), "Pod web-0\n", "A pod"),
        (format!("pod「shop/web-0」が退避されました。「{LOW}」"), "Pod shop/web-0\n", "A pod"),
        (format!("[Pod]shop/web-0 was Evicted: {LOW}"), "Pod shop/web-0\n", "A pod"),
        (format!("web-0\tEvicted\t{LOW}\nweb-1\t\t\n"), "Pod web-0\n", "A pod"),
        (
            format!(
                "hey @sre `web-0` on prod-eu got evicted again\n```\nStatus:   Failed\nReason:   Evicted\nMessage:  {LOW}\n```\n"
            ),
            "Pod web-0\n",
            "A pod",
        ),
        (format!("> our pod shop/web-0 died with\n>\n>   {LOW}\n"), "Pod shop/web-0\n", "A pod"),
        // Several pods, and one after the message.
        (format!("pod shop/web-0 died, pod shop/web-1 died:\npod shop/web-2 died\n{LOW}"), "A pod", "web-2"),
        (format!("{LOW}\npod shop/web-0 died"), "A pod", "web-0"),
        (format!("2m  Normal  Killing  pod/web-0  Stopping container web\n{LOW}"), "A pod", "web-0"),
        (
            format!(
                "{{ [-]\n   involvedObject: {{ [-]\n     kind: Pod\n     name: web-0\n     namespace: shop\n   }}\n   message: {LOW}\n   reason: Evicted\n}}\n"
            ),
            "Pod shop/web-0\n",
            "A pod",
        ),
        (
            format!(
                "Name:         web-0.17cf\nNamespace:    shop\nInvolved Object:\n  API Version:  v1\n  Kind:         Pod\n  Name:         web-0\n  Namespace:    shop\nKind:           Event\nMessage:        {LOW}\nReason:         Evicted\n"
            ),
            "Pod shop/web-0\n",
            "17cf",
        ),
        (
            format!(
                "@timestamp,@message\n2024-05-14,\"{{\"\"verb\"\":\"\"ADDED\"\",\"\"event\"\":{{\"\"message\"\":\"\"{LOW}\"\",\"\"involvedObject\"\":{{\"\"kind\"\":\"\"Pod\"\",\"\"namespace\"\":\"\"shop\"\",\"\"name\"\":\"\"web-0\"\"}}}}}}\"\n"
            ),
            "Pod shop/web-0\n",
            "A pod",
        ),
        (
            format!(
                "{{\"body\": \"{LOW}\", \"attributes\": {{\"k8s.event.reason\": \"Evicted\", \"k8s.namespace.name\": \"shop\"}}, \"resource\": {{\"k8s.object.kind\": \"Pod\", \"k8s.object.name\": \"web-0\"}}}}"
            ),
            "Pod shop/web-0\n",
            "A pod",
        ),
    ];
    assert_explained(&rows);
}

#[test]
fn sessions_with_several_commands_name_a_pod_once() {
    let events = format!(
        "$ kubectl get events -n jobs\nLAST SEEN   TYPE      REASON    OBJECT      MESSAGE\n2m          Warning   Evicted   pod/web-0   {LOW}\n"
    );
    let table = "$ kubectl get pods -n jobs\nNAME    READY   STATUS    RESTARTS   AGE\nweb-0   0/1     Evicted   0          3h\n";
    let describe = format!(
        "$ kubectl describe pod web-0 -n jobs\nName:         web-0\nNamespace:    jobs\nNode:         n1/10.0.0.1\nStatus:       Failed\nReason:       Evicted\nMessage:      {LOW}\nContainers:\n  web:\n    Requests:\n      memory:  1Gi\n"
    );
    let yaml = format!(
        "$ kubectl get pod web-0 -n jobs -o yaml\napiVersion: v1\nkind: Pod\nmetadata:\n  name: web-0\n  namespace: jobs\nspec:\n  nodeName: n1\nstatus:\n  message: '{LOW}'\n  phase: Failed\n  reason: Evicted\n"
    );
    let json = format!(
        "$ kubectl get pod web-0 -n jobs -o json\n{{\n    \"kind\": \"Pod\",\n    \"metadata\": {{\"name\": \"web-0\", \"namespace\": \"jobs\"}},\n    \"status\": {{\"reason\": \"Evicted\", \"message\": \"{LOW}\"}}\n}}\n$ exit\n"
    );
    let sessions = [
        format!("{events}{describe}"),
        format!("{table}{describe}"),
        format!("{table}{yaml}"),
        format!("{events}{yaml}$ exit\n"),
        format!("{table}{json}"),
        format!("{table}{events}{describe}"),
    ];
    for text in sessions {
        let shown = explained(&text);
        assert!(shown.starts_with("Pod jobs/web-0"), "{text}\n{shown}");
        assert_eq!(shown.matches("The node was low").count(), 1, "{text}\n{shown}");
        assert_eq!(shown.matches("Pod ").count(), 1, "{text}\n{shown}");
    }
    // The kubelet's log has the order of eviction.
    let log = "I1 1 eviction_manager.go:398] \"Eviction manager: pods ranked for eviction\" pods=[\"jobs/web-0\",\"shop/a\"]\nI1 1 eviction_manager.go:627] \"Eviction manager: pod is evicted successfully\" pod=\"jobs/web-0\"\n";
    for text in [format!("{log}{events}"), format!("{describe}\n{log}")] {
        let shown = explained(&text);
        assert_eq!(shown.matches("web-0\n").count() + shown.matches("web-0 on node").count(), 1, "{shown}");
        assert!(shown.contains("It was the first of 2 in the order of eviction."), "{shown}");
    }
    // A file with an error is not a session.
    let broken = explained(&format!("kind: Pod\nmetadata:\n  name: a\n b: c\nstatus:\n  message: '{LOW}'\n"));
    assert!(broken.contains("line 4, column 2"), "{broken}");
}

#[test]
fn exports_alerts_and_tables_of_other_tools_are_read() {
    let audit = |resource: &str, object: &str| {
        format!(
            "{{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\",\"verb\":\"create\",\"user\":{{\"username\":\"system:node:n1\"}},\"objectRef\":{{\"resource\":\"{resource}\",\"namespace\":\"shop\",\"name\":\"web-0\"}},\"responseStatus\":{{\"code\":200}},{object}}}\n"
        )
    };
    let event = format!(
        "\"requestObject\":{{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{{\"name\":\"web-0.1\",\"namespace\":\"shop\"}},\"involvedObject\":{{\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"web-0\"}},\"reason\":\"Evicted\",\"message\":\"{LOW}\",\"source\":{{\"component\":\"kubelet\",\"host\":\"n1\"}}}}"
    );
    let status = format!(
        "\"requestObject\":{{\"status\":{{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"{LOW}\"}}}}"
    );
    let deletion = "\"requestObject\":{\"kind\":\"DeleteOptions\"},\"responseObject\":{\"kind\":\"Status\"}";
    let low_on_memory = "Pod shop/web-0\n  The node was low on memory: 80Mi available";
    let not_why = "Pod shop/web-0\n  The text states that the pod was evicted, and not why: kubectl get pod web-0 -n shop -o yaml";
    let rows = [
        (audit("events", &event), "Pod shop/web-0 on node n1\n  The node was low on memory", "A pod"),
        (audit("pods", &status), low_on_memory, "A pod"),
        (audit("pods", deletion), "found an audit event", "?"),
        (
            format!(
                "2024-05-14T13:24:41Z {{cluster=\"prod\", host=\"n1\"}} {{\"kind\":\"Pod\",\"msg\":\"{LOW}\",\"name\":\"web-0\",\"namespace\":\"shop\",\"reason\":\"Evicted\"}}"
            ),
            low_on_memory,
            "A pod",
        ),
        (
            format!(
                "{{\"health\":{{\"message\":\"{LOW}\",\"status\":\"Degraded\"}},\"kind\":\"Pod\",\"name\":\"web-0\",\"namespace\":\"shop\",\"version\":\"v1\"}}"
            ),
            low_on_memory,
            "?",
        ),
        (
            format!(
                "GROUP  KIND        NAMESPACE  NAME   STATUS  HEALTH    HOOK  MESSAGE\n       Pod         shop       web-0          Degraded        {LOW}\n"
            ),
            low_on_memory,
            "A pod",
        ),
        (
            format!("TimeGenerated [UTC],Namespace,Name,ObjectKind,Reason,Message\n1,shop,web-0,Pod,Evicted,\"{LOW}\"\n"),
            low_on_memory,
            "A pod",
        ),
        (format!("shop/web-0\tEvicted\t{LOW}\n"), low_on_memory, "A pod"),
        (
            format!(
                "[14.05. 15:24] Jana\npod shop/web-0 ist weg:\n[14.05. 15:25] Jana\nStatus: Failed, Reason: Evicted, Message: {LOW}"
            ),
            low_on_memory,
            "A pod",
        ),
        (
            "[FIRING:1] KubePodEvicted (prod shop web-0)\nAnnotations:\n - description = Pod shop/web-0 has been evicted from node node-3.\n".to_owned(),
            not_why,
            "",
        ),
        (
            "kube_pod_status_reason{namespace=\"shop\", pod=\"web-0\", reason=\"Evicted\"} 1\nkube_pod_status_reason{namespace=\"shop\", pod=\"web-1\", reason=\"Evicted\"} 0\n".to_owned(),
            not_why,
            "web-1",
        ),
        ("pod shop/web-0 was not evicted".to_owned(), "failed to find an eviction", ""),
        (
            "I0514 15:24:42.0 1331 eviction_manager.go:171] \"Failed to admit pod to node\" pod=\"shop/web-0\" nodeCondition=[\"MemoryPressure\"]".to_owned(),
            "Pod shop/web-0\n  The kubelet rejected the pod at admission, because its node was under pressure",
            "",
        ),
        (
            "3m  Normal  Evicted  pod/web-0  Evicted pod: Underutilized".to_owned(),
            "Pod web-0\n  karpenter evicted the pod, with the message",
            "kubelet",
        ),
    ];
    assert_explained(&rows);
}
