//! Texts of all errors of this crate, in one snapshot.

#[path = "../../error_row.rs"]
mod error_row;

use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::Duration;

use error_row::row;
use evictlab_rules::{KubeletVersion, VersionError};
use kube::core::Status;

use crate::api_error::AnswerError;
use crate::images::stress_image::{BuildError, LoadError};
use crate::images::update::{DownloadError, ReleasesError, UpdateError};
use crate::images::{
    ContainerdError, ImageCatalogError, ImageLoadError, PullError, ResolveError, SnapshotterProblem,
};
use crate::kubelet_config::ConfigureError;
use crate::run_lease::LeaseLost;
use crate::wait::StalledError;
use crate::workload::StageError;
use crate::{
    ClusterError, ClusterName, ClusterNameError, ConfigError, DockerError, ExistingError, FileSystemsError,
    JOB_VARIABLE, JobIndexError, KindError, KubeletSpecError, NodeDiskError, NodeError, NotModelledError,
    PressureForbidden, ProbeError, ServedError, SkewError, StartProblem, StateError, WatchDenied,
};

const CLUSTER: &str = "lab";
const NODE: &str = "lab-worker";
const IMAGE: &str = "registry.k8s.io/pause:3.10";

fn text(text: &str) -> String {
    text.to_owned()
}

fn cluster() -> String {
    text(CLUSTER)
}

fn node() -> String {
    text(NODE)
}

fn kubelet(version: &str) -> KubeletVersion {
    version.parse().unwrap()
}

fn denied() -> io::Error {
    io::Error::from(ErrorKind::PermissionDenied)
}

fn stalled() -> StalledError {
    StalledError::without_progress(Duration::from_secs(120), text("node lab-worker is not ready"))
}

fn refused_by_server() -> Box<kube::Error> {
    Box::new(kube::Error::Api(Status::failure("pods \"web\" not found", "NotFound").with_code(404).boxed()))
}

fn docker_api() -> Box<bollard::errors::Error> {
    let message = text("no such container: lab-worker");
    Box::new(bollard::errors::Error::DockerResponseServerError { status_code: 404, message })
}

fn no_socket() -> DockerError {
    DockerError::NoSocket { host: text("unix:///var/run/docker.sock") }
}

fn docker() -> Vec<String> {
    let host = || text("unix:///var/run/docker.sock");
    let source = Box::new(bollard::errors::Error::from(io::Error::from(ErrorKind::ConnectionRefused)));
    vec![
        row(DockerError::Unreachable { host: host(), source }),
        row(no_socket()),
        row(DockerError::NotPermitted { host: host() }),
        row(DockerError::Request { operation: text("inspect container lab-worker"), source: docker_api() }),
        row(DockerError::Command {
            command: text("systemctl restart kubelet"),
            container: node(),
            code: 1,
            stderr: text("unit kubelet.service not found"),
        }),
        row(DockerError::TooMuchOutput {
            command: text("journalctl --unit kubelet"),
            container: node(),
            max: 64,
        }),
        row(DockerError::File {
            path: text("/var/lib/kubelet/config.yaml"),
            container: node(),
            source: denied(),
        }),
    ]
}

fn clusters() -> Vec<String> {
    vec![
        row(ClusterError::Kind(KindError::Missing)),
        row(ClusterError::Docker(no_socket())),
        row(ClusterError::Existing(ExistingError::Kubeconfig(text("no such file")))),
        row(ClusterError::Images(ImageLoadError::Docker(no_socket()))),
        row(ClusterError::Config(ConfigError::Read { path: PathBuf::from("kind.yaml"), source: denied() })),
        row(ClusterError::Kubelet(ConfigureError::Node(NodeError::NotManaged(node())))),
        row(ClusterError::State(StateError::NoHome)),
        row(ClusterError::Exists(cluster())),
        row(ClusterError::Unknown(cluster())),
        row(ClusterError::Stopped(cluster())),
        row(ClusterError::Kubeconfig {
            cluster: cluster(),
            path: PathBuf::from("state/lab/kubeconfig"),
            problem: text("invalid certificate"),
        }),
        row(ClusterError::Workers { cluster: cluster(), source: refused_by_server() }),
        row(ClusterError::NodeVersion { node: node(), source: VersionError(text("v1.x")) }),
        row(ClusterError::Label { node: node(), source: refused_by_server() }),
        row(ClusterError::NotReady { cluster: cluster(), stalled: stalled() }),
        row(ClusterError::NotStarted {
            error: Box::new(ClusterError::NotReady { cluster: cluster(), stalled: stalled() }),
            problems: vec![StartProblem::of_two_nodes()],
        }),
        row(ClusterError::Interrupted),
        row(stalled()),
    ]
}

fn workers() -> Vec<String> {
    vec![
        row(ClusterError::VersionMismatch {
            node: node(),
            found: text("v1.36.1"),
            claimed: kubelet("v1.36.2"),
        }),
        row(ClusterError::NoWorker {
            cluster: cluster(),
            kubelet: text("v1.36.2"),
            available: text("v1.35.6 and v1.34.9"),
        }),
        row(ClusterError::KubeletNotStarted {
            binary: PathBuf::from("./kubelet"),
            node: node(),
            stalled: stalled(),
            log: text("failed to run Kubelet: misconfiguration"),
        }),
        row(ClusterError::Binary { path: PathBuf::from("./kubelet"), source: denied() }),
        row(ClusterError::InUse { cluster: cluster(), pid: 4021 }),
        row(ClusterError::CleanUp { cluster: cluster(), problem: text("connection refused") }),
        row(ClusterError::ContainersRemain { cluster: cluster(), containers: node() }),
        row(ServedError::Exists(cluster())),
        row(ServedError::Elsewhere { cluster: cluster(), pid: 4021, host: text("build-1") }),
        row(ServedError::StillRunning { cluster: cluster(), pid: 4021 }),
        row(ServedError::State(StateError::NoHome)),
    ]
}

fn existing_cluster() -> Vec<String> {
    let contexts = || vec![text("dev"), text("staging")];
    vec![
        row(ExistingError::Kubeconfig(text("failed to read ~/.kube/config: no such file"))),
        row(ExistingError::ServiceAccount(text("no token"))),
        row(ExistingError::NoContext { named: Some(text("prod")), available: contexts() }),
        row(ExistingError::NoContext { named: None, available: Vec::new() }),
        row(ExistingError::Api {
            cluster: text("dev"),
            server: text("https://10.0.0.1:6443"),
            operation: "list the nodes",
            problem: text("connection refused"),
        }),
        row(ExistingError::Forbidden { cluster: text("dev"), missing: vec![text("create namespaces")] }),
        row(ExistingError::Selector { selector: text("disk=ssd"), problem: text("no node matches") }),
        row(ExistingError::NoSuchNode {
            cluster: text("dev"),
            name: node(),
            available: vec![text("node-1")],
        }),
        row(ExistingError::NoNodes { cluster: text("dev"), excluded: text("node-1 is cordoned") }),
        row(ExistingError::Probe(ProbeError::Stage(stage()))),
        row(ExistingError::Node(NodeError::NotManaged(node()))),
        row(ExistingError::Stage(stage())),
        row(ExistingError::TearDown {
            cluster: text("dev"),
            run: text("20260702-144435"),
            problem: text("connection refused"),
        }),
        row(ExistingError::NamespacesRemain { cluster: text("dev"), stalled: stalled() }),
    ]
}

fn stage() -> StageError {
    StageError::Api { operation: text("create pod web"), source: refused_by_server() }
}

fn denied_watch() -> WatchDenied {
    let message = text("pods is forbidden: User \"dev\" cannot watch resource \"pods\"");
    WatchDenied { verb: "watch", message }
}

fn workload() -> Vec<String> {
    let status = Status::failure("pods \"web\" is forbidden: exceeded quota", "Forbidden").boxed();
    let (namespace, reason) = (|| text("evictlab-web"), text("ErrImagePull"));
    vec![
        row(StageError::Rejected { verb: "create", object: text("pod web"), status }),
        row(stage()),
        row(StageError::NamespaceNotReady { namespace: namespace(), stalled: stalled() }),
        row(StageError::PodsRemain { namespace: namespace(), stalled: stalled() }),
        row(ProbeError::Image { node: node(), image: text(IMAGE), reason }),
        row(ProbeError::Pod { node: node(), name: text("canary"), reason: text("it exited with 1") }),
        row(ProbeError::Stage(stage())),
        row(ProbeError::Watch(denied_watch())),
        row(denied_watch()),
    ]
}

fn nodes() -> Vec<String> {
    let operation = "read the Summary";
    vec![
        row(NodeError::Docker(no_socket())),
        row(NodeError::FaultsUnsupported(node())),
        row(NodeError::NoSuchNode { operation: "restart the kubelet", node: node() }),
        row(NodeError::DiskFull { node: node() }),
        row(NodeError::NotManaged(node())),
        row(NodeError::NotHeld { node: node(), lost: LeaseLost::Deleted }),
        row(LeaseLost::Deleted),
        row(LeaseLost::Expired { age: Duration::from_secs(100), cause: text("no answer") }),
        row(NodeError::Exec {
            command: text("cat /etc/hostname"),
            container: text("web"),
            problem: text("the container does not run"),
        }),
        row(NodeError::Image(ImageLoadError::Docker(no_socket()))),
        row(NodeError::Api { operation, node: node(), source: refused_by_server() }),
        row(AnswerError::TooLong { request: text("GET /api/v1/pods"), mebibytes: 256 }),
        row(AnswerError::TooManyPages { path: text("/api/v1/pods"), pages: 2000 }),
        row(NodeError::NoAnswer { operation, node: node(), seconds: 10 }),
        row(NodeError::InvalidResponse { operation, node: node(), problem: text("missing field `node`") }),
        row(ConfigureError::Node(NodeError::NotManaged(node()))),
        row(ConfigureError::InvalidConfig {
            node: node(),
            file: text("/var/lib/kubelet/config.yaml"),
            problem: text("missing field `kind`"),
        }),
        row(ConfigureError::NotApplied {
            node: node(),
            stalled: stalled(),
            log: text("failed to run Kubelet: misconfiguration"),
        }),
        row(PressureForbidden::NotAllowed),
        row(PressureForbidden::NotDedicated),
        row(PressureForbidden::InUse(vec![text("default/web"), text("default/db")])),
        row(FileSystemsError::Unsupported { node: node(), reason: text("losetup: not permitted\n") }),
        row(FileSystemsError::Node(NodeError::NotManaged(node()))),
        row(FileSystemsError::Configure(ConfigureError::Node(NodeError::NotManaged(node())))),
    ]
}

fn kind() -> Vec<String> {
    vec![
        row(KindError::Missing),
        row(KindError::TooOld { found: semver::Version::new(0, 20, 0) }),
        row(KindError::UnknownVersion(text("kind unknown"))),
        row(KindError::Failed { command: text("create cluster"), output: text("ERROR: no space left") }),
        row(KindError::Run { command: text("create cluster"), source: denied() }),
        row(KindError::NameTaken),
        row(KindError::Interrupted),
        row(ConfigError::Read { path: PathBuf::from("kind.yaml"), source: denied() }),
        row(ConfigError::Parse { file: text("kind.yaml"), problem: text("unknown field `nodez`") }),
        row::<ClusterNameError>("Lab_1".parse::<ClusterName>().unwrap_err()),
        row(NodeDiskError::HostTooSmall { available: 4 << 30, nodes: 3, needed: 6 << 30 }),
        row(NodeDiskError::Measurement { node: node(), output: text("df: not found") }),
        row(NodeDiskError::Docker(no_socket())),
        row(SkewError { kubelet: text("v1.38.0"), newest: kubelet("v1.36.2") }),
        row(StateError::Write { path: PathBuf::from("state/lab"), source: denied() }),
        row(StateError::NotPrivate { path: PathBuf::from("state"), problem: text("its mode is 777") }),
        row(StateError::NoHome),
    ]
}

fn kubelets() -> Vec<String> {
    let path = || PathBuf::from("./kubelet");
    vec![
        row(NotModelledError::Version(text("v1.20.15"))),
        row(NotModelledError::Real(text("./kubelet"))),
        row(KubeletSpecError::Unknown(text("newest"))),
        row(KubeletSpecError::Range(text(">=1.31"))),
        row(KubeletSpecError::NoFile(path())),
        row(KubeletSpecError::Directory(path())),
        row(KubeletSpecError::Claim(VersionError(text("1.36")))),
        row(KubeletSpecError::ClaimOfVersion(text("v1.36.2=v1.35.6"))),
        row(JobIndexError::NotSet(JOB_VARIABLE)),
        row(JobIndexError::Invalid {
            variable: JOB_VARIABLE,
            value: text("lab"),
            expected: "NAMESPACE/NAME",
        }),
        row(ResolveError::Docker(no_socket())),
        row(ResolveError::Pull(PullError { image: text(IMAGE), source: docker_api() })),
        row(ResolveError::NoImage { version: kubelet("v1.36.9"), nearest: text("v1.36.2 and v1.35.6") }),
        row(ResolveError::NoImageOfMinor { minor: 40, known: text("v1.27 to v1.37") }),
        row(ResolveError::NotANodeImage { image: text(IMAGE) }),
        row(ResolveError::NotAKubelet { path: path(), problem: text("exited with 1") }),
        row(ResolveError::VersionMismatch {
            source_name: text("./kubelet"),
            found: kubelet("v1.36.1"),
            claimed: kubelet("v1.36.2"),
        }),
        row(ResolveError::UnknownVersion { image: text("kindest/node:latest") }),
        row(ResolveError::NoHostImage { path: path(), version: kubelet("v1.38.0") }),
    ]
}

fn images() -> Vec<String> {
    let path = || text("images.lock");
    let not_yaml = serde_saphyr::from_str::<Vec<u8>>("[1, two]").unwrap_err();
    vec![
        row(ImageCatalogError::Read { path: path(), source: denied() }),
        row(ImageCatalogError::Parse { path: path(), source: Box::new(not_yaml) }),
        row(ContainerdError::Docker(no_socket())),
        row(ContainerdError::Snapshotter {
            node: node(),
            problem: SnapshotterProblem::Missing("snapshotter"),
        }),
        row(PullError { image: text(IMAGE), source: docker_api() }),
        row(ImageLoadError::Docker(no_socket())),
        row(ImageLoadError::Pull(PullError { image: text(IMAGE), source: docker_api() })),
        row(ImageLoadError::Containerd(ContainerdError::Docker(no_socket()))),
        row(ImageLoadError::Build(BuildError::NoSource)),
        row(ImageLoadError::WrongArchitecture { built: text("arm64"), host: text("amd64") }),
        row(ImageLoadError::Archive { images: text(IMAGE), source: io::Error::from(ErrorKind::StorageFull) })
            .replace(&std::env::temp_dir().display().to_string(), "TMPDIR"),
        row(ImageLoadError::Missing { node: node(), images: text(IMAGE) }),
    ]
}

fn stress_image() -> Vec<String> {
    let output = || text("/usr/bin/ld: cannot find -lc");
    vec![
        row(BuildError::NoSource),
        row(BuildError::NoCargo),
        row(BuildError::NoProgram { architecture: text("s390x"), known: vec!["amd64", "arm64"] }),
        row(BuildError::NotLinux { host: text("macos") }),
        row(BuildError::Failed { command: text("cargo build --release"), output: output() }),
        row(BuildError::Io { operation: text("write the archive"), source: denied() }),
        row(LoadError::Docker(no_socket())),
        row(LoadError::Read { path: text("stress.tar"), source: denied() }),
        row(LoadError::WrongImage { path: text("stress.tar") }),
    ]
}

fn image_updates() -> Vec<String> {
    let not_an_address = "http://a b".parse::<http::Uri>().unwrap_err();
    vec![
        row(DownloadError::Address { url: text("http://a b"), source: http::Error::from(not_an_address) }),
        row(DownloadError::Request {
            url: text("https://api.github.com/repos/kubernetes-sigs/kind/releases"),
            source: refused_by_server(),
        }),
        row(UpdateError::NoNodes),
        row(UpdateError::Entry { line: 12, text: text("v1.36.2") }),
        row(ReleasesError::Parse(serde_json::from_str::<u8>("<html>").unwrap_err())),
        row(ReleasesError::NoImages { releases: 30 }),
    ]
}

#[test]
fn texts() {
    let of_clusters = [docker(), clusters(), workers(), existing_cluster(), workload(), nodes(), kind()];
    let of_images = [kubelets(), images(), stress_image(), image_updates()];
    insta::assert_snapshot!([of_clusters.concat(), of_images.concat()].concat().concat());
}
