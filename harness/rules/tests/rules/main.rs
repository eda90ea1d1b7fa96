//! Tests of the public API, in one binary: every further binary would be linked separately.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod invariants;
mod message;
mod properties;
mod quantity;
mod ranking;
mod recordings;
mod threshold;
