//! Places that a new minor version of Kubernetes needs, beside its rules.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use evictlab_rules::KubeletVersion;

fn project(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)).unwrap()
}

/// Returns the comment at the start of a file as one line.
fn header(file: &str) -> String {
    let text = project(file);
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

/// The list is complete if every place names the newest minor; a failure lists all that do not.
#[test]
fn every_place_knows_the_newest_minor() {
    let newest = KubeletVersion::NEWEST_MINOR;
    let baseline: BTreeMap<String, BTreeMap<String, String>> =
        serde_json::from_str(&project("results/baseline.json")).unwrap();
    let mut missing = Vec::new();
    let mut need = |holds: bool, what: String| missing.extend((!holds).then_some(what));
    need(
        project("images/images.lock").contains(&format!("\n  v1.{newest}.")),
        format!("images/images.lock: a node image of v1.{newest} (`evictlab image update`)"),
    );
    for (case, verdicts) in &baseline {
        need(
            !verdicts.contains_key(&format!("v1.{}", newest - 1))
                || verdicts.contains_key(&format!("v1.{newest}")),
            format!(
                "results/baseline.json: {case} on v1.{newest} (`evictlab run --kubelet v1.{newest} --write-baseline`)"
            ),
        );
    }
    for (file, text) in [
        (".github/workflows/nightly.yml", format!("v1.{newest}")),
        ("README.md", format!("1.27 to 1.{newest}")),
        ("harness/guides/ten-minutes.md", format!("1.27 to 1.{newest}")),
        ("harness/embedded/src/kubelet/config/feature_gates.rs", format!("const NEWEST: u32 = {newest};")),
        ("harness/rules/src/message/text.rs", format!("1.26 to 1.{newest}")),
    ] {
        need(project(file).contains(&text), format!("{file}: {text}"));
    }
    // Lists from the source of Kubernetes: read again, or assumed to be the same.
    for file in [
        "harness/api-types/src/newer_fields.rs",
        "harness/case/src/kubelet_fields.rs",
        "harness/case/src/kubelet_metrics.rs",
    ] {
        let assumed = format!("those of 1.{newest} are assumed to be the same");
        let (header, current) = (header(file), format!("to 1.{newest}"));
        need(
            header.contains(&current) || header.contains(&assumed),
            format!("{file}: `{current}` after reading the source, or `{assumed}`"),
        );
    }
    assert!(missing.is_empty(), "a new minor version needs:\n{}", missing.join("\n"));
}
