//! Links from a page to the files of the evidence.

use std::fmt::Write;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::evidence_files;
use crate::run_dir::RunDir;
use crate::run_event::CaseId;

/// Files with a link, in this order; `summary.md` is the text for an issue.
const FILES: [&str; 8] = [
    evidence_files::SUMMARY,
    evidence_files::TIMELINE,
    evidence_files::EVENTS,
    evidence_files::PODS_FINAL,
    evidence_files::KUBELET_LOG,
    evidence_files::SAMPLES,
    evidence_files::RESULT,
    evidence_files::RESULT_OF_FORMAT_3,
];

/// The run directory, and its place relative to the page.
#[derive(Clone, Debug)]
pub struct EvidenceBase {
    /// `None` for a page without links.
    run_dir: Option<RunDir>,
    prefix: String,
}

impl EvidenceBase {
    /// No links: the place of the page is unknown, as on standard output.
    pub fn none() -> Self {
        Self { run_dir: None, prefix: String::new() }
    }

    /// Links of a page that is in the directory `page_dir`, for the run in `run_dir`. No links if
    /// one of them does not exist.
    pub fn relative(run_dir: &Path, page_dir: &Path) -> Self {
        let from = if page_dir.as_os_str().is_empty() { Path::new(".") } else { page_dir };
        let (Ok(to), Ok(from)) = (fs::canonicalize(run_dir), fs::canonicalize(from)) else {
            return Self::none();
        };
        let prefix: String = relative_path(&from, &to)
            .components()
            .map(|part| match part {
                Component::ParentDir => "../".to_owned(),
                part => encode(&part.as_os_str().to_string_lossy()) + "/",
            })
            .collect();
        Self { run_dir: Some(RunDir::existing(run_dir)), prefix }
    }

    /// The names of files of a case's evidence, and their links.
    pub(super) fn links(&self, id: &CaseId) -> Vec<(&'static str, String)> {
        let Some(run_dir) = &self.run_dir else { return vec![] };
        let dir = run_dir.case_dir(id);
        let Ok(relative) = dir.strip_prefix(run_dir.path()) else { return vec![] };
        let parts: Vec<String> =
            relative.components().map(|part| encode(&part.as_os_str().to_string_lossy())).collect();
        let path = format!("{}{}", self.prefix, parts.join("/"));
        let present = FILES.into_iter().filter(|file| dir.join(file).is_file());
        present.map(|file| (file, format!("{path}/{file}"))).collect()
    }
}

/// The path from one directory to another, both absolute.
fn relative_path(from: &Path, to: &Path) -> PathBuf {
    let common = from.components().zip(to.components()).take_while(|(one, other)| one == other).count();
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    up.chain(to.components().skip(common)).collect()
}

/// Encodes a component of a path for a URL: a colon would make it a scheme.
fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            byte => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn links_lead_from_the_page_to_existing_files() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("a: run");
        let id = fixtures::id("message", "a", "v1.32.13", 1);
        let case = run.join("artifacts/message/a/v1.32.13");
        fs::create_dir_all(&case).unwrap();
        fs::create_dir(dir.path().join("pages")).unwrap();
        fs::write(case.join("kubelet.log"), "").unwrap();
        let path = "artifacts/message/a/v1.32.13/kubelet.log";
        for (page, link) in [
            (run.clone(), path.to_owned()),
            (dir.path().to_owned(), format!("a%3A%20run/{path}")),
            (dir.path().join("pages"), format!("../a%3A%20run/{path}")),
        ] {
            assert_eq!(EvidenceBase::relative(&run, &page).links(&id), [("kubelet.log", link)]);
        }
        assert!(EvidenceBase::none().links(&id).is_empty());
        assert!(EvidenceBase::relative(&run, &dir.path().join("missing")).links(&id).is_empty());
    }
}
