//! Markdown tables, code spans and blocks, and neutralized untrusted text.

use unicode_width::UnicodeWidthStr;

/// Maximum width of a cell to which a table's other rows are aligned, in columns.
const MAX_ALIGNED: usize = 60;
/// The same for the last column, which is aligned only without longer cells.
const MAX_ALIGNED_AT_END: usize = 24;

/// Escapes `text` for a cell of a Markdown table: one line, pipes escaped.
pub fn markdown_cell(text: &str) -> String {
    escape_where(&text.trim_end().replace(['\n', '\r'], " "), |c, _| c == '|')
}

/// Formats a Markdown table whose columns are aligned, for a terminal. Each row has as many cells
/// as the header; cells become one line each, with their pipes escaped.
pub fn markdown_table(header: &[&str], rows: impl IntoIterator<Item = impl AsRef<[String]>>) -> String {
    let header: Vec<String> = header.iter().map(|name| (*name).to_owned()).collect();
    let cells = |row: &[String]| row.iter().map(|cell| markdown_cell(cell)).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = rows.into_iter().map(|row| cells(row.as_ref())).collect();
    let width = |at: usize| {
        let cells = std::iter::once(&header).chain(&rows).filter_map(|row| Some(row.get(at)?.width()));
        cells.filter(|width| *width <= MAX_ALIGNED).max().unwrap_or(0)
    };
    // The last column may have long texts: then it is not aligned.
    let last = header.len().saturating_sub(1);
    let is_short = |row: &Vec<String>| row.get(last).is_none_or(|cell| cell.width() <= MAX_ALIGNED_AT_END);
    let aligned = last + usize::from(!header.is_empty() && rows.iter().all(is_short));
    let widths: Vec<usize> = (0..aligned).map(width).collect();
    let line = |row: &[String]| {
        let mut text = "|".to_owned();
        for (at, cell) in row.iter().enumerate() {
            let padding = widths.get(at).map_or(0, |width| width.saturating_sub(cell.width()));
            let cell = if cell.is_empty() && padding == 0 { String::new() } else { format!("{cell} ") };
            text += &format!(" {cell}{}|", " ".repeat(padding));
        }
        text + "\n"
    };
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
    let end = header.get(aligned..).unwrap_or_default();
    let end = end.iter().map(|name| "-".repeat((name.width() + 2).max(1)));
    let rule = format!("|{}|\n", rule.into_iter().chain(end).collect::<Vec<_>>().join("|"));
    rows.iter().fold(line(&header) + &rule, |text, row| text + &line(row))
}

/// Escapes links, images, HTML, fences and unclosed code spans in untrusted Markdown. All other
/// text, closed code spans included, stays as it is.
pub(crate) fn inert_markdown(text: &str) -> String {
    // An unclosed bracket would make a link with the next untrusted text in the same line.
    let has_links = ["](", "][", "]:"].iter().any(|link| text.contains(link)) || !closes_brackets(text);
    // An unclosed code span would end at the next one, and make its content active.
    let has_open_code = !text.lines().all(closes_code_spans);
    let is_active = |c: char, next: Option<char>| match c {
        '[' => has_links,
        '`' => has_open_code,
        '<' => next.is_some_and(|next| next.is_ascii_alphabetic() || "/!?".contains(next)),
        _ => false,
    };
    let fenced = |line: &str| match line.trim_start_matches([' ', '\t', '>', '-', '*', '+']) {
        rest if rest.starts_with("```") || rest.starts_with("~~~") => {
            format!("{}\\{rest}", &line[..line.len() - rest.len()])
        }
        _ => line.to_owned(),
    };
    let lines: Vec<String> = escape_where(text, is_active).split('\n').map(fenced).collect();
    lines.join("\n")
}

/// Returns whether each opening bracket has its closing one.
fn closes_brackets(text: &str) -> bool {
    let open = text.chars().fold(0_usize, |open, c| match c {
        '[' => open + 1,
        ']' => open.saturating_sub(1),
        _ => open,
    });
    open == 0
}

/// Returns whether each sequence of backticks has its partner of the same length. A backslash may
/// escape one or be part of a span: such a line counts as open.
fn closes_code_spans(line: &str) -> bool {
    let lengths: Vec<usize> = line.split(|c| c != '`').map(str::len).filter(|length| *length > 0).collect();
    let mut rest = &lengths[..];
    while let [first, others @ ..] = rest {
        let Some(partner) = others.iter().position(|length| length == first) else { return false };
        rest = &others[partner + 1..];
    }
    lengths.is_empty() || !line.contains('\\')
}

/// Escapes each character for which `needs(c, next)` is true, unless it is already escaped.
fn escape_where(text: &str, needs: impl Fn(char, Option<char>) -> bool) -> String {
    let mut result = String::with_capacity(text.len());
    let mut is_escaped = false;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if !is_escaped && needs(c, characters.peek().copied()) {
            result.push('\\');
        }
        result.push(c);
        is_escaped = c == '\\' && !is_escaped;
    }
    result
}

/// Formats a block of code. Its fence is longer than all fences in the text.
pub fn code_block(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_backticks(text).max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end())
}

/// Returns the length of the longest sequence of backticks.
fn longest_backticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Formats `text` as a code span, verbatim, including leading and trailing spaces.
pub fn markdown_code(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let fence = "`".repeat(longest_backticks(&text) + 1);
    match text.as_str() {
        "" => "nothing".to_owned(),
        text if fence.len() > 1 => format!("{fence} {text} {fence}"),
        text => format!("{fence}{text}{fence}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_cannot_end_its_block() {
        assert_eq!(code_block("sh", "a\n"), "```sh\na\n```");
        assert_eq!(code_block("", "```\n# heading\n````"), "`````\n```\n# heading\n````\n`````");
        assert_eq!(markdown_code("a``b"), "``` a``b ```");
    }

    #[test]
    fn cell_is_one_line_with_escaped_pipes() {
        assert_eq!(markdown_cell("one|two\nthree\n"), r"one\|two three");
    }
}
