//! Runs every case as a Cargo test.

fn main() {}
