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
        print_table(&table(&cases))?;
        print(format!("\n{} in {}", count_noun(cases.len(), "case"), count_noun(suites.len(), "suite")))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn table(cases: &[Arc<ParsedCase>]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    // Every case is one line: in a pipe of any length, and on a terminal cut at its width.
    if let Some(width) = stdout_width() {
        table.set_header(["CASE", "DEADLINE", "ABOUT"]);
        for loaded in cases {
            let case = &loaded.case;
            let deadline = format!("{}s", case.deadline().as_secs());
            table.add_row([loaded.id(), deadline, case.about.clone()]);
        }
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        table.set_constraints([ColumnConstraint::ContentWidth, ColumnConstraint::ContentWidth]);
        for row in table.row_iter_mut() {
            row.max_height(1);
        }
        return table.trim_fmt();
    }
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
