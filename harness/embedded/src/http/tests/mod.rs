//! The API as clients see it: kube-rs within the process, and over TLS.

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
