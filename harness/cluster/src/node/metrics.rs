//! Metrics of a kubelet in the Prometheus text format.

use std::collections::BTreeMap;

/// One line of a metrics page: `kubelet_evictions{eviction_signal="memory.available"} 2`.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricLine {
    /// Name. Buckets, sums and counts of histograms have their own names.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Value.
    pub value: f64,
}

impl MetricLine {
    /// Parses a page. Comments, and lines that are not of the format, are left out.
    pub(super) fn parse_page(page: &str) -> Vec<Self> {
        page.lines().filter_map(Self::parse).collect()
    }

    fn parse(line: &str) -> Option<Self> {
        let end_of_name = line.find(['{', ' '])?;
        let (name, rest) = line.split_at(end_of_name);
        if name.is_empty() || name.starts_with('#') {
            return None;
        }
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(labels) => parse_labels(labels)?,
            None => (BTreeMap::new(), rest),
        };
        // A timestamp may follow the value.
        let value = rest.split_whitespace().next()?.parse().ok()?;
        Some(Self { name: name.to_owned(), labels, value })
    }
}

/// Parses `a="x",b="y"} …`; returns the labels and the text after the brace.
fn parse_labels(mut text: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        text = text.trim_start_matches([',', ' ']);
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (label, rest) = text.split_once("=\"")?;
        let (value, rest) = parse_label_value(rest)?;
        labels.insert(label.to_owned(), value);
        text = rest;
    }
}

/// Parses a label value up to its closing quote, with the escapes `\\`, `\"` and `\n`.
fn parse_label_value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                escaped => value.push(escaped),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_names_labels_and_values() {
        let page = "# TYPE kubelet_evictions counter\n\
                    kubelet_evictions{eviction_signal=\"memory.available\"} 2\n\
                    kubelet_running_pods 7\n\
                    age_bucket{le=\"+Inf\",signal=\"a \\\"b\\\" \\\\ c, {d}\\n\"} 1e+00 1700000000\n\
                    broken{a=\"b} 1\n\
                    kubelet_node_name{node=\"a\"} one\n";
        let line = |name: &str, labels: &[(&str, &str)], value| MetricLine {
            name: name.to_owned(),
            labels: labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect(),
            value,
        };
        let expected = [
            line("kubelet_evictions", &[("eviction_signal", "memory.available")], 2.0),
            line("kubelet_running_pods", &[], 7.0),
            line("age_bucket", &[("le", "+Inf"), ("signal", "a \"b\" \\ c, {d}\n")], 1.0),
        ];
        assert_eq!(MetricLine::parse_page(page), expected);
    }
}
