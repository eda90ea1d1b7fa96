//! Links between pages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// The repository on GitHub, for links to files that are not pages.
const REPOSITORY: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");

static LINK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\]\(([^)\s]*)\)").expect("the pattern is valid"));
static CODE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?ms)^```.*?^```$|`[^`\n]+`").expect("the pattern is valid"));

/// The pages that files of the repository became.
pub(super) struct Links {
    page_of: BTreeMap<String, String>,
}

impl Links {
    /// `pages` has the path in the repository and the path in the book of each page.
    pub(super) fn new(pages: &[(String, String)]) -> Self {
        Self { page_of: pages.iter().cloned().collect() }
    }

    /// Rewrites the links of a file of the repository for its page in the book.
    pub(super) fn rewrite(&self, source: &str, page: &str, text: &str) -> String {
        let rewrite = |found: &Captures<'_>| {
            let target = &found[1];
            if is_external(target) || target.starts_with('#') {
                return found[0].to_owned();
            }
            let (path, anchor) = split_anchor(target);
            let path = join(source, path);
            let link = match self.page_of.get(&path) {
                Some(other) => relative(page, other),
                // Generated pages exist only in the book.
                None if path.starts_with("harness/guides/") => return found[0].to_owned(),
                None => format!("{REPOSITORY}{path}"),
            };
            format!("]({link}{anchor})")
        };
        LINK.replace_all(text, rewrite).into_owned()
    }
}

/// Returns the links to pages, files and headings that do not exist, each with its page.
pub(super) fn broken_links(files: &BTreeMap<String, String>) -> Vec<String> {
    let mut broken = Vec::new();
    for (page, text) in files.iter().filter(|(name, _)| name.ends_with(".md")) {
        for found in LINK.captures_iter(&CODE.replace_all(text, "")) {
            let target = &found[1];
            if is_external(target) || target.is_empty() {
                continue;
            }
            let (path, anchor) = split_anchor(target);
            let path = if path.is_empty() { page.clone() } else { join(page, path) };
            let exists = match files.get(&path) {
                Some(text) => anchor.is_empty() || headings(text).contains(&anchor[1..]),
                None => false,
            };
            if !exists {
                broken.push(format!("{page}: {target}"));
            }
        }
    }
    broken
}

fn is_external(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

fn split_anchor(target: &str) -> (&str, &str) {
    target.find('#').map_or((target, ""), |at| target.split_at(at))
}

/// Resolves a path that is relative to the directory of a file.
fn join(file: &str, path: &str) -> String {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the path of a page relative to the directory of another.
fn relative(from: &str, to: &str) -> String {
    let (from, to): (Vec<&str>, Vec<&str>) = (from.split('/').collect(), to.split('/').collect());
    let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let common = common.min(from.len() - 1);
    let up = "../".repeat(from.len() - 1 - common);
    up + &to[common..].join("/")
}

/// Returns the anchors of the headings, as GitHub and mdBook form them.
fn headings(text: &str) -> BTreeSet<String> {
    let without_code = CODE.replace_all(text, |found: &Captures<'_>| found[0].trim_matches('`').to_owned());
    let heading = |line: &str| line.starts_with('#').then(|| anchor(line.trim_start_matches('#').trim()));
    without_code.lines().filter_map(heading).collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_pages_stay_in_the_book() {
        let pages = [("harness/guides/install.md", "install.md"), ("cases/README.md", "reference/cases.md")];
        let links = Links::new(&pages.map(|(source, page)| (source.to_owned(), page.to_owned())));
        for (source, page, before, after) in [
            (
                "harness/guides/install.md",
                "install.md",
                "[a](../../cases/README.md#b)",
                "[a](reference/cases.md#b)",
            ),
            (
                "cases/README.md",
                "reference/cases.md",
                "[a](../harness/guides/install.md)",
                "[a](../install.md)",
            ),
            (
                "cases/README.md",
                "reference/cases.md",
                "[a](#b) [c](https://d.example)",
                "[a](#b) [c](https://d.example)",
            ),
        ] {
            assert_eq!(links.rewrite(source, page, before), after);
        }
        let file = links.rewrite("cases/README.md", "reference/cases.md", "[a](message/b.yaml)");
        assert_eq!(file, format!("[a]({REPOSITORY}cases/message/b.yaml)"));
    }

    #[test]
    fn reports_links_to_missing_pages_and_headings() {
        let page = |text: &str| text.to_owned();
        let files = BTreeMap::from([
            (
                page("a.md"),
                page("# One `two`\n[1](b/c.md) [2](b/c.md#three-four) [3](#one-two) `[4](no.md)`\n"),
            ),
            (
                page("b/c.md"),
                page("# Three four\n[5](../a.md) [6](../no.md) [7](../a.md#no)\n```text\n[8](no.md)\n```\n"),
            ),
        ]);
        assert_eq!(broken_links(&files), ["b/c.md: ../no.md", "b/c.md: ../a.md#no"]);
    }
}
