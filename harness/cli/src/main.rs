//! The `evictlab` command.
fn main() {}
