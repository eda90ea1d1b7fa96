//! Node options.

use crate::machine::Machine;
use crate::options::NodeOptions;

use super::lab::options;

#[test]
fn rejects_impossible_sizes() {
    type Change = fn(&mut NodeOptions);
    let cases: [(Change, &str); 8] = [
        (|options| options.memory = 1 << 20, "node node: memory: 1048576 bytes are too few"),
        (|options| options.memory_used = options.memory, "node node: memory used: "),
        (|options| options.disk = 0, "node node: disk: 0 bytes are too few"),
        (|options| options.disk_used = options.disk + 1, "node node: disk used: "),
        (|options| options.inodes_used = options.inodes + 1, "node node: inodes used: "),
        (|options| options.max_pid = 0, "node node: pids: 0 process numbers are too few"),
        (|options| options.processes = options.max_pid, "node node: processes: "),
        (|options| options.cpus = 0, "node node: cpus: "),
    ];
    for (change, message) in cases {
        let mut options = options();
        change(&mut options);
        let error = Machine::new(&options).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.starts_with(message), "{error:?} is not {message:?}");
    }
    assert!(Machine::new(&options()).is_ok());
}
