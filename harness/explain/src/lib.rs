//! Explanations of pod evictions, from Events, Pods, Nodes or eviction messages of any cluster.
//!
//! An explanation states which eviction threshold was met and by how much, which containers the
//! message names and why not the others, whether event, status, condition and annotations are
//! consistent, and which known bugs match. No cluster is needed:
//!
//! ```
//! use evictlab_explain::{Input, explain};
//!
//! let input = Input::read(
//!     "The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi. ",
//! )?;
//! let explanations = explain(&input, None)?;
//! assert!(explanations[0].to_string().contains("48Mi below the threshold of 100Mi"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(unreachable_pub)]

mod consistency;
mod containers;
mod cut_input;
mod describe;
mod explain;
mod explanation;
mod input;
mod input_document;
mod input_index;
mod kernel_log;
mod known_bugs;
mod kubelet_log;
mod line_context;
mod log_line;
mod message_text;
mod objects;
mod other_causes;
mod pod_in_line;
mod read_input;
mod stated_version;
mod table;
mod text;
mod text_case;
mod text_cause;
mod text_cursor;
mod text_encoding;
mod text_input;
mod why;

#[cfg(test)]
mod error_texts;

pub use explain::{ExplainError, explain};
pub use explanation::{
    ConsistencyCheck, ContainerKind, ContainerReport, Explanation, MatchingBug, PodLevelReport, Unnamed,
};
pub use input::{Input, InputError};
pub use known_bugs::{BUG_PATTERNS, BugPattern};
pub use stated_version::StatedVersion;
pub use text::{TITLES, amount, render};
pub use text_encoding::{EncodingError, decode_text};
