//! Texts of all errors of this crate, in one snapshot.

#[path = "../../error_row.rs"]
mod error_row;

use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use error_row::row;
use evictlab_case::{Problem, SourceSpan};
use evictlab_cluster::kubelet_config::ConfigureError;
use evictlab_cluster::wait::StalledError;
use evictlab_cluster::{
    ClusterError, ExistingError, JobIndexError, JobName, NodeError, NotModelledError, SkewError, StateError,
};
use evictlab_embedded::OptionsError;
use evictlab_report::{ClusterFailure, ReportError};
use evictlab_rules::VersionError;
use kube::core::Status;

use crate::bench::{BenchError, command_seconds};
use crate::bisect::SearchRangeError;
use crate::book::BookError;
use crate::export::{ExportError, WriteError};
use crate::git_bisect::{CacheError, CommitSearchError, GitError, SearchFileError};
use crate::job::archive::ArchiveError;
use crate::job::{JobError, JobWorkerError, NodeSelectorError, PodResultsError, TolerationError};
use crate::mutants::MutantError;
use crate::parity::ParityError;
use crate::watch::WatchError;

fn text(text: &str) -> String {
    text.to_owned()
}

fn denied() -> io::Error {
    io::Error::from(ErrorKind::PermissionDenied)
}

fn options_error() -> OptionsError {
    OptionsError { place: text("nodes[0].memory"), problem: text("must be at least 64Mi") }
}

fn bench_and_bisect() -> Vec<String> {
    let [one, other] = ["v1.36.1", "./kubelet"].map(text);
    let interrupted = || ClusterError::Interrupted;
    vec![
        row(BenchError::Cluster(interrupted())),
        row(BenchError::State(StateError::NoHome)),
        row(BenchError::Configure(ConfigureError::Node(NodeError::NotManaged(text("lab-worker"))))),
        row(BenchError::Report(ReportError::Output(denied()))),
        row(BenchError::Io(denied())),
        row(BenchError::Interrupted),
        row(command_seconds(&PathBuf::from("no/such/evictlab"), "list", 1).unwrap_err()),
        row(SearchRangeError::SameVersion { one, other, version: text("v1.36.1") }),
        row(SearchRangeError::SameKubelet(text("v1.36.1"))),
        row(CacheError::NoHome),
        row(CacheError::Write { path: PathBuf::from("cache/kubelet"), source: denied() }),
    ]
}

fn git() -> Vec<String> {
    let (dir, run) = (|| PathBuf::from("kubernetes"), || PathBuf::from("results/latest"));
    vec![
        row(GitError::Missing),
        row(GitError::Run { command: text("fetch --tags"), source: denied() }),
        row(GitError::Failed { command: text("fetch --tags"), stderr: text("fatal: no remote") }),
        row(GitError::NoRepository { dir: dir(), problem: text("not a git repository") }),
        row(GitError::UnknownRevision { revision: text("v1.36.9"), dir: dir() }),
        row(GitError::Unrelated {
            good: text("v1.36.2"),
            bad: text("master"),
            help: text("name an ancestor of master"),
        }),
        row(SearchFileError::Write { path: run().join("bisect.json"), source: denied() }),
        row(SearchFileError::NotASearch { dir: run(), problem: text("bisect.json not found") }),
        row(SearchFileError::OtherSearch { dir: run(), option: text("--good"), recorded: text("v1.36.1") }),
        row(SearchFileError::Locked(run())),
        row(SearchFileError::Lock { dir: run(), source: denied() }),
        row(CommitSearchError::Git(GitError::Missing)),
        row(CommitSearchError::Cache(CacheError::NoHome)),
        row(CommitSearchError::File(SearchFileError::Locked(run()))),
        row(CommitSearchError::Build { commit: text("3f2a51c09b7e"), source: denied() }),
        row(CommitSearchError::NoEndBuilds {
            old: text("3f2a51c09b7e"),
            new: text("81c0e2d4a6b3"),
            reason: text("the build ended with exit status: 2"),
            logs: run().join("artifacts/builds"),
        }),
        row(CommitSearchError::Remove { dir: run().join("artifacts/3f2a51c09b7e"), source: denied() }),
        row(CommitSearchError::Clusters(ClusterFailure {
            cluster: text("evictlab-7f3a"),
            error: text("failed to create the cluster"),
            cause: None,
        })),
        row(CommitSearchError::Interrupted),
    ]
}

fn documents_and_watch() -> Vec<String> {
    let (case, kubelets) = (|| text("memory/web"), || vec![text("v1.35.6"), text("v1.36.2")]);
    let place = SourceSpan { file: text("cases/memory/web.yaml"), mark: None, note: String::new() };
    let problem = Problem { message: text("faults require the embedded cluster"), spans: vec![place] };
    vec![
        row(BookError::Read { path: PathBuf::from("harness/guides"), error: denied() }),
        row(BookError::Write { path: PathBuf::from("book/index.html"), error: denied() }),
        row(BookError::BrokenLinks(vec![text("README.md: guides/none.md"), text("README.md: #none")])),
        row(ExportError::Unsupported { case: case(), problems: vec![problem] }),
        row(ExportError::UnsupportedKubelet {
            case: case(),
            range: text(">=1.36"),
            kubelet: text("v1.35.6"),
        }),
        row(ExportError::Skew(SkewError { kubelet: text("v1.38.0"), newest: "v1.36.2".parse().unwrap() })),
        row(ExportError::SeveralClusters { clusters: 2, kubelets: kubelets() }),
        row(ExportError::Yaml(serde_yaml::from_str::<u8>("one").unwrap_err())),
        row(ExportError::SharedHost { case: case(), signal: "nodefs.available", kubelets: kubelets() }),
        row(WriteError { path: PathBuf::from("export/run.sh"), source: denied() }),
        row(WatchError::Cluster(ExistingError::Kubeconfig(text("no such file")))),
        row(WatchError::Output(io::Error::from(ErrorKind::BrokenPipe))),
    ]
}

fn jobs_and_models() -> Vec<String> {
    let job = || JobName { namespace: text("evictlab"), name: text("nightly") };
    let source = Box::new(kube::Error::Api(Status::failure("jobs.batch is forbidden", "Forbidden").boxed()));
    let unavailable = || Box::new(kube::Error::Service(io::Error::other("connection reset").into()));
    let stalled = StalledError::without_progress(Duration::from_secs(120), text("2 pods are terminating"));
    vec![
        row(ArchiveError::Rotated { found: 120, expected: 400 }),
        row(ArchiveError::Damaged(text("line 12 is not base64"))),
        row(ArchiveError::Io(denied())),
        row(JobError::NoJob(job())),
        row(JobError::Foreign(job())),
        row(JobError::Exists { object: text("Job nightly"), job: job() }),
        row(JobError::Api { operation: text("create Job nightly"), source }),
        row(JobError::Cluster(ExistingError::Kubeconfig(text("no such file")))),
        row(JobError::NotEmpty(PathBuf::from("results/nightly"))),
        row(JobError::Write { dir: PathBuf::from("results/nightly"), source: denied() }),
        row(JobError::Remains { job: job(), stalled }),
        row(JobWorkerError::Index(JobIndexError::NotSet("JOB_COMPLETION_INDEX"))),
        row(JobWorkerError::TooLarge { indexes: 12, index: 12 }),
        row(NodeSelectorError(text("pool evictions"))),
        row(TolerationError(text("dedicated:Sometimes"))),
        row(PodResultsError::Log(unavailable())),
        row(PodResultsError::Killed),
        row(PodResultsError::Archive(ArchiveError::Damaged(text("line 12 is not base64")))),
        row(PodResultsError::Remove {
            problem: Box::new(PodResultsError::Killed),
            dir: PathBuf::from("results/.index-0"),
            source: denied(),
        }),
        row(MutantError::Start(denied())),
        row(MutantError::Options(options_error())),
        row(ParityError::Version(VersionError(text("1.36")))),
        row(ParityError::NotModelled(NotModelledError::Version(text("v1.20.15")))),
        row(ParityError::Options(options_error())),
        row(ParityError::Start(denied())),
    ]
}

#[test]
fn texts() {
    let rows = [bench_and_bisect(), git(), documents_and_watch(), jobs_and_models()];
    insta::assert_snapshot!(rows.concat().concat());
}
