//! Runs every case as a Cargo test: `cargo test -p evictlab-cases`, also under nextest.
//!
//! Environment variables select the tests, because arguments of libtest only filter by name:
//! `EVICTLAB_KUBELETS` (separated by commas), `EVICTLAB_SELECT` (suites and cases),
//! `EVICTLAB_LABEL_FILTER`, `EVICTLAB_FOCUS`, `EVICTLAB_SKIP`. The tests run on the embedded
//! cluster, where a verdict that differs from `results/baseline.json` fails its test; with
//! `EVICTLAB_BACKEND=kind` on real kubelets. Without Docker or kind, all tests are
//! ignored with the reason; with `EVICTLAB_REQUIRE_CLUSTER=1` they fail.

#![deny(unreachable_pub)]

mod libtest;

use std::process::ExitCode;

fn main() -> ExitCode {
    libtest::main()
}
