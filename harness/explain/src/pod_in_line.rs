//! The pod that a line of a log or of a chat names.

use std::sync::LazyLock;

use regex::Regex;

use crate::objects::qualified;
use crate::text_cursor::MARKS;

/// Parts of a line that name another pod than the evicted one: labels of the stream that the line
/// is from, and the pod that preempted another.
static OTHERS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"\{[^{}]*=[^{}]*\}|\bby (?:a )?pod \S+"#).expect("the pattern is valid"));
/// The pod in a line of pairs, such as `pod=shop/web-0` or `kube_namespace:shop pod_name:web-0`.
static PAIR: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\bpod(?:_name)?[=:]"?(?<pod>[a-z0-9][a-z0-9.-]*(?:/[a-z0-9.-]+)?)"#)
        .expect("the pattern is valid")
});
static NAMESPACE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\b(?:kube_)?namespace(?:_name)?[=:]"?(?<namespace>[a-z0-9-]+)"#)
        .expect("the pattern is valid")
});
/// The pod in a sentence: `pod shop/web-0`, `pods/"web-0" -n "shop"`, or `Pod web-0 was evicted`.
/// In the last form, a word without a digit or a hyphen may be another one than a name. Names may
/// have marks.
static SENTENCE: LazyLock<[Regex; 3]> = LazyLock::new(|| {
    let patterns = [
        r"\b(?i:pods?|is deleting pod:)␣(?<namespace>[a-z0-9-]+)/(?<pod>[a-z0-9.-]+)",
        r"\b(?i:pods?)/~(?<pod>[a-z0-9.-]+)~(?: (?:-n|--namespace|in namespace)[ =]~(?<namespace>[a-z0-9-]+))?",
        r"\b(?i:pod) ~(?<pod>[a-z0-9.]*[0-9-][a-z0-9.-]*)~(?: (?i:was|got|wurde) (?i:evicted)| in (?:(?i:namespace|ns) )?~(?<namespace>[a-z0-9-]+)|:)",
    ];
    patterns.map(with_marks)
});
/// The pod that is the subject of a sentence before a message, whatever happened to it.
static SUBJECT: LazyLock<Regex> = LazyLock::new(|| {
    with_marks(
        r"\b(?i:pod)␣(?<pod>[a-z0-9][a-z0-9.]*[0-9-][a-z0-9.-]*)␣(?:(?:was|got|has been|is|keeps|wurde|fue|ha sido|a été|evicted|killed|died|crashed|restarted)(?:[\s?!.,:;]|$)|被驱逐)",
    )
});
/// The pod that a sentence about an eviction begins with, or that has marks in it.
static EVICTED: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    let patterns = [
        r"(?:^|[\s\]>])~(?<namespace>[a-z0-9][a-z0-9-]*)/(?<pod>[a-z0-9][a-z0-9.-]*)␣(?:was|got|has been)(?: again)? (?i:evicted|kicked)",
        r"^(?<before>.*)[`*“„«「'](?<pod>[a-z0-9][a-z0-9.]*[0-9-][a-z0-9.-]*)[`*”“»」'](?: (?:on|in) \S+)?␣(?:was|got|is|has been)(?: again)? (?i:evicted|kicked)",
    ];
    patterns.map(with_marks)
});
/// A name with marks: one of several, if another one follows.
static MARKED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("[`*“„«「'][a-z0-9][a-z0-9./-]*[`*”“»」']").expect("the pattern is valid"));
/// The cells before a message in a row with the status of a pod, separated by tabs or spaces.
static STATUS_ROW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^(?:(?<namespace>[a-z0-9][a-z0-9-]*)(?:/|\t| {2,}))?(?<pod>[a-z0-9][a-z0-9.-]*)(?:\t+| {2,})(?:Failed(?:\t+| {2,}))?Evicted[\t ]*$",
    )
    .expect("the pattern is valid")
});
/// A name that a ReplicaSet of a Deployment generates, of the characters that Kubernetes uses for
/// this: it is not a word of any sentence.
static GENERATED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?:^|[^a-z0-9./-])(?:(?<namespace>[a-z0-9][a-z0-9-]*)/)?(?<pod>[a-z0-9][a-z0-9.-]*-[bcdfghjklmnpqrstvwxz2456789]{8,10}-[bcdfghjklmnpqrstvwxz2456789]{5})(?:[^a-z0-9/-]|$)",
    )
    .expect("the pattern is valid")
});
/// Words after `in` that are not namespaces.
const NO_NAMESPACE_WORDS: [&str; 12] =
    ["the", "a", "an", "our", "my", "your", "this", "that", "its", "der", "unserem", "dem"];
/// The name in a line of pairs about a pod, as Grafana's event handler writes it.
static NAME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?:^|\s)name="?(?<pod>[a-z0-9][a-z0-9.-]*)"?(?:\s|$)"#).expect("the pattern is valid")
});
static KIND: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(?:^|\s)kind="?Pod"?(?:\s|$)"#).expect("the pattern is valid"));
/// The pod at the beginning of a line: `shop/web-0: The node was low on …` or `“shop/web-0”`.
static BEGINNING: LazyLock<Regex> = LazyLock::new(|| {
    with_marks(
        r"^[\s>•*-]*(?:\d+[.)]\s+)?(?<open>~)(?<namespace>[a-z0-9][a-z0-9-]*)/(?<pod>[a-z0-9][a-z0-9.-]*)(?<close>~:?~)(?:\s|$)",
    )
});
/// Words at the beginning of a line that are not namespaces: kinds of other objects, and programs.
pub(crate) const NO_NAMESPACES: [&str; 18] = [
    "node",
    "nodes",
    "deploy",
    "deployment",
    "deployments",
    "statefulset",
    "statefulsets",
    "daemonset",
    "daemonsets",
    "replicaset",
    "replicasets",
    "job",
    "jobs",
    "cronjob",
    "cronjobs",
    "event",
    "events",
    "kubelet",
];
/// The pod of an event that a component logs, from the newest form to the oldest.
static LOGGED_EVENT: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    let patterns = [
        r#"\bobject="(?<namespace>[a-z0-9-]+)/(?<pod>[a-z0-9.-]+)".* kind="Pod""#,
        r#"\bKind:"Pod", Namespace:"(?<namespace>[a-z0-9-]*)", Name:"(?<pod>[a-z0-9.-]+)""#,
    ];
    patterns.map(|pattern| Regex::new(pattern).expect("the pattern is valid"))
});
/// The directory of a pod has its UID as name.
static UID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^[0-9a-f]{8}-[0-9a-f]{4}-").expect("the pattern is valid"));

/// Compiles a pattern in which `~` stands for any number of marks, and `␣` for marks and spaces.
fn with_marks(pattern: &str) -> Regex {
    let marks = MARKS.map(regex::escape).join("|");
    let pattern = pattern.replace('~', &format!("(?:{marks})*")).replace('␣', &format!(r"(?:\s|{marks})+"));
    Regex::new(&pattern).expect("the pattern is valid")
}

/// Returns `namespace/name` or the name of the pod that a line names.
pub(crate) fn pod_in_line(line: &str) -> Option<String> {
    let others = || OTHERS.replace_all(line, "");
    pod_in_words(line)
        .or_else(|| pod_at_beginning(&others()))
        .or_else(|| pod_of_sentence(&others()))
        .or_else(|| pod_of_eviction(&others()))
        .or_else(|| pod_of_replica_set(&others()))
}

/// Returns the pod with the namespace that a line names, if the pod has none.
pub(crate) fn with_namespace(pod: String, line: &str) -> String {
    let is_same = |found: &String| found.split_once('/').is_some_and(|(_, name)| name == pod);
    pod_in_words(line).filter(is_same).unwrap_or(pod)
}

/// Returns the pod at the beginning of a line, in marks, before a colon, or as the only word.
fn pod_at_beginning(line: &str) -> Option<String> {
    let found = BEGINNING.captures(line)?;
    let (namespace, pod) = (&found["namespace"], found["pod"].trim_end_matches(['.', '-']));
    let is_marked = !found["open"].is_empty() || !found["close"].is_empty();
    let rest = &line[found[0].len()..];
    // `shop/web-0 — “The node was low on …”`
    let is_named =
        rest.trim_start().starts_with(['—', '–', '-']) && pod.contains(|c: char| "-0123456789".contains(c));
    let is_alone = rest.trim().is_empty() || (is_named && !rest.contains(char::is_alphanumeric));
    let is_fraction = [namespace, pod].iter().all(|part| !part.contains(|c: char| c.is_ascii_lowercase()));
    let is_other = is_fraction || NO_NAMESPACES.contains(&namespace) || (namespace, pod) == ("n", "a");
    ((is_marked || is_alone) && !is_other).then(|| qualified(Some(namespace), pod))
}

/// Returns the pod that is the subject of a sentence; `None` if several pods are.
fn pod_of_sentence(line: &str) -> Option<String> {
    only_one(SUBJECT.captures_iter(line).map(|found| found["pod"].trim_end_matches(['.', '-']).to_owned()))
}

/// Returns the pod that a sentence or a row states as evicted.
fn pod_of_eviction(line: &str) -> Option<String> {
    let found = EVICTED.iter().chain([&*STATUS_ROW]).find_map(|pattern| pattern.captures(line))?;
    let namespace = found.name("namespace").map(|found| found.as_str());
    let is_other = namespace.is_some_and(|namespace| NO_NAMESPACES.contains(&namespace));
    let is_list = found.name("before").is_some_and(|before| MARKED.is_match(before.as_str()));
    (!is_other && !is_list).then(|| qualified(namespace, &found["pod"]))
}

/// Returns the pod with a generated name; `None` if there are several.
fn pod_of_replica_set(line: &str) -> Option<String> {
    only_one(GENERATED.captures_iter(line).map(|found| {
        let namespace = found.name("namespace").map(|found| found.as_str());
        qualified(namespace.filter(|namespace| !NO_NAMESPACES.contains(namespace)), &found["pod"])
    }))
}

/// Returns the pod if all are the same.
fn only_one(mut pods: impl Iterator<Item = String>) -> Option<String> {
    let first = pods.next()?;
    pods.all(|pod| pod == first).then_some(first)
}

/// Returns `namespace/name` or the name of the pod that a part of a line names.
pub(crate) fn pod_in_words(line: &str) -> Option<String> {
    let line = OTHERS.replace_all(line, "");
    let named = || NAME.captures(&line).filter(|_| KIND.is_match(&line));
    if let Some(found) = PAIR.captures(&line).or_else(named) {
        let namespace = NAMESPACE.captures(&line);
        let namespace = namespace.as_ref().map(|found| &found["namespace"]);
        let pod = &found["pod"];
        return Some(qualified(namespace.filter(|_| !pod.contains('/')), pod));
    }
    let found = LOGGED_EVENT.iter().chain(&*SENTENCE).find_map(|pattern| pattern.captures(&line))?;
    let pod = found["pod"].trim_end_matches(['.', '-']);
    let is_name = !pod.is_empty() && !UID.is_match(pod);
    let namespace = found.name("namespace").map(|found| found.as_str());
    // A path is not a namespace.
    let namespace = namespace.filter(|namespace| {
        let after = &line[found.get(0).map_or(0, |found| found.end())..];
        !NO_NAMESPACE_WORDS.contains(namespace) && !after.starts_with('/')
    });
    is_name.then(|| qualified(namespace, pod))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_of_lines() {
        let rows = [
            ("kube_namespace:shop pod_name:web-0 m", Some("shop/web-0")),
            ("level=info pod=shop/web-0 m", Some("shop/web-0")),
            ("evicting pod shop/web-0", Some("shop/web-0")),
            ("error when evicting pods/\"web-0\" -n \"shop\" (will retry)", Some("shop/web-0")),
            ("pod/web-0 evicted", Some("web-0")),
            ("Pod web-0 was evicted: m", Some("web-0")),
            ("Pod “web-0” was evicted: m", Some("web-0")),
            ("pod &quot;shop/web-0&quot; m", Some("shop/web-0")),
            ("“shop/web-0” was evicted", Some("shop/web-0")),
            ("„shop/web-0“: m", Some("shop/web-0")),
            ("- **shop/web-0:** m", Some("shop/web-0")),
            ("shop/web-0: m", Some("shop/web-0")),
            ("shop/web-0 ", Some("shop/web-0")),
            ("pod web-7f in shop: m", Some("shop/web-7f")),
            ("pod `web-7f` in ns `shop` got kicked", Some("shop/web-7f")),
            ("pod web-7f in our cluster", Some("web-7f")),
            ("notre pod « web-0 » a été expulsé", Some("web-0")),
            ("pod「shop/web-0」が退避されました。", Some("shop/web-0")),
            ("[Pod]shop/web-0 was Evicted: m", Some("shop/web-0")),
            ("hey, `web-0` on prod-eu got evicted again", Some("web-0")),
            ("节点 node-7 上的 Pod kafka-2 被驱逐，提示：", Some("kafka-2")),
            ("web-0\tEvicted\t", Some("web-0")),
            ("shop/web-0\tEvicted\t", Some("shop/web-0")),
            ("shop  web-0  Failed  Evicted  ", Some("shop/web-0")),
            ("pod web-7f in monitoring/alerts", Some("web-7f")),
            ("level=info name=api-1 kind=Pod reason=Evicted msg=", Some("api-1")),
            ("name=api-1 namespace=prod kind=Pod msg=", Some("prod/api-1")),
            ("1) shop/web-0 — \"", Some("shop/web-0")),
            ("2. shop/web-1 - ", Some("shop/web-1")),
            ("unser Pod payment-0 wurde heute Nacht entfernt, mit folgender Meldung: „", Some("payment-0")),
            ("Pod web-0 was removed: ", Some("web-0")),
            ("why is my pod web-0 killed? I see '", Some("web-0")),
            ("pod web-0 died, kubectl says ", Some("web-0")),
            ("see shop/checkout-7d9f8b6c5-x2k4q, and: ", Some("shop/checkout-7d9f8b6c5-x2k4q")),
            ("checkout-7d9f8b6c5-x2k4q: no idea why", Some("checkout-7d9f8b6c5-x2k4q")),
            ("api-7d9f8b6c5-x2k4q and api-7d9f8b6c5-x2k4r: ", None),
            ("/data/api-7d9f8b6c5-x2k4q/log", None),
            ("Cancelling deletion of Pod shop/web.", Some("shop/web")),
            ("NoExecuteTaintManager is deleting pod: shop/web-0", Some("shop/web-0")),
            ("\"Event occurred\" object=\"shop/web-0\" fieldPath=\"\" kind=\"Pod\"", Some("shop/web-0")),
            (
                "Event(v1.ObjectReference{Kind:\"Pod\", Namespace:\"shop\", Name:\"web-0\", UID:\"1\"}): m",
                Some("shop/web-0"),
            ),
            ("\"Event occurred\" object=\"node-3\" kind=\"Node\"", None),
            ("name=node-3 kind=Node msg=", None),
            ("container_name=api-1 kind=Pod msg=", None),
            ("and/or — ", None),
            ("1) shop/web-0 — see also shop/web-1", None),
            ("pod web-0 was fine, pod web-1 was removed: ", None),
            // Other objects, a date, and paths.
            ("node/node-3: m", None),
            ("11/24: m", None),
            ("n/a: m", None),
            ("`api-0` and `api-1` got evicted:", None),
            ("node/node-3 was evicted", None),
            ("a word\tEvicted\t", None),
            ("the pod was  Evicted ", None),
            ("shop/web-0 m", None),
            ("var/log/pods: m", None),
            ("m “shop/web-0”", None),
            // Words, labels of a stream, another pod, and a directory.
            ("Pod was terminated in response to imminent node shutdown.", None),
            ("pod eviction from node-3 node by sigs.k8s.io/descheduler", None),
            ("{namespace=\"shop\", pod=\"exporter-1\"} m", None),
            ("Preempted by pod 11111111-2222-3333-4444-555555555555 on node node-3", None),
            ("/var/lib/kubelet/pods/11111111-2222-3333-4444-555555555555/volumes", None),
        ];
        for (line, expected) in rows {
            assert_eq!(pod_in_line(line).as_deref(), expected, "{line}");
        }
    }
}
