//! Tables whose header names the columns: CSV, Markdown, and custom columns of kubectl.

use crate::objects::qualified;
use crate::pod_in_line::NO_NAMESPACES;

/// Columns of a table about events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableColumns {
    separator: Separator,
    pod: usize,
    namespace: Option<usize>,
    /// Kind of the object, which is a pod in rows about pods.
    kind: Option<usize>,
    count: usize,
    /// Positions of the columns of an aligned table, in characters.
    starts: Vec<usize>,
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
const KIND: [&str; 3] = ["kind", "objectkind", "involvedobject.kind"];
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
        let kind = column(&KIND);
        let pod = column(&POD).or_else(|| column(&[NAME]).filter(|_| is_aligned || kind.is_some()))?;
        let starts = if separator == Separator::Spaces { column_starts(line) } else { Vec::new() };
        Some(Self { separator, pod, namespace: column(&NAMESPACE), kind, count: cells.len(), starts })
    }

    /// Returns `namespace/name` or the name of the pod in a row.
    pub(crate) fn pod(&self, line: &str) -> Option<String> {
        let mut cells = cells(line, self.separator);
        // A cell without a value moves those after it.
        if self.separator == Separator::Spaces && cells.len() != self.count {
            cells = self.aligned_cells(line)?;
        }
        if self
            .kind
            .and_then(|column| cells.get(column))
            .is_some_and(|kind| !kind.eq_ignore_ascii_case("pod"))
        {
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

    /// Returns the cells at the positions of the columns; `None` if the name of the pod does not
    /// begin there.
    fn aligned_cells(&self, line: &str) -> Option<Vec<String>> {
        let chars: Vec<char> = line.chars().collect();
        let start = *self.starts.get(self.pod)?;
        let begins = start == 0 || chars.get(start - 1)?.is_whitespace();
        if !begins || chars.get(start)?.is_whitespace() {
            return None;
        }
        let ends = self.starts.iter().skip(1).copied().chain([chars.len()]);
        let cell = |(start, end): (&usize, usize)| {
            chars
                .get(*start..end.min(chars.len()))
                .map(|cell| cell.iter().collect::<String>().trim().to_owned())
        };
        self.starts.iter().zip(ends).map(cell).collect()
    }
}

/// Returns the positions of the words of a header with two spaces or more before them.
fn column_starts(header: &str) -> Vec<usize> {
    let chars: Vec<char> = header.chars().collect();
    let is_space = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_none_or(|c| *c == ' ');
    let is_start =
        |at: &usize| chars[*at] != ' ' && is_space(at.checked_sub(1)) && is_space(at.checked_sub(2));
    (0..chars.len()).filter(is_start).collect()
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
            (
                "GROUP  KIND        NAMESPACE  NAME   STATUS  HEALTH    HOOK  MESSAGE",
                "       Pod         shop       web-0          Degraded        The node was low",
                Some("shop/web-0"),
            ),
            (
                "GROUP  KIND        NAMESPACE  NAME   STATUS  HEALTH    HOOK  MESSAGE",
                "apps   Deployment  shop       web-0  Synced  Degraded        m",
                None,
            ),
            ("Time,Namespace,Name,ObjectKind,Message", "1,shop,web-0,Pod,m", Some("shop/web-0")),
            ("Time,Namespace,Name,ObjectKind,Message", "1,shop,web-0,Node,m", None),
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
