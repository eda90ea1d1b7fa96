//! A file system of its own for each worker.
//!
//! The nodes of kind share the file system of the Docker host: whatever another node or program
//! writes changes `nodefs` and `imagefs` of all nodes. A loop-mounted file system over `/var`, with
//! the kubelet's directory, containerd's and the logs, keeps them apart. The kernel frees the loop
//! device with its last mount, so nothing remains after the deletion of the node.

use evictlab_rules::quantity::{GIB, MIB};
use futures::future::{join_all, try_join_all};

use crate::docker::{Docker, DockerError};
use crate::loop_file_system::script;

/// Size of a new file system, in bytes. The file of the device takes only the space of its content.
const SIZE: u64 = 64 * GIB;

/// Free space of a new file system, in bytes: far more than a case writes, and enough that the
/// kubelet does not collect images, which it does from 85 % on.
const FREE_SPACE: u64 = 20 * GIB;

/// Space of the host that the cases of a node may take, in bytes. Deleted blocks return to the
/// host.
const MAX_WRITTEN: u64 = 3 * GIB;

/// Memory and disk that nodes and cases leave to their host, in bytes.
pub const HOST_RESERVE: u64 = GIB;

/// Major number of loop devices (Linux, `Documentation/admin-guide/devices.txt`).
const LOOP_DEVICE: u64 = 7;

/// Deletes the images of the control plane, which a worker never runs: about half of what is copied
/// to the file systems of a node. An image has several names with the same digest.
const DELETE_CONTROL_PLANE_IMAGES: &str = r#"
ctr --namespace k8s.io images ls | awk '
  NR > 1 { digests[$1] = $3 }
  NR > 1 && $1 ~ /\/(etcd|kube-(apiserver|controller-manager|scheduler))(-[a-z0-9]+)?:/ { unused[$3] = 1 }
  END { for (name in digests) if (digests[name] in unused) print name }
' | xargs -r ctr --namespace k8s.io images rm --sync
"#;

/// Prints the available space of the host and the content of `/var`, in bytes.
const MEASURE: &str = "df --output=avail -B1 /kind | tail -n 1; du -sxB1 /var | cut -f 1";

/// Moves `/var` to a new file system, given its size and that of a file which takes no space on the
/// host. Pods may request what is in use below an eviction threshold (node allocatable), so the
/// file makes room for requests. Containers continue to run, and containerd and the kubelet start
/// in any case. The journal would go on in the file that it has open.
///
/// The file system lies in the volume that kind mounts at `/var`: the storage driver of the other
/// files may be slow (fuse-overlayfs). The volume stays reachable at `$volume`.
const MOVE: &str = r#"
image=$volume/evictlab-var.img new=/kind/evictlab-var
require_mkfs
finish() {
  if [ $? != 0 ]; then
    umount $new 2> /dev/null || true
    rm -f $image
    umount $volume 2> /dev/null || true
  fi
  systemctl start containerd kubelet
}
trap finish EXIT
systemctl stop kubelet containerd
mkdir -p $volume
mount --bind /var $volume
# What is mounted over /var must not cover it.
mount --make-private $volume
mount_new_image "$1" $image $new
find /var -mindepth 1 -maxdepth 1 ! -name evictlab-var.img -exec cp -a -t $new {} +
[ "$2" = 0 ] || fallocate -l "$2" $new/evictlab-in-use
umount $new
mount_image $image /var
systemctl restart systemd-journald
"#;

/// The workers continue to share the file system of the host.
#[derive(Debug, thiserror::Error)]
pub enum NodeDiskError {
    /// The host is too small.
    #[error(
        "failed to create {nodes} file systems: they may take {} MiB and leave {} MiB, and the Docker host has {} MiB of disk available\nhelp: free disk space on the Docker host",
        needed / MIB, HOST_RESERVE / MIB, available / MIB
    )]
    HostTooSmall {
        /// Available space, in bytes.
        available: u64,
        /// Number of nodes.
        nodes: usize,
        /// Space that the nodes may take, in bytes.
        needed: u64,
    },
    /// The space could not be measured.
    #[error("failed to measure the disk of node {node}: unexpected output {output:?}")]
    Measurement {
        /// Name of the node.
        node: String,
        /// Output of the command.
        output: String,
    },
    /// A command failed in a node.
    #[error(transparent)]
    Docker(#[from] DockerError),
}

/// Disk of the host and of a worker, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DiskUse {
    /// Available space of the host.
    host_available: u64,
    /// Size of the worker's files.
    used: u64,
}

/// Gives each worker a file system of its own. The kubelets have been restarted on return, whatever
/// the result.
///
/// # Errors
/// The host has too little space, or does not support loop devices.
pub async fn separate_disks(docker: &Docker, workers: &[&str]) -> Result<(), NodeDiskError> {
    // If this fails, copying takes longer.
    let delete = ["sh", "-c", DELETE_CONTROL_PLANE_IMAGES];
    join_all(workers.iter().map(|worker| docker.exec(worker, &delete))).await;
    let disks = try_join_all(workers.iter().map(|worker| measure(docker, worker))).await?;
    check_host(&disks)?;
    let moved = workers.iter().zip(&disks).map(async |(worker, disk)| {
        let in_use = SIZE.saturating_sub(disk.used + FREE_SPACE);
        let size = disk.used + in_use + FREE_SPACE;
        let [size, in_use] = [size, in_use].map(|bytes| bytes.to_string());
        docker.run(worker, &["bash", "-ec", &script(MOVE), "move-var", &size, &in_use]).await
    });
    // Every command ends before the first error is returned: it starts its kubelet again.
    join_all(moved).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(())
}

/// Returns whether the kubelet's directory of a worker is on a file system of its own.
pub async fn has_own_disk(docker: &Docker, worker: &str) -> bool {
    let device = docker.run(worker, &["stat", "-c", "%d", "/var/lib/kubelet"]).await;
    device.is_ok_and(|device| device.trim().parse().is_ok_and(|device| major(device) == LOOP_DEVICE))
}

async fn measure(docker: &Docker, worker: &str) -> Result<DiskUse, NodeDiskError> {
    let output = docker.run(worker, &["sh", "-ec", MEASURE]).await?;
    parse_disk_use(&output).ok_or_else(|| NodeDiskError::Measurement { node: worker.to_owned(), output })
}

fn parse_disk_use(output: &str) -> Option<DiskUse> {
    let mut numbers = output.lines().map(|line| line.trim().parse().ok());
    Some(DiskUse { host_available: numbers.next()??, used: numbers.next()?? })
}

fn check_host(disks: &[DiskUse]) -> Result<(), NodeDiskError> {
    let needed = disks.iter().map(|disk| disk.used + MAX_WRITTEN).sum();
    let available = disks.iter().map(|disk| disk.host_available).min().unwrap_or(0);
    if available >= needed + HOST_RESERVE {
        Ok(())
    } else {
        Err(NodeDiskError::HostTooSmall { available, nodes: disks.len(), needed })
    }
}

/// Major number of a Linux device number (glibc, `sys/sysmacros.h`).
fn major(device: u64) -> u64 {
    (device >> 8) & 0xfff | (device >> 32) & !0xfff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_disk_use_of_a_worker() {
        let disk = DiskUse { host_available: 52_000_000_000, used: 999_292_928 };
        assert_eq!(parse_disk_use(" 52000000000\n999292928\n"), Some(disk));
        assert_eq!(parse_disk_use("df: /kind: No such file or directory\n"), None);
    }

    #[test]
    fn a_host_that_is_too_small_is_reported_with_numbers() {
        let disks = |host_available| vec![DiskUse { host_available, used: GIB }; 3];
        assert!(check_host(&disks(13 * GIB)).is_ok());
        assert_eq!(
            check_host(&disks(13 * GIB - 1)).unwrap_err().to_string(),
            "failed to create 3 file systems: they may take 12288 MiB and leave 1024 MiB, and the Docker host has 13311 MiB \
             of disk available\nhelp: free disk space on the Docker host"
        );
    }

    #[test]
    fn recognizes_loop_devices() {
        // /dev/loop3, /dev/vda1, and a device with a large minor number.
        assert_eq!([0x703, 0xfd01, 0x10_0703].map(major), [7, 253, 7]);
    }
}
