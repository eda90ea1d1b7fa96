//! The suites are the YAML files beside this one; `cases.rs` runs them as Cargo tests.
