//! File systems in files of kind nodes.

/// Functions for scripts of bash, which put them first. A container has only the loop devices that
/// existed when it was started. Empty inode tables are not written (`noinit_itable`). `$volume` is
/// the volume at `/var`, if a file system in it is mounted over `/var`.
///
/// A file on the disk of nodefs takes its whole space at once, and keeps it: what is written to the
/// file system in it must not reduce nodefs. A file in `$volume` takes the space of its content.
const FUNCTIONS: &str = r#"
volume=/kind/evictlab-volume
is_apart_from_nodefs() {
  mountpoint -q $volume
}
image_directory() {
  if is_apart_from_nodefs; then echo $volume; else echo /var; fi
}
require_mkfs() {
  command -v mkfs.ext4 > /dev/null || { echo "the node image has no mkfs.ext4" >&2; exit 1; }
}
mount_image() { # IMAGE DIRECTORY
  local options=loop,noinit_itable
  if is_apart_from_nodefs; then options+=,discard; fi
  mount -o $options "$1" "$2"
}
mount_new_image() { # SIZE IMAGE DIRECTORY [INODES]
  if is_apart_from_nodefs; then truncate -s "$1" "$2"; else fallocate -l "$1" "$2"; fi
  mkfs.ext4 -q -F -m 0 ${4:+-N "$4"} -O ^has_journal -E nodiscard,lazy_itable_init=1 "$2"
  for number in $(seq 0 255); do
    [ -e /dev/loop$number ] || mknod -m 660 /dev/loop$number b 7 $number
  done
  mkdir -p "$3"
  mount_image "$2" "$3"
}
"#;

/// Returns a script that can call `image_directory`, which prints the directory for files that
/// contain a file system, `is_apart_from_nodefs`, which tells whether that directory is on another
/// disk than nodefs, `require_mkfs`, `mount_image IMAGE DIRECTORY`, and
/// `mount_new_image SIZE IMAGE DIRECTORY [INODES]`, with the size in bytes.
pub(crate) fn script(body: &str) -> String {
    [FUNCTIONS, body].concat()
}
