//! The document for an upstream issue or pull request.

use std::fmt::Write;

use super::comparison::{CaseComparison, LastRun};
use super::context::ReportContext;
use super::difference::difference;
use crate::export::{Binary, Recipe};
use evictlab_cluster::kubelet_config;
use evictlab_evidence::Observations;
use evictlab_judge::{Check, EvictionRecord};
use evictlab_report::RunDir;
use evictlab_report::text::{code_block, markdown_table};
use evictlab_rules::message::EVICTED_REASON;
use k8s_openapi::api::core::v1::NodeSystemInfo;

/// Returns the document as Markdown. Paths of pictures are relative to the run directory.
pub(super) fn document(
    context: &ReportContext,
    comparisons: &[CaseComparison],
    model: Option<&str>,
    run_dir: &RunDir,
) -> String {
    let [before, after] = &context.sides;
    let mut text = format!("# {before} against {after}\n\n");
    for case in comparisons {
        let sentence = case.conclusion(context).sentence(&case.name(), context.sides.each_ref());
        let _ = writeln!(text, "- **{sentence}**");
    }
    if let Some(model) = model {
        let _ = writeln!(
            text,
            "\n> This result is from a model ({model}), not from a kubelet, and is not a proof."
        );
    }
    for case in comparisons {
        case_section(&mut text, context, case, run_dir);
    }
    environment(&mut text, context, comparisons);
    let _ = writeln!(text, "\nWith evictlab:\n\n{}", code_block("sh", &context.repro_command));
    text
}

/// Appends a case with its results on both kubelets.
fn case_section(text: &mut String, context: &ReportContext, case: &CaseComparison, run_dir: &RunDir) {
    let name = case.name();
    let _ = writeln!(text, "\n## {name}");
    let _ = writeln!(text, "\n{}", case.info.about.trim_end());
    if !case.info.upstream.is_empty() {
        let _ = writeln!(text, "\nUpstream: {}", case.info.upstream.join(", "));
    }
    result_table(text, context, case);
    check_table(text, case);
    differences(text, context, case);
    for (side, run) in context.sides.iter().zip(&case.runs) {
        let Some(run) = run else { continue };
        event_section(text, &side.name, run);
        let picture = run_dir.case_dir(&run.id).join("timeline.svg");
        if picture.is_file() {
            let path = picture.strip_prefix(run_dir.path()).unwrap_or(&picture).display();
            // A picture would be a dead link in an issue.
            let _ = writeln!(text, "\nTimeline on {side}: `{path}` in the run directory.");
        }
    }
    reproduction(text, context.recipes.get(&name));
}

/// Appends the verdict, timing and configuration on each kubelet.
fn result_table(text: &mut String, context: &ReportContext, case: &CaseComparison) {
    let [before, after] = &context.sides;
    let mut rows: Vec<[String; 3]> = Vec::new();
    let mut row = |name: &str, value: &dyn Fn(&LastRun) -> Option<String>| {
        let cells = case.runs.each_ref().map(|run| run.as_ref().and_then(value));
        if cells.iter().any(Option::is_some) {
            let [one, other] = cells.map(Option::unwrap_or_default);
            rows.push([name.to_owned(), one, other]);
        }
    };
    row("verdict", &|run| Some(format!("**{}**", run.result.verdict)));
    row("why", &|run| Some(run.result.why.clone()));
    row("first pod created to outcome", &|run| {
        Some(format!("{:.1} s", run.evidence.as_ref()?.seconds_to_outcome?))
    });
    row("evictions counted", &|run| {
        let counted = &run.evidence.as_ref()?.evictions_counted;
        let counts: Vec<_> = counted.iter().map(|(signal, count)| format!("{signal} {count}")).collect();
        (!counts.is_empty()).then(|| counts.join(", "))
    });
    row("kubelet configuration", &|run| Some(config_changes(run.evidence.as_deref()?)));
    row("container runtime", &|run| {
        Some(node_info(run.evidence.as_deref()?)?.container_runtime_version.clone())
    });
    let header = ["", &before.to_string(), &after.to_string()];
    let _ = write!(text, "\n{}", markdown_table(&header, rows));
}

/// Appends the diff of messages and annotations.
fn differences(text: &mut String, context: &ReportContext, case: &CaseComparison) {
    let [before, after] = &context.sides;
    let records = case
        .runs
        .each_ref()
        .map(|run| run.iter().flat_map(|run| &run.result.evictions).collect::<Vec<&EvictionRecord>>());
    let diff = difference(&records[0], &records[1]);
    if !diff.is_empty() {
        let _ = writeln!(text, "\n### Differences\n\nMeasured values are omitted.\n");
        let _ = writeln!(text, "{}", code_block("diff", &format!("--- {before}\n+++ {after}\n{diff}")));
    }
}

/// Returns the changes of the kubelet configuration for the case, without those for every node.
fn config_changes(seen: &Observations) -> String {
    let base = kubelet_config::base(seen.cgroup.unwrap_or_default());
    let own = seen.kubelet_config_overrides.iter().filter(|(field, _)| !base.contains_key(*field));
    let fields: Vec<String> = own.map(|(field, value)| format!("`{field}: {value}`")).collect();
    fields.join("; ")
}

/// Appends the checks that were evaluated on both kubelets and failed on at least one.
fn check_table(text: &mut String, case: &CaseComparison) {
    let [Some(before), Some(after)] = &case.runs else { return };
    let holds = |run: &LastRun, name: &str| {
        run.result.checks.iter().find(|check| check.name == name).map(|check| check.holds)
    };
    let of_both = |check: &&Check| {
        let [one, other] = [before, after].map(|run| holds(run, &check.name));
        one.zip(other).is_some_and(|(one, other)| !(one && other))
    };
    let differing: Vec<&Check> = before.result.checks.iter().filter(of_both).collect();
    if differing.is_empty() {
        return;
    }
    let word = |holds: Option<bool>| if holds == Some(true) { "passed" } else { "failed" };
    let rows = differing.iter().map(|check| {
        let [one, other] = [before, after].map(|run| word(holds(run, &check.name)).to_owned());
        [check.name.clone(), one, other]
    });
    let _ = write!(text, "\n{}", markdown_table(&["check", "before", "after"], rows));
}

/// Appends the Evicted events of a kubelet as YAML.
fn event_section(text: &mut String, side: &str, run: &LastRun) {
    let _ = writeln!(text, "\n### Event on {side}\n");
    let all = run.evidence.iter().flat_map(|seen| &seen.events);
    let evicted: Vec<String> = all
        .filter(|event| event.reason() == EVICTED_REASON)
        .filter_map(|event| serde_yaml::to_string(event).ok())
        .collect();
    if evicted.is_empty() {
        text.push_str("No Evicted event.\n");
    } else {
        let _ = writeln!(text, "{}", code_block("yaml", &evicted.join("---\n")));
    }
}

fn node_info(seen: &Observations) -> Option<&NodeSystemInfo> {
    seen.node_object.status.as_ref()?.node_info.as_ref()
}

/// Appends the steps to reproduce the case with kind and kubectl.
fn reproduction(text: &mut String, recipe: Option<&Result<Recipe, String>>) {
    let Some(recipe) = recipe else { return };
    text.push_str("\n### Reproduce with kind and kubectl\n\n");
    let Recipe { kind_config, manifests, script, binaries } = match recipe {
        Ok(recipe) => recipe,
        Err(reason) => {
            let _ = writeln!(text, "Not possible: {reason}");
            return;
        }
    };
    for (name, language, content) in [
        ("kind-config.yaml", "yaml", kind_config),
        ("manifests.yaml", "yaml", manifests),
        ("run.sh", "sh", script),
    ] {
        let _ = writeln!(
            text,
            "<details><summary><code>{name}</code></summary>\n\n{}\n\n</details>\n",
            code_block(language, content)
        );
    }
    let mut with_binaries = String::new();
    for Binary { name, from } in binaries {
        let _ = write!(with_binaries, ", and the kubelet as `{name}` (here from `{}`)", from.display());
    }
    let _ = writeln!(text, "Write the three files{with_binaries} to one directory, and run `sh run.sh`.");
}

fn environment(text: &mut String, context: &ReportContext, comparisons: &[CaseComparison]) {
    let seen =
        comparisons.iter().flat_map(|case| case.runs.iter().flatten()).find_map(|run| run.evidence.as_ref());
    let nodes = seen.and_then(|seen| node_info(seen)).map(|info| ["nodes".to_owned(), info.os_image.clone()]);
    let given = context.environment.iter().map(|(name, value)| [name.clone(), value.clone()]);
    let _ = write!(text, "\n## Environment\n\n{}", markdown_table(&["", ""], given.chain(nodes)));
}
