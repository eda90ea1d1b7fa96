//! `evictlab list`

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use evictlab_case::select::select_parsed;
use evictlab_case::{ListedCase, ParsedCase};

use crate::args::selection::SelectionArgs;
use crate::failure::Failure;
use crate::output::{print, print_json, print_table, stdout_width};
use evictlab_report::text::count_noun;

/// List cases
///
/// Prints the name, deadline and expectation of each case, a line each; in a pipe or a file also
/// its kubelets and labels. The observation of a case takes at most its deadline, longer on
/// slow nodes. JSON output also contains the file and upstream issues. Reads the case files, but
/// does not check them as `evictlab lint` does.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab list
  evictlab list message --label-filter 'Feature:SidecarContainers'
  evictlab list --upstream kubernetes/kubernetes#124938 --json")]
pub(crate) struct Args {
    #[command(flatten)]
    selection: SelectionArgs,
    /// Print a JSON array instead of a table
    #[arg(long)]
    json: bool,
}

/// Lists the selected cases.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let source = args.selection.source();
    let cases = select_parsed(&source, &args.selection.selection())?;
    if args.json {
        print_json(&cases.iter().map(|case| ListedCase::from(&**case)).collect::<Vec<_>>())?;
    } else {
        let suites: BTreeSet<_> = cases.iter().map(|case| &case.suite).collect();
        let table = match stdout_width() {
            Some(width) => terminal_table(&cases, width),
            None => table(&cases),
        };
        print_table(&table)?;
        print(format!("\n{} in {}", count_noun(cases.len(), "case"), count_noun(suites.len(), "suite")))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Minimum width of the column ABOUT on a terminal, in columns.
const MIN_ABOUT: usize = 16;
/// Width of the column DEADLINE, with the space around it.
const DEADLINE: usize = "DEADLINE".len() + 2;

/// Returns a table for a terminal, of which each case is one line that is cut at `width`. A narrow
/// one has fewer columns.
fn terminal_table(cases: &[Arc<ParsedCase>], width: u16) -> String {
    let longest = cases.iter().map(|case| case.id().len() + 2).max().unwrap_or(0);
    let room = usize::from(width).saturating_sub(longest);
    let columns: &[&str] = match room {
        0..MIN_ABOUT => &["CASE"],
        _ if room < MIN_ABOUT + DEADLINE => &["CASE", "ABOUT"],
        _ => &["CASE", "DEADLINE", "ABOUT"],
    };
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(columns);
    for loaded in cases {
        let cell = |column: &&str| match *column {
            "CASE" => loaded.id(),
            "DEADLINE" => format!("{}s", loaded.case.deadline().as_secs()),
            _ => loaded.case.about.clone(),
        };
        table.add_row(columns.iter().map(cell));
    }
    if columns.len() > 1 {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        table.set_constraints(columns[1..].iter().map(|_| ColumnConstraint::ContentWidth));
    }
    for row in table.row_iter_mut() {
        row.max_height(1);
    }
    table.trim_fmt()
}

/// Returns a table with all columns, of which each case is one line, for a pipe or a file.
fn table(cases: &[Arc<ParsedCase>]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["SUITE", "CASE", "KUBELET", "DEADLINE", "LABELS", "ABOUT"]);
    for loaded in cases {
        let case = &loaded.case;
        table.add_row([
            loaded.suite.clone(),
            case.name.to_string(),
            case.kubelet.to_string(),
            format!("{}s", case.deadline().as_secs()),
            case.labels.join(" "),
            case.about.clone(),
        ]);
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use evictlab_case::Source;
    use evictlab_case::select::Selection;

    use super::*;

    #[test]
    fn a_narrow_terminal_has_fewer_columns() {
        let names = vec!["sidecars-are-named".to_owned()];
        let selection = Selection { names, ..Selection::default() };
        let cases = select_parsed(&Source::find(None, cases::FILES), &selection).unwrap();
        let rows = [
            (200, "CASE  DEADLINE  ABOUT", "sidecars included."),
            (80, "CASE  DEADLINE  ABOUT", "…"),
            (45, "CASE  ABOUT", "…"),
            (40, "CASE", "message/sidecars-are-named"),
            (10, "CASE", "message/sidecars-are-named"),
        ];
        for (width, header, end) in rows {
            let text = terminal_table(&cases, width);
            let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
            let [first, case] = lines[..] else { panic!("{width}: {text}") };
            assert_eq!(first.split_whitespace().collect::<Vec<_>>().join("  "), header, "{width}");
            assert!(case.trim_start().starts_with("message/") && case.ends_with(end), "{width}: {text}");
        }
    }
}
