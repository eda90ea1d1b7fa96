//! A valid case, and the problems of changed ones.

use crate::{BuiltInCase, parse};

/// A case file of the binary that is read from its text.
pub(crate) const fn built_in(path: &'static str, text: &'static str) -> BuiltInCase {
    BuiltInCase { path, text, json: None }
}

/// A valid case.
pub(crate) const GOOD: &str = "\
name: good
about: It holds.
labels: [Serial, \"Feature:Eviction\"]
upstream: [kubernetes/kubernetes#124938]
kubelet: \">=1.29\"
pressure: {signal: memory.available, ramp: 15s}
pods:
  - metadata: {name: alloc}
    spec:
      initContainers:
        - {name: side, image: agnhost:2.52, restartPolicy: Always}
      containers:
        - name: el1
          image: agnhost:2.52
          args: [stress, --mem-total, $(TOTAL)]
      volumes:
        - {name: data, emptyDir: {}}
expect:
  evicted: [alloc]
  message:
    resource: memory
    containers: {side: {request: \"0\"}, el1: {request: 0, usage: \">=100Mi\"}}
known-bugs:
  - kubelet: \"<1.32\"
    upstream: kubernetes/kubernetes#124938
    message: {containers: {el1: {}}}
";

/// Returns the displayed problems of a text in the place of the valid case, which must have some.
pub(crate) fn problems(text: &str) -> String {
    parse("suite", "suite/good.yaml", "cases/suite/good.yaml", text.as_bytes())
        .expect_err("an error")
        .to_string()
}

/// Returns the errors of the valid case with one change per row: a name, a text of the case and its
/// replacement.
pub(crate) fn errors_of_changes(rows: &[(&str, &str, &str)]) -> String {
    let errors_of = |(name, valid, invalid): &(&str, &str, &str)| {
        let text = GOOD.replacen(valid, invalid, 1);
        assert_ne!(text, GOOD, "{name}");
        format!("## {name}\n{}\n", problems(&text))
    };
    rows.iter().map(errors_of).collect::<Vec<_>>().join("\n")
}
