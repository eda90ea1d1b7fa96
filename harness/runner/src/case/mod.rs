//! The case files: their shape, and reading them with errors that lead to the line.

mod schema;
mod values;

pub use schema::{
    Case, ContainerLimit, EphemeralContainer, Expect, Figures, KnownBug, Message, Presence, Pressure, Refused,
    Resource, Signal, VolumeLimit, Witness,
};
pub use values::{Comparison, Duration, KubeletReq, Name, QuantityText, Upstream, UsageBound, ValueError};
