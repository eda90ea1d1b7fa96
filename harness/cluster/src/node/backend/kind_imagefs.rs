//! A dedicated imagefs of a kind node: a loop-mounted file system over containerd's directory.
//!
//! The original directory remains below the mount, with the images and layers from before. The
//! kernel frees the loop device with its last mount, so nothing remains after the deletion of the
//! node either.

use super::kind::KindNode;
use crate::loop_file_system::script;
use crate::node::error::NodeError;
use crate::node::file_systems::{FileSystemsError, NodeFileSystems};

/// Creates a file system of a given size in bytes, with a given number of inodes if it is not
/// empty, and mounts it beside containerd's directory. Changes nothing else, so that a failure only
/// means that the node cannot have one.
const PREPARE: &str = r#"
size=$1 inodes=$2 new=/kind/evictlab-imagefs directory=/var/lib/containerd
image=$(image_directory)/evictlab-imagefs.img
require_mkfs
used=$(du -sxB1 $directory | cut -f 1)
available=$(df --output=avail -B1 "$(image_directory)" | tail -n 1)
[ "$size" -ge $((used + 512 * 1024 * 1024)) ] || {
  echo "the node has $((used >> 20)) MiB of images and layers" >&2; exit 1
}
files=$(du -sx --inodes $directory | cut -f 1)
[ -z "$inodes" ] || [ "$inodes" -ge $((files + 8192)) ] || {
  echo "the node has $files files of images and layers" >&2; exit 1
}
if is_apart_from_nodefs; then taken=$used; else taken=$size; fi
[ "$available" -ge $((taken + 2 * 1024 * 1024 * 1024)) ] || {
  echo "the host has $((available >> 20)) MiB of disk available, $((taken >> 20)) MiB are taken, 2048 MiB remain" >&2
  exit 1
}
trap '[ $? = 0 ] || rm -f $image' EXIT
umount $new 2> /dev/null || true
rm -f $image
mount_new_image "$size" $image $new "$inodes"
"#;

/// Copies containerd's directory to the new file system, and mounts it there. Containers continue
/// to run in their old layers. containerd and the kubelet start in any case.
const MOVE: &str = r#"
new=/kind/evictlab-imagefs directory=/var/lib/containerd
image=$(image_directory)/evictlab-imagefs.img
undo() {
  status=$?
  umount $new 2> /dev/null || true
  [ $status = 0 ] || rm -f $image
  systemctl reset-failed kubelet containerd
  systemctl start containerd kubelet
}
trap undo EXIT
systemctl stop kubelet containerd
cp -a $directory/. $new/
umount $new
mount_image $image $directory
"#;

/// Uncovers the original directory. A container that was started meanwhile and still runs keeps the
/// file system until it ends (`umount -l`).
const RESTORE: &str = r#"
new=/kind/evictlab-imagefs directory=/var/lib/containerd
image=$(image_directory)/evictlab-imagefs.img
[ -e $image ] || exit 0
trap 'systemctl reset-failed kubelet containerd; systemctl start containerd kubelet' EXIT
systemctl stop kubelet containerd
umount $new 2> /dev/null || true
if mountpoint -q $directory; then umount $directory 2> /dev/null || umount -l $directory; fi
rm -f $image
echo restored
"#;

impl KindNode {
    /// Moves containerd's directory to a new file system, and restarts containerd and the kubelet.
    pub(super) async fn set_up_file_systems(&self, wanted: NodeFileSystems) -> Result<(), FileSystemsError> {
        let unsupported = |reason: String| FileSystemsError::Unsupported { node: self.node.clone(), reason };
        if wanted.has_split_layers {
            let reason = "containerd reports one file system for images and writable layers, so that the \
                          kubelet does not detect a split one";
            return Err(unsupported(reason.to_owned()));
        }
        let size = wanted.imagefs.to_string();
        let inodes = wanted.imagefs_inodes.map(|inodes| inodes.to_string()).unwrap_or_default();
        let prepare = ["bash", "-ec", &script(PREPARE), "prepare-imagefs", &size, &inodes];
        let prepared = self.docker.exec(&self.node, &prepare).await.map_err(NodeError::from)?;
        if prepared.code != 0 {
            return Err(unsupported(prepared.stderr));
        }
        let moved = self.docker.run(&self.node, &["bash", "-ec", &script(MOVE), "move-imagefs"]).await;
        Ok(moved.map(drop).map_err(NodeError::from)?)
    }

    /// Returns `false` if the node has no file system of this kind.
    pub(super) async fn restore_file_systems(&self) -> Result<bool, NodeError> {
        let restored =
            self.docker.run(&self.node, &["bash", "-ec", &script(RESTORE), "restore-imagefs"]).await?;
        Ok(!restored.is_empty())
    }
}
