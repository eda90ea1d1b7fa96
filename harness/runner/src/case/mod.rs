//! The case files: their shape, and reading them with errors that lead to the line.

mod checks;
mod json_schema;
mod load;
mod positions;
mod problem;
mod refusal;
mod schema;
mod values;

pub use json_schema::json_schema;
pub(crate) use load::named_twice;
pub use load::{LoadedCase, SCHEMA_FILE, Source, load, load_paths, parse};
pub use problem::{LoadErrors, Mark, Place, Problem};
pub(crate) use problem::{did_you_mean, nearest};
pub use schema::{
    Case, ContainerLimit, EphemeralContainer, Expect, Figures, KnownBug, Message, Presence, Pressure,
    Refused, Resource, Signal, VolumeLimit, Witness,
};
pub use values::{Comparison, Duration, KubeletReq, Name, QuantityText, Upstream, UsageBound, ValueError};

#[cfg(test)]
mod load_tests;
