//! The API as clients see it: kube-rs within the process, and over TLS.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod errors;
mod faults;
mod kinds;
mod lab;
mod lists;
mod patches;
mod pods;
mod served;
mod tables;
mod watches;
mod workloads;
