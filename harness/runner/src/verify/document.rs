//! The document: what a maintainer reads to be convinced, and does to see it himself.

use std::fmt::Write;

use super::Setting;
use super::difference::difference;
use super::verification::{Compared, LastRun};
use crate::export::{Binary, Recipe};
use crate::judge::{Check, Testimony};
use crate::observe::Observations;
use crate::report::RunDir;
use crate::tune;
use crate::words::in_a_cell;

/// The whole document, as Markdown. Pictures are named relative to the run's directory.
pub(super) fn document(
    setting: &Setting,
    compared: &[Compared],
    model: Option<&str>,
    run_dir: &RunDir,
) -> String {
    let [before, after] = &setting.sides;
    let mut text = format!("# {before} against {after}\n\n");
    for case in compared {
        let sentence = case.conclusion(setting).sentence(&case.name(), setting.sides.each_ref());
        let _ = writeln!(text, "- **{sentence}**");
    }
    if let Some(model) = model {
        let _ = writeln!(text, "\n> A model said this ({model}), no kubelet: it is no proof.");
    }
    for case in compared {
        section(&mut text, setting, case, run_dir);
    }
    environment(&mut text, setting, compared);
    let _ = writeln!(text, "\nWith evictlab:\n\n```sh\n{}\n```", setting.again);
    text
}

/// One case on both kubelets.
fn section(text: &mut String, setting: &Setting, case: &Compared, run_dir: &RunDir) {
    let name = case.name();
    let _ = writeln!(text, "\n## {name}");
    if let Some(planned) = &case.planned {
        let _ = writeln!(text, "\n{}", planned.about.trim_end());
        if !planned.upstream.is_empty() {
            let _ = writeln!(text, "\nUpstream: {}", planned.upstream.join(", "));
        }
    }
    let [before, after] = &setting.sides;
    let _ = writeln!(text, "\n| | {before} | {after} |\n|-|-|-|");
    let mut row = |what: &str, of: &dyn Fn(&LastRun) -> Option<String>| {
        let cells = case.runs.each_ref().map(|run| run.as_ref().and_then(of));
        if cells.iter().any(Option::is_some) {
            let [one, other] = cells.map(|cell| in_a_cell(&cell.unwrap_or_default()));
            let _ = writeln!(text, "| {what} | {one} | {other} |");
        }
    };
    row("verdict", &|run| Some(format!("**{}**", run.judgement.verdict)));
    row("why", &|run| Some(run.judgement.why.clone()));
    row("first pod created to outcome", &|run| {
        Some(format!("{:.1} s", run.evidence.as_ref()?.seconds_to_outcome?))
    });
    row("evictions counted", &|run| {
        let counted = &run.evidence.as_ref()?.evictions_counted;
        let counts: Vec<_> = counted.iter().map(|(signal, count)| format!("{signal} {count}")).collect();
        (!counts.is_empty()).then(|| counts.join(", "))
    });
    row("kubelet configuration", &|run| Some(changes(run.evidence.as_deref()?)));
    row("container runtime", &|run| node_info(run.evidence.as_deref()?, "containerRuntimeVersion"));
    checks(text, case);
    let testimony = case
        .runs
        .each_ref()
        .map(|run| run.iter().flat_map(|run| &run.judgement.testimony).collect::<Vec<&Testimony>>());
    let diff = difference(&testimony[0], &testimony[1]);
    if !diff.is_empty() {
        let _ =
            writeln!(text, "\n### What they say differently\n\nFigures that are measured are left out.\n");
        let _ = writeln!(text, "```diff\n--- {before}\n+++ {after}\n{}\n```", diff.trim_end());
    }
    for (side, run) in setting.sides.iter().zip(&case.runs) {
        let Some(run) = run else { continue };
        events(text, &side.name, run);
        let picture = run_dir.case_dir(&run.id).join("timeline.svg");
        if picture.is_file() {
            let path = picture.strip_prefix(run_dir.path()).unwrap_or(&picture).display();
            let _ = writeln!(
                text,
                "\n![What the node had left against its threshold, and what each container used, on {side}]({path})"
            );
        }
    }
    by_hand(text, setting.recipes.get(&name));
}

/// What was changed in the node's configuration for the case, beside what every node is given.
fn changes(seen: &Observations) -> String {
    let base = tune::base(seen.cgroup == "v1");
    let own = seen.kubelet_config_overrides.iter().filter(|(field, _)| !base.contains_key(*field));
    let told: Vec<String> = own.map(|(field, value)| format!("`{field}: {value}`")).collect();
    told.join("; ")
}

/// What was checked on both and does not hold on one of them.
fn checks(text: &mut String, case: &Compared) {
    let [Some(before), Some(after)] = &case.runs else { return };
    let holds = |run: &LastRun, name: &str| {
        run.judgement.checks.iter().find(|check| check.name == name).map(|check| check.holds)
    };
    let of_both = |check: &&Check| {
        let [one, other] = [before, after].map(|run| holds(run, &check.name));
        one.zip(other).is_some_and(|(one, other)| !(one && other))
    };
    let told: Vec<&Check> = before.judgement.checks.iter().filter(of_both).collect();
    if told.is_empty() {
        return;
    }
    let word = |holds: Option<bool>| if holds == Some(true) { "holds" } else { "does not hold" };
    text.push_str("\n| checked | before | after |\n|-|-|-|\n");
    for check in told {
        let [one, other] = [before, after].map(|run| word(holds(run, &check.name)));
        let _ = writeln!(text, "| {} | {one} | {other} |", check.name.replace('|', "\\|"));
    }
}

/// The Evicted events of a side as YAML, or that there was none.
fn events(text: &mut String, side: &str, run: &LastRun) {
    let _ = writeln!(text, "\n### The event on {side}\n");
    let all = run.evidence.iter().flat_map(|seen| &seen.events);
    let evicted: Vec<String> = all
        .filter(|event| event["reason"] == "Evicted")
        .filter_map(|event| serde_yaml::to_string(event).ok())
        .collect();
    if evicted.is_empty() {
        text.push_str("There was no Evicted event.\n");
    } else {
        let _ = writeln!(text, "```yaml\n{}\n```", evicted.join("---\n").trim_end());
    }
}

fn node_info(seen: &Observations, field: &str) -> Option<String> {
    seen.node_object["status"]["nodeInfo"][field].as_str().map(str::to_owned)
}

/// How to see the same with kind and kubectl alone.
fn by_hand(text: &mut String, recipe: Option<&Result<Recipe, String>>) {
    let Some(recipe) = recipe else { return };
    text.push_str("\n### With nothing but kind and kubectl\n\n");
    let Recipe { kind_config, manifests, script, binaries } = match recipe {
        Ok(recipe) => recipe,
        Err(why) => {
            let _ = writeln!(text, "Not to be had: {why}");
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
            "<details><summary><code>{name}</code></summary>\n\n```{language}\n{}\n```\n\n</details>\n",
            content.trim_end()
        );
    }
    let mut beside = String::new();
    for Binary { name, from } in binaries {
        let _ = write!(beside, ", a kubelet as `{name}` (here from `{}`)", from.display());
    }
    let _ = writeln!(text, "Put the three into one folder{beside}, and run `sh run.sh`.");
}

fn environment(text: &mut String, setting: &Setting, compared: &[Compared]) {
    text.push_str("\n## Where this was seen\n\n| | |\n|-|-|\n");
    for (what, which) in &setting.facts {
        let _ = writeln!(text, "| {what} | {} |", which.replace('|', "\\|"));
    }
    let seen =
        compared.iter().flat_map(|case| case.runs.iter().flatten()).find_map(|run| run.evidence.as_ref());
    if let Some(image) = seen.and_then(|seen| node_info(seen, "osImage")) {
        let _ = writeln!(text, "| nodes | {image} |");
    }
}
