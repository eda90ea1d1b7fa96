//! Images, node file systems and the start of a kubelet with a real Docker daemon. Without a daemon
//! or a node image, the tests are ignored.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::process::ExitCode;
use std::time::Duration;

use bollard::models::{ContainerCreateBody, HostConfig, HostConfigCgroupnsModeEnum};
use bollard::query_parameters::{
    CreateContainerOptions, CreateImageOptionsBuilder, RemoveImageOptions, StartContainerOptions,
};
use evictlab_cluster::images::stress_image::{self, StressProgram};
use evictlab_cluster::images::{ImageCatalog, KubeletResolver, ensure_loaded, has_image, pull_image};
use evictlab_cluster::{Docker, NodeBackend, NodeFileSystems, StartWatch, has_own_disk, separate_disks};
use futures::{FutureExt, StreamExt};
use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// A Docker daemon and the name of a node image.
async fn docker() -> Result<(Docker, String), String> {
    let docker = Docker::connect().await.map_err(|error| error.to_string())?;
    let images = docker.images("kindest/node").await.map_err(|error| error.to_string())?;
    let image = images.into_iter().next().ok_or("no kindest/node image is in Docker")?;
    Ok((docker, image))
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let found =
        runtime().block_on(docker()).map_err(|error| error.lines().next().unwrap_or_default().to_owned());
    let trial = |name: &str, test: fn(Docker, String)| {
        let found = found.clone();
        Trial::ignorable_test(name, move || match found {
            Ok((docker, image)) => {
                test(docker, image);
                Ok::<_, Failed>(Completion::Completed)
            }
            Err(why) => Ok(Completion::ignored_with(why)),
        })
    };
    // Makes trials of asynchronous tests.
    macro_rules! trials {
        ($($test:ident),* $(,)?) => {
            vec![$(trial(stringify!($test), |docker, image| runtime().block_on($test(&docker, &image)))),*]
        };
    }
    let trials = trials![
        resolves_local_node_images_and_rejects_unknown_versions,
        failed_pulls_have_instructions,
        loads_only_missing_images,
        builds_the_stress_image_and_replaces_an_older_one,
        nodes_get_file_systems_of_their_own,
        a_node_without_a_file_system_of_its_own_continues,
        images_get_a_file_system_of_their_own_for_a_while,
        the_start_watch_reports_why_a_kubelet_exits,
    ];
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap()
}

async fn resolves_local_node_images_and_rejects_unknown_versions(docker: &Docker, image: &str) {
    let catalog = ImageCatalog::load(None).unwrap();
    let overrides = BTreeMap::new();
    let resolver = KubeletResolver {
        docker,
        catalog: &catalog,
        overrides: &overrides,
        progress: &|text| panic!("unexpected pull: {text}"),
    };
    let tag = image.rsplit_once(':').unwrap().1;
    let kubelets = resolver.resolve_all(&[tag.parse().unwrap(), image.parse().unwrap()]).await.unwrap();
    assert_eq!((kubelets[0].image.as_str(), kubelets[1].image.as_str()), (image, image));
    assert_eq!(kubelets[1].version.to_string(), tag, "version of the image");

    let unknown = resolver.resolve_all(&["v1.31.99".parse().unwrap()]).await.unwrap_err().to_string();
    assert!(unknown.contains("v1.31.14") && unknown.contains("--node-image v1.31.99=IMAGE"), "{unknown}");
}

async fn failed_pulls_have_instructions(docker: &Docker, _image: &str) {
    let image = "127.0.0.1:1/evictlab/none:1";
    assert!(!has_image(docker, image).await.unwrap());
    let error = pull_image(docker, image, &|_| {}).await.unwrap_err().to_string();
    assert!(error.contains(&format!("failed to pull image {image}, which is not in Docker")), "{error}");
    assert!(error.contains(&format!("docker save {image} -o image.tar")), "{error}");
}

/// Starts a container that runs only containerd, like a node. The container exits and is removed
/// after two minutes even if the test fails.
async fn node(docker: &Docker, image: &str) -> String {
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: Some(["sh", "-c", "containerd & exec sleep 120"].map(str::to_owned).to_vec()),
        volumes: Some(vec!["/var".to_owned()]),
        host_config: Some(HostConfig {
            privileged: Some(true),
            auto_remove: Some(true),
            network_mode: Some("none".to_owned()),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    start(docker, body, &["ctr", "version"]).await
}

/// Starts a container, and returns its id when a command in it succeeds.
async fn start(docker: &Docker, body: ContainerCreateBody, ready: &[&str]) -> String {
    let id = docker.api().create_container(None::<CreateContainerOptions>, body).await.unwrap().id;
    docker.api().start_container(&id, None::<StartContainerOptions>).await.unwrap();
    for _ in 0..600 {
        if docker.run(&id, ready).await.is_ok() {
            return id;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    docker.remove(&id).await.unwrap();
    panic!("{ready:?} does not succeed in a node");
}

/// Removes all nodes of a test, and continues its panic.
async fn end(docker: &Docker, nodes: &[&str], outcome: std::thread::Result<()>) {
    let mut removals = Vec::new();
    for node in nodes {
        removals.push(docker.remove(node).await);
    }
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
    for removal in removals {
        removal.unwrap();
    }
}

async fn loads_only_missing_images(docker: &Docker, image: &str) {
    let name = format!("localhost/evictlab-test:{}", std::process::id());
    create_image(docker, &name).await;
    let nodes = tokio::join!(node(docker, image), node(docker, image));
    let outcome = AssertUnwindSafe(load_images(docker, [&nodes.0, &nodes.1], &name)).catch_unwind().await;
    // A successful test has removed it.
    let _ignored = docker.api().remove_image(&name, None::<RemoveImageOptions>, None).await;
    end(docker, &[&nodes.0, &nodes.1], outcome).await;
}

async fn load_images(docker: &Docker, nodes: [&str; 2], name: &str) {
    let [first, second] = nodes;
    let images = [name.to_owned()];
    let lines = RefCell::new(Vec::new());
    let progress = |text: &str| lines.borrow_mut().push(text.to_owned());
    ensure_loaded(docker, &[first], &images, &progress).await.unwrap();
    assert_eq!(lines.take(), [format!("loading {name} into {first}")]);
    ensure_loaded(docker, &nodes, &images, &progress).await.unwrap();
    assert_eq!(lines.take(), [format!("loading {name} into {second}")], "only into the node without it");
    for node in nodes {
        let command = format!("ctr -n k8s.io images mount {name} /mnt > /dev/null && cat /mnt/file");
        assert_eq!(docker.run(node, &["sh", "-c", &command]).await.unwrap(), "text", "unpacked and complete");
        assert_eq!(docker.read_file(node, "/kind/evictlab-images.tar").await.unwrap(), None);
    }

    // Images that all nodes have are not needed in Docker.
    docker.api().remove_image(name, None::<RemoveImageOptions>, None).await.unwrap();
    ensure_loaded(docker, &nodes, &images, &|text| panic!("unexpected step: {text}")).await.unwrap();
}

async fn builds_the_stress_image_and_replaces_an_older_one(docker: &Docker, image: &str) {
    let node = node(docker, image).await;
    let outcome = AssertUnwindSafe(load_stress_image(docker, &node)).catch_unwind().await;
    end(docker, &[&node], outcome).await;
}

async fn load_stress_image(docker: &Docker, node: &str) {
    let older =
        StressProgram { program: b"older".to_vec(), architecture: docker.architecture().await.unwrap() };
    docker.write_file(node, "/older.tar", 0o600, &older.archive().unwrap().bytes).await.unwrap();
    docker.run(node, &["ctr", "-n", "k8s.io", "images", "import", "/older.tar"]).await.unwrap();

    let images = [stress_image::NAME.to_owned()];
    let lines = RefCell::new(Vec::new());
    let progress = |text: &str| lines.borrow_mut().push(text.to_owned());
    ensure_loaded(docker, &[node], &images, &progress).await.unwrap();
    let step = format!("loading {} into {node}", stress_image::NAME);
    assert!(lines.take().contains(&step));
    let command =
        format!("ctr -n k8s.io images mount {} /mnt > /dev/null && /mnt/stress help", stress_image::NAME);
    let output = docker.run(node, &["sh", "-c", &command]).await.unwrap();
    assert!(output.starts_with("Consume a resource of the node"), "{output}");
    ensure_loaded(docker, &[node], &images, &progress).await.unwrap();
    assert!(!lines.take().contains(&step), "the node has this build");
}

/// Starts a node that runs systemd and containerd, but has not joined a cluster. It ends after
/// three minutes even if the test fails.
async fn systemd_node(docker: &Docker, image: &str, labels: &[(&str, &str)]) -> String {
    let tmpfs = ["/tmp", "/run"].map(|path| (path.to_owned(), String::new()));
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        labels: Some(labels.collect()),
        volumes: Some(vec!["/var".to_owned()]),
        host_config: Some(HostConfig {
            privileged: Some(true),
            auto_remove: Some(true),
            network_mode: Some("none".to_owned()),
            cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
            tmpfs: Some(tmpfs.into()),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    let id = start(docker, body, &["systemctl", "is-active", "containerd"]).await;
    docker.run(&id, &["systemd-run", "--on-active=180", "systemctl", "halt"]).await.unwrap();
    id
}

async fn nodes_get_file_systems_of_their_own(docker: &Docker, image: &str) {
    let nodes = tokio::join!(systemd_node(docker, image, &[]), systemd_node(docker, image, &[]));
    let nodes = [nodes.0.as_str(), nodes.1.as_str()];
    let outcome = AssertUnwindSafe(move_to_own_disks(docker, nodes)).catch_unwind().await;
    end(docker, &nodes, outcome).await;
}

async fn move_to_own_disks(docker: &Docker, [first, second]: [&str; 2]) {
    let run = async |node: &str, command: &str| docker.run(node, &["sh", "-ec", command]).await.unwrap();
    let available = async |node: &str| -> u64 {
        run(node, "df --output=avail -B1M /var/lib/kubelet | tail -n 1").await.trim().parse().unwrap()
    };
    for node in [first, second] {
        run(
            node,
            "mkdir /var/lib/kubelet; echo text > /var/lib/kubelet/file; chmod 600 /var/lib/kubelet/file",
        )
        .await;
        assert!(!has_own_disk(docker, node).await);
    }
    let images = run(first, "ctr -n k8s.io images ls -q").await;
    assert!(images.contains("/kube-apiserver:") && images.contains("/etcd:"), "{images}");
    separate_disks(docker, &[first, second]).await.unwrap();
    for node in [first, second] {
        assert!(has_own_disk(docker, node).await);
        assert_eq!(
            run(node, "stat -c %a /var/lib/kubelet/file; cat /var/lib/kubelet/file").await,
            "600\ntext\n"
        );
        assert_eq!(run(node, "systemctl is-active containerd").await, "active\n");
        run(node, "systemd-cat -t evictlab-test echo a line; journalctl --sync").await;
        assert_eq!(run(node, "journalctl -t evictlab-test -o cat").await, "a line\n");
    }
    let left = run(first, "ctr -n k8s.io images ls -q | grep -v ^sha256:").await;
    let is_left = |name: &&str| {
        !["sha256:", "/etcd:", "/kube-apiserver:", "/kube-controller-manager:", "/kube-scheduler:"]
            .iter()
            .any(|part| name.contains(part))
    };
    assert_eq!(left.lines().collect::<Vec<_>>(), images.lines().filter(is_left).collect::<Vec<_>>());

    let before = [available(first).await, available(second).await];
    assert!((18_000..20_480).contains(&before[0]), "{before:?} MiB");
    let image = run(first, "stat -c '%s %b %B' /kind/evictlab-volume/evictlab-var.img").await;
    let image: Vec<u64> = image.split_whitespace().map(|number| number.parse().unwrap()).collect();
    assert!(
        image[0] >= 64 << 30 && image[1] * image[2] < 4 << 30,
        "the host stores the content only: {image:?}"
    );
    run(first, "dd if=/dev/zero of=/var/lib/kubelet/zeros bs=1M count=64 2> /dev/null; sync").await;
    assert_eq!(before[0] - available(first).await, 64, "MiB");
    assert_eq!(available(second).await, before[1], "the other node does not see it");
}

async fn a_node_without_a_file_system_of_its_own_continues(docker: &Docker, image: &str) {
    let node = systemd_node(docker, image, &[]).await;
    let outcome = AssertUnwindSafe(fail_to_move(docker, &node)).catch_unwind().await;
    end(docker, &[&node], outcome).await;
}

async fn fail_to_move(docker: &Docker, node: &str) {
    let run = async |command: &str| docker.run(node, &["sh", "-ec", command]).await.unwrap();
    run("mkdir /var/lib/kubelet; printf '#!/bin/sh\\necho no room >&2; exit 1' > /usr/local/sbin/mkfs.ext4")
        .await;
    run("chmod 755 /usr/local/sbin/mkfs.ext4").await;
    let error = separate_disks(docker, &[node]).await.unwrap_err().to_string();
    assert!(error.contains("no room"), "{error}");
    assert!(!has_own_disk(docker, node).await);
    assert_eq!(run("systemctl is-active containerd").await, "active\n");
    assert_eq!(run("grep -c /kind/evictlab /proc/mounts || true").await, "0\n");
    assert_eq!(run("find /var -maxdepth 1 -name 'evictlab*'").await, "");
}

async fn images_get_a_file_system_of_their_own_for_a_while(docker: &Docker, image: &str) {
    let node = systemd_node(docker, image, &[]).await;
    let outcome = AssertUnwindSafe(have_imagefs(docker, &node)).catch_unwind().await;
    end(docker, &[&node], outcome).await;
}

async fn have_imagefs(docker: &Docker, node: &str) {
    const SIZE: u64 = 6 << 30;
    let run = async |command: &str| docker.run(node, &["sh", "-ec", command]).await.unwrap();
    let images = async || run("ctr -n k8s.io images ls -q").await;
    run("mkdir /var/lib/kubelet").await;
    let backend = NodeBackend::of_container(docker, node);
    let set_up = async |imagefs, has_split_layers| {
        let result = backend
            .set_up_file_systems(NodeFileSystems { imagefs, imagefs_inodes: None, has_split_layers })
            .await;
        result.map_err(|error| error.to_string())
    };
    assert!(!backend.restore_file_systems().await.unwrap(), "the node is as it was created");
    let unsupported = set_up(SIZE, true).await.unwrap_err();
    assert!(unsupported.contains("containerd reports one file system"), "{unsupported}");
    let too_small = set_up(64 << 20, false).await.unwrap_err();
    assert!(too_small.contains("MiB of images and layers"), "{too_small}");
    let before = images().await;
    assert!(!before.is_empty());

    set_up(SIZE, false).await.unwrap();
    let [devices, capacity] = [
        "stat -c %d /var/lib/containerd /var/lib/kubelet | uniq | wc -l",
        "df --output=size -B1M /var/lib/containerd | tail -n 1",
    ]
    .map(&run);
    assert_eq!(devices.await, "2\n");
    let capacity: u64 = capacity.await.trim().parse().unwrap();
    assert!((5_500..=6_144).contains(&capacity), "{capacity} MiB");
    assert_eq!(images().await, before);
    run("ctr -n k8s.io images ls -q | head -n 3 | xargs ctr -n k8s.io images rm --sync").await;
    assert_ne!(images().await, before);
    // The node has no disk of its own: nodefs does not change with the content of the file.
    let space = async || -> u64 {
        run("stat -c %b /var/evictlab-imagefs.img").await.trim().parse::<u64>().unwrap() * 512
    };
    assert!(space().await >= SIZE, "{}", space().await);
    run("cd /var/lib/containerd; dd if=/dev/zero of=zeros bs=1M count=64 2> /dev/null; sync; rm zeros; sync")
        .await;
    assert!(space().await >= SIZE, "deleted blocks are not returned to nodefs: {}", space().await);

    assert!(backend.restore_file_systems().await.unwrap());
    assert_eq!(images().await, before);
    assert_eq!(run("systemctl is-active containerd").await, "active\n");
    assert_eq!(run("find /kind /var -name evictlab-imagefs.img").await, "");
    assert_eq!(run("grep -c evictlab-imagefs /proc/mounts || true").await, "0\n");
    assert!(!backend.restore_file_systems().await.unwrap(), "restored once");
}

/// Creates an image with one small file.
async fn create_image(docker: &Docker, name: &str) {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(4);
    header.set_mode(0o644);
    archive.append_data(&mut header, "file", &b"text"[..]).unwrap();
    let (repo, tag) = name.rsplit_once(':').unwrap();
    let options = CreateImageOptionsBuilder::default().from_src("-").repo(repo).tag(tag).build();
    let body = bollard::body_full(archive.into_inner().unwrap().into());
    let results: Vec<_> = docker.api().create_image(Some(options), Some(body), None).collect().await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

/// Starts a node of a cluster that does not exist, with the kubelet of the image.
async fn cluster_node(docker: &Docker, image: &str, cluster: &str) -> String {
    let node =
        systemd_node(docker, image, &[("io.x-k8s.kind.cluster", cluster), ("io.x-k8s.kind.role", "worker")])
            .await;
    let fake = "mkdir -p /var/lib/kubelet /etc/kubernetes; echo 'kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\nimageGCHighThresholdPercent: 101\nfailCgroupV1: false' > /var/lib/kubelet/config.yaml";
    docker.run(&node, &["sh", "-ec", fake]).await.unwrap();
    node
}

async fn the_start_watch_reports_why_a_kubelet_exits(docker: &Docker, image: &str) {
    let cluster = format!("evictlab-test-{}", std::process::id());
    let node = cluster_node(docker, image, &cluster).await;
    let outcome = AssertUnwindSafe(find_reason(docker, &node, &cluster)).catch_unwind().await;
    end(docker, &[&node], outcome).await;
}

async fn find_reason(docker: &Docker, node: &str, cluster: &str) {
    let mut watch = StartWatch::new(docker, cluster);
    assert!(watch.problems(None).await.is_empty(), "the kubelet has not been started");
    docker.run(node, &["systemctl", "start", "kubelet"]).await.unwrap();
    let mut found = vec![];
    for _ in 0..300 {
        found = watch.problems(None).await;
        if !found.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let text = found.iter().map(ToString::to_string).collect::<String>();
    assert!(text.contains(": the kubelet exits at every start: "), "{text}");
    assert!(text.contains("imageGCHighThresholdPercent"), "{text}");
    assert!(found[0].is_known() && text.contains("\nhelp: correct the KubeletConfiguration"), "{text}");
}
