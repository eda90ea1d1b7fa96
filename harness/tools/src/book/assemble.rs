//! The pages of the book.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use evictlab_case::LoadedCase;
use evictlab_report::text::{code_block, markdown_table};

use crate::documents::DOCUMENTS;

use super::catalogue::{Verdicts, case_page, catalogue_page};
use super::document_page::{document_page, document_path, documents_page};
use super::links::{Links, broken_links};

/// Directory of the written pages, relative to the repository.
const GUIDES: &str = "harness/guides";
/// Manuals of other directories, and their pages.
const MANUALS: [(&str, &str); 4] = [
    ("cases/README.md", "reference/cases.md"),
    ("results/README.md", "reference/results.md"),
    ("images/README.md", "reference/images.md"),
    ("kind-configs/README.md", "reference/kind-configs.md"),
];

/// A command of evictlab.
#[derive(Clone, Debug)]
pub struct Command {
    /// Name with the parent commands, such as `cluster create`.
    pub name: String,
    /// One sentence.
    pub about: String,
    /// Output of `--help`.
    pub help: String,
}

/// A book that cannot be assembled or written.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// A page cannot be read.
    #[error("failed to read {}: {error}\nhelp: run the command in a checkout of evictlab", path.display())]
    Read {
        /// Path of the page.
        path: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// A page cannot be written.
    #[error("failed to write {}: {error}", path.display())]
    Write {
        /// Path of the page.
        path: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// Links lead nowhere.
    #[error("failed to assemble the book: broken links:\n{}", .0.join("\n"))]
    BrokenLinks(Vec<String>),
}

/// The text files of the book, by path.
#[derive(Clone, Debug)]
pub struct Book {
    files: BTreeMap<String, String>,
}

impl Book {
    /// Assembles the book of a checkout. `timelines` is the directory of a run whose timelines are
    /// shown.
    ///
    /// # Errors
    /// A page that cannot be read, or a link to a page or heading that does not exist.
    pub fn assemble(
        root: &Path,
        commands: &[Command],
        cases: &[Arc<LoadedCase>],
        verdicts: &[(String, Verdicts)],
        timelines: Option<&Path>,
    ) -> Result<Self, BookError> {
        let mut sources: Vec<(String, String)> = pages(&root.join(GUIDES), "")?
            .into_iter()
            .map(|page| (format!("{GUIDES}/{page}"), page))
            .collect();
        sources.extend(MANUALS.map(|(source, page)| (source.to_owned(), page.to_owned())));
        let links = Links::new(&sources);
        let mut files = BTreeMap::new();
        for (source, page) in &sources {
            files.insert(page.clone(), links.rewrite(source, page, &read(&root.join(source))?));
        }
        for command in commands {
            files
                .insert(format!("reference/commands/{}.md", file_name(&command.name)), command_page(command));
        }
        files.insert("reference/commands/README.md".to_owned(), commands_page(commands));
        files.extend(DOCUMENTS.iter().map(|document| (document_path(document), document_page(document))));
        files.insert("reference/documents/README.md".to_owned(), documents_page());
        for case in cases {
            let timeline = timelines.and_then(|run| newest_timeline(run, case));
            let page = case_page(case, verdicts, timeline.is_some());
            files.insert(format!("catalogue/{}.md", case.id()), page);
            if let Some(timeline) = timeline {
                files.insert(format!("catalogue/{}.svg", case.id()), timeline);
            }
        }
        files.insert("catalogue/README.md".to_owned(), catalogue_page(cases, verdicts));
        let summary = files.remove("SUMMARY.md").unwrap_or_default();
        files.insert("SUMMARY.md".to_owned(), complete_summary(&summary, commands, cases));
        files.insert("book.toml".to_owned(), read(&root.join(GUIDES).join("book.toml"))?);
        let broken = broken_links(&files);
        if broken.is_empty() { Ok(Self { files }) } else { Err(BookError::BrokenLinks(broken)) }
    }

    /// Returns the text of each file, by path.
    pub fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    /// Writes all files to a directory, which is created if it does not exist.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), BookError> {
        for (name, text) in &self.files {
            let path = dir.join(name);
            let written =
                fs::create_dir_all(path.parent().unwrap_or(dir)).and_then(|()| fs::write(&path, text));
            written.map_err(|error| BookError::Write { path, error })?;
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<String, BookError> {
    fs::read_to_string(path).map_err(|error| BookError::Read { path: path.to_owned(), error })
}

/// Returns the Markdown files below a directory, as paths relative to it.
fn pages(dir: &Path, prefix: &str) -> Result<Vec<String>, BookError> {
    let failed = |error| BookError::Read { path: dir.to_owned(), error };
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            found.extend(pages(&entry.path(), &format!("{name}/"))?);
        } else if name.ends_with(".md") {
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}

fn file_name(command: &str) -> String {
    command.replace(' ', "-")
}

fn command_page(command: &Command) -> String {
    format!("# evictlab {}\n\n{}\n", command.name, code_block("text", &command.help))
}

fn commands_page(commands: &[Command]) -> String {
    let row = |command: &Command| {
        let Command { name, about, .. } = command;
        [format!("[`evictlab {name}`]({}.md)", file_name(name)), about.clone()]
    };
    let table = markdown_table(&["command", ""], commands.iter().map(row));
    format!("# Commands\n\nThe output of `evictlab COMMAND --help`.\n\n{table}")
}

/// Replaces the markers of the table of contents with the generated pages.
fn complete_summary(summary: &str, commands: &[Command], cases: &[Arc<LoadedCase>]) -> String {
    let entry =
        |depth: usize, title: &str, path: &str| format!("{}- [{title}]({path})\n", "  ".repeat(depth));
    let mut list = entry(0, "Commands", "reference/commands/README.md");
    for command in commands {
        list += &entry(1, &command.name, &format!("reference/commands/{}.md", file_name(&command.name)));
    }
    let mut documents = entry(0, "Documents in JSON and YAML", "reference/documents/README.md");
    for document in DOCUMENTS {
        documents += &entry(1, document.name, &document_path(document));
    }
    let mut catalogue = entry(0, "Cases", "catalogue/README.md");
    let mut suite = "";
    for case in cases {
        if case.suite != suite {
            suite = &case.suite;
            catalogue += &format!("  - [{suite}]()\n");
        }
        catalogue += &entry(2, &case.case.name.to_string(), &format!("catalogue/{}.md", case.id()));
    }
    let pages = [("commands", list), ("documents", documents), ("catalogue", catalogue)];
    pages
        .into_iter()
        .fold(summary.to_owned(), |text, (name, pages)| text.replace(&format!("<!-- {name} -->\n"), &pages))
}

/// Reads the timeline of a case on the newest kubelet that has one.
fn newest_timeline(run: &Path, case: &LoadedCase) -> Option<String> {
    let dir = run.join("artifacts").join(&case.suite).join(case.case.name.as_str());
    let kubelets = fs::read_dir(dir).ok()?.filter_map(Result::ok);
    let mut timelines: Vec<PathBuf> =
        kubelets.map(|entry| entry.path().join("timeline.svg")).filter(|path| path.exists()).collect();
    // The labels of kubelets have minors of two digits.
    timelines.sort();
    fs::read_to_string(timelines.last()?).ok()
}
