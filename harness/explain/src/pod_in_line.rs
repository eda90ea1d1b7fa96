//! The pod that a line of a log or of a chat names.

use std::sync::LazyLock;

use regex::Regex;

use crate::objects::qualified;

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
/// In the last form, a word without a digit or a hyphen may be another one than a name.
static SENTENCE: LazyLock<[Regex; 3]> = LazyLock::new(|| {
    let patterns = [
        r#"\b(?i:pods?) "?(?<namespace>[a-z0-9-]+)/(?<pod>[a-z0-9.-]+)"#,
        r#"\b(?i:pods?)/"?(?<pod>[a-z0-9.-]+)"?(?: (?:-n|--namespace|in namespace)[ =]"?(?<namespace>[a-z0-9-]+))?"#,
        r#"\b(?i:pod) ["'`]?(?<pod>[a-z0-9.]*[0-9-][a-z0-9.-]*)["'`]?(?: (?i:was|got|wurde) (?i:evicted)| in (?:(?i:namespace) )?["'`]?(?<namespace>[a-z0-9-]+)|:)"#,
    ];
    patterns.map(|pattern| Regex::new(pattern).expect("the pattern is valid"))
});
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

/// Returns `namespace/name` or the name of the pod that a line names.
pub(crate) fn pod_in_line(line: &str) -> Option<String> {
    let line = OTHERS.replace_all(line, "");
    if let Some(found) = PAIR.captures(&line) {
        let namespace = NAMESPACE.captures(&line);
        let namespace = namespace.as_ref().map(|found| &found["namespace"]);
        let pod = &found["pod"];
        return Some(qualified(namespace.filter(|_| !pod.contains('/')), pod));
    }
    let found = LOGGED_EVENT.iter().chain(&*SENTENCE).find_map(|pattern| pattern.captures(&line))?;
    let pod = found["pod"].trim_end_matches(['.', '-']);
    let is_name = !pod.is_empty() && !UID.is_match(pod);
    is_name.then(|| qualified(found.name("namespace").map(|found| found.as_str()), pod))
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
            ("pod web-7f in shop: m", Some("shop/web-7f")),
            ("Cancelling deletion of Pod shop/web.", Some("shop/web")),
            ("\"Event occurred\" object=\"shop/web-0\" fieldPath=\"\" kind=\"Pod\"", Some("shop/web-0")),
            (
                "Event(v1.ObjectReference{Kind:\"Pod\", Namespace:\"shop\", Name:\"web-0\", UID:\"1\"}): m",
                Some("shop/web-0"),
            ),
            ("\"Event occurred\" object=\"node-3\" kind=\"Node\"", None),
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
