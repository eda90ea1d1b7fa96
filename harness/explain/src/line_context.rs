//! Facts about an event in the part of a line before its message, and in the lines before.

use std::sync::LazyLock;

use regex::Regex;

use crate::objects::qualified;
use crate::pod_in_line::pod_in_line;

/// The node in a line: the host of the kubelet's log in journald or syslog, the source of an event
/// in `kubectl get events -o wide`, or the field that Grafana's event handler writes.
static NODE: LazyLock<[Regex; 4]> = LazyLock::new(|| {
    let patterns = [
        r"^\s*(?:[A-Z][a-z]{2} +\d+ [\d:.]+|\d{4}-\d{2}-\d{2}T\S+) (?<node>[a-z0-9][a-z0-9.-]*) (?:(?:kubelet|kubenswrapper|systemd-oomd)\[\d+\]|kernel): ",
        // Distributions such as k3s run the kubelet within another program.
        r"^\s*(?:[A-Z][a-z]{2} +\d+ [\d:.]+|\d{4}-\d{2}-\d{2}T\S+) (?<node>[a-z0-9][a-z0-9.-]*) [^\s\[]+\[\d+\]: .*\beviction_manager\.go:\d+\]",
        r"\bkubelet, (?<node>[a-z0-9][a-z0-9.-]*)\s",
        r#"(?:^|\s)sourcehost="?(?<node>[a-z0-9][a-z0-9.-]*)"#,
    ];
    patterns.map(|pattern| Regex::new(pattern).expect("the pattern is valid"))
});
/// A label or an annotation of an alert, as the templates of Alertmanager write it. The prefix
/// `exported_` belongs to labels of the object, if the exporter is a pod, too.
static LABEL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\s*[-*•]\s*(?<key>[A-Za-z_]+)\s*=\s*(?<value>.*)$").expect("the pattern is valid")
});
/// The key of an event's object, and a field of it.
static OBJECT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?i)^\s*"?involved ?object"?:[\s{\[\]-]*$"#).expect("the pattern is valid")
});
static FIELD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"^\s*"?(?<key>[A-Za-z]+)"?:\s+"?(?<value>[A-Za-z0-9][A-Za-z0-9.-]*)"?,?\s*$"#)
        .expect("the pattern is valid")
});
/// The only words that may precede a message about the pod of the line before.
static HEADING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("^(?:status: failed,? )?(?:reason: evicted,? )?(?:message)?$").expect("the pattern is valid")
});
/// The time and the author of a chat message, above its text.
static AUTHOR: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\[[\d./, :-]+(?: ?[AP]M)?\] \S[^:]*$|^\S.{0,40}\s\d{1,2}:\d{2}(?: ?[AP]M)?$")
        .expect("the pattern is valid")
});

/// Several pods in a line.
static SEVERAL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\bpods\s|[a-z0-9-]/[a-z0-9].*\s\S*[a-z0-9-]/[a-z0-9]|\bpod\b.*\bpod\b")
        .expect("the pattern is valid")
});

fn names_several(line: &str) -> bool {
    SEVERAL.is_match(line)
}

/// Returns the node that a line names.
pub(crate) fn node_in_line(line: &str) -> Option<String> {
    let found = NODE.iter().find_map(|pattern| pattern.captures(line))?;
    Some(found["node"].to_owned())
}

/// The pod that the lines before a message name.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineContext {
    /// The pod in a line that ends with a colon: the next line is about it.
    announced: Option<String>,
    labels: Labels,
    /// The object of an event, of which each field is a line.
    object: Option<ObjectFields>,
}

/// Fields of the object of an event, as `kubectl describe event` and Splunk show them.
#[derive(Clone, Debug, Default)]
struct ObjectFields {
    kind: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
}

impl ObjectFields {
    fn add(&mut self, key: &str, value: &str) {
        let field = match key.to_ascii_lowercase().as_str() {
            "kind" => &mut self.kind,
            "name" => &mut self.name,
            "namespace" => &mut self.namespace,
            _ => return,
        };
        // The fields of the event follow those of the object.
        field.get_or_insert_with(|| value.to_owned());
    }

    fn pod(&self) -> Option<String> {
        let name = self.name.as_ref().filter(|_| self.kind.as_deref() == Some("Pod"))?;
        Some(qualified(self.namespace.as_deref(), name))
    }
}

/// Labels of an alert, each with or without the prefix `exported_`.
#[derive(Clone, Debug, Default)]
struct Labels {
    pod: Option<String>,
    namespace: Option<String>,
    exported_pod: Option<String>,
    exported_namespace: Option<String>,
}

impl LineContext {
    /// Reads a line that has no message, or after its message.
    pub(crate) fn read(&mut self, line: &str) {
        let line = line.trim_end();
        if line.is_empty() {
            self.labels = Labels::default();
            return;
        }
        // The next message of a chat may be about the same pod.
        if AUTHOR.is_match(line) {
            return;
        }
        if OBJECT.is_match(line) {
            self.object = Some(ObjectFields::default());
        } else if let (Some(object), Some(field)) = (&mut self.object, FIELD.captures(line)) {
            object.add(&field["key"], &field["value"]);
        }
        self.announced = Some(line)
            .filter(|line| line.ends_with([':', '：']) && !names_several(line))
            .and_then(pod_in_line);
        match LABEL.captures(line) {
            Some(label) => self.labels.add(&label["key"], &label["value"]),
            None if line == "Labels:" => self.labels = Labels::default(),
            None => {}
        }
    }

    /// Returns the pod of a message. `before`: the part of its line before the message.
    pub(crate) fn pod(&self, before: &str) -> Option<String> {
        if LABEL.is_match(before) {
            return self.labels.pod();
        }
        let words = before.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let object = self.object.as_ref().filter(|_| words == "message").and_then(ObjectFields::pod);
        object.or_else(|| self.announced.clone()).filter(|_| HEADING.is_match(&words))
    }
}

impl Labels {
    fn add(&mut self, key: &str, value: &str) {
        let label = match key {
            "pod" => &mut self.pod,
            "namespace" => &mut self.namespace,
            "exported_pod" => &mut self.exported_pod,
            "exported_namespace" => &mut self.exported_namespace,
            _ => return,
        };
        let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        *label = Some(value.to_owned()).filter(|value| !value.is_empty() && value.chars().all(is_of_name));
    }

    fn pod(&self) -> Option<String> {
        let (pod, namespace) = match &self.exported_pod {
            Some(pod) => (pod, &self.exported_namespace),
            None => (self.pod.as_ref()?, &self.namespace),
        };
        Some(qualified(namespace.as_deref(), pod))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_lines() {
        let rows = [
            ("Jan 05 10:16:48 worker-2 kubelet[1123]: m", Some("worker-2")),
            ("2026-11-24T13:00:01+0000 node-3 kubelet[812]: m", Some("node-3")),
            ("Nov 24 13:00:01.123 ip-10-0-1-2 kubenswrapper[2345]: m", Some("ip-10-0-1-2")),
            ("Feb 02 03:14:05 pi-2 k3s[742]: I0202 03:14:05.1 742 eviction_manager.go:592] m", Some("pi-2")),
            ("Feb 02 03:14:05 pi-2 k3s[742]: I0202 03:14:05.1 742 event.go:1] m", None),
            ("shop  2m  Warning  Evicted  pod/a    kubelet, node-7   m", Some("node-7")),
            ("reason=Evicted sourcecomponent=kubelet sourcehost=n1 msg=m", Some("n1")),
            ("Nov 24 13:00:01 node-3 kernel: m", Some("node-3")),
            ("Nov 24 13:00:01 node-3 exporter[812]: m", None),
            ("Warning  Evicted  2m  kubelet  m", None),
        ];
        for (line, expected) in rows {
            assert_eq!(node_in_line(line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn pods_of_the_lines_before() {
        let rows = [
            ("pod `web-0` in ns `shop` was kicked, k9s says:", "\"", Some("shop/web-0")),
            ("Pod shop/web-0:", "Message:  ", Some("shop/web-0")),
            (
                "[14.05. 15:24] Ann\npod shop/web-0 is gone:\n[14.05. 15:25] Ann",
                "Status: Failed, Reason: Evicted, Message: ",
                Some("shop/web-0"),
            ),
            ("pod shop/web-0 is gone:\nBob  3:24 PM", "", Some("shop/web-0")),
            ("Pod shop/web-0:\n[1] see: a", "", None),
            ("Pod shop/web-0 is gone.", "", None),
            ("pods shop/web-0 and shop/web-1:", "", None),
            ("Pod shop/web-0, shop/web-1:", "", None),
            ("Pod web-0 in shop, and pod web-1:", "", None),
            ("Pod shop/web-0:", "web-1  ", None),
            (" - namespace = prod\n - pod = api-9\nAnnotations:", " - message = ", Some("prod/api-9")),
            (" - pod = exporter\n - exported_pod = api-9", " - message = ", Some("api-9")),
            (" - pod = api-9\n\n", " - message = ", None),
            (" - pod = api-9\nLabels:", " - message = ", None),
            (" - pod = api-9", "", None),
            (
                "Involved Object:\n  Kind:  Pod\n  Name:  a-0\n  Namespace:  shop\nKind:  Event",
                "Message:  ",
                Some("shop/a-0"),
            ),
            ("  involvedObject: { [-]\n    kind: Node\n    name: n1", "   message: ", None),
            ("involvedObject:\n  kind: Pod\n  name: a-0", "and then ", None),
        ];
        for (lines, before, expected) in rows {
            let mut context = LineContext::default();
            lines.lines().for_each(|line| context.read(line));
            assert_eq!(context.pod(before).as_deref(), expected, "{lines}");
        }
    }
}
