//! `evictlab man`

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use regex::Regex;

use crate::failure::{Failure, write_help};
use crate::output::print;
use evictlab_report::text::count_noun;

/// Text before the exit status in a command's long description.
const EXIT_STATUS: &str = "\n\nExit status: ";

/// Write manual pages for evictlab and each command
///
/// Writes evictlab.1, and one page for each command, such as evictlab-run.1, from the text of
/// `--help`. `man evictlab-run` finds the pages in a directory man1 next to a bin directory on the
/// PATH, such as ~/.local/share/man/man1 for ~/.local/bin.
///
/// Exit status: 0 written; 2 invalid input; 4 the pages could not be written.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab man ~/.local/share/man/man1
  evictlab man pages && man -l pages/evictlab-run.1")]
pub(crate) struct Args {
    /// Output directory; created if it does not exist
    dir: PathBuf,
}

/// Writes the manual pages.
pub(crate) fn run(args: &Args, evictlab: Command) -> Result<ExitCode, Failure> {
    let write_failed = |error: io::Error| {
        let help = write_help(error.kind(), "another directory");
        Failure::infrastructure(format!("failed to write pages to {}: {error}\n{help}", args.dir.display()))
    };
    fs::create_dir_all(&args.dir).map_err(write_failed)?;
    let pages = pages(evictlab).map_err(Failure::infrastructure)?;
    for (name, page) in &pages {
        fs::write(args.dir.join(name), page).map_err(write_failed)?;
    }
    print(format!("{} in {}", count_noun(pages.len(), "page"), args.dir.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the pages of a command and its subcommands, by file name.
fn pages(evictlab: Command) -> io::Result<Vec<(String, String)>> {
    let mut evictlab = evictlab.disable_help_subcommand(true);
    evictlab.build();
    let source = format!("{} {}", evictlab.get_name(), evictlab.get_version().unwrap_or_default());
    let mut pages = Vec::new();
    let mut left = vec![(evictlab, None)];
    while let Some((command, parent)) = left.pop() {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
        let shown =
            command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
        left.extend(shown.map(|below| (below.clone(), Some(name.clone()))));
        pages.push((format!("{name}.1"), page(command, parent.as_deref(), &source)?));
    }
    Ok(pages)
}

/// Renders one page; `parent` is the page of the parent command.
fn page(mut command: Command, parent: Option<&str>, source: &str) -> io::Result<String> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let (about, status) = about.split_once(EXIT_STATUS).unwrap_or((&about, ""));
    // The first paragraph is in the NAME section.
    let about = about.split_once("\n\n").map_or(about, |(_, more)| more).to_owned();
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let commands = command.has_subcommands();

    // clap_mangen would omit the empty date, and join the lines of the examples.
    let mut page = Vec::new();
    let title = [name.as_str(), "1", "\"\"", source, "User Commands"];
    Roff::new().control("TH", title).to_writer(&mut page)?;
    let man = Man::new(command.long_about(about).override_usage(usage));
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if commands {
        man.render_subcommands_section(&mut page)?;
    }
    statuses(status).to_writer(&mut page)?;
    let mut page = code_in_bold(&String::from_utf8_lossy(&page));
    page.push_str(&verbatim(&after).render());
    page.push_str(&see_also(parent).render());
    Ok(tidy(&page))
}

/// Renders `0 written; 2 invalid input.` as a list.
fn statuses(text: &str) -> Roff {
    let mut roff = Roff::new();
    let mut statuses =
        text.trim_end_matches('.').split("; ").filter_map(|status| status.split_once(' ')).peekable();
    if statuses.peek().is_some() {
        roff.control("SH", ["EXIT STATUS"]);
    }
    for (status, meaning) in statuses {
        roff.control("TP", []).text([bold(status)]).text([roman(meaning)]);
    }
    roff
}

/// Renders the text after the options, such as `Examples:` and indented lines, without filling.
fn verbatim(text: &str) -> Roff {
    let mut roff = Roff::new();
    let mut open = false;
    for line in text.lines() {
        match line.strip_suffix(':').filter(|heading| !heading.starts_with(' ')) {
            Some(heading) => {
                if open {
                    roff.control("fi", []);
                }
                roff.control("SH", [heading.to_uppercase().as_str()]).control("nf", []);
                open = true;
            }
            None => {
                roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
            }
        }
    }
    if open {
        roff.control("fi", []);
    }
    roff
}

fn see_also(parent: Option<&str>) -> Roff {
    let mut roff = Roff::new();
    if let Some(parent) = parent {
        roff.control("SH", ["SEE ALSO"]).text([bold(parent), roman("(1)")]);
    }
    roff
}

/// Removes the preambles of all sections but the first, and duplicate breaks of clap_mangen.
fn tidy(page: &str) -> String {
    let preamble = Roff::new().render();
    preamble.clone() + &page.replace(&preamble, "").replace(".br\n\n.br\n", ".sp\n")
}

/// Replaces backticks around code with bold.
fn code_in_bold(page: &str) -> String {
    let code = Regex::new("`([^`\n]+)`").expect("the pattern is valid");
    code.replace_all(page, r"\fB${1}\fR").into_owned()
}
