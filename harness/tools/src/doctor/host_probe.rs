//! Facts about the Docker host, which may be another machine: a privileged container of a node
//! image reads them and is removed.

use std::collections::HashMap;

use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{CreateContainerOptions, StartContainerOptions};
use tokio_util::sync::CancellationToken;

use evictlab_cluster::{Docker, DockerError, available_memory};

/// Label of the container; its value identifies the process that created it.
const LABEL: &str = "evictlab.dev/doctor";
/// Lifetime of the container in seconds. Docker removes the container after that, even if this
/// process has died.
const LIFETIME_SECONDS: &str = "60";
/// Prints each fact under a heading.
const SCRIPT: &str = "\
    echo '# meminfo'; cat /proc/meminfo; \
    echo '# instances'; cat /proc/sys/fs/inotify/max_user_instances; \
    echo '# watches'; cat /proc/sys/fs/inotify/max_user_watches; \
    echo '# disk'; df -Pk /";

/// Facts about the Docker host; missing ones are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostFacts {
    /// `MemAvailable`, in bytes.
    pub memory_available: Option<u64>,
    /// `fs.inotify.max_user_instances`.
    pub inotify_instances: Option<u64>,
    /// `fs.inotify.max_user_watches`.
    pub inotify_watches: Option<u64>,
    /// Free space of the file system that holds containers, in bytes.
    pub disk_free: Option<u64>,
}

/// Starts the container, reads the facts, and removes the container in any case. Returns `None` if
/// cancelled.
pub(crate) async fn probe(
    docker: &Docker,
    image: &str,
    id: &str,
    cancel: &CancellationToken,
) -> Result<Option<HostFacts>, DockerError> {
    let failed = |source| DockerError::Request {
        operation: format!("run a privileged container of {image}"),
        source: Box::new(source),
    };
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        // The entrypoint of the image would boot a node.
        entrypoint: Some(vec!["sleep".to_owned(), LIFETIME_SECONDS.to_owned()]),
        labels: Some(HashMap::from([(LABEL.to_owned(), id.to_owned())])),
        host_config: Some(HostConfig {
            privileged: Some(true),
            auto_remove: Some(true),
            network_mode: Some("none".to_owned()),
            ..Default::default()
        }),
        ..Default::default()
    };
    let container =
        docker.api().create_container(None::<CreateContainerOptions>, body).await.map_err(failed)?.id;
    let work = async {
        docker.api().start_container(&container, None::<StartContainerOptions>).await.map_err(failed)?;
        docker.run(&container, &["sh", "-c", SCRIPT]).await
    };
    let output = tokio::select! {
        biased;
        output = work => Some(output),
        () = cancel.cancelled() => None,
    };
    docker.remove(&container).await?;
    Ok(output.transpose()?.map(|text| parse(&text)))
}

/// Parses the output of the script.
fn parse(text: &str) -> HostFacts {
    let mut facts = HostFacts::default();
    let mut heading = "";
    for line in text.lines() {
        if let Some(next) = line.strip_prefix("# ") {
            heading = next;
            continue;
        }
        let number = || line.trim().parse().ok();
        match heading {
            "meminfo" => facts.memory_available = facts.memory_available.or_else(|| available_memory(line)),
            "instances" => facts.inotify_instances = number(),
            "watches" => facts.inotify_watches = number(),
            // A heading, then one line: device, size, used, free, …
            "disk" => facts.disk_free = parse_kib(line.split_whitespace().nth(3)),
            _ => {}
        }
    }
    facts
}

fn parse_kib(number: Option<&str>) -> Option<u64> {
    number?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_facts_and_leaves_gaps() {
        let text = "# meminfo\nMemTotal:       24684064 kB\nMemFree:  1 kB\nMemAvailable:   18855424 kB\n\
            # instances\n128\n# watches\n192536\n\
            # disk\nFilesystem     1024-blocks     Used Available Capacity Mounted on\n\
            fuse-overlayfs   263112580 54311204  41943040      57% /\n";
        let facts = HostFacts {
            memory_available: Some(18_855_424 << 10),
            inotify_instances: Some(128),
            inotify_watches: Some(192_536),
            disk_free: Some(40 << 30),
        };
        assert_eq!(parse(text), facts);
        let gaps = parse("# meminfo\n# instances\n# watches\n7\n# disk\ndf: /: no such device\n");
        assert_eq!(gaps, HostFacts { inotify_watches: Some(7), ..HostFacts::default() });
    }

    #[tokio::test]
    async fn removes_the_container() {
        let Ok(docker) = Docker::connect().await else {
            return eprintln!("skipped: no Docker");
        };
        let Some(image) = docker.images("kindest/node").await.unwrap().pop() else {
            return eprintln!("skipped: no node image in Docker");
        };
        let mark = evictlab_runner::new_run_id();
        let facts = probe(&docker, &image, &mark, &CancellationToken::new()).await.unwrap().unwrap();
        assert!(facts.memory_available.is_some() && facts.disk_free.is_some(), "{facts:?}");
        assert!(facts.inotify_instances.is_some() && facts.inotify_watches.is_some(), "{facts:?}");
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        // Both outcomes are possible; no container may be left.
        probe(&docker, &image, &mark, &cancelled).await.unwrap();
        assert_eq!(docker.containers(&format!("{LABEL}={mark}")).await.unwrap().len(), 0);
    }
}
