//! `evictlab man`

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use regex::Regex;

use crate::failure::{Failure, infrastructure};
use crate::output::{count, print};

/// Where a command's long description begins to tell its exit status.
const EXIT_STATUS: &str = "\n\nExit status: ";

/// Write manual pages: evictlab.1, and one for each command, such as evictlab-run.1
///
/// They say what `--help` says. `man evictlab-run` finds them in a folder man1 beside a bin on the PATH, such as ~/.local/share/man/man1 for
/// ~/.local/bin.
///
/// Exit status: 0 written; 2 the input cannot be used; 4 the pages could not be written.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab man ~/.local/share/man/man1
  evictlab man pages && man -l pages/evictlab-run.1")]
pub struct Args {
    /// The folder; it is made where it is missing
    dir: PathBuf,
}

/// Writes the pages.
pub fn run(args: &Args, evictlab: Command) -> Result<ExitCode, Failure> {
    let unwritten =
        |error| infrastructure(format!("the pages cannot be written to {}: {error}", args.dir.display()));
    fs::create_dir_all(&args.dir).map_err(unwritten)?;
    let pages = pages(evictlab).map_err(infrastructure)?;
    for (name, page) in &pages {
        fs::write(args.dir.join(name), page).map_err(unwritten)?;
    }
    print(format!("{} in {}", count(pages.len(), "page"), args.dir.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The pages of a command and of all below it, by file name.
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

/// One page, with the name of the page above it.
fn page(mut command: Command, parent: Option<&str>, source: &str) -> io::Result<String> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let (about, status) = about.split_once(EXIT_STATUS).unwrap_or((&about, ""));
    // Its first paragraph stands behind the name.
    let about = about.split_once("\n\n").map_or(about, |(_, more)| more).to_owned();
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let commands = command.has_subcommands();

    // clap_mangen would lose its place for the date, which is empty, and run the lines of a list of examples together.
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

/// `0 written; 2 the input cannot be used.` as a list.
fn statuses(text: &str) -> Roff {
    let mut roff = Roff::new();
    let mut told =
        text.trim_end_matches('.').split("; ").filter_map(|status| status.split_once(' ')).peekable();
    if told.peek().is_some() {
        roff.control("SH", ["EXIT STATUS"]);
    }
    for (status, meaning) in told {
        roff.control("TP", []).text([bold(status)]).text([roman(meaning)]);
    }
    roff
}

/// What stands below a command's options, such as `Examples:` and indented lines, line by line.
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

/// One preamble instead of one before each section, and one empty line where clap_mangen breaks twice.
fn tidy(page: &str) -> String {
    let preamble = Roff::new().render();
    preamble.clone() + &page.replace(&preamble, "").replace(".br\n\n.br\n", ".sp\n")
}

/// Help texts have code in back-ticks, as Markdown has it; a manual page has it in bold.
fn code_in_bold(page: &str) -> String {
    let code = Regex::new("`([^`\n]+)`").expect("a pattern that is right");
    code.replace_all(page, r"\fB${1}\fR").into_owned()
}
