//! The file of a search, from which another process resumes it.

use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use evictlab_cluster::{ClusterState, KnownCluster, Owner};
use evictlab_report::{BackendName, open_below};
use evictlab_rules::KubeletVersion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tries::{BadIf, Tries};
use crate::bisect::BisectTerm;

/// Name of the file in the run directory.
const FILE: &str = "bisect.json";

/// Version of the file format. Files of older versions are read.
const VERSION: u32 = 2;

/// Options of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchOptions {
    /// Case, such as `message/sidecars-are-named`.
    pub case: String,
    /// Backend of the runs.
    pub backend: BackendName,
    /// Git directory of the repository.
    pub repository: PathBuf,
    /// Id of the commit that is given as good.
    pub good: String,
    /// Id of the commit that is given as bad.
    pub bad: String,
    /// Build command.
    pub build: String,
    /// Path of the kubelet in the worktree.
    pub kubelet_path: PathBuf,
    /// Number of conclusive tries of each commit.
    pub tries: u32,
    /// The number of bad tries that makes a commit bad.
    pub bad_if: BadIf,
    /// Only the first parent of a merge counts.
    pub first_parent: bool,
}

/// A tested commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestedCommit {
    /// Full id.
    pub commit: String,
    /// First line of the message.
    pub subject: String,
    /// Version of its kubelet, if it was built.
    pub version: Option<String>,
    /// The result.
    pub result: CommitResult,
}

/// Result of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CommitResult {
    /// It is good or bad.
    #[serde(alias = "judged")]
    Conclusive {
        /// Good or bad.
        #[serde(alias = "standing")]
        term: BisectTerm,
        /// Its conclusive tries.
        tries: Tries,
    },
    /// It does not build, with the reason.
    NotBuilt(String),
    /// Its kubelet has no conclusive verdict, with the reason.
    Inconclusive(String),
}

impl TestedCommit {
    /// Returns whether the commit is good or bad; `None` if it was skipped.
    pub fn term(&self) -> Option<BisectTerm> {
        match self.result {
            CommitResult::Conclusive { term, .. } => Some(term),
            CommitResult::NotBuilt(_) | CommitResult::Inconclusive(_) => None,
        }
    }
}

/// The file of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchFile {
    /// Version of the file format, 2.
    version: u32,
    /// Options of the search.
    pub options: SearchOptions,
    /// Tested commits, in order.
    pub tested: Vec<TestedCommit>,
    /// Number of builds.
    pub builds: u32,
    /// The kind cluster whose kubelet is replaced.
    pub cluster: Option<KeptCluster>,
}

/// A kind cluster that the runs of a search share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeptCluster {
    /// Name of the cluster.
    pub name: String,
    /// Id of the run that created it; empty in the file of an older evictlab.
    #[serde(default)]
    pub run: String,
    /// Version of its node images.
    #[schemars(with = "String")]
    pub version: KubeletVersion,
}

impl KeptCluster {
    /// Returns whether a cluster on this host is the one that a run of the search created, and no
    /// other process uses it. The name alone does not tell: another user may have deleted the
    /// cluster and created one with its name.
    pub fn is(&self, found: &KnownCluster) -> bool {
        let record = &found.record;
        let is_unused = found.state != ClusterState::Live || record.owner == Owner::current();
        let is_same = record.cluster == self.name && record.run == self.run;
        is_same && found.is_local && found.is_own && is_unused
    }
}

/// A search cannot be resumed, or its file not be written.
#[derive(Debug, thiserror::Error)]
pub enum SearchFileError {
    /// The file could not be written.
    #[error("failed to write {path}: {source}")]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The directory does not contain a search.
    #[error(
        "failed to resume {dir}: {problem}\nhelp: name the run directory of an interrupted `bisect --git` with --resume=DIR"
    )]
    NotASearch {
        /// The directory.
        dir: PathBuf,
        /// Problem of its file.
        problem: String,
    },
    /// The directory contains another search.
    #[error(
        "failed to resume {dir}: its search has another {option}, {recorded}\nhelp: repeat the command of that search with --resume, or start another search without it"
    )]
    OtherSearch {
        /// The directory.
        dir: PathBuf,
        /// Name of the option.
        option: String,
        /// Value in the file.
        recorded: String,
    },
    /// Another process continues the search.
    #[error(
        "failed to resume {}: another process continues its search\nhelp: wait for it, or start another search without --resume",
        .0.display()
    )]
    Locked(PathBuf),
    /// The directory could not be locked.
    #[error("failed to lock {}: {source}", .dir.display())]
    Lock {
        /// The directory.
        dir: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl SearchFileError {
    /// Returns whether another directory or other options are the remedy.
    pub(super) fn is_input(&self) -> bool {
        match self {
            Self::NotASearch { .. } | Self::OtherSearch { .. } | Self::Locked(_) => true,
            Self::Write { .. } | Self::Lock { .. } => false,
        }
    }
}

impl SearchFile {
    /// Returns the file of a new search.
    pub fn new(options: SearchOptions) -> Self {
        Self { version: VERSION, options, tested: vec![], builds: 0, cluster: None }
    }

    /// Reads the file of a search that has these options.
    ///
    /// # Errors
    /// The directory does not contain this search.
    pub fn resume(dir: &Path, options: &SearchOptions) -> Result<Self, SearchFileError> {
        let not_a_search = |problem: String| SearchFileError::NotASearch { dir: dir.to_owned(), problem };
        let text = read_file(dir).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => not_a_search(format!("it has no {FILE}")),
            _ => not_a_search(format!("failed to read {FILE}: {error}")),
        })?;
        let invalid = |error: serde_json::Error| not_a_search(format!("failed to read {FILE}: {error}"));
        let mut found: Self = serde_json::from_slice(&text).map_err(invalid)?;
        if !(1..=VERSION).contains(&found.version) {
            return Err(not_a_search(format!("{FILE} has version {}, not {VERSION}", found.version)));
        }
        found.version = VERSION;
        // The directory may be another user's, and git reads the ids as arguments.
        if let Some(other) = found.tested.iter().find(|tested| !is_commit_id(&tested.commit)) {
            return Err(not_a_search(format!("{FILE} has {:?} for the id of a commit", other.commit)));
        }
        let (recorded, given) = (fields(&found.options), fields(options));
        match recorded.into_iter().find(|(option, value)| given.get(option) != Some(value)) {
            None => Ok(found),
            Some((option, recorded)) => {
                let recorded = recorded.as_str().map_or_else(|| recorded.to_string(), str::to_owned);
                Err(SearchFileError::OtherSearch { dir: dir.to_owned(), option, recorded })
            }
        }
    }

    /// Locks a run directory for this process, until the returned file is closed.
    ///
    /// # Errors
    /// Another process has the lock, or the directory cannot be opened.
    pub fn lock(dir: &Path) -> Result<File, SearchFileError> {
        let failed = |source| SearchFileError::Lock { dir: dir.to_owned(), source };
        let lock = File::open(dir).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(lock),
            Err(TryLockError::WouldBlock) => Err(SearchFileError::Locked(dir.to_owned())),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Writes the file to a run directory, atomically.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), SearchFileError> {
        let path = dir.join(FILE);
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(dir)?;
            serde_json::to_writer_pretty(&mut file, self)?;
            file.persist(&path).map(drop).map_err(|error| error.error)
        };
        write().map_err(|source| SearchFileError::Write { path: path.clone(), source })
    }
}

fn read_file(dir: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    open_below(dir, &dir.join(FILE))?.read_to_end(&mut text)?;
    Ok(text)
}

/// Returns whether a text is the full id of a commit, by SHA-1 or SHA-256.
fn is_commit_id(text: &str) -> bool {
    [40, 64].contains(&text.len()) && text.chars().all(|c| c.is_ascii_hexdigit())
}

/// The options by their names in the file.
fn fields(options: &SearchOptions) -> serde_json::Map<String, serde_json::Value> {
    match serde_json::to_value(options) {
        Ok(serde_json::Value::Object(fields)) => fields,
        // Unreachable: the options are a struct of texts and numbers.
        _ => serde_json::Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use evictlab_cluster::ClusterRecord;

    use super::*;

    #[test]
    fn a_kept_cluster_is_that_of_the_run_that_created_it() {
        let kept =
            KeptCluster { name: "dev".to_owned(), run: "r1".to_owned(), version: "v1.34.2".parse().unwrap() };
        let known = |cluster: &str, run: &str| KnownCluster {
            record: ClusterRecord::new("daemon", cluster, run, Owner::current(), vec![]),
            state: ClusterState::Kept,
            containers: vec![],
            is_local: true,
            is_own: true,
        };
        let other = Owner { started: Some("earlier".to_owned()), ..Owner::current() };
        let with_owner = |state| {
            let record = ClusterRecord { owner: other.clone(), ..known("dev", "r1").record };
            KnownCluster { state, record, ..known("dev", "r1") }
        };
        for (what, found, expected) in [
            ("the cluster", known("dev", "r1"), true),
            (
                "in use by this process",
                KnownCluster { state: ClusterState::Live, ..known("dev", "r1") },
                true,
            ),
            ("of a process that ended", with_owner(ClusterState::Kept), true),
            ("in use by another process", with_owner(ClusterState::Live), false),
            ("another name", known("dev-2", "r1"), false),
            ("the name, another run", known("dev", "r2"), false),
            ("nodes without a record", KnownCluster { is_own: false, ..known("dev", "r1") }, false),
            ("another Docker host", KnownCluster { is_local: false, ..known("dev", "r1") }, false),
        ] {
            assert_eq!(kept.is(&found), expected, "{what}");
        }
        let older: KeptCluster = serde_json::from_str(r#"{"name": "dev", "version": "v1.34.2"}"#).unwrap();
        assert!(!older.is(&known("dev", "r1")), "a file that does not name the run");
    }

    #[test]
    fn results_of_version_1_are_read() {
        let text = r#"{"judged": {"standing": "bad", "tries": {"good": 1, "bad": 2}}}"#;
        let expected = CommitResult::Conclusive { term: BisectTerm::Bad, tries: Tries { good: 1, bad: 2 } };
        assert_eq!(serde_json::from_str::<CommitResult>(text).unwrap(), expected);
        let written = serde_json::to_string(&expected).unwrap();
        assert_eq!(written, r#"{"conclusive":{"term":"bad","tries":{"good":1,"bad":2}}}"#);
    }

    #[test]
    fn only_the_same_search_is_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let options = SearchOptions {
            case: "message/a".to_owned(),
            backend: BackendName::Kind,
            repository: "/src/.git".into(),
            good: "1".repeat(40),
            bad: "2".repeat(40),
            build: "make".to_owned(),
            kubelet_path: "kubelet".into(),
            tries: 3,
            bad_if: BadIf::Any,
            first_parent: false,
        };
        let error = SearchFile::resume(folder.path(), &options).unwrap_err().to_string();
        assert!(error.contains("it has no bisect.json\nhelp: "), "{error}");
        let mut file = SearchFile::new(options.clone());
        file.tested.push(TestedCommit {
            commit: "3".repeat(40),
            subject: "c".to_owned(),
            version: None,
            result: CommitResult::NotBuilt("exit status 2".to_owned()),
        });
        file.write(folder.path()).unwrap();
        for version in [1, VERSION] {
            SearchFile { version, ..file.clone() }.write(folder.path()).unwrap();
            assert_eq!(SearchFile::resume(folder.path(), &options).unwrap(), file);
        }
        file.tested[0].commit = "--output=/tmp/file".to_owned();
        file.write(folder.path()).unwrap();
        let error = SearchFile::resume(folder.path(), &options).unwrap_err().to_string();
        assert!(error.contains("bisect.json has \"--output=/tmp/file\" for the id of a commit"), "{error}");
        file.tested.clear();
        file.write(folder.path()).unwrap();
        let other = SearchOptions { tries: 4, ..options };
        let error = SearchFile::resume(folder.path(), &other).unwrap_err().to_string();
        assert!(error.contains("its search has another tries, 3\nhelp: "), "{error}");
    }
}
