//! Images against a real Docker daemon. Where there is none, or no node image, each test says in a line that it was not run.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{
    CreateContainerOptions, CreateImageOptionsBuilder, RemoveImageOptions, StartContainerOptions,
};
use evictlab_runner::cluster::Docker;
use evictlab_runner::images::own::{self, Built};
use evictlab_runner::images::{Lock, Resolve, bring, have, pull};
use futures::{FutureExt, StreamExt};

/// A Docker daemon with a node image, or why there is none.
async fn docker() -> Result<(Docker, String), String> {
    let docker = Docker::connect().await.map_err(|error| error.to_string())?;
    let images = docker.images("kindest/node").await.map_err(|error| error.to_string())?;
    let image = images.into_iter().next().ok_or("no kindest/node image is in Docker")?;
    Ok((docker, image))
}

macro_rules! docker_or_return {
    () => {
        match docker().await {
            Ok(found) => found,
            Err(why) => {
                eprintln!("not run: {}", why.lines().next().unwrap_or_default());
                return;
            }
        }
    };
}

#[tokio::test]
async fn a_local_node_image_is_taken_as_it_is_and_an_unknown_version_is_told() {
    let (docker, image) = docker_or_return!();
    let lock = Lock::load(None).unwrap();
    let none = BTreeMap::new();
    let resolve = Resolve {
        docker: &docker,
        lock: &lock,
        overrides: &none,
        progress: &|text| panic!("nothing is to be pulled: {text}"),
    };
    let tag = image.rsplit_once(':').unwrap().1;
    let kubelets = resolve.all(&[tag.parse().unwrap(), image.parse().unwrap()]).await.unwrap();
    assert_eq!((kubelets[0].image.as_str(), kubelets[1].image.as_str()), (image.as_str(), image.as_str()));
    assert_eq!(kubelets[1].version.to_string(), tag, "the image tells its own version");

    let unknown = resolve.all(&["v1.31.99".parse().unwrap()]).await.unwrap_err().to_string();
    assert!(unknown.contains("v1.31.14") && unknown.contains("--node-image v1.31.99=IMAGE"), "{unknown}");
}

#[tokio::test]
async fn an_image_that_cannot_be_had_is_named_with_the_way_to_bring_it() {
    let (docker, _) = docker_or_return!();
    let image = "127.0.0.1:1/evictlab/none:1";
    assert!(!have(&docker, image).await.unwrap());
    let error = pull(&docker, image, &|_| {}).await.unwrap_err().to_string();
    assert!(error.contains(&format!("the image {image} is not in Docker")), "{error}");
    assert!(error.contains(&format!("docker save {image} -o image.tar")), "{error}");
}

/// A container with nothing but containerd, as a node has it. It ends and is removed by itself, however the test ends.
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
    let made = docker.api().create_container(None::<CreateContainerOptions>, body).await.unwrap().id;
    docker.api().start_container(&made, None::<StartContainerOptions>).await.unwrap();
    for _ in 0..600 {
        if docker.run(&made, &["ctr", "version"]).await.is_ok() {
            return made;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("containerd does not start in {image}");
}

#[tokio::test]
async fn nodes_get_the_images_they_lack_once() {
    let (docker, image) = docker_or_return!();
    let name = format!("localhost/evictlab-test:{}", std::process::id());
    make_image(&docker, &name).await;
    let nodes = tokio::join!(node(&docker, &image), node(&docker, &image));
    let outcome = AssertUnwindSafe(get_the_images(&docker, [&nodes.0, &nodes.1], &name)).catch_unwind().await;
    for node in [&nodes.0, &nodes.1] {
        docker.remove(node).await.unwrap();
    }
    // Gone already where all went well.
    let _gone = docker.api().remove_image(&name, None::<RemoveImageOptions>, None).await;
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}

async fn get_the_images(docker: &Docker, nodes: [&str; 2], name: &str) {
    let [rich, poor] = nodes;
    let wanted = [name.to_owned()];
    let told = RefCell::new(Vec::new());
    let tell = |text: &str| told.borrow_mut().push(text.to_owned());
    bring(docker, &[rich], &wanted, &tell).await.unwrap();
    assert_eq!(told.take(), [format!("putting {name} into {rich}")]);
    bring(docker, &nodes, &wanted, &tell).await.unwrap();
    assert_eq!(told.take(), [format!("putting {name} into {poor}")], "only where it is lacking");
    for node in nodes {
        let look = format!("ctr -n k8s.io images mount {name} /mnt > /dev/null && cat /mnt/file");
        assert_eq!(docker.run(node, &["sh", "-c", &look]).await.unwrap(), "text", "unpacked, whole");
        assert_eq!(docker.read_file(node, "/var/lib/evictlab-images.tar").await.unwrap(), None);
    }

    // What all nodes have need not be in Docker.
    docker.api().remove_image(name, None::<RemoveImageOptions>, None).await.unwrap();
    bring(docker, &nodes, &wanted, &|text| panic!("nothing is to be done: {text}")).await.unwrap();
}

#[tokio::test]
async fn our_own_image_is_built_and_takes_an_older_ones_place() {
    let (docker, image) = docker_or_return!();
    let node = node(&docker, &image).await;
    let outcome = AssertUnwindSafe(get_our_own(&docker, &node)).catch_unwind().await;
    docker.remove(&node).await.unwrap();
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}

async fn get_our_own(docker: &Docker, node: &str) {
    let older = Built { program: b"older".to_vec(), architecture: docker.architecture().await.unwrap() };
    docker.write_file(node, "/older.tar", 0o600, &older.archive().unwrap().bytes).await.unwrap();
    docker.run(node, &["ctr", "-n", "k8s.io", "images", "import", "/older.tar"]).await.unwrap();

    let wanted = [own::NAME.to_owned()];
    let told = RefCell::new(Vec::new());
    let tell = |text: &str| told.borrow_mut().push(text.to_owned());
    bring(docker, &[node], &wanted, &tell).await.unwrap();
    let put = format!("putting {} into {node}", own::NAME);
    assert!(told.take().contains(&put));
    let look = format!("ctr -n k8s.io images mount {} /mnt > /dev/null && /mnt/stress help", own::NAME);
    let said = docker.run(node, &["sh", "-c", &look]).await.unwrap();
    assert!(said.starts_with("Takes something of its node"), "{said}");
    bring(docker, &[node], &wanted, &tell).await.unwrap();
    assert!(!told.take().contains(&put), "it is there already");
}

/// An image of one small file.
async fn make_image(docker: &Docker, name: &str) {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(4);
    header.set_mode(0o644);
    archive.append_data(&mut header, "file", &b"text"[..]).unwrap();
    let (repo, tag) = name.rsplit_once(':').unwrap();
    let options = CreateImageOptionsBuilder::default().from_src("-").repo(repo).tag(tag).build();
    let body = bollard::body_full(archive.into_inner().unwrap().into());
    let made: Vec<_> = docker.api().create_image(Some(options), Some(body), None).collect().await;
    assert!(made.iter().all(Result::is_ok), "{made:?}");
}
