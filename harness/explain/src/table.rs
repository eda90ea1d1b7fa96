//! Tables whose header names the columns: CSV, Markdown, and custom columns of kubectl.

use crate::objects::qualified;
use crate::pod_in_line::NO_NAMESPACES;

/// Columns of a table about events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableColumns {
    separator: Separator,
    pod: usize,
    namespace: Option<usize>,
    count: usize,
}

/// The text between two cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    Char(char),
    /// Two spaces or more.
    Spaces,
}

/// Maximum length of a header, in bytes.
const MAX_HEADER: usize = 1024;
const POD: [&str; 6] = ["pod", "pod name", "pod_name", "podname", "object", "involvedobject.name"];
const NAMESPACE: [&str; 3] = ["namespace", "ns", "involvedobject.namespace"];
const TEXT: [&str; 4] = ["message", "msg", "reason", "note"];
/// The pod in a table of pods, or the event, whose name begins with that of the pod.
const NAME: &str = "name";
/// Minimum number of hexadecimal digits of the time in the name of an event.
const MIN_DIGITS: usize = 12;

impl TableColumns {
    /// Reads the header of a table; `None` for other lines.
    pub(crate) fn of_header(line: &str) -> Option<Self> {
        if line.len() > MAX_HEADER
            || !["essage", "eason", "ote", "ESSAGE", "EASON", "OTE", "MSG"]
                .iter()
                .any(|part| line.contains(part))
        {
            return None;
        }
        let char = ['|', '\t', ',', ';'].into_iter().find(|separator| line.contains(*separator));
        let is_of_heading = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || " _.-/()".contains(c);
        let is_aligned = char.is_none_or(|char| char == '\t') && line.trim().chars().all(is_of_heading);
        let separator = match char {
            Some(char) => Separator::Char(char),
            None if is_aligned => Separator::Spaces,
            None => return None,
        };
        let cells: Vec<String> =
            cells(line, separator).iter().map(|cell| cell.to_ascii_lowercase()).collect();
        let column = |names: &[&str]| cells.iter().position(|cell| names.contains(&cell.as_str()));
        column(&TEXT)?;
        // Elsewhere, the name may be that of anything.
        let pod = column(&POD).or_else(|| column(&[NAME]).filter(|_| is_aligned))?;
        Some(Self { separator, pod, namespace: column(&NAMESPACE), count: cells.len() })
    }

    /// Returns `namespace/name` or the name of the pod in a row.
    pub(crate) fn pod(&self, line: &str) -> Option<String> {
        let cells = cells(line, self.separator);
        // A cell without a value would move those after it.
        if self.separator == Separator::Spaces && cells.len() != self.count {
            return None;
        }
        let pod = cells.get(self.pod)?;
        let pod = pod.strip_prefix("pod/").or_else(|| pod.strip_prefix("Pod/")).unwrap_or(pod);
        let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-./".contains(c);
        let namespace = self.namespace.and_then(|column| cells.get(column)).filter(|_| !pod.contains('/'));
        if pod.split_once('/').is_some_and(|(kind, _)| NO_NAMESPACES.contains(&kind)) {
            return None;
        }
        let time = pod
            .rsplit_once('.')
            .filter(|(_, time)| time.len() >= MIN_DIGITS && time.chars().all(|c| c.is_ascii_hexdigit()));
        let pod = time.map_or(pod, |(pod, _)| pod);
        (!pod.is_empty() && pod.chars().all(is_of_name))
            .then(|| qualified(namespace.map(String::as_str), pod))
    }
}

/// Splits a line into its cells, without the space and the quotes around them.
fn cells(line: &str, separator: Separator) -> Vec<String> {
    let separator = match separator {
        Separator::Char(separator) => separator,
        Separator::Spaces => {
            let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
            return cells.map(str::to_owned).collect();
        }
    };
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
            ("POD                 MSG", "etl-28391-xk2p9     The node was low", Some("etl-28391-xk2p9")),
            ("POD   MESSAGE", "web-0   The node was low on resource: memory. ", Some("web-0")),
            ("NS      POD     REASON    MESSAGE", "batch   etl-1   Evicted   m", Some("batch/etl-1")),
            ("NAMESPACE  NAME  REASON  MESSAGE", "shop  web-0  Evicted  m", Some("shop/web-0")),
            ("NAME    STATUS   REASON   MESSAGE", "web-0   Failed   Evicted   m", Some("web-0")),
            ("NAME  MESSAGE", "web-0.187a6c7f2d0b1234  m", Some("web-0")),
            // A cell is missing, and a row of another text.
            ("NAMESPACE  NAME  REASON  MESSAGE", "shop  web-0  m", None),
            ("NAME  MESSAGE", "Anna  m", None),
            ("REASON  OBJECT  MESSAGE", "Evicted  node/n1  m", None),
            ("REASON  OBJECT  MESSAGE", "Evicted  pod/web-0  m", Some("web-0")),
        ];
        for (header, row, expected) in rows {
            let columns = TableColumns::of_header(header).unwrap();
            assert_eq!(columns.pod(row).as_deref(), expected, "{row}");
        }
        for text in ["Pod, the message of the pod", "Name  Message", "name,message", "POD  STATUS"] {
            assert_eq!(TableColumns::of_header(text), None, "{text}");
        }
    }
}
