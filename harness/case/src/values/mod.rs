//! Scalar values of a case file. Each is parsed from text, with errors that explain the syntax.

mod duration_text;
mod error;
mod from_text;
mod kubelet_requirement;
mod name;
mod pattern;
mod quantity_text;
mod resized_request;
mod upstream;
mod usage_bound;
mod whole_seconds;

pub use duration_text::DurationText;
pub(crate) use duration_text::MAX_DURATION;
pub use error::ValueError;
pub use kubelet_requirement::KubeletRequirement;
pub use name::Name;
pub use pattern::Pattern;
pub(crate) use pattern::regex_problem;
pub use quantity_text::QuantityText;
pub use resized_request::ResizedRequest;
pub use upstream::Upstream;
pub use usage_bound::{Comparison, UsageBound};
pub use whole_seconds::WholeSeconds;
