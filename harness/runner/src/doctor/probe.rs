//! What only a container can tell of the Docker host, which may be another machine than this one: one short privileged
//! container of a node image is started, asked, and removed.

use std::collections::HashMap;

use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{CreateContainerOptions, StartContainerOptions};
use tokio_util::sync::CancellationToken;

use crate::cluster::{Docker, DockerError};

/// The label of the container; its value tells one examination from another.
pub const LABEL: &str = "evictlab.dev/doctor";
/// How long the container lives, in seconds, if nobody is left to remove it: Docker removes it then.
const LIFE: &str = "60";
/// The files and figures that are asked for, each under a heading.
const QUESTIONS: &str = "\
    echo '# meminfo'; cat /proc/meminfo; \
    echo '# instances'; cat /proc/sys/fs/inotify/max_user_instances; \
    echo '# watches'; cat /proc/sys/fs/inotify/max_user_watches; \
    echo '# disk'; df -Pk /";

/// What the container told of its host. What it could not tell is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// `MemAvailable`, in bytes.
    pub memory_available: Option<u64>,
    /// `fs.inotify.max_user_instances`.
    pub inotify_instances: Option<u64>,
    /// `fs.inotify.max_user_watches`.
    pub inotify_watches: Option<u64>,
    /// Free space of the file system that holds containers, in bytes.
    pub disk_free: Option<u64>,
}

/// Starts the container, asks it, and removes it, whatever happens in between. `None`: cancelled.
pub async fn probe(
    docker: &Docker,
    image: &str,
    mark: &str,
    cancel: &CancellationToken,
) -> Result<Option<Told>, DockerError> {
    let failed = |source| DockerError::Request {
        doing: format!("run a privileged container of {image}"),
        source: Box::new(source),
    };
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        // The node's own entrypoint would boot it.
        entrypoint: Some(vec!["sleep".to_owned(), LIFE.to_owned()]),
        labels: Some(HashMap::from([(LABEL.to_owned(), mark.to_owned())])),
        host_config: Some(HostConfig {
            privileged: Some(true),
            auto_remove: Some(true),
            network_mode: Some("none".to_owned()),
            ..Default::default()
        }),
        ..Default::default()
    };
    let made = docker.api().create_container(None::<CreateContainerOptions>, body).await.map_err(failed)?.id;
    let work = async {
        docker.api().start_container(&made, None::<StartContainerOptions>).await.map_err(failed)?;
        docker.run(&made, &["sh", "-c", QUESTIONS]).await
    };
    let answer = tokio::select! {
        biased;
        answer = work => Some(answer),
        () = cancel.cancelled() => None,
    };
    docker.remove(&made).await?;
    Ok(answer.transpose()?.map(|text| read(&text)))
}

/// The answers to the questions.
fn read(text: &str) -> Told {
    let mut told = Told::default();
    let mut heading = "";
    for line in text.lines() {
        if let Some(next) = line.strip_prefix("# ") {
            heading = next;
            continue;
        }
        let number = || line.trim().parse().ok();
        match heading {
            "meminfo" => told.memory_available = told.memory_available.or_else(|| available(line)),
            "instances" => told.inotify_instances = number(),
            "watches" => told.inotify_watches = number(),
            // Its heading, then one line: device, size, used, free, …
            "disk" => told.disk_free = kib(line.split_whitespace().nth(3)),
            _ => {}
        }
    }
    told
}

fn available(line: &str) -> Option<u64> {
    kib(line.strip_prefix("MemAvailable:")?.split_whitespace().next())
}

fn kib(number: Option<&str>) -> Option<u64> {
    number?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_are_read_and_gaps_are_gaps() {
        let text = "# meminfo\nMemTotal:       24684064 kB\nMemFree:  1 kB\nMemAvailable:   18855424 kB\n\
            # instances\n128\n# watches\n192536\n\
            # disk\nFilesystem     1024-blocks     Used Available Capacity Mounted on\n\
            fuse-overlayfs   263112580 54311204  41943040      57% /\n";
        let told = Told {
            memory_available: Some(18_855_424 << 10),
            inotify_instances: Some(128),
            inotify_watches: Some(192_536),
            disk_free: Some(40 << 30),
        };
        assert_eq!(read(text), told);
        let gaps = read("# meminfo\n# instances\n# watches\n7\n# disk\ndf: /: no such device\n");
        assert_eq!(gaps, Told { inotify_watches: Some(7), ..Told::default() });
    }

    #[tokio::test]
    async fn a_container_is_asked_and_removed() {
        let Ok(docker) = Docker::connect().await else {
            return eprintln!("not run: no Docker here");
        };
        let Some(image) = docker.images("kindest/node").await.unwrap().pop() else {
            return eprintln!("not run: no node image in Docker");
        };
        let mark = crate::schedule::new_id();
        let told = probe(&docker, &image, &mark, &CancellationToken::new()).await.unwrap().unwrap();
        assert!(told.memory_available.is_some() && told.disk_free.is_some(), "{told:?}");
        assert!(told.inotify_instances.is_some() && told.inotify_watches.is_some(), "{told:?}");
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        // Either may win the race; neither may leave anything.
        probe(&docker, &image, &mark, &cancelled).await.unwrap();
        assert_eq!(docker.containers(&format!("{LABEL}={mark}")).await.unwrap().len(), 0);
    }
}
