//! An explanation as text.

use std::fmt;

use evictlab_rules::quantity::Quantity;
use evictlab_rules::threshold::Resource;

use super::explanation::{ContainerTold, Explanation};

const KI: i64 = 1 << 10;
const MI: i64 = 1 << 20;

/// So much of a resource; bytes in Ki or Mi, so that figures that lie close together can be told apart.
pub(crate) fn amount(value: i64, resource: Resource) -> String {
    if matches!(resource, Resource::Inodes | Resource::Pids) {
        return format!("{value} {resource}");
    }
    match value.abs() {
        0..KI => format!("{value} bytes"),
        bytes if bytes < 10 * MI => format!("{:.0}Ki", value as f64 / KI as f64),
        _ => format!("{:.0}Mi", value as f64 / MI as f64),
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pod = self.pod.as_deref().unwrap_or("A pod");
        let node = self.node.as_ref().map(|node| format!(" on node {node}")).unwrap_or_default();
        let kubelet = self.kubelet.as_ref().map(|version| format!(", kubelet {version}")).unwrap_or_default();
        let at = self.at.map(|at| format!(", {}", at.strftime("%Y-%m-%dT%H:%M:%SZ"))).unwrap_or_default();
        writeln!(f, "{pod}{node}{kubelet}{at}")?;
        for sentence in &self.why {
            writeln!(f, "  {sentence}")?;
        }
        section(f, "containers", &rows(&self.containers))?;
        let witnesses: Vec<String> = self
            .witnesses
            .iter()
            .map(|witness| format!("{} {}", if witness.agrees { "✓" } else { "✗" }, witness.says))
            .collect();
        section(f, "witnesses", &witnesses)?;
        let bugs: Vec<String> = self
            .bugs
            .iter()
            .map(|bug| {
                let upstream = bug.upstream.map(|upstream| format!("{upstream}: ")).unwrap_or_default();
                format!("{upstream}{} {} To see it: evictlab run {}", bug.about, bug.because, bug.case)
            })
            .collect();
        section(f, "known bugs that fit", &bugs)?;
        section(f, "what would tell more", &self.ask)
    }
}

fn section(f: &mut fmt::Formatter<'_>, title: &str, lines: &[String]) -> fmt::Result {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n  {title}")?;
    lines.iter().try_for_each(|line| writeln!(f, "    {line}"))
}

/// Names, what they are, and the figures in columns.
fn rows(containers: &[ContainerTold]) -> Vec<String> {
    let figure =
        |quantity: &Option<Quantity>| quantity.as_ref().map_or_else(|| "–".to_owned(), Quantity::to_string);
    let cells: Vec<[String; 4]> = containers
        .iter()
        .map(|told| {
            [
                if told.named { "named" } else { "not named" }.to_owned(),
                told.kind
                    .map_or_else(|| told.name.clone(), |kind| format!("{} ({})", told.name, kind.as_str())),
                format!("used {}", figure(&told.usage)),
                format!("request {}", figure(&told.request)),
            ]
        })
        .collect();
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2), width(3)];
    let line = |(row, told): (&[String; 4], &ContainerTold)| {
        let padded = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}  {}", padded.collect::<Vec<_>>().join("  "), told.why)
    };
    cells.iter().zip(containers).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short() {
        let rows = [
            (512, "512 bytes"),
            (100 << 10, "100Ki"),
            (9 << 20, "9216Ki"),
            (125 << 20, "125Mi"),
            (22 << 30, "22528Mi"),
        ];
        for (bytes, says) in rows {
            assert_eq!(amount(bytes, Resource::Memory), says);
        }
        assert_eq!(amount(7, Resource::Pids), "7 pids");
    }
}
