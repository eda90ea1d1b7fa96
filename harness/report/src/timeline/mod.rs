//! Timelines of cases: read from the evidence, drawn as SVG.

mod axis;
mod draw;
mod model;
mod read;
mod unit;

pub(crate) use draw::{STYLE, inline_svg, standalone_svg};
pub(crate) use model::Timeline;
