//! Explanations as text.

use std::fmt;

use evictlab_rules::quantity::{GIB, KIB, MIB, Quantity};
use evictlab_rules::threshold::Resource;

use crate::explanation::Explanation;

/// Titles of the sections of an explanation.
pub const TITLES: [&str; 4] = ["containers", "consistency", "matching known bugs", "missing input"];

/// Bytes per Ki, Mi and Gi.
const KI: i64 = KIB as i64;
const MI: i64 = MIB as i64;
const GI: i64 = GIB as i64;

/// Formats an amount of a resource; bytes in Ki or Mi, so that similar amounts remain distinct.
pub fn amount(value: i64, resource: Resource) -> String {
    if !resource.is_bytes() {
        return format!("{value} {resource}");
    }
    match value.abs() {
        0..KI => format!("{value} bytes"),
        bytes if bytes < 10 * MI => format!("{:.0}Ki", value as f64 / KI as f64),
        _ => format!("{:.0}Mi", value as f64 / MI as f64),
    }
}

/// Formats an amount from a message: as the message prints it if that is as short, so that a reader
/// finds it again.
pub(crate) fn printed_amount(quantity: &Quantity, resource: Resource) -> String {
    let printed = quantity.to_string();
    let is_short = printed.ends_with("Mi") || printed.ends_with("Gi") || printed.ends_with("Ti");
    if is_short { printed } else { difference(quantity.value(), resource) }
}

/// Formats an amount that is in no message, in Gi if it has no fraction.
pub(crate) fn difference(value: i64, resource: Resource) -> String {
    if resource.is_bytes() && value > 0 && value % GI == 0 {
        return format!("{}Gi", value / GI);
    }
    amount(value, resource)
}

/// Renders explanations as text. Several have one list of missing input, at the end.
pub fn render(all: &[Explanation]) -> String {
    if let [one] = all {
        return one.to_string();
    }
    let texts = all.iter().map(|explanation| {
        let is_own = |line: &&String| !line.starts_with(POD_HINT) && !line.starts_with(VERSION_HINT);
        let missing = explanation.missing.iter().filter(is_own).map(String::as_str).collect();
        Rendered { explanation, missing }.to_string()
    });
    let mut text = texts.collect::<Vec<_>>().join("\n");
    let lacks = |hint: &str| all.iter().flat_map(|one| &one.missing).any(|line| line.starts_with(hint));
    let hint = match (lacks(POD_HINT), lacks(VERSION_HINT)) {
        (true, _) => "the pods and nodes: kubectl get events,pods,nodes -A -o yaml",
        (false, true) => "the kubelet version: --kubelet v1.31, or the nodes: kubectl get nodes -o yaml",
        (false, false) => return text,
    };
    text.push_str(&format!("\nmissing input\n  {hint}\n"));
    text
}

/// Beginnings of lines of [`Explanation::missing`].
pub(crate) const POD_HINT: &str = "the pod, to explain which containers are not named";
pub(crate) const VERSION_HINT: &str = "the kubelet version";

/// An explanation, and the lines of its missing input that are shown.
struct Rendered<'a> {
    explanation: &'a Explanation,
    missing: Vec<&'a str>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missing = self.missing.iter().map(String::as_str).collect();
        Rendered { explanation: self, missing }.fmt(f)
    }
}

impl fmt::Display for Rendered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { explanation, missing } = self;
        let unnamed = || explanation.unnamed.as_str().to_owned();
        let pod = explanation.pod.as_ref().map_or_else(unnamed, |pod| format!("Pod {pod}"));
        let node = explanation.node.as_ref().map(|node| format!(" on node {node}")).unwrap_or_default();
        let version = explanation.kubelet.as_ref();
        let kubelet = version.map(|version| format!(", kubelet {version}")).unwrap_or_default();
        let at = explanation.at.map(|at| format!(", {}", at.strftime("%Y-%m-%dT%H:%M:%SZ")));
        writeln!(f, "{pod}{node}{kubelet}{}", at.unwrap_or_default())?;
        for sentence in &explanation.why {
            writeln!(f, "  {sentence}")?;
        }
        let [containers, consistency, known_bugs, missing_input] = TITLES;
        section(f, containers, &rows(explanation))?;
        let mark = |agrees: bool| if agrees { "✓" } else { "✗" };
        let checks = explanation.checks.iter().map(|check| format!("{} {}", mark(check.agrees), check.text));
        section(f, consistency, &checks.collect::<Vec<_>>())?;
        let bugs = explanation.bugs.iter().map(|bug| {
            let upstream = bug.upstream.map(|upstream| format!("{upstream}: ")).unwrap_or_default();
            format!("{upstream}{} {} To reproduce: evictlab run {}", bug.about, bug.reason, bug.case)
        });
        section(f, known_bugs, &bugs.collect::<Vec<_>>())?;
        section(f, missing_input, missing)
    }
}

fn section(f: &mut fmt::Formatter<'_>, title: &str, lines: &[impl fmt::Display]) -> fmt::Result {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n  {title}")?;
    lines.iter().try_for_each(|line| writeln!(f, "    {line}"))
}

/// The pod, if the message states its usage, and the containers, in aligned columns.
fn rows(explanation: &Explanation) -> Vec<String> {
    let value =
        |quantity: &Option<Quantity>| quantity.as_ref().map_or_else(|| "–".to_owned(), Quantity::to_string);
    let pod = explanation.pod_level.iter().map(|pod| {
        let cells = [
            "named".to_owned(),
            format!("{} (pod)", pod.name),
            format!("usage {}", pod.usage),
            format!("request {}", pod.request),
        ];
        (cells, pod.why.as_str())
    });
    let containers = explanation.containers.iter().map(|report| {
        let cells = [
            if report.named { "named" } else { "not named" }.to_owned(),
            report
                .kind
                .map_or_else(|| report.name.clone(), |kind| format!("{} ({})", report.name, kind.as_str())),
            format!("usage {}", value(&report.usage)),
            format!("request {}", value(&report.request)),
        ];
        (cells, report.why.as_str())
    });
    let rows: Vec<([String; 4], &str)> = pod.chain(containers).collect();
    let width = |column: usize| rows.iter().map(|(row, _)| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2), width(3)];
    let line = |(row, why): &([String; 4], &str)| {
        let padded = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}  {why}", padded.collect::<Vec<_>>().join("  "))
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_amounts() {
        let rows = [
            (512, "512 bytes"),
            (100 << 10, "100Ki"),
            (9 << 20, "9216Ki"),
            (125 << 20, "125Mi"),
            (22 << 30, "22528Mi"),
        ];
        for (bytes, text) in rows {
            assert_eq!(amount(bytes, Resource::Memory), text);
        }
        assert_eq!(amount(7, Resource::Pids), "7 pids");
    }
}
