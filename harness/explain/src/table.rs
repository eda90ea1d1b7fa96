//! Tables whose header names the columns: CSV, and Markdown.

use crate::objects::qualified;

/// Columns of a table about events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableColumns {
    separator: char,
    pod: usize,
    namespace: Option<usize>,
}

/// Maximum length of a header, in bytes.
const MAX_HEADER: usize = 1024;
const POD: [&str; 6] = ["pod", "pod name", "pod_name", "podname", "object", "involvedobject.name"];
const NAMESPACE: [&str; 3] = ["namespace", "ns", "involvedobject.namespace"];
const TEXT: [&str; 3] = ["message", "reason", "note"];

impl TableColumns {
    /// Reads the header of a table; `None` for other lines.
    pub(crate) fn of_header(line: &str) -> Option<Self> {
        if line.len() > MAX_HEADER
            || !["essage", "eason", "ote", "ESSAGE", "EASON", "OTE"].iter().any(|part| line.contains(part))
        {
            return None;
        }
        let separator = ['|', '\t', ',', ';'].into_iter().find(|separator| line.contains(*separator))?;
        let cells: Vec<String> =
            cells(line, separator).iter().map(|cell| cell.to_ascii_lowercase()).collect();
        let column = |names: &[&str]| cells.iter().position(|cell| names.contains(&cell.as_str()));
        column(&TEXT)?;
        Some(Self { separator, pod: column(&POD)?, namespace: column(&NAMESPACE) })
    }

    /// Returns `namespace/name` or the name of the pod in a row.
    pub(crate) fn pod(&self, line: &str) -> Option<String> {
        let cells = cells(line, self.separator);
        let pod = cells.get(self.pod)?;
        let pod = pod.strip_prefix("pod/").or_else(|| pod.strip_prefix("Pod/")).unwrap_or(pod);
        let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-./".contains(c);
        let namespace = self.namespace.and_then(|column| cells.get(column)).filter(|_| !pod.contains('/'));
        (!pod.is_empty() && pod.chars().all(is_of_name))
            .then(|| qualified(namespace.map(String::as_str), pod))
    }
}

/// Splits a line into its cells, without the space and the quotes around them.
fn cells(line: &str, separator: char) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            c if c == separator && !is_quoted => cells.push(String::new()),
            c => cells.last_mut().expect("there is a cell").push(c),
        }
    }
    cells.iter().map(|cell| cell.trim_matches([' ', '\t', '`', '*']).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_of_rows() {
        let rows = [
            ("namespace,pod,message", "shop,web-0,\"a, \"\"b\"\"\"", Some("shop/web-0")),
            ("Message;Pod", "\"a; b\";web-0", Some("web-0")),
            ("| Reason | Object |", "| Evicted | `pod/web-0` |", Some("web-0")),
            ("namespace,pod,message", "shop,\"Two words\",a", None),
            ("namespace,pod,message", "shop", None),
        ];
        for (header, row, expected) in rows {
            let columns = TableColumns::of_header(header).unwrap();
            assert_eq!(columns.pod(row).as_deref(), expected, "{row}");
        }
        assert_eq!(TableColumns::of_header("Pod, the message of the pod"), None);
    }
}
