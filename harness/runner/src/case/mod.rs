//! The case files: their shape, and reading them with errors that lead to the line.

mod check_pressure;
mod check_script;
mod checks;
mod fact;
mod json_schema;
mod load;
pub(crate) mod positions;
mod problem;
mod refusal;
mod schema;
mod step;
mod values;

pub use fact::{Cgroup, Fact, Rate, shown};
pub use json_schema::json_schema;
pub(crate) use load::named_twice;
pub use load::{LoadedCase, SCHEMA_FILE, Source, load, load_paths, parse};
pub use problem::{LoadErrors, Mark, Place, Problem};
pub(crate) use problem::{did_you_mean, nearest};
pub use schema::{
    By, Case, ContainerLimit, EphemeralContainer, Expect, Figures, KnownBug, Message, Presence, Pressure,
    Refused, Resource, Signal, VolumeLimit, Witness,
};
pub use step::{Deletion, NodeSetup, Placed, Step, Taint};
pub use values::{
    Comparison, Duration, KubeletReq, Matching, Name, QuantityText, Upstream, UsageBound, ValueError,
};

#[cfg(test)]
mod load_tests;
