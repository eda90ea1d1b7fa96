//! Runs every case as a Cargo test: `cargo test -p cases`, and under nextest.
//!
//! What runs is said by the environment, because libtest's own arguments select by name alone: `EVICTLAB_KUBELETS` (a comma between
//! two), `EVICTLAB_SELECT` (suites and cases), `EVICTLAB_LABEL_FILTER`, `EVICTLAB_FOCUS`, `EVICTLAB_SKIP`. The kubelets are modelled;
//! `EVICTLAB_BACKEND=kind` takes real ones. Where no such cluster is to be had every test is ignored with the reason;
//! `EVICTLAB_REQUIRE_CLUSTER=1` makes that a failure.

mod front;

use std::process::ExitCode;

fn main() -> ExitCode {
    front::main()
}
